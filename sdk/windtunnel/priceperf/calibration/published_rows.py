"""`published_rows.csv`: the published training throughputs that the constants are fitted to.

On trn1: BERT, GPT-3, Llama and ViT, which are AWS's, medians over Neuron versions with the lowest and the
highest (`versions` has them one by one). On A100s: NVIDIA's BERT, with attention as products and a softmax, in
mixed precision (fp32 storage, fp16 products) or TF32; MosaicML's MPT with FSDP, bf16 and FlashAttention, on one
node and on many; NVIDIA's Megatron-LM of 2021 and 2022. On H100s: MosaicML's MPT, also with fp8; Llama by torchtitan
and AXLearn. Throughputs are in sequences per second over all nodes. ``network_gbps`` is that of one node where it
is not the instance type's; ``stack`` the software, which is what the rows of one source have in common.

A new row is a line in that file; then run scripts/fit_calibrations.py.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

from ..instances import instance_type
from .row_reader import PublishedRow, read_rows


def csv_text() -> str:
    """The file."""
    return files(__package__).joinpath("published_rows.csv").read_text(encoding="utf-8")


@cache
def rows_of(key: str) -> tuple[PublishedRow, ...]:
    """The rows that calibrate one kind of accelerator."""
    return tuple(row for row in _rows() if instance_type(row.instance_type).calibration == key)


@cache
def _rows() -> tuple[PublishedRow, ...]:
    found = []
    for read in read_rows(list(csv.DictReader(csv_text().splitlines()))):
        # Nothing of the model's own data may be left to assumptions, but what a source does not say.
        if read.row is None or set(read.row.lacks) - {"recompute"} or len(read.notes) > len(read.row.lacks):
            raise ValueError(f"published_rows.csv: {read.config}: {read.reason or read.notes}")
        found.append(read.row)
    return tuple(found)
