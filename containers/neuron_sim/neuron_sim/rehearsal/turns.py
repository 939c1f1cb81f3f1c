"""Reads from the ``for … in range(…)`` around the passes how many there are, and whether they are alike.

This uses the script's code, and its variables for the range. Evaluation at every fifth pass is seen in the condition
that decides it. If a function decides it, which gets the number of the pass from the script, it is not seen.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from types import FrameType
from typing import Any, NamedTuple

from neuron_sim.counters.script_lines import is_users
from neuron_sim.rehearsal import loops

_SAYING = frozenset(
    ("add_scalar", "debug", "format", "info", "log", "master_print", "print", "set_epoch", "str", "write")
)
"""Functions that only print or log the number of a pass, or set a sampler's epoch."""


class Turns(NamedTuple):
    """The loop around the passes."""

    number: int
    decides: bool
    """Whether the script computes something from the number of the pass."""
    hands_on: bool
    """Whether it passes the number on to a function, which may compute something from it."""
    is_last: bool
    """Whether the script calls nothing after the loop."""


def around(frame: FrameType | None) -> Turns | None:
    """The turns of the innermost ``for … in range(…)`` around the loop over the batches, or of transformers' or
    Lightning's loop over epochs, times those of the loops around it; None: no such loop, or one has no ``range``.
    """
    within, found = False, None
    while frame is not None:
        for loop in reversed(loops.running_in(frame)) if is_users(frame.f_code.co_filename) else ():
            numbers = _range(loop.iter, frame) if within and isinstance(loop, ast.For) else None
            if numbers is not None and isinstance(loop, ast.For):
                number = len(numbers)
                # What the script does with the number of an outer turn is not read: it may decide, too.
                found = (
                    found._replace(number=found.number * number, decides=True)
                    if found
                    else _of(loop, number, frame)
                )
            elif found is not None:
                return None
            within = True
        epochs = _epochs_of_trainer(frame) if found is None else None
        if epochs is not None:
            found, within = Turns(epochs, decides=True, hands_on=True, is_last=False), True
        frame = None if _is_script(frame) else frame.f_back
    return found


def taken(frame: FrameType | None) -> loops.Count | None:
    """For all loops around a step together: the current turn, and how many there are; None: one has no ``range``."""
    turn, number = 0, 1
    around_it = [(inner, loop) for inner in loops.stack(frame) for loop in reversed(loops.running_in(inner))]
    for inner, loop in around_it:
        if not isinstance(loop, ast.For) or (numbers := _range(loop.iter, inner)) is None:
            return None
        now = loops.value(ast.parse(ast.unparse(loop.target), mode="eval").body, inner)
        if not isinstance(now, int) or now not in numbers:
            return None
        turn += numbers.index(now) * number
        number *= len(numbers)
    return loops.Count(turn, number, decides=False) if around_it else None


def _epochs_of_trainer(frame: FrameType) -> int | None:
    """How many epochs a trainer has left; None: not a trainer's frame, or something else ends it."""
    first: Any
    if frame.f_code.co_name == "_inner_training_loop":
        first, end = (frame.f_locals.get(name) for name in ("epochs_trained", "num_train_epochs"))
    elif (loop := loops.of_lightning(frame, "_FitLoop")) is not None:
        first, end = loop.epoch_progress.current.processed, loop.max_epochs
    else:
        return None
    is_known = isinstance(first, int) and isinstance(end, int) and first < end < sys.maxsize
    return end - first if is_known else None


def _is_script(frame: FrameType) -> bool:
    """Whether this is the script's outermost frame; those below it, such as torchrun's, have started it."""
    return frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__main__"


def _of(loop: ast.For, number: int, frame: FrameType) -> Turns:
    uses = set(chain.from_iterable(_uses(node, _names(loop.target)) for node in loop.body))
    decides = _DECIDES in uses or any(map(_may_count, loops.own_statements(loop)))
    return Turns(number, decides, _HANDS_ON in uses, _is_last(loop, frame))


def _may_count(node: ast.AST) -> bool:
    """Whether it looks as if the script counted its passes by itself: ``epoch += 1``, ``state.epoch % 5``."""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and not _is_format(node)


def _range(iterated: ast.expr, frame: FrameType) -> range | None:
    """The range that a loop goes over, also within a progress bar's call."""
    for call in ast.walk(iterated):
        if isinstance(call, ast.Call) and _name(call) in ("range", "trange"):
            ends = [end for given in call.args if isinstance(end := loops.value(given, frame), int)]
            if len(ends) == len(call.args) and 1 <= len(ends) <= 3 and 0 not in ends[2:]:
                return range(*ends)  # type: ignore[call-overload, no-any-return]  # one to three
    return None


def _name(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def _names(target: ast.expr) -> frozenset[str]:
    return frozenset(node.id for node in ast.walk(target) if isinstance(node, ast.Name))


_DECIDES, _HANDS_ON = "decides", "hands on"


def _uses(node: ast.AST, names: frozenset[str]) -> Iterator[str]:
    """What is done with these names (`_DECIDES`, `_HANDS_ON`), apart from texts that are made of them."""
    if isinstance(node, ast.Name):
        if node.id in names:
            yield _DECIDES
    elif not (isinstance(node, ast.JoinedStr) or _is_format(node)):
        within = chain.from_iterable(_uses(child, names) for child in ast.iter_child_nodes(node))
        if not isinstance(node, ast.Call):
            yield from within
        elif _name(node) not in _SAYING:
            yield from (_HANDS_ON for _ in within)


def _is_format(node: ast.AST) -> bool:
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)):
        return False
    return isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)


def _is_last(loop: ast.For, frame: FrameType) -> bool:
    """Whether nothing is called after the loop: in its function, in that function's callers, in the file."""
    called = None
    for inner in loops.stack(frame):
        body = loops.tree(inner.f_code.co_filename).body
        if not _ends(body, inner.f_lineno, loop if called is None else None, called):
            return False
        called = inner.f_code.co_name
        if _is_script(inner):
            break
    return True


def _ends(body: Sequence[ast.stmt], line: int, loop: ast.For | None, called: str | None) -> bool:
    """Whether no call follows the statement of this line. `with` and `finally` do not count: they run in any case."""
    for number, statement in enumerate(body):
        if not statement.lineno <= line <= (statement.end_lineno or statement.lineno):
            continue
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return _ends(statement.body, line, loop, called)
        if any(isinstance(node, ast.Call) for later in body[number + 1 :] for node in ast.walk(later)):
            return False
        if loop is not None and statement.lineno == loop.lineno:
            return not loop.orelse
        if isinstance(statement, ast.If):
            return _ends([*statement.body], line, loop, called) or _ends(statement.orelse, line, loop, called)
        if isinstance(statement, ast.With | ast.Try):
            return _ends(statement.body, line, loop, called)
        calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
        is_simple = isinstance(statement, ast.Expr | ast.Assign | ast.Return) and loop is None
        return is_simple and (len(calls) == 1 or (bool(calls) and _name(calls[0]) == called))
    return False
