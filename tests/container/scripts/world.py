"""Says who this core believes to be, through every name that scripts use."""

import os

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend
import torch_xla.runtime as xr
from saying import say
from torch_neuronx.utils import get_platform_target

dist.init_process_group("xla")
device = torch_xla.device()
say(
    world=[
        xr.world_size(),
        dist.get_world_size(),
        xr.global_device_count(),
        len(xm.xla_replication_devices([device])),
    ],
    ordinal=[xr.global_ordinal(), dist.get_rank(), xr.process_index(), xr.local_ordinal()],
    kind=xm.xla_device_kind(),
    hardware=xm.xla_device_hw(device),
    device_type=xr.device_type(),
    platform=get_platform_target(),
    device=str(device),
    master=xm.is_master_ordinal(),
    old={name: getattr(xm, name)() for name in ("xrt_world_size", "get_ordinal") if hasattr(xm, name)},
    visible_cores=os.environ["NEURON_RT_VISIBLE_CORES"],
    root=os.environ["NEURON_RT_ROOT_COMM_ID"].partition(":")[2],
    bucket=os.environ["ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB"],
    computed=(torch.ones(3, device=device) * 2).sum().item(),
)
