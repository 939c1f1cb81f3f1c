"""What all collectives have in common: the ranks agree on what is called, and it is counted."""

from __future__ import annotations

import contextlib
import functools
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import torch

from neuron_sim import settings
from neuron_sim.counters import recorder, script_lines, script_time
from neuron_sim.counters.records import CollectiveKind
from neuron_sim.device import dynamo, world
from neuron_sim.errors import NeuronSimError
from neuron_sim.interconnect.communicator import Communicator
from neuron_sim.interconnect.long_wait import Patience

F = TypeVar("F", bound=Callable[..., Any])
Groups = Sequence[Sequence[int]]
Tensors: TypeAlias = torch.Tensor | Sequence[torch.Tensor]

_current: settings.Settings | None = None
_communicator: Communicator | None = None
_bring: Callable[[Sequence[torch.Tensor]], None] | None = None


def start(current: settings.Settings, bring: Callable[[Sequence[torch.Tensor]], None]) -> None:
    """Prepare; the first collective opens the communicator. ``bring`` gets this core's tensors of each collective."""
    global _current, _bring
    _current, _bring = current, bring


def communicator() -> Communicator:
    """This core's communicator; made at the first collective, when the rank is known."""
    global _communicator
    if _communicator is None:
        if _current is None:
            raise NeuronSimError("a collective was called in a process that is no core")
        _communicator = Communicator(
            world.me(),
            _current.shared_memory_mib * 2**20,
            _current.collective_timeout_s,
            Patience(settings.waits_dir()),
        )
    return _communicator


def join() -> None:
    """Let the other cores of this host notice when this one ends. Errors come up at the first use of the device."""
    if _current is not None:
        with contextlib.suppress(NeuronSimError, OSError):
            communicator().join()


def remark(text: str) -> None:
    """Set what the other cores report if they miss this one; without a communicator it has no effect."""
    if _communicator is not None:
        _communicator.remark(text)


def leave(*, failed: bool = False) -> None:
    """Take part in no further collective. Blocks until what was sent is received, unless the script has failed."""
    if _communicator is not None:
        _communicator.leave(failed=failed)


def of_xlac(function: F) -> F:
    """Decorate a function of `_XLAC`: like torch_xla's own, it refuses tensors of the host."""

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        with script_time.aside():
            for argument in arguments:
                _expect_of_device(argument)
            return function(*arguments)

    return call  # type: ignore[return-value]


def kernel(traced: Callable[..., torch.Tensor]) -> Callable[[F], F]:
    """Decorate a kernel of `_c10d_functional`.

    ``traced`` gives a tensor of the right shape, which is enough while torch.compile only traces a function.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*arguments: Any) -> torch.Tensor:
            with script_time.aside():
                return (traced if dynamo.tracing() else function)(*arguments)

        return call  # type: ignore[return-value]

    return decorate


class Operation:
    """Agreement, timing and counting around one collective."""

    def __init__(
        self,
        kind: CollectiveKind,
        tensors: Sequence[torch.Tensor],
        groups: Groups | None,
        detail: str = "",
    ) -> None:
        """``tensors``: this rank's inputs, on the host. ``groups``: None or empty for all ranks."""
        self._kind = kind
        self._bytes = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        if _bring is not None:
            _bring(tensors)
        self.communicator = communicator()
        self.group = self.communicator.group_of(groups)
        self._what = f"{kind}{detail} of {shapes_of(tensors)} ({self._bytes} bytes){self._among()}"
        self._started = 0.0

    def __enter__(self) -> Operation:
        self._started = time.perf_counter()
        # The ranks compare it in the first meeting of what follows.
        self.communicator.announce(self.group, f"{self._what} at {script_lines.calling_line()}")
        return self

    def __exit__(self, *exception: object) -> None:
        if exception[0] is None:
            self.communicator.settle()
            recorder.counting.collective(self._kind, self._bytes, time.perf_counter() - self._started)

    def expect_shards(self, shard_count: int) -> None:
        """Raise ValueError unless there is one shard for each rank of the group."""
        if shard_count != len(self.group):
            raise ValueError(
                f"shard_count={shard_count}, but the group {self.group} has {len(self.group)} ranks"
            )

    def parts_of(self, tensor: torch.Tensor, dim: int) -> torch.Tensor:
        """A tensor cut along ``dim``, a part for each rank of the group. Raises ValueError if it cannot be cut so."""
        count = len(self.group)
        expect_dimension(tensor, dim)
        if tensor.shape[dim] % count:
            raise ValueError(
                f"dimension {dim} of shape {list(tensor.shape)} has {tensor.shape[dim]} entries, "
                f"which {count} ranks cannot share evenly: pad it to a multiple of {count}"
            )
        return torch.stack(tensor.chunk(count, dim=dim))

    def _among(self) -> str:
        """The ranks, in the order in which all_gather puts their parts; left out where they are all ranks."""
        everyone = self.group == list(range(world.me().world_size))
        return "" if everyone else f" in group {self.group}"


def as_list(tensors: Tensors) -> Sequence[torch.Tensor]:
    """The tensors as a sequence, also if there is only one."""
    return [tensors] if isinstance(tensors, torch.Tensor) else tensors


def ranks_of(group_name: str) -> list[int]:
    """The ranks of a c10d group by name; xm passes an empty one for all."""
    if not group_name:
        return communicator().group_of(None)
    from torch.distributed.distributed_c10d import _resolve_process_group, get_process_group_ranks

    return list(get_process_group_ranks(_resolve_process_group(group_name)))


def reduction_of(reduce_op: str, count: int) -> tuple[str, float]:
    """c10d's reduction as `_XLAC` takes it: its name, and what the result is multiplied by."""
    return ("sum", 1.0 / count) if reduce_op == "avg" else (reduce_op, 1.0)


def expect_dimension(tensor: torch.Tensor, dim: int) -> None:
    """Raise ValueError unless the tensor has this dimension; for calls that torch_xla passes on to XLA unchecked."""
    if not 0 <= dim < tensor.dim():
        raise ValueError(
            f"dimension {dim} of shape {list(tensor.shape)} does not exist. XLA counts from 0 to {tensor.dim() - 1}, "
            "and none from the end."
        )


def scaled(tensor: torch.Tensor, scale: float) -> torch.Tensor:
    """Multiply a reduction's own result as XLA does: by the scale in the tensor's dtype, so 0.5 is 0 for integers."""
    return tensor if scale == 1.0 else tensor.mul_(torch.tensor(scale).to(tensor.dtype))


def variable(result: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Make a result require a gradient if its input does, as some functions of torch_xla do.

    No gradient passes through to the input: `loss.backward()` silently ends there.
    """
    return result.requires_grad_(value.requires_grad)


def shapes_of(tensors: Sequence[torch.Tensor]) -> str:
    """Dtypes and shapes, the first few in full, the rest as a checksum.

    A single number counts as `[1]` in any shape: stages of a pipeline share a loss that is `[]` on the last stage and
    `[1]` elsewhere.
    """
    shapes = [list(tensor.shape) if tensor.numel() != 1 else [1] for tensor in tensors]
    each = [
        f"{str(tensor.dtype).removeprefix('torch.')}{shape}"
        for tensor, shape in zip(tensors, shapes, strict=True)
    ]
    shown, rest = "+".join(each[:8]), each[8:]
    return f"{shown} and {len(rest)} more (#{zlib.crc32('+'.join(rest).encode()):08x})" if rest else shown


def _expect_of_device(value: Any) -> None:
    """Raise RuntimeError for a tensor of the host, in torch_xla's own words."""
    if isinstance(value, torch.Tensor):
        if value.device.type != "xla":
            raise RuntimeError(
                f"Expected XLA tensor. Got: {value.type()}. Move it to the device first: tensor.to('xla')."
            )
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for part in value:
            _expect_of_device(part)
