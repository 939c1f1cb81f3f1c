"""Says what each feature that is not simulated answers."""

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.runtime as xr
from saying import say

import torch_neuronx
from torch_neuronx import trace

value = torch.ones(2, device=torch_xla.device())


def answer(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


say(
    send=answer(lambda: xm.send(value, 1)),
    recv=answer(lambda: xm.recv(value, 1)),
    spmd=answer(xr.use_spmd),
    trace=answer(lambda: trace(torch.nn.Linear(2, 2), value)),
    other=answer(lambda: torch_neuronx.something_else),
)
