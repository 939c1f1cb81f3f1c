"""Reads from the script's code and variables how long the loop around a batch would be.

A loop over a loader may end by the script's own count: ``if step >= args.max_steps: break``, or
``while step < max_steps:`` around it. A short rehearsal never gets there, so the bound is computed from
names, attributes, arithmetic and ``len``; nothing else is called.
"""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from neuron_sim.counters.script_lines import is_torchs, is_users

_LOOPS = (ast.For, ast.While)
_EVALUATIONS = ("evaluation_loop", "prediction_loop")
_READABLE = (
    ast.Expression, ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.operator, ast.Load, ast.UnaryOp, ast.unaryop,
)  # fmt: skip


class Count(NamedTuple):
    """The two sides that a condition compares now. ``decides``: passes are repeated until the condition is met."""

    value: int
    limit: float
    decides: bool


Place = tuple[CodeType, int, int]


class Loop(NamedTuple):
    """A running loop: its frame, its code, its first and last line."""

    frame: int
    code: CodeType
    first: int
    last: int

    @property
    def place(self) -> Place:
        """The loop without its frame: the same on each core."""
        return self.code, self.first, self.last


def caller() -> FrameType | None:
    """The innermost frame that is neither torch's nor the simulator's: it asks for a batch."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_torchs(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def asks_in_loop(frame: FrameType | None) -> bool:
    """Whether the loop over the batches is the script's own, and not one of a library that it has called."""
    own = next(stack(frame), None)
    return own is not None and _in_header(own)


def asks_by_itself(frame: FrameType | None) -> bool:
    """Whether the script calls ``next(batches)`` itself, which would raise StopIteration at an early end.

    A generator that goes over a loader once, ``for batch in loader: yield batch``, ends with the loader,
    so what counts is how the script asks the generator.
    """
    while frame is not None and is_users(frame.f_code.co_filename):
        if not _in_header(frame):
            return True
        if not yields(frame) or len(running_in(frame)) > 1:
            return False
        frame = frame.f_back
    return False


def behind_generators(frame: FrameType | None) -> FrameType | None:
    """The frame that asks the generators which hand on a loader's batches."""
    while frame is not None and is_users(frame.f_code.co_filename) and yields(frame) and _in_header(frame):
        frame = frame.f_back
    return frame


def _in_header(frame: FrameType) -> bool:
    """Whether a frame is at the header of a loop, or at a `yield from`, which goes over the loader like a loop."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] in ("FOR_ITER", "SEND", "YIELD_FROM")


def around(frame: FrameType | None) -> Loop | None:
    """The innermost running loop of the script, in this frame or in the one that has called a library."""
    frame = next(stack(frame), None)
    within = running_in(frame) if frame else []
    return at(frame, within[-1]) if frame and within else None


def at(frame: FrameType, loop: ast.For | ast.While) -> Loop:
    """The `Loop` for a loop that is running in this frame."""
    return Loop(id(frame), frame.f_code, loop.lineno, loop.end_lineno or loop.lineno)


def yields(frame: FrameType) -> bool:
    """Whether the frame is a generator's, which hands each batch on to the loop of its caller."""
    return bool(frame.f_code.co_flags & inspect.CO_GENERATOR)


def is_evaluation(frame: FrameType | None) -> bool:
    """Whether transformers' Trainer asks in its evaluation loop, which turns gradients off only in inner calls."""
    while frame is not None:
        if frame.f_code.co_name in _EVALUATIONS and not is_users(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return False


def is_within(loop: Loop | None, frame: FrameType | None) -> bool:
    """Whether the loop is still running, in this frame or one of its callers."""
    while loop is not None and frame is not None:
        if id(frame) == loop.frame and frame.f_code is loop.code:
            return loop.first <= frame.f_lineno <= loop.last
        frame = frame.f_back
    return False


def counts(frame: FrameType | None) -> dict[tuple[str, bool], Count]:
    """For each bound of the running loops: what is compared with it now, and the bound.

    Keys: the condition as it is written, and whether it is tested after each batch; a loop around the one over the
    batches tests it after each pass. For transformers' and Lightning's Trainer: ``max_steps``, if it was set.
    """
    found: dict[tuple[str, bool], Count] = {}
    is_inner = True
    while frame is not None:
        if (steps := _steps_of_trainer(frame)) is not None:
            found["max_steps", True] = steps
        elif is_users(frame.f_code.co_filename):
            within = running_in(frame)
            for loop, text, count in _counts_of(frame):
                found.setdefault((text, is_inner and loop is within[-1]), count)
            is_inner = is_inner and (not within or yields(frame))
        frame = frame.f_back
    return found


def _steps_of_trainer(frame: FrameType) -> Count | None:
    if frame.f_code.co_name == "_inner_training_loop" and "max_steps" in frame.f_locals:
        trainer = frame.f_locals.get("self")
        bound, progress = getattr(trainer, "args", None), getattr(trainer, "state", None)
    else:
        bound = progress = of_lightning(frame, "_TrainingEpochLoop")
    limit = getattr(bound, "max_steps", 0)
    return Count(getattr(progress, "global_step", 0), limit, decides=True) if limit > 0 else None


def of_lightning(frame: FrameType, name: str) -> Any:
    """The loop object of Lightning's class ``name``, or a subclass, that is running in this frame; None without one."""
    loop = frame.f_locals.get("self") if frame.f_code.co_name == "run" else None
    return loop if any(cls.__name__ == name for cls in type(loop).__mro__) else None


def _counts_of(frame: FrameType) -> Iterator[tuple[ast.AST, str, Count]]:
    for loop, test, leaves in _conditions(frame.f_code.co_filename, frame.f_lineno):
        left, right = test.left, test.comparators[0]
        # `step >= limit: break` and `while step < limit`: the count is on the smaller side while the loop runs.
        if isinstance(test.ops[0], ast.Lt | ast.LtE) == leaves:
            left, right = right, left
        now, limit = value(left, frame), value(right, frame)
        # Anything but a whole number is a loss or a time, which does not grow evenly.
        if isinstance(now, int) and limit is not None and now < limit:
            yield loop, ast.unparse(test), Count(now, limit, decides=not leaves)


def stack(frame: FrameType | None) -> Iterator[FrameType]:
    """The frames of the script's own files, the innermost first."""
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def outermost(frame: FrameType | None) -> tuple[FrameType, ast.For | ast.While] | None:
    """The outermost running loop in the script's own files, and its frame."""
    found = [(inner, within[0]) for inner in stack(frame) if (within := running_in(inner))]
    return found[-1] if found else None


def counts_of(frame: FrameType, wanted: ast.AST) -> dict[tuple[str, bool], Count]:
    """Like `counts`, for this loop alone."""
    return {(text, True): count for loop, text, count in _counts_of(frame) if loop is wanted}


def running_in(frame: FrameType) -> list[ast.For | ast.While]:
    """`running` for the line that a frame is at."""
    return running(frame.f_code.co_filename, frame.f_lineno)


def running(filename: str, line: int) -> list[ast.For | ast.While]:
    """The loops around this line, the innermost last."""
    within = [loop for loop in _loops(filename) if loop.lineno <= line <= (loop.end_lineno or loop.lineno)]
    return sorted(within, key=lambda loop: loop.lineno)


@functools.lru_cache(maxsize=512)
def _conditions(filename: str, line: int) -> tuple[tuple[ast.AST, ast.Compare, bool], ...]:
    """(loop around this line, comparison that ends it, whether it does so when it is true)."""
    found: list[tuple[ast.AST, ast.Compare, bool]] = []
    for loop in running(filename, line):
        if isinstance(loop, ast.While):
            found += ((loop, test, False) for test in _comparisons(loop.test))
        for statement in own_statements(loop):
            if isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Break | ast.Return):
                found += ((loop, test, True) for test in _comparisons(statement.test))
    return tuple(found)


@functools.lru_cache(maxsize=64)
def _loops(filename: str) -> tuple[ast.For | ast.While, ...]:
    return tuple(node for node in ast.walk(tree(filename)) if isinstance(node, _LOOPS))


@functools.lru_cache(maxsize=64)
def tree(filename: str) -> ast.Module:
    """The syntax tree of a file; an empty one if it cannot be read."""
    try:
        return ast.parse(Path(filename).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


def own_statements(loop: ast.For | ast.While) -> Iterator[ast.AST]:
    """The statements of a loop in which a `break` ends this loop: not those of inner loops and functions."""
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


def value(expression: ast.expr, frame: FrameType) -> float | None:
    """The value of an expression, if it is a number and needs no call except of ``len``; else None."""
    lengths = [node for node in ast.walk(expression) if isinstance(node, ast.Call)]
    if any(ast.unparse(call.func) != "len" or call.keywords for call in lengths):
        return None
    with _variables(frame) as variables:
        unset = set(frame.f_code.co_varnames).difference(variables)  # not their namesake globals
        if any(isinstance(node, ast.Name) and node.id in unset for node in ast.walk(expression)):
            return None
        wanted = ast.Expression(expression)
        if not all(isinstance(node, (*_READABLE, ast.Call)) for node in ast.walk(wanted)):
            return None
        try:
            found = eval(compile(wanted, "<bound>", "eval"), frame.f_globals, variables)  # noqa: S307 - names only
        except Exception:  # noqa: BLE001 - a name that is not there yet, a property that fails: no bound
            return None
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


@contextmanager
def _variables(frame: FrameType) -> Iterator[Mapping[str, Any]]:
    """A frame's variables, during the block. Python up to 3.12 keeps the dict of a function's variables until it is
    asked again: objects that the script has dropped since, such as a model, would live on in it.
    """
    shown = frame.f_locals
    try:
        yield shown
    finally:
        if type(shown) is dict and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            shown.clear()
