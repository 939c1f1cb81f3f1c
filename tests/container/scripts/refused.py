"""Says what answers whoever reaches what is not simulated by another name than those of the table."""

import torch
import torch_xla
from saying import say
from torch_xla.experimental import custom_kernel  # noqa: F401 - registers the operator
from torch_xla.experimental.stablehlo_custom_call import place_to_host

value = torch.ones(2, device=torch_xla.device())


def answer(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


say(
    registered=answer(lambda: torch.ops.xla.flash_attention(value, value, value)),
    call=answer(lambda: place_to_host(value)),
)
