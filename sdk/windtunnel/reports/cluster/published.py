"""AWS's published figures of BERT-Large beside their predictions, from a rehearsal and from the model's dimensions."""

from __future__ import annotations

from typing import Any

from windtunnel.priceperf import Scaling
from windtunnel.priceperf.published.bert_scaling import SOURCE, Held
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Row, Section
from windtunnel.reports.cluster.modelled import Modelled
from windtunnel.reports.modelled.data import rounded

TITLE = "AWS's published figures, predicted without any of them"


def error(value: float | None) -> str:
    """An error as ``+7.0 %``; empty for None."""
    return "" if value is None else f"{value * 100:+.1f} %"


def section(found: Modelled) -> Section | None:
    """The section on published figures; None where the job trained another model."""
    if not found.published:
        return None
    rows = [_row(item) for item in found.published]
    notes = [
        "Each is predicted by constants fitted without BERT-Large on trn1: with all of these figures left out, one "
        "node or sixteen. What a Neuron version changed is taken from other models. Error: predicted beside published.",
        "Rehearsal: from this job's counters, where it ran the same passes (sequences, tokens and formats of one). "
        "The optimizer is not told apart. Dimensions: from the model's description, without a rehearsal.",
        *dict.fromkeys(item.published.note for item in found.published if item.published.note),
        f"{SOURCE}; 'strong' and 'weak' are AWS's words.",
    ]
    return Section(
        TITLE,
        "published",
        "sequences/s over all nodes",
        (
            "batch",
            "tokens",
            "trained as",
            "Neuron",
            "AWS",
            "from rehearsal",
            "from dimensions",
        ),
        tuple(rows),
        tuple(notes),
        label_header="nodes",
    )


def _row(item: Held) -> Row:
    printed, training = item.published, item.published.row.training
    return Row(
        f"{printed.row.nodes} {printed.scaling}",
        (
            fmt.plain(training.global_batch),
            str(training.sequence_length),
            f"{printed.format} {printed.optimizer}",
            printed.neuron_version.rpartition(".")[0],
            f"{printed.published:,.0f}",
            "" if item.counted is None else f"{item.counted:,.0f} ({error(item.counted_error)})",
            f"{item.described:,.0f} ({error(item.described_error)})",
        ),
    )


def beside(found: Modelled, table: Scaling) -> tuple[str, ...]:
    """A note for each row of a scaling table for which AWS published a figure, too."""
    notes = []
    for row in table.rows:
        item = found.published_at(row.instances, row.global_batch)
        if item is not None and item.counted is not None:
            printed = item.published
            notes.append(
                f"{fmt.many(row.instances, 'node')}: AWS printed {printed.published:,.0f} "
                f"samples/s ({printed.optimizer}, Neuron {printed.neuron_version}); without it and its like in the fit "
                f"this rehearsal predicts {item.counted:,.0f}, {error(item.counted_error)}."
            )
    return tuple(notes)


def sentence(found: Modelled) -> str:
    """How far this rehearsal is off on AWS's figures for its own configuration; empty where there are none."""
    errors = [item.counted_error for item in found.same if item.counted_error is not None]
    if not errors:
        return ""
    most = max((item for item in found.same), key=lambda item: item.published.published)
    printed = most.published
    return (
        f"AWS printed {printed.published:,.0f}/s on {printed.row.nodes} nodes ({printed.scaling}, batch "
        f"{printed.row.training.global_batch:,.0f}); predicted without it: {most.counted:,.0f} "
        f"({error(most.counted_error)}). All {len(errors)} of this configuration: {error(min(errors))} to "
        f"{error(max(errors))}."
    )


def data(item: Held) -> dict[str, Any]:
    """A published figure and its predictions as data for JSON."""
    printed, row = item.published, item.published.row
    return {
        "nodes": row.nodes,
        "scaling": printed.scaling,
        "global_batch": row.training.global_batch,
        "samples_per_pass": row.training.microbatch,
        "sequence_length": row.training.sequence_length,
        "format": printed.format,
        "optimizer": printed.optimizer,
        "neuron_version": printed.neuron_version,
        "published_samples_per_s": printed.published,
        "left_out": True,
        "from_rehearsal_samples_per_s": None if item.counted is None else rounded(item.counted),
        "from_rehearsal_error": None if item.counted_error is None else rounded(item.counted_error),
        "from_dimensions_samples_per_s": rounded(item.described),
        "from_dimensions_error": rounded(item.described_error),
        "note": printed.note,
        "source": SOURCE,
    }
