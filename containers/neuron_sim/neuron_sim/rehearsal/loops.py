"""What the loop around a batch says of its own length: read from the script's code and its variables.

A loop over a loader may end by a count of the script's own: ``if step >= args.max_steps: break``, or
``while step < max_steps:`` around it. A short rehearsal never gets there, so the bound is read: names,
attributes, arithmetic and ``len`` only, nothing else that is called.
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
    """What a condition compares now. ``decides``: passes are repeated until it is met."""

    value: int
    limit: float
    decides: bool


Place = tuple[CodeType, int, int]


class Loop(NamedTuple):
    """A loop that is running: where."""

    frame: int
    code: CodeType
    first: int
    last: int

    @property
    def place(self) -> Place:
        """The same on each core: the frame is not."""
        return self.code, self.first, self.last


def caller() -> FrameType | None:
    """The innermost frame that is neither torch's nor the simulator's: who asks for a batch."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_torchs(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def asks_in_loop(frame: FrameType | None) -> bool:
    """Whether a loop of the script's own goes over the batches, and none of a library's that it has called."""
    own = next(stack(frame), None)
    return own is not None and _in_header(own)


def asks_by_itself(frame: FrameType | None) -> bool:
    """Whether the script calls ``next(batches)`` itself, where an end would be an error to it.

    A generator that goes over a loader once, ``for batch in loader: yield batch``, ends with it.
    """
    while frame is not None and is_users(frame.f_code.co_filename):
        if not _in_header(frame):
            return True
        if not yields(frame) or len(running(frame.f_code.co_filename, frame.f_lineno)) > 1:
            return False
        frame = frame.f_back
    return False


def behind_generators(frame: FrameType | None) -> FrameType | None:
    """Who asks the generators that hand a loader's batches on."""
    while frame is not None and is_users(frame.f_code.co_filename) and yields(frame) and _in_header(frame):
        frame = frame.f_back
    return frame


def _in_header(frame: FrameType) -> bool:
    """Of a loop, or of a `yield from`, which goes over the loader as one does."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] in ("FOR_ITER", "SEND", "YIELD_FROM")


def around(frame: FrameType | None) -> Loop | None:
    """The innermost loop of the script's that is running in this frame, or where a library was called from."""
    frame = next(stack(frame), None)
    line = frame and _innermost(frame.f_code.co_filename, frame.f_lineno)
    return None if frame is None or not line else at(frame, line)


def at(frame: FrameType, loop: ast.For | ast.While) -> Loop:
    """That loop, running in this frame."""
    return Loop(id(frame), frame.f_code, loop.lineno, loop.end_lineno or loop.lineno)


def yields(frame: FrameType) -> bool:
    """Whether it is a generator's, which hands each batch on to the loop of its caller."""
    return bool(frame.f_code.co_flags & inspect.CO_GENERATOR)


def is_evaluation(frame: FrameType | None) -> bool:
    """Whether transformers' Trainer asks, in the loop in which it evaluates: gradients are off below it only."""
    while frame is not None:
        if frame.f_code.co_name in _EVALUATIONS and not is_users(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return False


def is_within(loop: Loop | None, frame: FrameType | None) -> bool:
    """Whether that loop is still running below this frame."""
    while loop is not None and frame is not None:
        if id(frame) == loop.frame and frame.f_code is loop.code:
            return loop.first <= frame.f_lineno <= loop.last
        frame = frame.f_back
    return False


def counts(frame: FrameType | None) -> dict[tuple[str, bool], Count]:
    """Of each bound of the loops that are running: what is compared with it now, and the bound.

    By the condition as it is written, and whether it is read after each batch: a loop around that over the
    batches reads it after each pass. Of transformers' and Lightning's Trainer: ``max_steps``, where it was asked for.
    """
    found: dict[tuple[str, bool], Count] = {}
    is_inner = True
    while frame is not None:
        if (steps := _steps_of_trainer(frame)) is not None:
            found["max_steps", True] = steps
        elif is_users(frame.f_code.co_filename):
            innermost = _innermost(frame.f_code.co_filename, frame.f_lineno)
            for loop, text, count in _counts_of(frame):
                found.setdefault((text, is_inner and loop is innermost), count)
            is_inner = is_inner and (innermost is None or yields(frame))
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
    """The loop of Lightning's, or of a class made of it, that is running in this frame; None: another, or none."""
    loop = frame.f_locals.get("self") if frame.f_code.co_name == "run" else None
    return loop if any(cls.__name__ == name for cls in type(loop).__mro__) else None


def _counts_of(frame: FrameType) -> Iterator[tuple[ast.AST, str, Count]]:
    for loop, test, leaves in _conditions(frame.f_code.co_filename, frame.f_lineno):
        left, right = test.left, test.comparators[0]
        # `step >= limit: break` and `while step < limit`: the count is on the smaller side while the loop runs.
        if isinstance(test.ops[0], ast.Lt | ast.LtE) == leaves:
            left, right = right, left
        now, limit = value(left, frame), value(right, frame)
        # What is no whole number is a loss or a time, and does not grow evenly.
        if isinstance(now, int) and limit is not None and now < limit:
            yield loop, ast.unparse(test), Count(now, limit, decides=not leaves)


def stack(frame: FrameType | None) -> Iterator[FrameType]:
    """The frames of the script's own files, the innermost first."""
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def outermost(frame: FrameType | None) -> tuple[FrameType, ast.For | ast.While] | None:
    """The loop around all others that are running in the script's own files, and where."""
    found = [(inner, within[0]) for inner in stack(frame) if (within := running_in(inner))]
    return found[-1] if found else None


def counts_of(frame: FrameType, wanted: ast.AST) -> dict[tuple[str, bool], Count]:
    """As `counts`, of this loop alone."""
    return {(text, True): count for loop, text, count in _counts_of(frame) if loop is wanted}


def running_in(frame: FrameType) -> list[ast.For | ast.While]:
    """`running`, of the line that a frame is at."""
    return running(frame.f_code.co_filename, frame.f_lineno)


def running(filename: str, line: int) -> list[ast.For | ast.While]:
    """The loops around this line, the innermost last."""
    within = [loop for loop in _loops(filename) if loop.lineno <= line <= (loop.end_lineno or loop.lineno)]
    return sorted(within, key=lambda loop: loop.lineno)


def _innermost(filename: str, line: int) -> ast.For | ast.While | None:
    return next(reversed(running(filename, line)), None)


@functools.lru_cache(maxsize=512)
def _conditions(filename: str, line: int) -> tuple[tuple[ast.AST, ast.Compare, bool], ...]:
    """Loops around this line, comparisons that end them, and whether they do so when they hold."""
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
    """Of a file that can be read; of any other, nothing."""
    try:
        return ast.parse(Path(filename).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


def own_statements(loop: ast.For | ast.While) -> Iterator[ast.AST]:
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


def value(expression: ast.expr, frame: FrameType) -> float | None:
    """A number, where it can be had without calling anything but ``len``."""
    lengths = [node for node in ast.walk(expression) if isinstance(node, ast.Call)]
    if any(ast.unparse(call.func) != "len" or call.keywords for call in lengths):
        return None
    with _variables(frame) as variables:
        unset = set(frame.f_code.co_varnames).difference(variables)  # not the global of that name
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
    """A frame's variables. Python up to 3.12 keeps the dict that it shows a function's in, until it is asked again:
    what the script has put aside since, a model and its optimizer, would live on in it.
    """
    shown = frame.f_locals
    try:
        yield shown
    finally:
        if type(shown) is dict and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            shown.clear()
