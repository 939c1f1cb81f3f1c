"""The optimizer's step: gradients that no core exchanges, or that are clipped too soon."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.finding import Edit, Finding
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject, is_method


def no_exchange(subject: Subject) -> Iterator[Finding]:
    """`optimizer.step()` where nothing exchanges the gradients."""
    script, xm = subject.script, subject.names.module("xm")
    if not subject.several or subject.managed or subject.exchanges or not (subject.cuda or subject.xla):
        return
    for call, _ in script.calls:
        if not is_optimizer_step(script, call):
            continue
        assert isinstance(call.func, ast.Attribute)  # noqa: S101 - is a method
        stepped = f"{xm}.optimizer_step({script.segment(call.func.value)})"
        sure = not call.args and not call.keywords and script.statement(call) is not None
        yield Finding(
            call.lineno,
            "no_exchange",
            f"each core trains a model of its own. Call {stepped} instead.",
            (Edit(script.start(call), script.end(call), stepped),) if sure else (),
        )


def early_clips(subject: Subject) -> Iterator[Finding]:
    """Gradients that are clipped before the cores have exchanged them."""
    before = ("reduce_gradients", "all_reduce", "all_reduce_bucketized_gradients", "ZeroRedundancyOptimizer")
    stepped = subject.script.calls_any("optimizer_step") or not subject.exchanges
    if not subject.several or subject.managed or not (subject.cuda or subject.xla):
        return
    if (
        not stepped
        or subject.parallel_model
        or subject.script.calls_any(*before)
        or not subject.training_loops
    ):
        return
    for call, name in subject.script.calls:
        if name.rpartition(".")[2] in ("clip_grad_norm_", "clip_grad_value_"):
            yield Finding(
                call.lineno,
                "",
                "clips each core's own gradients, before they are exchanged. To clip what all cores have found: "
                "xm.reduce_gradients(optimizer) before this line, and optimizer.step() after it.",
            )


def is_optimizer_step(script: Script, call: ast.Call) -> bool:
    """Whether it is the step of what a script calls an optimizer, or has made of one."""
    if not is_method(call, "step") or not isinstance(call.func, ast.Attribute):
        return False
    owner = ast.unparse(call.func.value)
    return "optim" in owner.lower() or any(
        isinstance(node, ast.Assign)
        and any(ast.unparse(target) == owner for target in node.targets)
        and isinstance(node.value, ast.Call)
        and script.dotted(node.value.func).startswith("torch.optim.")
        and ".lr_scheduler" not in script.dotted(node.value.func)
        for node in script.walk(ast.Assign)
    )
