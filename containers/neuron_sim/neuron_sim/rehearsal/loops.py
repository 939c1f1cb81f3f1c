"""What the loop around a batch says of its own length: read from the script's code and its variables.

A loop over a loader may end by a count of the script's own: ``if step >= args.max_steps: break``, or
``while step < max_steps:`` around it. A short rehearsal never gets there, so the bound is read: names,
attributes and arithmetic only, nothing that is called.
"""

from __future__ import annotations

import ast
import dis
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from neuron_sim.counters.script_lines import is_torchs, is_users

_LOOPS = (ast.For, ast.While)
_READABLE = (
    ast.Expression, ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.operator, ast.Load, ast.UnaryOp, ast.unaryop,
)  # fmt: skip


def caller() -> FrameType | None:
    """The innermost frame that is neither torch's nor the simulator's: who asks for a batch."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_torchs(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def asks_by_itself(frame: FrameType | None) -> bool:
    """Whether the script calls ``next(batches)`` itself, where an end would be an error to it."""
    if frame is None or not is_users(frame.f_code.co_filename):
        return False
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] != "FOR_ITER"


def counts(frame: FrameType | None) -> dict[str, tuple[float, float]]:
    """Of each bound of the loops that are running: what is compared with it now, and the bound.

    By the condition as it is written. Of transformers' Trainer: its own ``max_steps``.
    """
    found: dict[str, tuple[float, float]] = {}
    while frame is not None:
        if frame.f_code.co_name == "_inner_training_loop" and "max_steps" in frame.f_locals:
            state = getattr(frame.f_locals.get("self"), "state", None)
            found["max_steps"] = (float(getattr(state, "global_step", 0)), float(frame.f_locals["max_steps"]))
        elif is_users(frame.f_code.co_filename):
            found.update(_counts_of(frame))
        frame = frame.f_back
    return found


def _counts_of(frame: FrameType) -> Iterator[tuple[str, tuple[float, float]]]:
    for test, leaves in _conditions(frame.f_code.co_filename, frame.f_lineno):
        left, right = test.left, test.comparators[0]
        # `step >= limit: break` and `while step < limit`: the count is on the smaller side while the loop runs.
        if isinstance(test.ops[0], ast.Lt | ast.LtE) == leaves:
            left, right = right, left
        values = _value(left, frame), _value(right, frame)
        if values[0] is not None and values[1] is not None and values[0] < values[1]:
            yield ast.unparse(test), (values[0], values[1])


@functools.lru_cache(maxsize=512)
def _conditions(filename: str, line: int) -> tuple[tuple[ast.Compare, bool], ...]:
    """Comparisons that end a loop around this line, and whether they do so when they hold."""
    found: list[tuple[ast.Compare, bool]] = []
    for loop in _loops(filename):
        if not loop.lineno <= line <= (loop.end_lineno or loop.lineno):
            continue
        if isinstance(loop, ast.While):
            found += ((test, False) for test in _comparisons(loop.test))
        for statement in _own_statements(loop):
            if isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Break | ast.Return):
                found += ((test, True) for test in _comparisons(statement.test))
    return tuple(found)


@functools.lru_cache(maxsize=64)
def _loops(filename: str) -> tuple[ast.For | ast.While, ...]:
    try:
        tree = ast.parse(Path(filename).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, _LOOPS))


def _own_statements(loop: ast.For | ast.While) -> Iterator[ast.AST]:
    """Those of a loop whose `break` would be its own: not within a loop or a function inside of it."""
    waiting: list[ast.AST] = list(loop.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_LOOPS, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)


def _comparisons(test: ast.expr) -> Iterator[ast.Compare]:
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    for part in parts:
        if not isinstance(part, ast.Compare) or len(part.ops) > 1:
            continue
        if isinstance(part.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.Eq):
            yield part


def _value(expression: ast.expr, frame: FrameType) -> float | None:
    """A number, where it can be had without calling anything of the script's."""
    wanted = ast.Expression(expression)
    if not all(isinstance(node, _READABLE) for node in ast.walk(wanted)):
        return None
    try:
        value = eval(compile(wanted, "<bound>", "eval"), frame.f_globals, frame.f_locals)  # noqa: S307 - names only
    except Exception:  # noqa: BLE001 - a name that is not there yet, a property that fails: no bound
        return None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
