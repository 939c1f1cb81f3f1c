"""Gradients that are clipped: the cores exchange them before that."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_patch import changed
from tests.unit.sdk.porting.test_program import said

_CLIPPED = """\
import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend
from torch.nn.utils import clip_grad_norm_

torch.distributed.init_process_group("xla")
for batch in batches:
    loss = model(batch.to(torch_xla.device()))
    loss.backward()
    clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    torch_xla.sync()
"""
_CLIP = "    clip_grad_norm_(model.parameters(), 1.0)\n"
_REDUCE = "    xm.reduce_gradients(optimizer)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        (("    optimizer.step()", "    xm.optimizer_step(optimizer)"), ""),
        ((_CLIP, f"    if args.clip:\n    {_CLIP}"),) * 2,
        ((_CLIP, f"{_CLIP}{_CLIP}"),) * 2,
        (
            (f"{_CLIP}    optimizer.step()\n", f"    if last:\n    {_CLIP}        optimizer.step()\n"),
            (_REDUCE + _CLIP + "    optimizer.step()\n",
             f"    if last:\n    {_REDUCE}    {_CLIP}        optimizer.step()\n"),
        ),
    ],
)  # fmt: skip
def test_gradients_are_exchanged_before_they_are_clipped(
    before: tuple[str, str], after: tuple[str, str]
) -> None:
    """In the place of `xm.optimizer_step`, which does both at once; nothing is left to say."""
    text = _CLIPPED.replace(*before) if before else _CLIPPED
    due = _CLIPPED.replace(_CLIP, _REDUCE + _CLIP)
    assert changed(text) == (due.replace(*after) if after else due)
    assert said(changed(text)) == []


def test_the_exchange_is_a_mean() -> None:
    """xm.reduce_gradients divides by the number of cores, so that a limit of one GPU holds as it is."""
    (found,) = said(_CLIPPED, "clips each core's own")
    assert "To clip the mean of all cores, call xm.reduce_gradients" in found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    optimizer.step()\n", "    optimizer.step()\n    other_optimizer.step()\n"),
        ("    optimizer.step()\n", "    if last:\n        optimizer.step()\n"),
        ("    loss.backward()\n" + _CLIP, f"    for loss in losses:\n        loss.backward()\n    {_CLIP}"),
    ],
)
def test_clips_that_no_edit_settles(old: str, new: str) -> None:
    """Of several optimizers, of one that does not always step, of gradients that are still to be added to."""
    made = changed(_CLIPPED.replace(old, new))
    assert "reduce_gradients" not in made and "xm.optimizer_step(optimizer)" in made
    assert said(made, "clips each core's own")


def test_a_scaler_steps_behind_the_clip() -> None:
    """Its optimizer's own step is left."""
    text = _CLIPPED.replace("for batch", "scaler = torch.cuda.amp.GradScaler()\nfor batch")
    text = text.replace("loss.backward", "scaler.scale(loss).backward")
    text = text.replace(_CLIP, f"    scaler.unscale_(optimizer)\n{_CLIP}")
    text = text.replace("optimizer.step()", "scaler.step(optimizer)\n    scaler.update()")
    assert changed(text) == _CLIPPED.replace(_CLIP, _REDUCE + _CLIP)


def test_gradients_that_a_step_has_exchanged_and_used_are_not_clipped_too_soon() -> None:
    """Clipping behind the step is in vain, but so it is on a GPU. A second pass before it makes new gradients."""
    step = "    xm.optimizer_step(optimizer)\n"
    plain = _CLIPPED.replace("    optimizer.step()\n", "")
    assert said(plain.replace(_CLIP, step + _CLIP), "clips each core's own") == []
    again = f"{step}    other(batch).backward()\n{_CLIP}{step}"
    assert len(said(plain.replace(_CLIP, again), "clips each core's own")) == 1
