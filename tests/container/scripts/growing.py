"""A text that grows by a token at a time, with nothing that ends a step or fetches a value."""

import time

import torch
from neuron_sim.counters import pulse

pulse.EVERY_S = 0.2  # as it stands before the device is there

import torch_xla  # noqa: E402
from neuron_sim.diagnostics import progress  # noqa: E402

progress.LONG_S = 0.5

torch.manual_seed(0)
device = torch_xla.device()
embedding = torch.nn.Embedding(20, 8).to(device)
text = torch.zeros(1, 3, dtype=torch.long, device=device)
torch_xla.sync()
for _ in range(12):
    scores = embedding(text)[:, -1, :]
    scores[scores < 0] = 0.0  # line: cut
    text = torch.cat((text, scores.argmax(-1, keepdim=True)), dim=1)
    time.sleep(0.15)  # on a machine of any speed it lasts longer than LONG_S
print("generated")
