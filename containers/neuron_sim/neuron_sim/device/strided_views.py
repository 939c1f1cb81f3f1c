"""Views made with `as_strided`, each of which keeps the whole version of its base that it was read from.

DistributedDataParallel writes each gradient into such a view of a flat bucket. Every write makes a new version of
the bucket (tensors of XLA do not change in place), and each view keeps its own until somebody reads it again. The
optimizer has read them all by the step's end, where trn1 runs the graph. A collective that ends the graph here
comes before that: as many copies of all gradients as there are parameters would be its results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import _XLAC
import torch
from torch.utils.weak import WeakTensorKeyDictionary

_views: WeakTensorKeyDictionary[torch.Tensor, None] = WeakTensorKeyDictionary()


def around_as_strided(as_strided: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Around torch's kernel that makes the view, of which the views of a bucket come too: those have no Python name."""

    def noted(*arguments: Any, **keywords: Any) -> torch.Tensor:
        view = as_strided(*arguments, **keywords)
        if torch._is_functional_tensor(view):
            _views[view] = None
        return view

    return noted


def refresh() -> None:
    """Read again those that live and are not computed yet: they share the latest version of their base then."""
    views = list(_views)
    if not views:
        return
    values = [torch._from_functional_tensor(view) for view in views]
    for view, is_pending in zip(views, _XLAC._check_tensor_need_materialization(values), strict=True):
        if is_pending:
            torch._sync(view)
