"""Finds lines with `tensor.split([1, 2, 3], dim)`, which silently gives other values on trn1.

There torch_xla traces without functionalization, and cuts the pieces out of memory as if they lay one after the other
(https://github.com/pytorch/xla/issues/8640; https://github.com/aws-neuron/aws-neuron-sdk/issues/1140 on a device).
torch_xla 2.9 does so if the dimensions before the split one have more than one element, forward and backward.
`split(2, dim)`, with one size for all, and `chunk` give the right pieces.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch

from neuron_sim import settings
from neuron_sim.counters import script_lines, script_time
from neuron_sim.diagnostics import findings, for_operations


class WrongSplits:
    """Counts such splits by line."""

    def __init__(self) -> None:
        """No split has been made."""
        self.forget()

    def forget(self) -> None:
        """Count from here on."""
        self._calls: Counter[str] = Counter()

    def around_split(self, split: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate torch_xla's kernel of `split_with_sizes`, whose first argument is the keyset."""

        @functools.wraps(split)
        def noted(keys: Any, tensor: torch.Tensor, sizes: Sequence[int], dim: int = 0) -> Any:
            pieces = split(keys, tensor, sizes, dim)
            several = sum(size > 0 for size in sizes) > 1
            if several and tensor.numel() and math.prod(tensor.shape[: dim % tensor.dim()]) > 1:
                self._tell()
            return pieces

        return noted

    @script_time.set_aside
    def _tell(self) -> None:
        if not settings.leaves_functionalization_out():
            return
        line, library = script_lines.calling_line(), script_lines.calling_library()
        self._calls[line] += 1
        findings.note(for_operations.wrong_split(line, self._calls[line], library))
