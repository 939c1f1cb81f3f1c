"""The optimizer's step: gradients that no core exchanges, and values that are fetched in each step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.finding import Edit, Finding
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject, is_method

_FETCHES = ("item", "tolist", "cpu", "numpy")


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


def host_reads(subject: Subject) -> Iterator[Finding]:
    """`loss.item()` in each step of a training loop."""
    script = subject.script
    if subject.managed or not (subject.cuda or subject.xla):
        return
    for loop in subject.training_loops:
        if not _names_a_device(script.scopes(loop)[0]):
            continue  # a reference on the host
        computed = _computed(loop)
        said: set[int] = set()
        for node in _each_step(loop):
            how = _fetch(node, computed)
            if how and isinstance(node, ast.Call) and node.lineno not in said:
                said.add(node.lineno)
                yield Finding(
                    node.lineno,
                    "host_read",
                    f"{script.segment(node)} in each step: the host waits for the device. Do it in "
                    "xm.add_step_closure(fn, args=(tensor,)), or only every N steps; keep sums on the device.",
                )


def _names_a_device(function: ast.AST) -> bool:
    """Whether a function, or the module, has anything to do with a device."""
    return any(
        isinstance(node, ast.Name | ast.Attribute | ast.arg)
        and ast.unparse(node).rpartition(".")[2].lower()
        in ("device", "mpdeviceloader", "cuda", "to", "autocast")
        for node in ast.walk(function)
    )


def _fetch(node: ast.AST, computed: set[str]) -> bool:
    """Whether a value that the loop computes is fetched here."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in _FETCHES and not node.args:
        owner: ast.AST = node.func.value
    elif isinstance(node.func, ast.Name) and node.func.id == "float" and node.args:
        owner = node.args[0]
    else:
        return False
    while isinstance(owner, ast.Attribute | ast.Call | ast.Subscript):
        owner = owner.func if isinstance(owner, ast.Call) else owner.value
    return isinstance(owner, ast.Name) and owner.id in computed


def _computed(loop: ast.For) -> set[str]:
    """Names on whose values `.backward()` is called in the loop: device tensors for certain."""
    found = set()
    for node in ast.walk(loop):
        if (
            isinstance(node, ast.Call)
            and is_method(node, "backward")
            and isinstance(node.func, ast.Attribute)
        ):
            found |= {part.id for part in ast.walk(node.func.value) if isinstance(part, ast.Name)}
    return found


def _each_step(node: ast.AST) -> Iterator[ast.AST]:
    """What runs in every pass: no branches, no functions that are only defined."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.If | ast.IfExp | ast.FunctionDef | ast.Lambda):
            yield child
            yield from _each_step(child)
