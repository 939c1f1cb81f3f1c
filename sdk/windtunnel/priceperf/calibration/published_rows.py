"""`published_rows.csv`: the published training throughputs that the constants are fitted to.

BERT, GPT-3, Llama and ViT on trn1 are AWS's, medians over Neuron versions with the lowest and the highest. On
eight A100-SXM4-40GB, which is what a p4d.24xlarge has: NVIDIA's BERT, with attention as products and a softmax,
in mixed precision (fp32 storage, fp16 products) or TF32; MosaicML's MPT with FSDP, bf16 and FlashAttention.
Throughputs are in sequences per second over all nodes.

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
        if read.row is None or read.notes:  # nothing of the model's own data may be left to assumptions
            raise ValueError(f"published_rows.csv: {read.config}: {read.reason or read.notes}")
        found.append(read.row)
    return tuple(found)
