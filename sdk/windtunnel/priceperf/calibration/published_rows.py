"""The published training throughputs: rows to which the constants are fitted, and rows that only test them.

`published_fitted.csv` has the rows to which the constants are fitted.

For trn1: AWS's BERT, GPT-3, Llama and ViT, as medians over Neuron versions with the lowest and the
highest (`versions` has each version). For A100s: NVIDIA's BERT, with attention as products and a softmax, in
mixed precision (fp32 storage, fp16 products) or TF32; MosaicML's MPT with FSDP, bf16 and FlashAttention, on one
node and on many; NVIDIA's Megatron-LM of 2021 and 2022. For H100s: MosaicML's MPT, also with fp8; Llama by torchtitan
and AXLearn. Throughputs are in sequences per second over all nodes. ``network_gbps``: of one node, if it is not
that of the instance type; ``stack``: the training software, which all rows of one source share.

`published_other_software.csv` has the throughputs of other software, from plain scripts to NVIDIA's own, as far as its
pages or configuration files say what was trained. They were collected after the model and its constants were fixed. No
constant is fitted to them: they show how wrong the model is for other software (`left_out`).

`measured.csv` has the project's own measurements: plain scripts on an H100 (`measured_scripts`). `torch_compile.csv`
names rows of both files that differ in torch.compile alone.
`measured_other_models.csv` has the same for models that cannot be described, only rehearsed
(`workload.rehearsed_scripts`). `published_other_models.csv` has published runs of such models, on an A100 or a
NeuronCore: `engines.CONVOLVED` comes from one row, no other constant is fitted to them.

`published_lora.csv` has rows that train adapters. The model of adapters is counted (`model.lora`), and was fixed before
these rows were collected; they show how much less certain it is than that of trained weights (`widening`).

A new row is a line in one of the files; then run scripts/fit_calibrations.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from ..instances import InstanceType, instance_type
from .data_files import table
from .row_reader import PublishedRow, read_rows


class OtherRun(NamedTuple):
    """A line of `measured_other_models.csv` or `published_other_models.csv`, as text.

    ``reads``: for a NeuronCore, the part of the steps in which the script reads a value from the device.
    """

    config: str
    model: str
    instance_type: str
    batch: str
    matmul_dtype: str
    samples_per_second: str
    source: str
    reads: str = ""

    @property
    def instance(self) -> InstanceType:
        """The instance type. The run used one of its GPUs or NeuronCores."""
        return instance_type(self.instance_type)


@cache
def rows_of(key: str) -> tuple[PublishedRow, ...]:
    """The rows to which one calibration is fitted."""
    return tuple(row for row in _rows() if row.calibration == key)


def is_fitted(stack: str, key: str) -> bool:
    """Whether a calibration is fitted to rows of that software, among others."""
    return any(row.stack == stack for row in rows_of(key))


@cache
def elsewhere(key: str) -> tuple[PublishedRow, ...]:
    """Rows of one kind of accelerator to which no constant is fitted. What their page does not say is in ``lacks``."""
    return tuple(row for row in _read("published_other_software") if row.calibration == key)


def adapted() -> tuple[PublishedRow, ...]:
    """Rows that train adapters (LoRA) with frozen weights. No constant is fitted to them."""
    return _read("published_lora")


def measured() -> tuple[PublishedRow, ...]:
    """Plain scripts that the project measured. No constant of a calibration is fitted to them."""
    return _read("measured")


def compiled_and_not() -> Iterator[tuple[PublishedRow, PublishedRow]]:
    """Runs with torch.compile, each with the same run without it."""
    known = {row.config: row for row in (*measured(), *_read("published_other_software"))}
    return ((known[pair["compiled"]], known[pair["uncompiled"]]) for pair in table("torch_compile"))


def measured_others() -> tuple[OtherRun, ...]:
    """Plain scripts of models that cannot be described, as the project measured them."""
    return _other_runs("measured_other_models")


def published_others() -> tuple[OtherRun, ...]:
    """Published runs of models that cannot be described: NVIDIA's on an A100, in TF32 and PyTorch's default memory
    format, and users' on one NeuronCore.
    """
    return _other_runs("published_other_models")


@cache
def _other_runs(name: str) -> tuple[OtherRun, ...]:
    return tuple(OtherRun(**row) for row in table(name))


@cache
def _read(name: str) -> tuple[PublishedRow, ...]:
    return tuple(each.row for each in read_rows(table(name)) if each.row is not None)


@cache
def _rows() -> tuple[PublishedRow, ...]:
    found = []
    for read in read_rows(table("published_fitted")):
        # In the fitted rows nothing may be assumed, except recomputation that a source does not state.
        if read.row is None or set(read.row.lacks) - {"recompute"} or len(read.notes) > len(read.row.lacks):
            raise ValueError(f"published_fitted.csv: {read.config}: {read.reason or read.notes}")
        found.append(read.row)
    return tuple(found)
