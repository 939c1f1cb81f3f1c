"""Traced modules for batches of other sizes than the traced one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from neuron_sim.errors import NotSimulatedError
from neuron_sim.inference import parts, placement


def dynamic_batch(neuron_script: Any, enabled: bool = True) -> Any:
    """Let a traced module take any batch size, in place: it cuts a batch into parts of the traced size, the last one
    padded. Returns the same module. Of another module, all traced ones in it.

    Every input must have the batch as its first dimension, and the outputs too. ``enabled=False`` undoes it: AWS's own
    DataParallel passes it, and their documentation leaves it out.

    Raises:
        ValueError: the inputs were traced with different batch sizes, or without one.
        NotSimulatedError: the module returns something else than tensors.
    """
    traced = [module for module in neuron_script.modules() if hasattr(module, "expectation")]
    for module in traced if enabled else ():
        if obstacle := parts.obstacle(module.model, module.expectation):
            raise obstacle
    for module in traced:
        module.expectation.any_batch = enabled
    return neuron_script


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
        try:
            dynamic_batch(model, set_dynamic_batching and dim == 0)
        except (ValueError, NotSimulatedError) as error:
            warnings.warn(f"torch_neuronx.DataParallel: no dynamic batching: {error}", stacklevel=2)

    def disable_dynamic_batching(self) -> None:
        """Require from now on that each core's part has the traced size."""
        dynamic_batch(self.module, False)

    def forward(self, *inputs: torch.Tensor) -> Any:
        """Split along ``dim``, compute, and join. Blocks until all parts are there."""
        size = self.split_size or max(1, inputs[0].shape[self.dim] // len(self.device_ids))
        pieces = list(zip(*(tensor.split(size, self.dim) for tensor in inputs), strict=True))
        with ThreadPoolExecutor(self.num_workers) as threads:
            results = list(threads.map(lambda piece: self.module(*piece), pieces))
        if isinstance(results[0], torch.Tensor):
            return torch.cat(results, self.dim)
        return type(results[0])(torch.cat(column, self.dim) for column in zip(*results, strict=True))
