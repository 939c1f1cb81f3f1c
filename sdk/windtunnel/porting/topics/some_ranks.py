"""Calls that wait for all processes, where only some make them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.finding import Finding
from windtunnel.porting.nodes import is_method, receiver
from windtunnel.porting.one_rank import is_by_some
from windtunnel.porting.subject import Subject

_XM = "torch_xla.core.xla_model."
_DIST = "torch.distributed."
_COLLECTIVES = {
    *(_XM + name for name in (
        "all_gather", "all_reduce", "all_to_all", "broadcast_master_param", "collective_broadcast", "mesh_reduce",
        "optimizer_step", "reduce_gradients", "reduce_scatter", "rendezvous",
    )),
    *(_DIST + name for name in (
        "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all", "barrier",
        "broadcast", "broadcast_object_list", "reduce", "reduce_scatter", "reduce_scatter_tensor",
    )),
}  # fmt: skip


_OF_TRAINERS = ("evaluate", "predict", "save_model", "train")
"""Methods of transformers' Trainer that all processes must call: on XLA, unlike on GPUs, save_model too."""


def lone_collectives(subject: Subject) -> Iterator[Finding]:
    """Findings on collectives of all processes under a test of the rank, where the others reach none of that name.

    In a script for GPUs only a Trainer's methods: its collectives would wait there, too.
    """
    if not subject.several:
        return
    for call, name in subject.script.calls:
        if not subject.xla and not _is_of_a_trainer(subject, call):
            continue
        if is_lone(subject, call, name) and name != f"{_DIST}barrier":  # which does nothing
            yield Finding(
                call.lineno,
                f"only some processes call {subject.script.segment(call.func)}: they wait for the others, which never "
                "come. Call it on all, outside of the test of the rank.",
            )


def is_lone(subject: Subject, call: ast.Call, name: str) -> bool:
    """Whether a call is one of these, and the other processes reach none of its name."""
    if (name not in _COLLECTIVES and not _is_of_a_trainer(subject, call)) or any(
        "group" in ast.unparse(one) for one in (*call.args, *call.keywords)
    ):
        return False  # it may be over a group of these ranks
    last = name.rpartition(".")[2]
    alike = [pair for pair in subject.program[0].calls_by_name.get(last, ()) if pair[1] is not call]
    return is_by_some(subject, call) and not any(is_by_some(*pair) for pair in alike)


def _is_of_a_trainer(subject: Subject, call: ast.Call) -> bool:
    """Whether a call is a method that needs all processes, of an object that surely is transformers' Trainer."""
    if not is_method(call, *_OF_TRAINERS):
        return False
    made = subject.script.values(ast.unparse(receiver(call)))
    return bool(made) and all(
        name.startswith("transformers.") and name.endswith("Trainer")
        for name in map(subject.script.callee, made)
    )
