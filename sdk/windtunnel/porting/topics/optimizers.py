"""Optimizers that are made too soon; gradients that no core exchanges, or that are clipped too soon."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from windtunnel.porting import clips
from windtunnel.porting.classes import is_made_by, that_hold
from windtunnel.porting.finding import Edit, Finding, before, replaced
from windtunnel.porting.models import is_model
from windtunnel.porting.nodes import (
    arguments,
    calls_in,
    computes_gradients,
    constant,
    handed,
    is_method,
    is_optimizer,
    names_in,
    parameters,
    receiver,
)
from windtunnel.porting.script import Loop, Script
from windtunnel.porting.subject import Subject


def no_exchange(subject: Subject) -> Iterator[Finding]:
    """`optimizer.step()`, or an update by hand, where nothing exchanges the gradients."""
    script, xm = subject.script, subject.names.module("xm")
    if not subject.several or subject.managed or subject.exchanges or not subject.uses_device:
        return
    for call, _ in script.calls:
        optimizer = clips.stepped(subject, call)
        if optimizer is None:
            continue
        name = script.segment(optimizer)
        instead = f"{xm}.optimizer_step({name})"
        advice = f"Call {instead} instead."
        edits: tuple[Edit, ...] = (replaced(script, call, instead),)
        if (found := clips.clipped(subject).get(call)) is not None:
            advice = (
                f"Call {xm}.reduce_gradients({name}) before line {found.lines[0]}, which clips the gradients."
            )
            edits = found.edits
        plain = not call.keywords and call.args in ([], [optimizer])
        sure = subject.whole and plain and script.statement(call) is not None
        yield Finding(
            call.lineno,
            f"each core trains its own model. {advice}",
            edits if sure else (),
            sure=subject.whole,
            kind="no_exchange",
        )
    for node in script.walk(ast.For):
        line = _update_by_hand(node)
        if line is not None:
            yield Finding(
                line,
                f"each core trains its own model. Call, before this loop, {xm}.all_reduce({xm}.REDUCE_SUM, "
                "[p.grad for p in model.parameters()], scale=1 / world size).",
                kind="no_exchange",
            )


def _update_by_hand(loop: ast.For) -> int | None:
    """The line on which a loop over parameters changes them by their gradients, as ``p.data.add_(-lr * p.grad)``."""
    if "param" not in ast.unparse(loop.iter):
        return None
    names = names_in(loop.target)
    for node in (node for statement in loop.body for node in ast.walk(statement)):
        written: list[ast.expr] = []
        if isinstance(node, ast.AugAssign):
            written = [node.target]
        elif isinstance(node, ast.Assign):
            written = [one for one in node.targets if isinstance(one, ast.Attribute)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            written = [node.func.value] if node.func.attr.endswith("_") else []
        for one in written:
            weight = ast.unparse(one).removesuffix(".data")
            if weight in names and f"{weight}.grad" in ast.unparse(node):
                assert isinstance(node, ast.stmt | ast.expr)  # noqa: S101 - one of the three
                return node.lineno
    return None


def early_clips(subject: Subject) -> Iterator[Finding]:
    """Gradients that are clipped before the cores have exchanged them."""
    xm, clipped = subject.names.module("xm"), clips.clipped(subject).values()
    for call in clips.early(subject):
        found = next((one for one in clipped if call.lineno in one.lines), None)
        yield Finding(
            call.lineno,
            "clips each core's own gradients, before they are exchanged. To clip the mean of all cores, call "
            f"{xm}.reduce_gradients(optimizer) before this line, and optimizer.step() after it.",
            found.edits if found and subject.whole else (),
        )


def early_optimizers(subject: Subject) -> Iterator[Finding]:
    """Optimizers made before the model goes to the device: in the same function, or given to the one that moves it."""
    if subject.managed or not subject.uses_device:
        return
    script = subject.script
    for call, _ in script.calls:
        model = _model_of(script, call) or _model_of_maker(subject, call)
        here = script.scope(call)
        if not model or _is_moved(subject, here, model, before=call.lineno):
            continue
        moves = [
            *((subject, move) for move in _moves_behind(subject, call, model)),
            *_moves_of_what_is_given(subject, here, model),
            *_moves_of_its_objects(subject, here, model),
        ]
        if moves and not _is_made_again(*moves[0]):
            (other, move), *_ = moves
            sure = model != "self" and not other.script.is_chosen(move, ast.Try)
            yield Finding(
                call.lineno,
                "the optimizer is made before the model moves to the device in "
                f"{subject.line_in(other, move.lineno)}, which makes new parameters: the optimizer would change none "
                "of them. Make it after that line.",
                _moved_before(subject, call, model) if sure else (),
                kind="optimizer_before_move",
            )


def _moved_before(subject: Subject, call: ast.Call, model: str) -> tuple[Edit, ...]:
    """Move the model to the device before its optimizer is made; the later move then changes nothing."""
    statement = subject.script.statement_with(call)
    if not model.replace(".", "").isidentifier():
        return ()
    return (before(subject.script, statement, f"{model}.to({subject.device_at(statement)})"),)


def models_that_leave(subject: Subject) -> Iterator[Finding]:
    """`model.cpu()` and back in a loop that trains, or in a function that is called there."""
    if subject.managed or not subject.uses_device:
        return
    script = subject.script
    for call, _ in script.calls:
        if not isinstance(call.func, ast.Attribute) or not _goes_to_the_host(call):
            continue
        model, here = _moved(call), script.scope(call)
        loops = [loop for loop in subject.loops_around(call) if _trains(subject, loop)]
        callers = subject.calls_of(here)
        called = [loop for one, to in callers for loop in one.loops_around(to) if _trains(one, loop)]
        back = next(
            (
                move
                for move in subject.moves
                if ast.unparse(_moved(move)) == ast.unparse(model) and script.scope(move) is here
                if (called and move.lineno > call.lineno) or any(loop in script.above(move) for loop in loops)
            ),
            None,
        )
        name = ast.unparse(model)
        if back and is_model(script, model) and not _is_new_in(script, name, loops or [here, *called]):
            yield Finding(
                call.lineno,
                f"{name} leaves the device here and comes back in line {back.lineno}, which makes new parameters: an "
                "optimizer that was made before changes none of them. Save from the device (xm.save("
                f"{name}.state_dict(), path)), or move a copy (copy.deepcopy({name}).cpu()).",
                kind="optimizer_before_move",
            )


def _moved(call: ast.Call) -> ast.expr:
    """The model in ``model.module.eval().cpu()``."""
    model = receiver(call)
    while is_method(model, "eval", "train"):
        model = receiver(model)
    return model.value if isinstance(model, ast.Attribute) and model.attr == "module" else model


def _goes_to_the_host(call: ast.Call) -> bool:
    """Whether a call is ``model.cpu()`` or ``model.to("cpu")``."""
    if is_method(call, "to"):
        return any(
            constant(part) == "cpu"
            for given in arguments(call)
            for part in (given, *ast.iter_child_nodes(given))
        )
    return is_method(call, "cpu") and not call.args


def _trains(one: Subject, loop: Loop) -> bool:
    """Whether gradients are computed in a loop, or in a function that is called there."""
    return any(
        computes_gradients(call) or one.script.called(call) in one.training_functions
        for call in calls_in(loop)
    )


def _is_new_in(script: Script, model: str, places: Sequence[ast.AST]) -> bool:
    """Whether a model, or an optimizer of it, is made again and again in one of these places."""
    for place in places:
        for node in ast.walk(place):
            if isinstance(node, ast.Call) and _model_of(script, node):
                return True
            if isinstance(node, ast.Assign) and _gives(node, model) and model not in ast.unparse(node.value):
                return True
    return False


def _model_of(script: Script, call: ast.Call) -> str:
    """``model`` in ``torch.optim.SGD(model.parameters())``; empty for other calls."""
    given = call.args[0] if call.args else None
    if is_optimizer(script.dotted(call.func)) and is_method(given, "parameters"):
        return ast.unparse(receiver(given))
    return ""


def _model_of_maker(subject: Subject, call: ast.Call) -> str:
    """``model`` in ``create_optimizer(model, ...)``, a function of the program that makes an optimizer of what it is
    given, and moves nothing; else empty.
    """
    name = subject.script.called(call)
    for one in subject.program if isinstance(call.func, ast.Name) and "optim" in name.lower() else ():
        maker = one.script.functions.get(name)
        if maker is None or any(one.script.scope(move) is maker for move in one.moves):
            continue
        inside = list(calls_in(maker))
        asked = {
            ast.unparse(receiver(part))
            for part in inside
            if is_method(part, "parameters", "named_parameters")
        }
        if any(is_optimizer(one.script.dotted(part.func)) for part in inside):
            given = [value for key, value in handed(maker, call) if key in asked]
            return ast.unparse(given[0]) if given else ""
    return ""


def _is_made_again(subject: Subject, move: ast.Call) -> bool:
    """Whether the function that moves a model makes an optimizer afterwards."""
    script = subject.script
    return any(
        (_model_of(script, call) or _model_of_maker(subject, call))
        and call.lineno > move.lineno
        and script.scope(call) is script.scope(move)
        for call, _ in script.calls
    )


def _is_moved(subject: Subject, scope: ast.AST, model: str, before: int) -> bool:
    """Whether a model was moved to a device before a line of a function, or in the statement that made it."""
    script = subject.script
    return any(
        move.lineno < before
        and script.scope(move) is scope
        and (
            ast.unparse(receiver(move)) == model
            or any(isinstance(one, ast.Assign) and _gives(one, model) for one in script.above(move))
        )
        for move in subject.moves
    )


def _moves_behind(subject: Subject, call: ast.Call, model: str) -> Iterator[ast.Call]:
    """Moves of the model later in the same function, in the same block or one inside it."""
    script = subject.script
    statement = script.statement_with(call)
    block = script.parents[statement]
    for move in subject.moves:
        if move.lineno > call.lineno and ast.unparse(receiver(move)) == model and block in script.above(move):
            branches = ("body", "orelse", "handlers")
            inside = [statement, next(node for node in script.above(move) if script.parents[node] is block)]
            if len({name for name in branches for one in inside if one in getattr(block, name, ())}) == 1:
                yield move


def _moves_of_what_is_given(
    subject: Subject, scope: ast.AST, model: str
) -> Iterator[tuple[Subject, ast.Call]]:
    """Moves in functions that are given a model with its optimizer, where ``scope`` has just made both."""
    script = subject.script
    made = any(_gives(one, model) and script.scope(one) is scope for one in script.walk(ast.Assign))
    for other, move in [(one, move) for one in subject.program for move in one.moves if made]:
        function = other.script.scope(move)
        names = parameters(function)
        if (
            function is scope
            or ast.unparse(receiver(move)) not in names
            or not any("optim" in name for name in names)
        ):
            continue
        places = other.calls_of(function)
        if places and not any(
            _is_moved(one, one.script.scope(place), ast.unparse(given), before=place.lineno)
            for one, place in places
            for given in place.args
        ):
            yield other, move


def _moves_of_its_objects(subject: Subject, scope: ast.AST, model: str) -> Iterator[tuple[Subject, ast.Call]]:
    """Moves of modules that make an optimizer of their own parameters, or of what contains such modules."""
    owner = subject.script.parents.get(scope)
    if model != "self" or getattr(scope, "name", "") != "__init__" or not isinstance(owner, ast.ClassDef):
        return
    known = that_hold(subject.program, owner.name)
    for other, move in [(one, move) for one in subject.program for move in one.moves]:
        if is_made_by(other, receiver(move), known):
            yield other, move


def _gives(assigned: ast.AST, name: str) -> bool:
    return isinstance(assigned, ast.Assign) and any(ast.unparse(one) == name for one in assigned.targets)
