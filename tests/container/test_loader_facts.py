"""What a batch says of the sequences that a model reads."""

from __future__ import annotations

import pytest
import torch

from neuron_sim.rehearsal.loader_facts import sequence_length

TOKENS, TRANSCRIPT = (torch.zeros(8, length, dtype=torch.int64) for length in (128, 10))


@pytest.mark.parametrize(
    ("batch", "length"),
    [
        (TOKENS, 128),
        ({"input_ids": TOKENS, "attention_mask": torch.ones(8, 128), "labels": torch.zeros(8)}, 128),
        ((torch.zeros(8, 3, 32, 32), torch.zeros(8)), None),
        ({"pixel_values": torch.zeros(8, 3, 32, 32), "input_ids": TOKENS}, 128),
        ((torch.zeros(8, 120, 40), TRANSCRIPT), None),
        ({"input_values": torch.zeros(8, 16_000), "labels": TRANSCRIPT}, None),
    ],
    ids=["tokens", "with a mask", "pictures", "pictures and text", "frames", "a sound"],
)
def test_the_length_is_that_of_the_tokens_which_a_model_reads(batch, length):
    """Not of a transcript beside the sound that it belongs to."""
    assert sequence_length(batch) == length
