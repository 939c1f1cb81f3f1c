"""Refreshes views made with `as_strided`, each of which keeps the version of its whole base that it was read from.

DistributedDataParallel writes each gradient into such a view of a flat bucket. Every write makes a new version of
the bucket (tensors of XLA do not change in place), and each view keeps its version until it is read again. The
optimizer has read all views by the step's end, where trn1 runs the graph. A collective, which ends the graph here,
comes before that: the graph's results would be as many copies of all gradients as there are parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import _XLAC
import torch
from torch.utils.weak import WeakTensorKeyDictionary

_views: WeakTensorKeyDictionary[torch.Tensor, None] = WeakTensorKeyDictionary()


def around_as_strided(as_strided: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Decorate torch's kernel that makes views: the views of a bucket are made by C++ code, not through Python."""

    def noted(*arguments: Any, **keywords: Any) -> torch.Tensor:
        view = as_strided(*arguments, **keywords)
        if torch._is_functional_tensor(view):
            _views[view] = None
        return view

    return noted


def refresh() -> None:
    """Read all live views that are still pending again, so that they share the latest version of their base."""
    views = list(_views)
    if not views:
        return
    values = [torch._from_functional_tensor(view) for view in views]
    for view, is_pending in zip(views, _XLAC._check_tensor_need_materialization(values), strict=True):
        if is_pending:
            torch._sync(view)
