"""The published training throughputs: those that the constants are fitted to, and those that only judge them.

`published_fitted.csv` sets the constants.

On trn1: BERT, GPT-3, Llama and ViT, which are AWS's, medians over Neuron versions with the lowest and the
highest (`versions` has them one by one). On A100s: NVIDIA's BERT, with attention as products and a softmax, in
mixed precision (fp32 storage, fp16 products) or TF32; MosaicML's MPT with FSDP, bf16 and FlashAttention, on one
node and on many; NVIDIA's Megatron-LM of 2021 and 2022. On H100s: MosaicML's MPT, also with fp8; Llama by torchtitan
and AXLearn. Throughputs are in sequences per second over all nodes. ``network_gbps`` is that of one node where it
is not the instance type's; ``stack`` the software, which is what the rows of one source have in common.

`published_other_software.csv` has what other software reached, from plain scripts to NVIDIA's own, as far as its page
or its configuration files say what was trained. It was collected after the model and its constants were fixed. It sets
no constant: it says how far software that nobody fitted lies from the model (`left_out`).

`measured.csv` has what the project measured itself: plain scripts on an H100 (`measured_scripts`).
`measured_other_models.csv` has the same of models that no description tells, which can only be rehearsed
(`workload.rehearsed_scripts`). `published_other_models.csv` has what others published of such models, on an A100 or a
NeuronCore: one row set `engines.CONVOLVED`, the others set nothing.

`published_lora.csv` has rows that train adapters. The form of their model is counted (`model.lora`) and stood before
they were collected; they say how much less certain it is than that of trained weights (`widening`).

A new row is a line in one of the files; then run scripts/fit_calibrations.py.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ..instances import InstanceType, instance_type
from .data_files import table
from .row_reader import PublishedRow, read_rows


class OtherRun(NamedTuple):
    """A line of `measured_other_models.csv` or `published_other_models.csv`, as it stands there.

    ``reads``: of a NeuronCore, the part of its steps in which the script reads a value of the device.
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
        """On one of whose GPUs or NeuronCores it ran."""
        return instance_type(self.instance_type)


@cache
def rows_of(key: str) -> tuple[PublishedRow, ...]:
    """The rows that calibrate one kind of accelerator."""
    return tuple(row for row in _rows() if instance_type(row.instance_type).calibration == key)


def is_fitted(stack: str, key: str) -> bool:
    """Whether rows of that software calibrate one kind of accelerator."""
    return any(row.stack == stack for row in rows_of(key))


@cache
def elsewhere(key: str) -> tuple[PublishedRow, ...]:
    """Rows of one kind of accelerator that set no constant. What a page does not say they lack."""
    return tuple(row for row in _elsewhere() if row.calibration == key)


@cache
def adapted() -> tuple[PublishedRow, ...]:
    """Rows that train adapters (LoRA) beside frozen weights. They set no constant."""
    return _read("published_lora")


@cache
def measured() -> tuple[PublishedRow, ...]:
    """Plain scripts that the project measured. They set no constant of a calibration."""
    return _read("measured")


@cache
def measured_others() -> tuple[OtherRun, ...]:
    """Plain scripts of models that no description tells, as the project measured them."""
    return _other_runs("measured_other_models")


@cache
def published_others() -> tuple[OtherRun, ...]:
    """Scripts of such models that others published: NVIDIA on an A100, in TF32 and PyTorch's own memory format,
    and users on one NeuronCore.
    """
    return _other_runs("published_other_models")


def _other_runs(name: str) -> tuple[OtherRun, ...]:
    return tuple(OtherRun(**row) for row in table(name))


@cache
def _elsewhere() -> tuple[PublishedRow, ...]:
    return _read("published_other_software")


def _read(name: str) -> tuple[PublishedRow, ...]:
    return tuple(each.row for each in read_rows(table(name)) if each.row is not None)


@cache
def _rows() -> tuple[PublishedRow, ...]:
    found = []
    for read in read_rows(table("published_fitted")):
        # Nothing of the model's own data may be left to assumptions, but what a source does not say.
        if read.row is None or set(read.row.lacks) - {"recompute"} or len(read.notes) > len(read.row.lacks):
            raise ValueError(f"published_fitted.csv: {read.config}: {read.reason or read.notes}")
        found.append(read.row)
    return tuple(found)
