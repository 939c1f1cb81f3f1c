"""The length of the sequences that a model reads, from a batch."""

import torch
import torch_xla

from neuron_sim.rehearsal.loader_facts import sequence_length

tokens, transcript = (torch.zeros(8, length, dtype=torch.int64) for length in (128, 10))
masked = {"input_ids": tokens, "attention_mask": torch.ones(8, 128), "labels": torch.zeros(8)}
pictures = torch.zeros(8, 3, 32, 32)
assert torch_xla.device()
assert sequence_length(tokens) == sequence_length(masked) == 128
assert sequence_length((pictures, torch.zeros(8))) is None
assert sequence_length({"pixel_values": pictures, "input_ids": tokens}) == 128
assert sequence_length((torch.zeros(8, 120, 40), transcript)) is None
assert sequence_length({"input_values": torch.zeros(8, 16_000), "labels": transcript}) is None
print("the end")
