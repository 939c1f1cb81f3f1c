"""The last batch of a loader, in the samples that its batches have."""

from __future__ import annotations

import pytest

from neuron_sim.diagnostics.batch_sizes import Loader
from neuron_sim.rehearsal.passes import LoaderFacts


@pytest.mark.parametrize(
    ("size", "last", "batch", "samples"),
    [
        (8, 6, 8, 6),
        (8, 8, 8, 8),
        (1, 1, 16, 16),
        (4, 2, 8, 4),
        (32, 10, 10, 10),
        (None, None, 8, None),
    ],
)
def test_an_item_may_be_several_samples(
    size: int | None, last: int | None, batch: int, samples: int | None
) -> None:
    """As DLRM's, each a batch: its loader was said to end with a batch of 1 instead of 16."""
    loader = Loader(facts=LoaderFacts(batches=40, last=last, size=size))
    loader.came(batch, "train.py:1")
    assert loader.last == samples
