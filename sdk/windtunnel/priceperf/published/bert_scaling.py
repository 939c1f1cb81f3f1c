"""AWS's published throughputs of BERT-Large's pre-training on trn1, one node and sixteen, compared with predictions.

The script is `dp_bert_large_hf_pretrain_hdf5.py` of aws-neuron-samples, launched on AWS ParallelCluster as in
aws-neuron-parallelcluster-samples. Each figure is predicted by constants fitted without any of these rows: all rows of
BERT-Large by that script, on one node or many, are left out together (`left_out`), and the effect of a Neuron version
is taken from other models. So no figure here took part in its own prediction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from ..calibration.fitting import fit
from ..calibration.left_out import group_of
from ..calibration.published_rows import rows_of
from ..calibration.row_reader import PublishedRow
from ..calibration.versions import log_speed, published_figure
from ..model.described_step import training_step
from ..model.engines import Constants
from ..model.precision import AUTO_CAST
from ..workload.cluster import Cluster, Run
from ..workload.workload import CountedWorkload

SOURCE = "AWS Neuron documentation, Trn1 training performance pages"
_CALIBRATION = "trn1"
_SAME = 0.03
"""Relative difference up to which a counted model's size is taken for BERT-Large's."""


@dataclass(frozen=True)
class PublishedScaling:
    """One figure as AWS printed it. ``scaling``: AWS's word. ``config``: name of the calibration's row.

    ``format``: ``bf16``: weights and products (with stochastic rounding); ``amp``: torch's autocast; ``fp32``:
    weights in fp32, with products that the compiler casts.
    ``sequences_per_second``: None: that of the row and version in the calibration. ``global_batch``: None: the row's.
    """

    config: str
    neuron_version: str
    optimizer: Literal["AdamW", "LAMB"]
    scaling: Literal["strong", "weak"]
    sequences_per_second: float | None = None
    global_batch: int | None = None
    note: str = ""
    format: Literal["bf16", "amp", "fp32"] = "bf16"

    @property
    def row(self) -> PublishedRow:
        """The calibration's row with this figure and global batch."""
        found = next(row for row in rows_of(_CALIBRATION) if row.config == self.config)
        training = found.training
        if self.global_batch is not None:
            training = replace(training, global_batch=self.global_batch)
        return replace(found, training=training, published=self.published, neuron_version=self.neuron_version)

    @property
    def published(self) -> float:
        """The published sequences per second over all nodes."""
        if self.sequences_per_second is not None:
            return self.sequences_per_second
        return published_figure(self.config, self.neuron_version)


_STRONG = "BERT-L ph1 bf16 16n LAMB gbs1M"
PUBLISHED: tuple[PublishedScaling, ...] = (
    PublishedScaling("BERT-L ph1 bf16 1n AdamW gbs16k", "2.23.0", "AdamW", "strong"),
    PublishedScaling("BERT-L ph1 bf16 1n LAMB gbs64k", "2.22.0", "LAMB", "strong"),
    PublishedScaling("BERT-L ph1 bf16 16n LAMB gbs1M", "2.23.0", "LAMB", "weak"),
    PublishedScaling("BERT-L ph1 bf16 16n Adam gbs256k", "2.9.0", "AdamW", "weak"),
    PublishedScaling(
        _STRONG,
        "2.9.0",
        "LAMB",
        "strong",
        41242.0,
        65536,
        "AWS prints a global batch of 262,144 here, that of weak scaling with AdamW. Its script keeps 65,536 "
        "in strong scaling with LAMB, and so does its guide.",
    ),
    PublishedScaling("BERT-L ph1 AMP 16n AdamW gbs16k", "2.22.0", "AdamW", "strong", format="amp"),
    PublishedScaling("BERT-L ph1 fp32 16n LAMB gbs1M", "2.23.0", "LAMB", "weak", format="fp32"),
    PublishedScaling("BERT-L ph2 bf16 16n LAMB gbs512k", "2.9.0", "LAMB", "weak"),
)
"""The newest figure of each configuration on two printed pages (2023-04-12, 2025-05-20), or its last version's."""


@dataclass(frozen=True)
class Held:
    """One published figure and its predictions, made without any figure of BERT-Large on trn1.

    ``described``: sequences per second from the model's dimensions. ``counted``: from a rehearsal's counters;
    None if there is no rehearsal of the same configuration.
    """

    published: PublishedScaling
    described: float
    counted: float | None = None

    @property
    def described_error(self) -> float:
        """Relative error of ``described``: 0.1 is 10 % too fast."""
        return self.described / self.published.published - 1

    @property
    def counted_error(self) -> float | None:
        """Relative error of ``counted``; None without it."""
        return None if self.counted is None else self.counted / self.published.published - 1


def held(workload: CountedWorkload | None = None) -> tuple[Held, ...]:
    """Predict every published figure. ``workload``: a rehearsal, which also predicts figures with the same passes."""
    return tuple(_held(item, workload) for item in PUBLISHED)


def is_bert_large(workload: CountedWorkload) -> bool:
    """Whether the counted model has about as many weights as BERT-Large."""
    size = PUBLISHED[0].row.training.parameters
    return workload.parameters is not None and abs(workload.parameters / size - 1) <= _SAME


def same_configuration(workload: CountedWorkload, item: PublishedScaling) -> bool:
    """Whether a rehearsal ran the same passes as a published figure: model, sequences and tokens of a pass, formats.

    The optimizer is not compared: AdamW and LAMB move the same number of bytes.
    """
    training = item.row.training
    in_bf16 = any(flops for dtype, flops in workload.step.flops.items() if dtype == "bf16")
    stored_bytes = 2 if item.format == "bf16" else 4
    return (
        is_bert_large(workload)
        and workload.step.samples == training.microbatch
        and sequence_length(workload) == training.sequence_length
        and round(workload.parameter_bytes) == stored_bytes
        and in_bf16 == (item.format != "fp32")
    )


def sequence_length(workload: CountedWorkload) -> int | None:
    """Tokens of a sample, from the sides of attention scores; None without eager attention."""
    square = [
        item.rows
        for products in workload.step.products.values()
        for item in products
        if item.batched and item.rows == item.columns
    ]
    return round(max(square)) if square else None


def _held(item: PublishedScaling, workload: CountedWorkload | None) -> Held:
    row, constants = item.row, _without_bert()
    training, speed = row.training, math.exp(log_speed(item.neuron_version, but_family=row.family))
    described = training_step(training, row.instance, constants, row.nodes).total_s
    counted = None
    if workload is not None and same_configuration(workload, item):
        run = Run(Cluster(row.instance, row.nodes), training.global_batch, AUTO_CAST)
        counted = workload.accumulating().step_with(constants, run).total_s
    return Held(
        item,
        training.global_batch / described * speed,
        None if counted is None else training.global_batch / counted * speed,
    )


@cache
def _without_bert() -> Constants:
    """The constants fitted to all rows of trn1 except those of BERT-Large by AWS's script."""
    rows = rows_of(_CALIBRATION)
    own = group_of(PUBLISHED[0].row, "source")
    return fit([row for row in rows if group_of(row, "source") != own], _CALIBRATION)
