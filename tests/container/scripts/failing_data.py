"""A dataset that fails at its third batch, which MpDeviceLoader reads in a thread of its own; on several cores, the
last one's alone."""

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.runtime as xr

FAILS = xr.global_ordinal() == xr.world_size() - 1


class Failing(torch.utils.data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        if index > 7 and FAILS:
            raise KeyError("img")
        return torch.ones(4)


device = torch_xla.device()
loader = torch.utils.data.DataLoader(Failing(), batch_size=4)  # line: made
for batch in pl.MpDeviceLoader(loader, device):
    print("mean", xm.all_reduce(xm.REDUCE_SUM, batch.mean()).item())
print("the script has not noticed")
