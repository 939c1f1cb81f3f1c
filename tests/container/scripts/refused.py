"""Says what each feature that is not simulated answers."""

import torch
import torch_xla
import torch_xla.distributed.spmd as xs
import torch_xla.runtime as xr
from saying import say
from torch_xla.experimental.custom_kernel import flash_attention
from torch_xla.experimental.stablehlo_custom_call import place_to_host

import torch_neuronx
from torch_neuronx.xla_impl import custom_op
from torch_neuronx.xla_impl.ops import nki_jit

value = torch.ones(2, device=torch_xla.device())


def answer(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


say(
    spmd=answer(xr.use_spmd),
    sharding=answer(lambda: xs.mark_sharding(value, None, (0,))),
    pallas=answer(lambda: flash_attention(value, value, value)),
    registered=answer(lambda: torch.ops.xla.flash_attention(value, value, value)),
    call=answer(lambda: place_to_host(value)),
    kernel=answer(lambda: nki_jit()(len)[1]([])),
    operator=answer(lambda: custom_op.load("mine", [], [], multicore=True)),
    other=answer(lambda: torch_neuronx.something_else),
)
