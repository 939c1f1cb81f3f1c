"""Random numbers that the device draws in the steps: the same on all cores, unless the device is seeded by the rank."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator

from windtunnel.porting.evaluations import has_no_gradients
from windtunnel.porting.finding import Finding, behind
from windtunnel.porting.forwards import forward_passes
from windtunnel.porting.nodes import calls_in, constant, is_method, keyword
from windtunnel.porting.subject import Subject
from windtunnel.porting.topics.data_without_loader import (
    seeded_alike,
    seeds_by_rank,
    takes_no_batches,
)
from windtunnel.porting.topics.step_ends import within
from windtunnel.porting.weights import REDRAWS

_DRAWS = {f"torch.{name}" for name in ("rand", "randn", "randint", "randperm", "normal")}
"""Draw on the device if they are told to."""
_DRAWS_ALIKE = {
    *(f"torch.{name}_like" for name in ("rand", "randn", "randint")),
    "torch.bernoulli",
    "torch.nn.functional.gumbel_softmax",
}
"""Draw where their tensor is, which in a step is the device."""
_DROPS = re.compile("dropout|drop_?path|drop_?rate", re.IGNORECASE)


def drawn_alike(subject: Subject) -> Iterator[Finding]:
    """Findings on torch.manual_seed by the rank, which seeds a GPU and no NeuronCore; else on the first such draw."""
    if not subject.several or subject.managed or not subject.uses_device or not subject.trains:
        return
    if any(one.script.calls_any("parallelize_module") for one in subject.program):
        return  # cores that share a model draw alike
    draws = [(one, call) for one in subject.program for call in _draws(one)]
    by_rank = seeds_by_rank(subject)
    if by_rank:
        if draws or any(_DROPS.search(word) for one in subject.program for word in one.script.words):
            yield from (_seed(subject, call, draws) for one, call in by_rank if one is subject and call.args)
        return
    if "the device" not in seeded_alike(subject):
        return
    # Those loops are the other topic's.
    others = [loop for one in subject.program for loop in one.training_loops if takes_no_batches(one, loop)]
    one, call = next(
        (pair for pair in draws if not any(pair[1] in ast.walk(loop) for loop in others)), (None, None)
    )
    if one is subject and call is not None:
        yield Finding(
            call.lineno,
            f"every core draws the same numbers with {subject.script.segment(call.func)}: all devices have the same "
            "seed. If they are noise for samples that differ, seed each core by its rank once the model is made: "
            f"{subject.names.module('xm')}.set_rng_state(seed + {subject.names.rank()}).",
            sure=False,
        )


def _seed(subject: Subject, call: ast.Call, draws: list[tuple[Subject, ast.Call]]) -> Finding:
    script = subject.script
    line = f"{subject.names.module('xm')}.set_rng_state({script.segment(call.args[0])})"
    statement, edit = script.statement(call), None
    where = "once all weights are drawn, or they differ"
    if not any(map(_draws_weights, subject.program)):
        where = "beside it"
        edit = behind(script, statement, line) if statement is not None else None
    what = "dropout"
    if draws:
        one, drawn = draws[0]
        what = f"{one.script.segment(drawn.func)} in {subject.line_in(one, drawn.lineno)}"
    return Finding(
        call.lineno,
        f"{script.segment(call.func)} seeds a GPU, and no NeuronCore: all devices begin with the same seed, so every "
        f"core draws the same numbers ({what}). Seed the device {where}: {line}.",
        () if edit is None else (edit,),
        sure=bool(draws),
    )


def _draws_weights(subject: Subject) -> bool:
    """Whether a file draws a model's weights outside of the model's own methods, so perhaps on the device."""
    script = subject.script
    return any(
        name.startswith("torch.nn.init.") or is_method(call, *REDRAWS)
        for call, name in script.calls
        if not isinstance(script.parents.get(script.scope(call)), ast.ClassDef)
    )


@functools.lru_cache(maxsize=64)  # each file of a program asks for those of all files
def _draws(subject: Subject) -> list[ast.Call]:
    """The calls of a file that draw on the device in steps and forward passes, those of its own loops first."""
    reached = [
        call for one in (subject, *subject.program) for where, call in _in_loops(one) if where is subject
    ]
    reached += [call for one in forward_passes(subject) for call in calls_in(one.function)]
    return [call for call in dict.fromkeys(reached) if _is_draw(subject, call)]


@functools.lru_cache(maxsize=64)
def _in_loops(subject: Subject) -> list[tuple[Subject, ast.Call]]:
    return [pair for loop in subject.training_loops for pair in within(subject, loop)]


def _is_draw(subject: Subject, call: ast.Call) -> bool:
    script, name = subject.script, subject.script.dotted(call.func)
    if keyword(call, "generator") or not (name in _DRAWS or name in _DRAWS_ALIKE):
        return False
    if has_no_gradients(script, call):
        return False  # to look at samples
    given = subject.device_given(call)
    return name in _DRAWS_ALIKE if given is None else all(constant(one) != "cpu" for one in ast.walk(given))
