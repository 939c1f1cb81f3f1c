"""Where a model's weights come from: a file, random numbers, or one process for all."""

from __future__ import annotations

import ast
import re
import sys

from windtunnel.porting.models import NO_MODEL, makes_a_model
from windtunnel.porting.nodes import argument, arguments, constant, is_main, is_method, receiver
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject

_PARTS = ("Head", "Predictor", "Classifier", "Projector")
_LAYERS = {
    "Linear",
    "Sequential",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose2d",
    "Embedding",
    "LSTM",
    "GRU",
}
"""Layers of torch.nn that have weights; a model from a file may get one as a new part."""
_INITIALISES = re.compile(r"(^|[._])(re)?init(ialize)?(ialise)?([._]|$)|weights?_init", re.IGNORECASE)
"""In names of functions that draw a model's weights in place."""
REDRAWS = ("apply", "init_weights", "reset_parameters")
"""Methods of a model, or of its layers, that draw its weights in place."""


def is_pretrained(name: str, call: ast.Call) -> bool:
    """Whether a call makes a model with published weights, by from_pretrained(), weights=... or pretrained=True."""
    none = (None, False)
    given = {
        one.arg
        for one in call.keywords
        if not isinstance(one.value, ast.Constant) or one.value.value not in none
    }
    made = name or ast.unparse(call.func)  # NETS[kind].from_pretrained
    by_name = made.endswith("from_pretrained") and not NO_MODEL.search(made)
    return by_name or not given.isdisjoint({"pretrained", "weights"})


def is_of_pretrained_parts(subject: Subject, made: str) -> bool:
    """Whether it is a class of the program around one pretrained model, as for sentence embeddings: nothing else that
    its ``__init__`` calls makes weights.
    """
    for one in subject.program:
        makes = one.script.functions.get(made)
        if makes is None or makes.name != "__init__":
            continue
        names = [
            (call, one.script.dotted(call.func))
            for call, _ in one.script.calls
            if one.script.scope(call) is makes
        ]
        others = [name for call, name in names if not is_pretrained(name, call)]
        return len(others) < len(names) and not any(map(_may_have_weights, others))
    return False


def _may_have_weights(name: str) -> bool:
    """Whether a call of this name may make weights: of a class not known to have none, or of a method on `self`."""
    last = name.rpartition(".")[2]
    if name.startswith("torch.nn.") and last != "Parameter":
        return last in _LAYERS or last.endswith(("List", "Dict"))
    return makes_a_model(name) or name.startswith("self.")


def has_weights(name: str) -> bool:
    """Whether a call of this name makes a module with weights, such as a layer or a head."""
    last = name.rpartition(".")[2]
    return last.endswith(_PARTS) or (name.startswith("torch.nn.") and last in _LAYERS)


def is_made_once(subject: Subject, made: ast.expr) -> bool:
    """Whether one process makes a model before xmp.spawn starts the others: forked ones have the same, and what they
    are passed is a copy. Otherwise each of them reads the file again.
    """
    script = subject.script
    here = script.scope(made)
    for call, name in script.calls:
        if name != "torch_xla.distributed.xla_multiprocessing.spawn":
            continue
        forks = constant(argument(call, "start_method")) == "fork"
        around = script.scopes(call)
        earlier = (made.lineno, made.col_offset) < (call.lineno, call.col_offset)
        before = here is around[0] and earlier
        again = isinstance(here, ast.Module) and not any(map(is_main, script.above(made)))
        started = next(iter(call.args), None)
        body = script.functions.get(ast.unparse(started)) if started is not None else None
        if body is not None and here is not body and ((again and forks) or (before and not again)):
            return True
    return False


def last_drawn(subject: Subject, move: ast.stmt, name: str) -> ast.stmt | None:
    """The last statement before the training that draws a model's weights, as ``model.apply(weights_init)`` behind its
    move does, else the move; None if that is in another block than the move.
    """
    script, last = subject.script, move
    scope, block = script.scope(move), script.block(move)
    loops = (loop.lineno for loop in subject.training_loops if script.scope(loop) is scope)
    until = min((line for line in loops if line > move.lineno), default=sys.maxsize)
    for call, _ in script.calls:
        between = script.scope(call) is scope and move.lineno < call.lineno < until
        if not between or not _draws_anew(script, call, name):
            continue
        inside = [one for one in block if call in ast.walk(one)]
        if not inside:
            return None
        last = inside[0]
    return last


def _draws_anew(script: Script, call: ast.Call, name: str) -> bool:
    """Whether a call draws weights of a model: ``model.apply(f)``, ``init_weights(model)``,
    ``torch.nn.init.normal_(model.head.weight)``. A file that is loaded has the same ones for all cores.
    """
    if is_method(call, *REDRAWS):
        return f"{ast.unparse(receiver(call))}.".startswith(f"{name}.")
    draws = bool(_INITIALISES.search(script.dotted(call.func) or script.called(call)))
    return draws and any(f"{ast.unparse(one)}.".startswith(f"{name}.") for one in arguments(call))
