"""`torch_neuronx.trace`: a function with fixed shapes as a ScriptModule that refuses others."""

from __future__ import annotations

import copy
import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from neuron_sim.errors import NotSimulatedError
from neuron_sim.inference import parts

# Not a fallback: Python reads a value from the device, for control flow, which a trace fixes and torch warns of.
_READS = {"aten::_local_scalar_dense"}


class Expectation(torch.nn.Module):  # type: ignore[misc]  # torch is not where mypy runs
    """What a traced module accepts; in TorchScript, so that it is saved and loaded with the module."""

    def __init__(self, example: Sequence[torch.Tensor]) -> None:
        super().__init__()
        shapes = [list(tensor.shape) for tensor in example]
        self.shapes = torch.jit.Attribute(shapes, list[list[int]])
        self.dtypes = torch.jit.Attribute([str(tensor.dtype) for tensor in example], list[str])
        # Empty tensors of each dtype: TorchScript can compare dtypes, but not store them.
        samples = [torch.empty(0, dtype=tensor.dtype) for tensor in example]
        self.samples = torch.jit.Attribute(samples, list[torch.Tensor])
        self.any_batch = False
        self.separate_weights = False
        self.lazy = False
        self.asynchronous = False
        self.start_core = -1
        self.cores = 1

    def forward(self, inputs: list[torch.Tensor]) -> int:
        """Check the inputs of one call. Returns the size of their batch, or 0 if only the traced size is allowed."""
        batch = 0
        for index, tensor in enumerate(inputs):
            expected = self.shapes[index]
            received = list(tensor.shape)
            if self.any_batch and len(received) > 0 and len(expected) > 0:
                if index == 0:
                    batch = received[0]
                agrees = received[1:] == expected[1:] and received[0] == batch
            else:
                agrees = received == expected
            if not agrees:
                raise RuntimeError(
                    f"Incorrect tensor shape at input tensor #{index}: received {received}, expected {expected}. "
                    "A traced module takes the shapes of its example inputs; trace it again for others, or "
                    "use torch_neuronx.dynamic_batch for other batch sizes."
                )
            if tensor.dtype != self.samples[index].dtype:
                raise RuntimeError(
                    f"Incorrect data type at input tensor #{index}: expected {self.dtypes[index]}. "
                    "A traced module takes the data types of its example inputs."
                )
        return batch

    @torch.jit.export  # type: ignore[untyped-decorator]
    def part(self, tensor: torch.Tensor, start: int, index: int) -> torch.Tensor:
        """As many rows as were traced, the last ones filled up with zeros."""
        rows = self.shapes[index][0]
        piece = tensor[start : start + rows]
        missing = rows - piece.shape[0]
        if missing > 0:
            filler = torch.zeros([missing] + list(piece.shape)[1:], dtype=piece.dtype)  # noqa: RUF005  TorchScript cannot unpack
            piece = torch.cat([piece, filler])
        return piece


def trace(
    func: Callable[..., Any],
    example_inputs: Any,
    *_: Any,
    input_output_aliases: dict[Any, Any] | None = None,
    compiler_workdir: str | None = None,
    compiler_args: str | list[str] | None = None,
    partitioner_config: Any = None,
    inline_weights_to_neff: bool = True,
    cpu_backend: bool = False,
) -> Any:
    """Lower ``func`` for the example inputs, and return it as a ScriptModule for these shapes. Blocks.

    ``cpu_backend``: do not use the device; needs ``--target`` among ``compiler_args``.

    Raises:
        TypeError: an example input is not a tensor.
        RuntimeError: XLA cannot lower an operation.
        NotSimulatedError: aliases and partitioning.
    """
    if input_output_aliases:
        raise NotSimulatedError(
            "torch_neuronx.trace(input_output_aliases=...)",
            "Return the state as an output, and pass it in again.",
        )
    if partitioner_config is not None:
        raise NotSimulatedError(
            "torch_neuronx.trace(partitioner_config=...)",
            "Trace the parts that the device supports one by one.",
        )
    if _:
        raise TypeError("torch_neuronx.trace takes keyword arguments after example_inputs: name them")
    example = tensors_of(example_inputs)
    arguments = compiler_args.split() if isinstance(compiler_args, str) else list(compiler_args or [])
    if cpu_backend and not any(argument.startswith("--target") for argument in arguments):
        raise ValueError('cpu_backend=True needs the target: compiler_args="--target trn1"')
    if not cpu_backend:
        _lower(func, example)
    # A copy: the traced module shares its parameters, and inference turns their gradients off.
    module = copy.deepcopy(func) if isinstance(func, torch.nn.Module) else _Function(func)
    module.requires_grad_(False)
    with torch.no_grad():
        graph = torch.jit.trace(module, tuple(example), check_trace=False, strict=False)
    expectation = torch.jit.script(Expectation(example))
    expectation.separate_weights = not inline_weights_to_neff
    return _shell(graph, expectation)


def tensors_of(example_inputs: Any) -> list[torch.Tensor]:
    """The example inputs as a list of tensors of the host.

    Raises:
        TypeError: an input is not a tensor.
    """
    inputs = [example_inputs] if isinstance(example_inputs, torch.Tensor) else list(example_inputs)
    for index, value in enumerate(inputs):
        if not isinstance(value, torch.Tensor):
            raise TypeError(
                f"example input #{index} is a {type(value).__name__}, but torch_neuronx.trace takes a tensor "
                "or a tuple of tensors. Wrap the model in a function that takes tensors only."
            )
    return [value.detach().cpu() for value in inputs]


class _Function(torch.nn.Module):  # type: ignore[misc]  # torch is not where mypy runs
    """A plain function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self._function(*inputs)


class _Shell(torch.nn.Module):  # type: ignore[misc]  # torch is not where mypy runs
    # TorchScript gives modules with equal members one type, and a type has one forward only.
    __constants__ = ("number",)
    _numbers = itertools.count()

    def __init__(self, model: torch.nn.Module, expectation: torch.nn.Module) -> None:
        super().__init__()
        self.number = next(self._numbers)
        self.model = model
        self.expectation = expectation


def _shell(model: Any, expectation: Any) -> Any:
    """A ScriptModule whose forward checks its inputs, and takes other batch sizes once `any_batch` is set."""
    names = [f"input_{index}" for index in range(len(expectation.shapes))]
    joined = ", ".join(names)
    parameters = ", ".join(["self", *(f"{name}: Tensor" for name in names)])
    script = torch.jit.script(_Shell(model, expectation))
    script.define(
        f"def forward({parameters}):\n    batch = self.expectation([{joined}])\n"
        f"{parts.loop(model, expectation)}    return self.model({joined})\n"
    )
    return script.eval()


def _lower(func: Callable[..., Any], example: Sequence[torch.Tensor]) -> None:
    """Run it once on the simulated device. Raises RuntimeError for operations that fall back to the CPU there."""
    import torch_xla
    from torch_xla.debug import metrics

    def fallbacks() -> dict[str, int]:
        names = (name for name in metrics.counter_names() if name.startswith("aten::") and name not in _READS)
        return {name: int(metrics.counter_value(name)) for name in names}

    device = torch_xla.device()
    before = fallbacks()
    on_device = copy.deepcopy(func).to(device) if isinstance(func, torch.nn.Module) else func
    with torch.no_grad():
        on_device(*(tensor.to(device) for tensor in example))
    torch_xla.sync(wait=True)
    unsupported = sorted(name for name, count in fallbacks().items() if count > before.get(name, 0))
    if unsupported:
        raise RuntimeError(
            f"torch_neuronx.trace cannot lower {', '.join(unsupported)} to HLO. "
            "Replace these operations, or keep them outside of the traced function."
        )


def replace_weights(neuron_model: Any, weights: Any) -> None:
    """Give a module traced with ``inline_weights_to_neff=False`` other weights: a module's, or a state dict's."""
    if not neuron_model.expectation.separate_weights:
        warnings.warn(
            "torch_neuronx.replace_weights: this model has its weights inlined and keeps them. "
            "Trace it with inline_weights_to_neff=False.",
            stacklevel=2,
        )
        return
    state = weights.state_dict() if isinstance(weights, torch.nn.Module) else weights
    neuron_model.model.load_state_dict(state)
