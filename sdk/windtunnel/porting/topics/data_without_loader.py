"""Training data without a loader: the same on all cores, if nothing tells them apart or all draw the same numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from windtunnel.porting.finding import Finding
from windtunnel.porting.names import SEEDS_OF_DEVICE
from windtunnel.porting.nodes import arguments, constant, keyword, names_rank
from windtunnel.porting.one_rank import knows_rank
from windtunnel.porting.script import Loop
from windtunnel.porting.subject import Subject
from windtunnel.porting.topics.batches import is_shared
from windtunnel.porting.topics.first_weights import TORCH_SEEDS, chance_of
from windtunnel.porting.topics.step_ends import within

_DRAWS = {
    "torch": ("torch.", {"randint", "randperm", "rand", "randn", "normal"}),
    "numpy": ("numpy.random.", {"randint", "permutation", "choice", "rand", "randn", "normal", "uniform"}),
    "random": ("random.", {"randint", "randrange", "sample", "choices"}),
}
"""For each library that is seeded: the start of its names, and its functions that make batches."""
SEEDS = {**dict.fromkeys(TORCH_SEEDS, "torch"), "numpy.random.seed": "numpy", "random.seed": "random"}
_CHANCE = re.compile(
    r"shuffle\w*|rand(int|n|perm|om|om_sample|om_split)?|permutation|choices?|sample|normal|uniform|multinomial|reset"
)
"""Functions by which the cores may get different data."""
_OF_TORCH = "torch.distributions."
_OF_DEVICE = (*SEEDS_OF_DEVICE, "torch.cuda.manual_seed", "torch.cuda.manual_seed_all")
"""Calls that seed the device, or become so by an edit."""


def same_draws(subject: Subject) -> Iterator[Finding]:
    """A finding on the first such loop."""
    if not subject.several or subject.managed or not subject.uses_device or is_shared(subject):
        return
    script, seeds = subject.script, seeded_alike(subject)
    if any(one.script.calls_any("parallelize_module") for one in subject.program):
        return  # cores that share a model take the same batches
    loops = [loop for loop in subject.training_loops if takes_no_batches(subject, loop)]
    for loop in loops:
        for one, call in within(subject, loop):
            library = _library(one.script.dotted(call.func))
            if one is not subject or not library or keyword(call, "generator"):
                continue
            given = subject.device_given(call)
            if given is not None and all(constant(part) != "cpu" for part in ast.walk(given)):
                library = "the device"
            if library not in seeds or (library == "the device" and seeds_by_rank(subject)):
                continue  # of those seeds `device_draws` tells
            where, seed = seeds[library]
            why, instead = "all devices have the same seed", f"{subject.names.module('xm')}.set_rng_state"
            if seed is not None:
                why = f"{subject.line_in(where, seed.lineno)} gives all the same seed"
                instead = where.script.segment(seed.func)
            yield Finding(
                call.lineno,
                f"every core draws the same numbers with {script.segment(call.func)}: {why}. If the batches are made "
                f"of them, seed each core by its rank once the model is made: {instead}(seed + "
                f"{subject.names.rank()}).",
                sure=False,
                kind="same_data",
            )
            return
    if loops and not any(_may_differ(one, seeds) for one in subject.program):
        yield Finding(
            loops[0].lineno,
            "nothing here tells the cores apart, so they may all train on the same data. Give each core a part, by "
            f"{subject.names.rank()} of {subject.names.world_size()}.",
            sure=False,
            kind="same_data",
        )


def _may_differ(one: Subject, seeds: Collection[str]) -> bool:
    """Whether something in a file tells the cores apart, or is left to chance."""
    drawn = (call for call, _ in one.script.calls if _CHANCE.fullmatch(one.script.called(call)))
    return any(map(names_rank, one.script.words)) or not all(_is_alike(one, call, seeds) for call in drawn)


def _is_alike(one: Subject, call: ast.Call, seeds: Collection[str]) -> bool:
    """Whether all cores draw the same with a call: from a library that is seeded alike, with a seed, or from
    torch.distributions, for which the device draws.
    """
    name = one.script.dotted(call.func)
    made = one.script.values(ast.unparse(call.func.value)) if isinstance(call.func, ast.Attribute) else []
    library = next((library for library, (head, _) in _DRAWS.items() if name.startswith(head)), "")
    if any(one.script.callee(value).startswith(_OF_TORCH) for value in made):
        library = "the device"
    return library in seeds or (keyword(call, "seed") is not None and not knows_rank(one.script, call))


def takes_no_batches(subject: Subject, loop: Loop) -> bool:
    """Whether a loop counts, or is endless, and nothing in it takes the next batch of a loader."""
    parts = subject.loaders.gone_over(loop)
    counts = any(subject.script.is_call_of(part, "range", "trange", "count") for part in parts)
    takes = any(one.script.is_call_of(call, "next") for one, call in within(subject, loop))
    return not takes and (counts or isinstance(loop, ast.While))


def _library(name: str) -> str:
    """The library whose numbers a call draws; empty where it draws none."""
    return next((one for one, (head, names) in _DRAWS.items() if name.removeprefix(head) in names), "")


def seeded_alike(subject: Subject) -> dict[str, tuple[Subject, ast.Call | None]]:
    """The libraries that draw the same on all cores, with the call that seeds each; the device does without."""
    alike: dict[str, tuple[Subject, ast.Call | None]] = {"the device": (subject, None)}
    by_rank: set[str] = set()
    for one in subject.program:
        for call, name in one.script.calls:
            library = "the device" if name in _OF_DEVICE else SEEDS.get(name, "")
            if library:
                alike.setdefault(library, (one, call))
                own = _is_of_each_core(one, call) or chance_of(one, call)
                by_rank |= {library} if own else set()
    return {library: seed for library, seed in alike.items() if library not in by_rank}


def seeds_by_rank(subject: Subject) -> list[tuple[Subject, ast.Call]]:
    """The program's calls of torch.manual_seed that depend on the rank; empty if something seeds the device itself."""
    calls = [(one, call, name) for one in subject.program for call, name in one.script.calls]
    if any(name in _OF_DEVICE for _, _, name in calls):
        return []
    return [(one, call) for one, call, name in calls if name in TORCH_SEEDS and _is_of_each_core(one, call)]


def _is_of_each_core(one: Subject, seed: ast.Call) -> bool:
    """Whether a seed depends on the rank, perhaps by what its function is called with."""
    given = {ast.unparse(value) for value in arguments(seed)}
    passed = [value for name in given for _, value in one.passed(one.script.scope(seed), name)]
    return knows_rank(one.script, seed) or any(names_rank(ast.unparse(value)) for value in passed)
