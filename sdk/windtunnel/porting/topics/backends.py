"""The backend of the process group."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.finding import Edit, Finding, replaced, without_argument
from windtunnel.porting.nodes import argument, arguments, constant, default_of, is_method, keyword
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject


def of_groups(subject: Subject) -> Iterator[Finding]:
    """Findings on the backends of GPUs and of the host, on what looks a backend up, and on device_id."""
    yield from _nccl(subject)
    yield from _gloo(subject)
    yield from _looked_up(subject)
    yield from _told_elsewhere(subject)
    yield from _device_ids(subject)


def _is_nccl(node: ast.AST | None) -> bool:
    if isinstance(node, ast.IfExp):
        return _is_nccl(node.body) or _is_nccl(node.orelse)
    if is_method(node, "get", "getenv"):
        return any(map(_is_nccl, node.args[1:]))
    value = constant(node)
    return isinstance(value, str) and (value == "nccl" or value.endswith(":nccl"))


def _nccl(subject: Subject) -> Iterator[Finding]:
    script = subject.script
    for node in script.walk(ast.expr):
        parent = script.parents.get(node)
        if not _is_nccl(node) or _is_nccl(parent):
            continue
        call = script.parents[parent] if isinstance(parent, ast.keyword) else parent
        joins = script.callee(call).endswith("init_process_group")
        flag = isinstance(parent, ast.keyword) and parent.arg == "default" and not joins
        read = isinstance(parent, ast.Assign) and _is_read(subject, parent)
        if not (joins or flag or read or _is_default(script, node)):
            continue
        yield Finding(
            node.lineno,
            f'the process group\'s backend {script.segment(node)} does not exist on Trainium. Use "xla" (import '
            "torch_xla.distributed.xla_backend).",
            (replaced(script, node, '"xla"'), *_without_device_id(script, call)),
        )


def _is_default(script: Script, node: ast.expr) -> bool:
    """Whether a node is the default of a function's parameter that names the backend of the group joined there."""
    function = script.parents[script.parents[node]]
    return isinstance(function, ast.FunctionDef) and any(
        isinstance(one, ast.Name) and default_of(function, one.id) is node
        for call, name in script.calls
        if name.endswith("init_process_group") and function in script.above(call)
        for one in arguments(call)
    )


def _is_read(subject: Subject, assigned: ast.Assign) -> bool:
    """Whether the program reads what is assigned to; assumed of targets that are no names, and without torch_xla."""
    names = {one.id for one in assigned.targets if isinstance(one, ast.Name)}
    return (
        not subject.xla
        or len(names) < len(assigned.targets)
        or any(
            (isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load))
            or (isinstance(node, ast.Attribute) and node.attr in names)
            for one in subject.program
            for node in one.script.walk(ast.Name, ast.Attribute)
        )
    )


def _gloo(subject: Subject) -> Iterator[Finding]:
    """The host's backend in a script for GPUs: its collectives accept the device's tensors, and change none of them."""
    if not subject.several or subject.managed or not subject.cuda or subject.xla:
        return
    for call, name in subject.script.calls:
        given = arguments(call)[:1] if name.endswith("init_process_group") else []
        for backend in given:
            if constant(backend) == "gloo":
                yield Finding(
                    backend.lineno,
                    'the process group "gloo" is for the host: its all_reduce does not change tensors of the device, '
                    'and raises no error. Use "xla" (import torch_xla.distributed.xla_backend).',
                    (replaced(subject.script, backend, '"xla"'),),
                    kind="no_exchange",
                )


def _looked_up(subject: Subject) -> Iterator[Finding]:
    """A call that asks torch for the device's backend: torch_xla registers its own for the devices x, l and a."""
    script = subject.script
    for call, name in script.calls:
        if name.rpartition(".")[2] == "get_default_backend_for_device":
            yield Finding(
                call.lineno,
                'torch knows no backend for the device xla, so this raises. Use "xla" (import '
                "torch_xla.distributed.xla_backend).",
                (replaced(script, call, '"xla"'),),
            )


def _told_elsewhere(subject: Subject) -> Iterator[Finding]:
    """A backend that none of the above sees, as one from a file of settings."""
    if not subject.several or not subject.cuda or subject.xla:
        return
    for call, name in subject.script.calls:
        given = argument(call, "backend", 0)
        if not name.endswith("init_process_group") or given is None or constant(given) is not None:
            continue
        if not any(found for one in subject.program for found in (*_nccl(one), *_gloo(one))):
            yield Finding(
                call.lineno,
                f'the process group\'s backend is what {subject.script.segment(given)} says: on Trainium "xla" (import '
                "torch_xla.distributed.xla_backend).",
                sure=False,
            )


def _device_ids(subject: Subject) -> Iterator[Finding]:
    """A group bound to a GPU by device_id. Where the backend is nccl, the edit of that removes device_id, too."""
    script = subject.script
    for call, name in script.calls:
        if not name.endswith("init_process_group") or not subject.uses_device:
            continue
        given = keyword(call, "device_id")
        if given is not None and not any(map(_is_nccl, arguments(call))):
            yield Finding(
                call.lineno,
                "device_id binds the group to a GPU, and raises for another device: leave it out.",
                (*_without_device_id(script, call),),
            )


def _without_device_id(script: Script, call: ast.AST | None) -> Iterator[Edit]:
    given = keyword(call, "device_id") if isinstance(call, ast.Call) else None
    if given is not None and isinstance(call, ast.Call):
        yield without_argument(script, call, given)
