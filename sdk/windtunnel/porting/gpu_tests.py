"""Tests for a GPU: what each leaves to CUDA, and whether it decides anything."""

from __future__ import annotations

import ast
import functools
import itertools
import re

from windtunnel.porting.nodes import calls_in, constant, terms
from windtunnel.porting.subject import Subject

QUESTIONS = ("torch.cuda.is_available", "torch.accelerator.is_available")
FUNCTIONS = re.compile(r"torch\.(cuda|accelerator)\.(\w+)$")
TYPES = re.compile(r"torch\.cuda\.\w*Tensor")
_MEASURES = re.compile(r"torch\.cuda\.(Event|(get_device|max_memory|memory)_\w+)")
"""What tells a GPU's times, memory and kind, and raises without one."""
_DECIDING = re.compile(r"exit$|spawn|launch|device$|manual_seed|set_default")
"""Ends the name of a call that does more than ask about a GPU."""


def is_dead(subject: Subject, node: ast.AST) -> bool:
    """Whether a node stands in a branch for CUDA that stays as it is.

    That is below `if torch.cuda.is_available():` or `if device.type == "cuda":`, in a script that has torch_xla's
    device besides, or where the `if` decides nothing; or beside torch_xla's device in an ``a if b else c``.
    """
    child = node
    for outer in subject.script.above(node):
        if isinstance(outer, ast.If) and child in outer.body:
            asks = any(_asks(subject, part) for part in ast.walk(outer.test))
            if asks and (subject.xla or not decides(subject, outer)):
                return True
        block = getattr(outer, "body", ())
        before = block[: block.index(child)] if isinstance(block, list) and child in block else ()
        for one in filter(_returns_without, before):
            if _asks(subject, one.test.operand) and not decides(subject, one):
                return True
        if child is getattr(outer, "body", None) and asks_cuda_more(subject, outer):
            return True
        if child in (joined := terms(outer)) and any(
            _asks(subject, one) for one in joined[: joined.index(child)]
        ):
            return True
        if isinstance(outer, ast.IfExp) and subject.xla and child is not outer.test:
            there = outer.orelse if child is outer.body else outer.body
            asks = any(_asks(subject, part) for part in ast.walk(outer.test))
            if subject.is_xla_device(there) or (asks and child is outer.body):
                return True
        child = outer
    return False


def asks_cuda_more(subject: Subject, outer: ast.AST) -> bool:
    """Whether it is as `torch.cuda.device_count() if torch.cuda.is_available() else 1`, whose other value is right on
    trn1, or uses `torch.cuda.FloatTensor`, which raises.
    """
    if (
        not isinstance(outer, ast.IfExp)
        or not isinstance(outer.test, ast.Call)
        or not _asks(subject, outer.test)
    ):
        return False
    return any(
        FUNCTIONS.match(subject.script.callee(node)) or TYPES.fullmatch(subject.script.dotted(node))
        for node in ast.walk(outer.body)
    )


def _asks(subject: Subject, node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        named = any(map(subject.is_cuda_device, (node.left, *node.comparators)))
        return named and isinstance(node.ops[0], ast.Eq | ast.In)
    if isinstance(node, ast.Name | ast.Attribute):
        return ast.unparse(node) in undecided(subject)
    return subject.script.callee(node) in QUESTIONS


@functools.lru_cache(maxsize=64)
def undecided(subject: Subject) -> set[str]:
    """Names that hold whether there is a GPU and decide nothing, as ``timed = torch.cuda.is_available()``."""
    script, found = subject.script, set()
    for name, made in script.assigned:
        if any(script.callee(one) in QUESTIONS for one in ast.walk(made.value)):
            named = [node for node in script.walk(ast.Name, ast.Attribute) if ast.unparse(node) == name]
            stored = [node for _, other in script.assigned for node in other.targets]
            read = [one for one in named if one not in stored and made not in script.above(one)]
            guards = [script.parents[node] for node in read]
            if guards and all(isinstance(one, ast.If) and not decides(subject, one) for one in guards):
                found.add(name)
    return found


def _returns_without(outer: ast.AST) -> bool:
    """Whether it is as ``if not torch.cuda.is_available(): return 0``."""
    if not isinstance(outer, ast.If) or not isinstance(outer.test, ast.UnaryOp):
        return False
    return isinstance(outer.body[-1], ast.Return) and not outer.orelse


def decides(subject: Subject, outer: ast.If) -> bool:
    """Whether an `if` decides on the device, on what is trained or on the script's end; printing or returning a GPU's
    memory, timing by its events or setting cuDNN is not enough.
    """
    script = subject.script
    there, here = outer.body, outer.orelse
    if _returns_without(outer):
        block = script.block(outer)
        there, here = block[block.index(outer) + 1 :], there
    measures = any(_MEASURES.fullmatch(script.callee(call)) for call in calls_in(*there))
    instead = {"print"}  # which scripts silence on other ranks
    instead |= {script.called(call) for call in calls_in(*here)} if measures else set()
    for node in itertools.chain.from_iterable(map(ast.walk, (*there, *here))):
        device = constant(node) == "cpu" or subject.is_cuda_device(node)
        if device or isinstance(node, ast.Raise) or (isinstance(node, ast.Return) and not measures):
            return True
        if isinstance(node, ast.Assign) and isinstance(constant(node.value), bool):
            settings = (script.dotted(target).startswith("torch.backends.") for target in node.targets)
            if not any(settings):
                return True
        if isinstance(node, ast.Call):
            name = script.dotted(node.func)
            own = name in script.functions and name not in instead
            if own or node in subject.moves or _DECIDING.search(name):
                return True
    return False
