"""The bytes of parameters, gradients and optimizers' state in a training, and the size of its model."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from neuron_sim.counters import attention, model_parallel
from neuron_sim.counters.modules import children
from neuron_sim.counters.modules import live as live_modules
from neuron_sim.counters.modules import parameters as parameters_of

_NAMES = {
    torch.float32: "fp32",
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.float64: "fp64",
    torch.int64: "s64",
    torch.int32: "s32",
}


class Held:
    """The optimizers that have stepped in this process and still exist. Sizes are what this rank holds."""

    def __init__(self) -> None:
        """No optimizer has stepped."""
        self._known: WeakIdKeyDictionary = WeakIdKeyDictionary()
        self._found: WeakIdKeyDictionary = WeakIdKeyDictionary()

    def stepped(self, optimizer: Any) -> bool:
        """Note an optimizer whose step has just ended. Returns whether it is new; cheap if it is not.

        A wrapper that keeps shards in an optimizer of its own (ZeRO-1) counts for both: the model's
        parameters and gradients are the wrapper's, the state is that of the shards.
        """
        if optimizer in self._known:
            return False
        self._known[optimizer] = True
        inner = getattr(optimizer, "base_optimizer", None)
        if inner is not None:
            self._found.pop(inner, None)
        parameters = _parameters(optimizer)
        states = [optimizer, inner] if inner is not None else [optimizer]
        self._found[optimizer] = {
            "count": sum(parameter.numel() for parameter in parameters),
            "tensors": len(parameters),
            "parameters": _sizes(parameters),
            "gradients": _sizes(grad for grad in map(_gradient, parameters) if grad is not None),
            "optimizer": _sizes(itertools.chain.from_iterable(map(_state, states))),
        }
        return True

    def record(self) -> dict[str, Any]:
        """The sums over all optimizers. It searches all objects, so it is too slow for each step.

        ``count``: elements that they train here, ``tensors``: their parameters; ``model``, ``frozen``: see `_whole`.
        ``cores``: how many hold one copy of the model together; ``split``: see `model_parallel.split`.
        ``sdpa_elsewhere``, ``is_causal``: see `attention.elsewhere`.
        """
        found = list(self._found.values())
        trained = [parameter for optimizer in self._found for parameter in _parameters(optimizer)]
        modules = live_modules()
        whole = _whole(trained, modules)
        zero1 = any(getattr(optimizer, "base_optimizer", None) is not None for optimizer in self._found)
        dtypes = {
            key: dict(sum((each[key] for each in found), Counter()))
            for key in ("parameters", "gradients", "optimizer")
        }
        return {
            "kind": "parameters",
            "count": sum(each["count"] for each in found),
            "tensors": sum(each["tensors"] for each in found),
            "model": sum(map(_count, whole)),
            "frozen": sum(map(_count, filter(_is_frozen, whole))),
            "cores": model_parallel.cores_of_a_copy(),
            "split": model_parallel.split(trained, modules, zero1=zero1),
            **attention.elsewhere(trained, modules),
            "parameter_bytes": sum(dtypes["parameters"].values()),
            "gradient_bytes": sum(dtypes["gradients"].values()),
            "optimizer_bytes": sum(dtypes["optimizer"].values()),
            "dtypes": dtypes,
        }


def _parameters(optimizer: Any) -> list[torch.Tensor]:
    listed = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return list({id(parameter): parameter for parameter in listed}.values())


def _whole(trained: Iterable[torch.Tensor], modules: Sequence[torch.nn.Module]) -> list[torch.Tensor]:
    """All parameters, frozen ones too, of the outermost modules that hold the trained ones.

    An averaged copy, or a teacher, is a module of its own and does not count.
    """
    found = {id(parameter): parameter for parameter in trained}
    inner = {id(child) for module in modules for _, child in children(module)}
    for module in modules:
        if id(module) not in inner:
            own = {id(parameter): parameter for parameter in parameters_of(module)}
            if not found.keys().isdisjoint(own):
                found |= own
    return list(found.values())


def _count(parameter: torch.Tensor) -> int:
    """Elements of the whole parameter. At a shard, torch_xla's FSDP notes the whole size, NxD Core that it is one."""
    size: int = math.prod(getattr(parameter, "_orig_size", parameter.shape))
    is_shard = getattr(parameter, "tensor_model_parallel", False)
    return size * model_parallel.tensor_parallel_cores() if is_shard else size


def _is_frozen(parameter: torch.Tensor) -> bool:
    """Whether no core trains it. Parameters of a pipeline's other stages, which are not on the device, do not count."""
    return not parameter.requires_grad and parameter.device.type == "xla"


def _gradient(parameter: torch.Tensor) -> torch.Tensor | None:
    """A parameter's gradient. NxD Core adds it up in fp32 in `main_grad`."""
    return parameter.grad if parameter.grad is not None else getattr(parameter, "main_grad", None)


def _state(optimizer: Any) -> Iterator[torch.Tensor]:
    for state in optimizer.state.values():
        if isinstance(state, dict):
            yield from (value for value in state.values() if isinstance(value, torch.Tensor))


def _sizes(tensors: Iterable[torch.Tensor]) -> Counter[str]:
    """Bytes by dtype."""
    sizes: Counter[str] = Counter()
    for tensor in tensors:
        name = _NAMES.get(tensor.dtype, str(tensor.dtype).removeprefix("torch."))
        sizes[name] += tensor.numel() * tensor.element_size()
    return sizes
