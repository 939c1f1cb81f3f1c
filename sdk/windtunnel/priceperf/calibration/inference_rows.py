"""Read `published_inference.csv`: every inference throughput on AWS's Neuron pages that can be modelled.

The rows are of trn1.2xlarge and inf2.xlarge, Neuron 2.8 to 2.28: encoders and GPT-2 at 128 tokens, ViT-Base at 197
patches (224 x 224), fp32 storage with bf16 products, traced whole, data-parallel. Those of Neuron 2.8 are from the page
of 2023-04-12, with its costs. Pages of 2.8 and 2.9 do not state the sequence length, later ones do. ``output``:
whether the benchmark script returned hidden states. ``use`` ``test``: rows of families that were set aside before
any constant was fitted; no constant is fitted to them.

Not in the file: seven figures that contradict themselves (throughput and latency of different calls, shifted columns);
ViT before 2.14, which AWS's script compiled without ``--model-type=transformer``; CNNs, CLIP, Perceiver and diffusion;
models split over cores. ALBERT, RoBERTa, CamemBERT and ELECTRA have BERT's dimensions.

A new row is a line in that file; then run scripts/fit_calibrations.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from ..errors import InvalidInput, did_you_mean
from ..instances import InstanceType, instance_type
from ..model.architectures import ARCHITECTURES, Architecture, architecture
from ..model.config_json import from_config
from ..model.hub_models import hub_config
from ..model.inference_call import MODELLED_FAMILIES, Inference, stored_gib
from .data_files import table

Use = Literal["fit", "test"]
_IN_FLIGHT = (1, 2, 4)
"""Possible calls at a time behind a published latency: one for both cores, one for each, or two for each."""


@dataclass(frozen=True)
class InferenceRow:
    """One published figure. Throughput in inferences per second, latencies in milliseconds."""

    model: str
    architecture: str
    instance_type: str
    inference: Inference
    neuron_version: tuple[int, int]
    throughput_per_s: float
    latency_p50_ms: float
    latency_p99_ms: float
    usd_per_million: float | None
    source: str

    @property
    def instance(self) -> InstanceType:
        """The instance type that it ran on."""
        return instance_type(self.instance_type)

    @property
    def in_flight(self) -> int:
        """Calls at a time, by Little's law (throughput x latency), rounded to a usual number."""
        calls = self.throughput_per_s * self.latency_p50_ms / 1e3 / self.inference.batch_size
        return min(_IN_FLIGHT, key=lambda count: abs(count - calls))


@cache
def inference_rows(use: Use = "fit") -> tuple[InferenceRow, ...]:
    """The rows to which the constants are fitted (``fit``), or those that were set aside (``test``)."""
    return tuple(_row(line) for line in table("published_inference") if line["use"] == use)


def _row(line: dict[str, str]) -> InferenceRow:
    major, minor = line["neuron_version"].split(".")
    return InferenceRow(
        model=line["model"],
        architecture=line["architecture"],
        instance_type=line["instance_type"],
        inference=Inference(
            ARCHITECTURES[line["architecture"]],
            int(line["batch_size"]),
            int(line["sequence_length"]),
            hidden_output=line["output"] == "hidden",
        ),
        neuron_version=(int(major), int(minor)),
        throughput_per_s=float(line["throughput_per_second"]),
        latency_p50_ms=float(line["latency_p50_ms"]),
        latency_p99_ms=float(line["latency_p99_ms"]),
        usd_per_million=float(line["usd_per_million"]) if line["usd_per_million"] else None,
        source=line["source"],
    )


def architecture_of(name: str) -> Architecture:
    """The dimensions of an architecture, of a published model by its name (``roberta-base``), with or without its
    owner on the Hugging Face hub, or of a model that is known without it (``ViT-Large``).

    Raises:
        InvalidInput: the name is none of them; the message lists architectures that fit a core, and published models.
    """
    by_model = {row.model: row.architecture for use in get_args(Use) for row in inference_rows(use)}
    short = {model.rpartition("/")[2]: known for model, known in by_model.items()}
    found = architecture(
        {**by_model, **short}.get(name.lower()) or short.get(name.lower().rpartition("/")[2], name)
    )
    if found is None and (config := hub_config(name)) is not None:
        found, _ = from_config(config)
    if found is None:
        modelled = [known for known, one in ARCHITECTURES.items() if _is_offered(one)]
        raise InvalidInput(
            f"architecture {name!r} is not known.{did_you_mean(name, [*modelled, *short])} "
            f"Known: {', '.join(modelled)}; and the models "
            f"{', '.join(sorted(short))}."
        )
    return found


def _is_offered(model: Architecture) -> bool:
    """Whether its inference is modelled, and one core has memory for it."""
    core_gib = instance_type("trn1.2xlarge").core_memory_gib
    return model.family in MODELLED_FAMILIES and stored_gib(model) <= core_gib
