"""The first weights: each process draws its own for a model that it makes, and on XLA only DistributedDataParallel
sends rank 0's weights to all processes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from windtunnel.porting.finding import Edit, Finding, behind
from windtunnel.porting.models import NO_MODEL, is_model, made_by, makers_of, makes_a_model
from windtunnel.porting.names import BROADCAST
from windtunnel.porting.nodes import (
    argument,
    arguments,
    calls_in,
    constant,
    is_main,
    is_method,
    names_rank,
    receiver,
)
from windtunnel.porting.one_rank import knows_rank
from windtunnel.porting.script import Scope, Script
from windtunnel.porting.subject import Subject
from windtunnel.porting.weights import (
    has_weights,
    is_made_once,
    is_of_pretrained_parts,
    is_pretrained,
    last_drawn,
)

_SENDS = re.compile(r"broadcast(?!_(to|tensors|shapes|object_list|buffers)$)|[Ss]hard(?!$)|parallelize")
"""In names of calls that send a rank's weights, or split a model among ranks."""
_LOADS = re.compile(r"^_?(load|restore|resume|get_peft_model$)")
_NEW_HEAD = re.compile(r"For(\w+Classification|QuestionAnswering|MultipleChoice)\.from_pretrained$")
"""Models of transformers whose last layer is new, unless the file was trained for the same task."""
_ADAPTS = ("get_peft_model", "add_adapter")
TORCH_SEEDS = ("torch.manual_seed", "torch.random.manual_seed")
_OTHER_NUMBERS = ("random.", "numpy.", "tensorflow.", "torch.", "torch_xla.")
_CHANCE = (
    "random.rand",
    "random.get",
    "numpy.random.rand",
    "time.",
    "os.urandom",
    "os.getpid",
    "secrets.",
    "torch.seed",
)
_SEEDED = re.compile(r"random\.seed$")
_NO_WEIGHTS = re.compile(r"optim|sched|scaler|ema", re.IGNORECASE)
"""In names of what is loaded beside the model."""


@dataclass(frozen=True)
class _Drawn:
    """A trained model, and where it is made. ``partly``: only a part is drawn, as a file has the rest."""

    name: str
    made: ast.expr
    partly: bool = False


def unequal_weights(subject: Subject) -> Iterator[Finding]:
    """A finding on the first trained model whose weights nothing makes equal on all cores."""
    script, managed = subject.script, subject.managed
    if not subject.several or subject.parallel_model or "neuronx_distributed" in script.packages:
        return
    if managed and not subject.sends_no_weights:
        return
    if any(_SENDS.search(name) for name in subject.program[0].calls_by_name):
        return
    for drawn in _handed_over(subject) if managed else _trained(subject):
        equal, but = _made_equal(subject, drawn)
        if equal:
            continue
        seed = "Call torch.manual_seed(...) before it" + (f" ({but})" if but else "")
        sent = (
            f", or {subject.names.module('xm')}.broadcast_master_param({drawn.name}) once it is on the device"
        )
        which = " (those that no file has)" if drawn.partly else ""
        drawn_alone = not drawn.partly and subject.whole and not _others_are_loaded(subject)
        yield Finding(
            drawn.made.lineno,
            f"each core draws its own initial weights of {drawn.name}{which}, and summed gradients do not make them "
            f"equal. {seed}"
            + (": on XLA the library does not send rank 0's to the others." if managed else f"{sent}."),
            _sent(subject) if drawn_alone and not managed else (),  # equal weights stay as they are
            sure=drawn_alone and not but,
            kind="unequal_weights",
        )
        return


def _sent(subject: Subject) -> tuple[Edit, ...]:
    """Edits that send rank 0's weights to all, behind the move of each model that needs it and what draws its weights
    anew there; empty unless each can.
    """
    script, edits = subject.script, dict[str, Edit]()
    for drawn in _trained(subject) if subject.names.version >= BROADCAST else ():
        moves = [
            statement
            for move in subject.moves
            if script.scope(move) is script.scope(drawn.made) and _moves(script, move, drawn.name)
            if isinstance(statement := script.parents[move], ast.Assign | ast.Expr)
        ]
        line = f"{subject.names.module('xm')}.broadcast_master_param({drawn.name})"
        last = last_drawn(subject, moves[0], drawn.name) if len(moves) == 1 else None
        edit = behind(script, last, line) if last is not None else None
        if edit is None or _is_layer(subject, drawn):
            return ()
        if subject.script.is_chosen(drawn.made, ast.ExceptHandler) or _is_of_some_ranks(subject, moves[0]):
            return ()
        edits[drawn.name] = edit
    known = tuple(f"{name}." for name in edits)
    others = [name for name in subject.script.models if name != "self" and not _is_frozen(subject, name)]
    return () if any(not f"{name}.".startswith(known) for name in others) else tuple(edits.values())


def _is_of_some_ranks(subject: Subject, move: ast.stmt) -> bool:
    """Whether a test of the rank decides on a move. Under any other test all processes move, or none."""
    tests = (one.test for one in subject.script.above(move) if isinstance(one, ast.If) and not is_main(one))
    return any(names_rank(ast.unparse(test)) for test in tests)


def _is_layer(subject: Subject, drawn: _Drawn) -> bool:
    """Whether a model is a part of a module, whose other parts are not known."""
    classes = (one for one in subject.script.above(drawn.made) if isinstance(one, ast.ClassDef))
    bases = {ast.unparse(base).rpartition(".")[2] for one in classes for base in one.bases}
    return drawn.name.startswith("self.") and "Module" in bases


def _moves(script: Script, move: ast.Call, name: str) -> bool:
    """Whether a move is ``model.to(device)`` or ``model = Net().to(device)``."""
    outer = script.parents[move]
    if isinstance(outer, ast.Assign):
        return [*map(ast.unparse, outer.targets)] == [name]
    return isinstance(move.func, ast.Attribute) and ast.unparse(move.func.value) == name


def _trained(subject: Subject) -> Iterator[_Drawn]:
    """Models whose parameters an optimizer gets, in a program that has a training loop of its own."""
    if subject.trains and subject.uses_device:
        for name in dict.fromkeys([*subject.script.models, *_handed_to_optimizers(subject)]):
            if not _is_frozen(subject, name):
                yield from _first_making(subject, name)


def _handed_to_optimizers(subject: Subject) -> Iterator[str]:
    """Models for which a function of another file makes an optimizer."""
    for other in subject.program:
        for call, _ in other.script.calls if other is not subject else ():
            function, outer = other.script.scope(call), other.script.parents[call]
            makes = "optim" in other.script.callee(outer)
            if makes and is_method(call, "parameters"):
                for one, given in other.passed(function, ast.unparse(receiver(call))):
                    if one is subject and isinstance(given, ast.Name):
                        yield given.id


def _is_frozen(subject: Subject, name: str) -> bool:
    """Whether a model's parameters are read only in loops that set requires_grad to False, as for a teacher."""
    reads = [
        subject.script.parents[call]
        for call, _ in subject.script.calls
        if is_method(call, "parameters", "named_parameters") and ast.unparse(receiver(call)) == name
    ]
    return bool(reads) and all(
        isinstance(one, ast.For) and re.search(r"requires_grad(_\(| = )False", ast.unparse(one))
        for one in reads
    )


def _handed_over(subject: Subject) -> Iterator[_Drawn]:
    """The models that a Trainer and accelerate's prepare() are given, where a class makes them."""
    script = subject.script
    for call, name in script.calls:
        given: list[ast.expr] = []
        if name.endswith("Trainer"):
            model = argument(call, "model", 0)
            given = [] if model is None else [model]
            adapter = argument(call, "peft_config")
            if adapter and not isinstance(adapter, ast.Constant):
                yield _Drawn("the adapter of peft_config", call, partly=True)
        elif is_method(call, "prepare", "prepare_model"):
            given = call.args
        for value in given:
            made = made_by(value)
            if made is not None and makes_a_model(script.dotted(made.func)):
                yield from _drawn(subject, script.segment(value), [made])
            elif is_model(script, value):
                yield from _first_making(subject, ast.unparse(value), of_a_class=True)


def _first_making(subject: Subject, name: str, *, of_a_class: bool = False) -> Iterator[_Drawn]:
    script = subject.script
    makers = [
        call
        for value in script.values(name)
        if (call := made_by(value)) is not None
        # torch.compile(model) makes no new one
        if script.called(call) in _ADAPTS or all(ast.unparse(part) != name for part in ast.walk(value))
    ]
    known = name in script.models or any(makes_a_model(script.dotted(call.func)) for call in makers)
    if makers and (known or not of_a_class):
        yield from _drawn(subject, name, makers)


def _drawn(subject: Subject, name: str, makers: list[ast.Call]) -> Iterator[_Drawn]:
    """The model, unless a file has all of its weights."""
    script = subject.script
    adapts = any(one.script.calls_any(*_ADAPTS) for one in subject.program)
    loaded = [
        call
        for call in makers
        if _is_loaded(script.dotted(call.func) or script.called(call), call)
        or is_of_pretrained_parts(subject, script.called(call))
    ]
    new = any(_NEW_HEAD.search(script.dotted(call.func)) for call in makers)
    functions = {script.called(call) for call in makers}
    parts = any(_has_new_part(one, functions, name if one is subject else None) for one in subject.program)
    if parts and not any(_loads_all(subject, call, name) for call, _ in script.calls):
        yield _Drawn(name, makers[0], partly=True)
    elif not loaded or adapts or new or any(script.is_chosen(call, ast.ExceptHandler) for call in loaded):
        yield _Drawn(name, makers[0], partly=bool(loaded))


def _has_new_part(one: Subject, functions: set[str], model: str | None) -> bool:
    """Whether a model from a file gets a new part, as ``model.fc = torch.nn.Linear(...)``, by its name or in a function
    which makes that model.
    """
    script = one.script
    for _, node in script.assigned:
        if not isinstance(node.value, ast.Call) or not has_weights(script.dotted(node.value.func)):
            continue
        within = script.scope_name(node) in functions
        owner: ast.expr = node.targets[0]
        while isinstance(owner, ast.Attribute | ast.Subscript):
            owner = owner.value
            if (within or ast.unparse(owner) == model) and any(
                _is_loaded(script.dotted(call.func), call) for call in makers_of(script, ast.unparse(owner))
            ):
                return True
    return False


def _loads_all(subject: Subject, call: ast.Call, model: str) -> bool:
    """Whether a call loads the whole model, under no condition."""
    of_it = is_method(call, "load_state_dict") and ast.unparse(receiver(call)) == model
    return of_it and not subject.script.is_chosen(call, ast.ExceptHandler)


def _is_loaded(name: str, call: ast.Call) -> bool:
    """Whether what a call makes comes from a file."""
    loads = bool(_LOADS.search(name.rpartition(".")[2])) and not NO_MODEL.search(name)
    return loads or is_pretrained(name, call)


def _others_are_loaded(subject: Subject) -> bool:
    """Whether any model of the program is pretrained: this one may be a part of it, or contain it."""
    return any(is_pretrained(name, call) for one in subject.program for call, name in one.script.calls)


def _made_equal(subject: Subject, drawn: _Drawn) -> tuple[bool, str]:
    """Whether a model's weights are equal on all cores, by a seed before it is made or by a file; and what may make
    them so, if it is not sure.
    """
    if is_made_once(subject, drawn.made):
        return True, ""
    lines = dict(_calls_above(subject, drawn.made))
    unsure = ""
    own = {name for one in subject.program for name in one.script.functions}
    for one in subject.program:
        for call, name in one.script.calls:
            seeds = one.script.called(call) not in own and _seeds(one, name, call)
            if not seeds and (drawn.partly or not _fills(subject, one, call, drawn)):
                continue
            if not seeds and one.has_trained(call):
                continue  # loads the best of its own checkpoints
            if seeds and (chance := chance_of(one, call)):
                unsure = (
                    unsure or f"the seed of {subject.line_in(one, chance)} is drawn, and differs on each core"
                )
                continue
            for where, place, certain in _runs(one, call, set(lines)):
                late = place.lineno > lines.get(where.script.scope(place), place.lineno)
                late = late if seeds else where.has_trained(place)
                if certain and not late:
                    return True, ""
                if not late:
                    line = subject.line_in(one, call.lineno)
                    unsure = unsure or f"{line} does so only under a condition"
    return False, unsure


def _seeds(one: Subject, name: str, call: ast.Call) -> bool:
    """Whether a call seeds torch, as a library's ``set_seed`` does, and alike on all cores."""
    last = name.rpartition(".")[2].lower()
    own = argument(call, "device_specific")
    if knows_rank(one.script, call, before=call.lineno) or (own and constant(own) is not False):
        return False
    if name in TORCH_SEEDS or last == "enable_full_determinism":
        return True
    return "seed" in last and last not in ("seed", "manual_seed") and not name.startswith(_OTHER_NUMBERS)


def chance_of(one: Subject, seed: ast.Call) -> int | None:
    """The line on which a seed is drawn at random, perhaps if none is given; None also if those numbers are seeded."""
    names = {ast.unparse(given) for given in arguments(seed)}
    drawn: list[ast.expr | ast.stmt] = [node for target, node in one.script.assigned if target in names]
    for made in (seed, *drawn):
        random = any(one.script.callee(call).startswith(_CHANCE) for call in calls_in(made))
        seeded = any(_SEEDED.search(name) and call.lineno < made.lineno for call, name in one.script.calls)
        if random and not seeded:
            return made.lineno
    return None


def _fills(subject: Subject, one: Subject, call: ast.Call, drawn: _Drawn) -> bool:
    """Whether a call loads the model: ``model.load_state_dict(...)``, ``load(model, path)``, or any load from a file in
    the function that makes it.
    """
    called = one.script.called(call)
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    makers = {subject.script.called(made) for made in calls_in(drawn.made)}
    if one.script.scope_name(call) in makers and _is_loaded(called, call):
        return owner is None or not _NO_WEIGHTS.search(ast.unparse(owner))
    loads = called == "load_state" or (
        _LOADS.search(called)
        and _short(drawn.name) in map(_short, map(ast.unparse, [*arguments(call), *filter(None, [owner])]))
    )
    return bool(loads)


def _short(name: str) -> str:
    return name.removesuffix(".module").rpartition(".")[2]


def _calls_above(subject: Subject, node: ast.expr) -> Iterator[tuple[Scope, int]]:
    """The functions in which a node runs, each with its line there."""
    open_, seen = [(subject, node)], set()
    while open_:
        one, place = open_.pop()
        scope = one.script.scope(place)
        if scope not in seen:
            seen.add(scope)
            yield scope, place.lineno
            open_ += one.calls_of(scope)


def _runs(
    one: Subject, node: ast.Call, here: set[Scope], seen: tuple[Scope, ...] = ()
) -> Iterator[tuple[Subject, ast.Call, bool]]:
    """The calls from which a node is run, in one of the functions ``here`` or in one that nothing calls, each with
    whether it is certain to run.
    """
    scope, certain = one.script.scope(node), not one.script.is_chosen(node, ast.ExceptHandler)
    calls = one.calls_of(scope) if scope not in here else []
    if not calls:
        yield one, node, certain
    for other, call in calls if scope not in seen else ():
        for where, place, above in _runs(other, call, here, (*seen, scope)):
            yield where, place, certain and above
