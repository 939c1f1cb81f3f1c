"""Data that is split at random, for training and evaluation: each core draws a split of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.finding import Finding
from windtunnel.porting.nodes import argument, arguments, calls_in, constant, keyword, names_in
from windtunnel.porting.one_rank import knows_rank
from windtunnel.porting.subject import Subject
from windtunnel.porting.topics.data_without_loader import SEEDS

_INSTEAD = {
    "torch": "torch.manual_seed(...) before it, or generator=torch.Generator().manual_seed(...)",
    "numpy": "numpy.random.seed(...) before it, or the function's own seed",
    "random": "random.seed(...) before it",
}
_OWN_SEEDS = {"random_state", "seed", "generator"}
_GENERATOR = 2
"""The position of random_split's generator."""
_DRAWS = {"torch.randperm": "torch", "numpy.random.permutation": "numpy", "numpy.random.shuffle": "numpy",
          "random.shuffle": "random", "random.sample": "random"}  # fmt: skip


def split_by_chance(subject: Subject) -> Iterator[Finding]:
    """A finding on the first random split of a file that nothing seeds."""
    if not subject.several or not (subject.uses_device or subject.managed):
        return
    for call, _ in subject.script.calls:
        library = _library(subject, call)
        if library and not any(_seeds(one, library) for one in subject.program):
            yield Finding(
                call.lineno,
                "each core splits the data in its own way: what one trains on, another evaluates. Make all splits "
                f"alike: {_INSTEAD[library]}.",
                sure=False,
            )
            return


def _library(subject: Subject, call: ast.Call) -> str:
    """The library whose random numbers make a split; empty for none, or where the split has its own seed."""
    last = subject.script.called(call)
    own = [one.value for one in call.keywords if one.arg in _OWN_SEEDS]
    if any(not isinstance(one, ast.Constant) or one.value is not None for one in own):
        return ""
    if last == "random_split":
        return "torch" if len(call.args) <= _GENERATOR else ""
    if last == "train_test_split":
        return "" if constant(argument(call, "shuffle")) is False else "numpy"
    if last not in ("Subset", "SubsetRandomSampler"):
        return ""
    return _drawn(subject, call, names_in(*arguments(call)[-1:]))


def _drawn(subject: Subject, call: ast.Call, names: set[str]) -> str:
    """The library whose random numbers made some indices, as ``order[:-50]`` of an order that is drawn or shuffled."""
    script = subject.script
    before = [node for _, node in script.assigned if node.lineno < call.lineno]
    for node in reversed(before):
        if names_in(*node.targets) & names:
            names |= names_in(node.value)
            for part in calls_in(node.value):
                if not keyword(part, "generator") and script.callee(part) in _DRAWS:
                    return _DRAWS[script.callee(part)]
    for other, name in script.calls:
        shuffled = (
            names & {ast.unparse(one) for one in other.args} if script.is_call_of(other, "shuffle") else ()
        )
        if shuffled and name in _DRAWS and other.lineno < call.lineno:
            return _DRAWS[name]
    return ""


def _seeds(one: Subject, library: str) -> bool:
    """Whether a file seeds a library alike on all cores, as another library's ``set_seed`` does."""
    for call, name in one.script.calls:
        every = (
            "seed" in name.rpartition(".")[2].lower() and name not in SEEDS and not name.startswith("torch.")
        )
        if (SEEDS.get(name) == library or every) and not knows_rank(one.script, call):
            return True
    return False
