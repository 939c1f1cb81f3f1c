"""In-place operations on the device and on the CPU: the same values, and the same errors."""

import torch
import torch_xla
from saying import say

FITTING = [
    lambda x: x.add_(torch.ones_like(x)),
    lambda x: x.add_(torch.ones(4, device=x.device)),
    lambda x: x.mul_(0.5).add_(torch.tensor(2.0, device=x.device), alpha=3),
    lambda x: x.lerp_(torch.ones_like(x), 0.25),
    lambda x: x.addcmul_(torch.ones_like(x), torch.full_like(x, 2), value=0.1),
    lambda x: x.addcdiv_(torch.ones_like(x), torch.tensor(4.0, device=x.device), value=-1),
    lambda x: x.bfloat16().mul_(torch.ones(3, 4, device=x.device, dtype=torch.bfloat16)),
    lambda x: x[:, 1:3].mul_(torch.full((3, 2), 3.0, device=x.device)),
    lambda x: x.int().add_(torch.ones(3, 4, device=x.device, dtype=torch.int32)),
]
REFUSED = [
    lambda x: x[0].add_(x),
    lambda x: x[0].mul_(x),
    lambda x: x.lerp_(torch.ones(2, 3, 4, device=x.device), 0.25),
    lambda x: x.addcmul_(torch.ones(2, 3, 4, device=x.device), x),
    lambda x: x.addcdiv_(torch.ones(5, device=x.device), x),
    lambda x: x.lerp_(torch.tensor(1.0, device=x.device, dtype=torch.float64), 0.5),
    lambda x: x.addcdiv_(*[torch.tensor(1, device=x.device)] * 2),
]


def tried(function, device):
    x = torch.arange(12.0).reshape(3, 4).to(device)
    try:
        return function(x).cpu(), x.cpu()
    except RuntimeError:
        return None


alike = []
for function in FITTING:
    on_host, on_device = (tried(function, device) for device in ("cpu", torch_xla.device()))
    alike.append(all(torch.equal(one, other) for one, other in zip(on_host, on_device, strict=True)))
refused = [tried(function, device) is None for function in REFUSED for device in ("cpu", torch_xla.device())]
say(alike=alike, refused=refused)
