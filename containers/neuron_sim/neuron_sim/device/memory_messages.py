"""The texts of errors when device memory does not suffice. Pure.

They begin with the words of the Neuron runtime's log (AWS Neuron documentation, "Neuron device memory",
out-of-memory errors). There 1 GB is 2**30 bytes, and tensors and scratchpad are two uses of memory.
"""

from __future__ import annotations

from collections.abc import Mapping

_TODO = {
    "temporaries": (
        "a smaller batch with gradient accumulation, bf16 activations (torch.autocast('xla', dtype=torch.bfloat16)), "
        "or recomputing them (torch_xla.utils.checkpoint.checkpoint)"
    ),
    "optimizer_state": "ZeRO-1 (ZeroRedundancyOptimizer), which shares the optimizer's state out over the cores",
    "parameters": "bf16 parameters (model.to(torch.bfloat16)), or FSDP (XlaFullyShardedDataParallel)",
    "gradients": "bf16 parameters, whose gradients are bf16 too, or FSDP (XlaFullyShardedDataParallel)",
    "other": "not keeping tensors on the device longer than needed (lists of losses or outputs; .detach(), del)",
}
_SHORT = {name: name.replace("_", " ") for name in _TODO} | {"other": "other tensors"}


def message(
    parts: Mapping[str, int], before: int, limit: int, core: int, cores_per_device: int, line: str, use: str
) -> str:
    """The error of a core that needs ``parts`` (bytes by use), more than ``limit``; it had ``before`` bytes so far.

    ``use``: tensors or scratchpad, whichever did not fit any more.
    """
    total = sum(parts.values())
    asked = max(total - before, total - limit)
    return (
        f"RESOURCE_EXHAUSTED: Failed to allocate {_gb(asked)} (alignment: none, usage: {use}) on "
        f"ND {core // cores_per_device}:NC {core} (simulated): at {line} this core needs {_gb(total)} of device "
        f"memory and has {_gb(limit)}: {shares(parts)}. Temporaries are as XLA's CPU compiler plans them, a "
        f"stand-in for neuronx-cc. To fit: {todo(parts)}."
    )


def host_message(parts: Mapping[str, int], capacity: int, limit: int, workers: int, line: str) -> str:
    """The error when the device would have enough memory, but this machine cannot simulate it."""
    total = sum(parts.values())
    return (
        f"this machine's memory does not suffice to simulate the device at {line}: {workers} workers need "
        f"{_gb(total)} each ({shares(parts)}), and there are {_gb(capacity)} here. A core of the device has "
        f"{_gb(limit)}: there it fits. Rehearse with fewer workers (local_cores=), a smaller model or batch, "
        "or a machine with more memory."
    )


def shares(parts: Mapping[str, int]) -> str:
    """``parameters 3.000GB, gradients 3.000GB``: the largest first."""
    present = sorted(((size, name) for name, size in parts.items() if size), reverse=True)
    return ", ".join(f"{_SHORT.get(name, name)} {_gb(size)}" for size, name in present) or "nothing"


def todo(parts: Mapping[str, int]) -> str:
    """What to do about the two largest parts."""
    largest = sorted(parts, key=lambda name: -parts[name])[:2]
    return "; ".join(_TODO[name] for name in largest if parts[name] and name in _TODO)


def _gb(size: int) -> str:
    return f"{size / 2**30:.3f}GB"
