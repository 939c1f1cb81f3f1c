"""Loaders whose batches are no tensors: what the script gets of them, and how large they are taken to be."""

import dataclasses
import sys

import numpy as np
import torch
import torch_xla
from neuron_sim.counters.batches import samples_of
from saying import say
from torch.utils.data import DataLoader

torch_xla.device()
data = [(torch.randn(16), index) for index in range(64)]


class Values:
    """Its `values` and `dim` are no methods."""

    values, dim = np.ones(3), 16


@dataclasses.dataclass
class Fields:
    name: str
    values: torch.Tensor


def count(collate):
    return [len(list(batch)) for batch in DataLoader(data, batch_size=32, collate_fn=collate)]


endless = []
endless.append(endless)
say(
    zipped=count(lambda batch: zip(*batch)),
    generated=count(lambda batch: (torch.ones(1) for _ in batch)),
    objects=[
        type(batch).__name__ for batch in DataLoader(data, batch_size=32, collate_fn=lambda batch: Values())
    ],
    sizes=[
        samples_of(item)
        for item in (
            torch.ones(8, 2),
            {"x": np.ones((7, 2))},
            [("text", torch.ones(6))],
            torch.tensor(1.0),
            endless,
            Values(),
            "text",
            iter([torch.ones(5)]),
            Fields("text", torch.ones(4)),
        )
    ],
)
sys.exit(0)
