"""Traced modules for batches of other sizes than the traced one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from neuron_sim.errors import NotSimulatedError
from neuron_sim.inference import placement
from neuron_sim.inference.trace import shell

_LOOP = """
    kept: List[List[Tensor]] = []
    for start in range(0, batch, {rows}):
        part = self.model({parts})
        kept.append({collected})
    return {joined}"""


def dynamic_batching(neuron_script: Any) -> Any:
    """The traced module for any batch size: it cuts a batch into parts of the traced size, the last one padded.

    Every input must have the batch as its first dimension, and the outputs too.

    Raises:
        ValueError: the inputs were traced with different batch sizes, or without one.
    """
    expectation = neuron_script.expectation
    sizes = {shape[0] if shape else 0 for shape in expectation.shapes}
    if len(sizes) != 1 or 0 in sizes:
        raise ValueError(
            f"dynamic_batching needs inputs with one batch size as their first dimension, not {expectation.shapes}"
        )
    (rows,) = sizes
    kinds = _outputs(neuron_script.model)
    count = len(expectation.shapes)
    parts = ", ".join(f"self.expectation.part(input_{index}, start, {index})" for index in range(count))
    if kinds == 1:
        collected, joined = "[part]", "torch.cat([row[0] for row in kept])[:batch]"
    else:
        collected = "[" + ", ".join(f"part[{index}]" for index in range(kinds)) + "]"
        joined = ", ".join(f"torch.cat([row[{index}] for row in kept])[:batch]" for index in range(kinds))
    expectation.any_batch = True
    body = _LOOP.format(rows=rows, parts=parts, collected=collected, joined=joined)
    return shell(neuron_script.model, expectation, body)


def _outputs(model: Any) -> int:
    """How many tensors a traced graph returns; 1 for a lone tensor."""
    (output,) = model.graph.outputs()
    kind = output.type()
    if kind.kind() == "TensorType":
        return 1
    if kind.kind() == "TupleType" and all(element.kind() == "TensorType" for element in kind.elements()):
        return len(kind.elements())
    raise NotSimulatedError(
        f"torch_neuronx.dynamic_batching of a module that returns {kind}",
        "Return a tensor or a tuple of tensors.",
    )


class DataParallel(torch.nn.Module):  # type: ignore[misc]  # torch is not where mypy runs
    """A traced module on several cores, each with a part of the batch.

    The parts run in threads here, on the CPUs that this machine has: results are those of
    the device, the gain in time is not.
    """

    def __init__(
        self,
        model: Any,
        device_ids: Sequence[int | str] | None = None,
        dim: int = 0,
        set_dynamic_batching: bool = True,
    ) -> None:
        """``device_ids``: cores by number or as 'nc:0'; all by default. Raises ValueError for others."""
        super().__init__()
        self.device_ids = placement.cores_of(device_ids)
        self.dim = dim
        self.num_workers = 2 * len(self.device_ids)
        self.split_size: int | None = None
        self.module = model
        self._traced = model
        if set_dynamic_batching and dim == 0:
            try:
                self.module = dynamic_batching(model)
            except (ValueError, NotSimulatedError) as error:
                warnings.warn(f"torch_neuronx.DataParallel: no dynamic batching: {error}", stacklevel=2)

    def disable_dynamic_batching(self) -> None:
        """Require from now on that each core's part has the traced size."""
        self._traced.expectation.any_batch = False
        self.module = self._traced

    def forward(self, *inputs: torch.Tensor) -> Any:
        """Split along ``dim``, compute, and join. Blocks until all parts are there."""
        size = self.split_size or max(1, inputs[0].shape[self.dim] // len(self.device_ids))
        parts = list(zip(*(tensor.split(size, self.dim) for tensor in inputs), strict=True))
        with ThreadPoolExecutor(self.num_workers) as threads:
            results = list(threads.map(lambda part: self.module(*part), parts))
        if isinstance(results[0], torch.Tensor):
            return torch.cat(results, self.dim)
        return type(results[0])(torch.cat(column, self.dim) for column in zip(*results, strict=True))
