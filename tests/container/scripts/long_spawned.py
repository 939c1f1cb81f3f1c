"""xmp.spawn starts one core, whose first step takes long: it waits for a worker of its loader."""

from neuron_sim.counters import pulse

pulse.EVERY_S = 0.2  # as it stands before the device is there

import torch
import torch_xla
import torch_xla.distributed.xla_multiprocessing as xmp
from neuron_sim.diagnostics import progress
from torch.utils.data import DataLoader

progress.LONG_S = 1.0


def _mp_fn(index):
    device = torch_xla.device()
    model = torch.nn.Linear(4, 4).to(device)
    # The worker imports this file anew, torch_xla with it, and lives as long as the pass.
    loader = DataLoader(torch.zeros(8, 4), 4, num_workers=1, multiprocessing_context="spawn")
    for batch in loader:  # line: waits
        model(batch.to(device)).sum().backward()
        torch_xla.sync()
        break
    print("the end")


if __name__ == "__main__":
    xmp.spawn(_mp_fn, start_method="fork")
