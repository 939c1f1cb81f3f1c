"""Functions of torch.cuda, which find no GPU."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from windtunnel.porting.finding import Finding, Removal, replaced
from windtunnel.porting.gpu_tests import FUNCTIONS, QUESTIONS, TYPES, is_dead
from windtunnel.porting.names import SEEDS_OF_DEVICE
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject
from windtunnel.porting.topics.processes import start_of_as_many

_DROPPED = {"set_device", "set_device_index", "empty_cache", "reset_peak_memory_stats", "init"}
_STATES = ("get_rng_state", "get_rng_state_all", "set_rng_state", "set_rng_state_all")


def of_gpus(subject: Subject) -> Iterator[Finding]:
    """Findings on functions of torch.cuda and torch.accelerator, except those that ask whether there is a GPU."""
    script, xm = subject.script, subject.names.module("xm")
    for call, name in script.calls:
        found = FUNCTIONS.match(name)
        if (
            not found
            or name in QUESTIONS
            or TYPES.fullmatch(name)
            or subject.is_cuda_device(call)
            or is_dead(subject, call)
        ):
            continue
        short, statement = found[2], script.statement(call)
        if short in _DROPPED:
            edits = (Removal(statement),) if statement else ()
            yield Finding(call.lineno, f"{name} has no counterpart on Trainium: leave it out.", edits)
        elif short == "synchronize" and statement and _is_in_each_step(subject, statement):
            text = (
                f"{name} in each step: what stands for it on Trainium would have the host wait, and record no next "
                "step meanwhile. Leave it out: what reads a value waits. To time steps, wait before and after many."
            )
            yield Finding(call.lineno, text, (Removal(statement),))
        elif short == "synchronize":
            instead = subject.names.finish()
            edit = replaced(script, call, instead)
            text = f"{name} does not exist on Trainium: {instead} runs all that is pending, and waits for it."
            yield Finding(call.lineno, text, (edit,) if statement else ())
        elif short == "device_count" and _is_number(script, call):
            number, text = "1", "a process has one NeuronCore, and needs no DataParallel. Write 1."
            if not _counts_for_one(subject):
                number = subject.names.told_by_torchrun("LOCAL_WORLD_SIZE", 1)
                text = f"torchrun starts a process for each NeuronCore. Their number is {number}."
            start = start_of_as_many(subject, call)
            if start is not None:
                there = subject.line_in(start[0], start[1].lineno)
                text += f" Write it together with what {there} says, which starts as many."
            # Edited alone, each of torchrun's processes would start as many.
            count = (replaced(script, call, number),) if start is None else ()
            yield Finding(call.lineno, f"{name}() is 0 on trn1, where {text}", count)
        elif short in ("manual_seed", "manual_seed_all"):
            if not any(other in SEEDS_OF_DEVICE for _, other in script.calls):
                edit = replaced(script, call.func, f"{xm}.set_rng_state")
                text = f"{name} does nothing on Trainium: xm.set_rng_state seeds the device."
                yield Finding(call.lineno, text, (edit,))
        elif short in _STATES:
            text = (
                f"{name} is for CUDA: {xm}.get_rng_state() gives the state of a core's device, a number, and "
                f"{xm}.set_rng_state(number) sets it. Where all load what rank 0 saved, all draw the same."
            )
            yield Finding(call.lineno, text)
        elif short not in ("is_bf16_supported", "is_initialized", "GradScaler", "autocast"):
            text = f"{name} is for CUDA: without a GPU it raises, or says that there is none. Leave it out."
            yield Finding(call.lineno, text)


def _is_in_each_step(subject: Subject, statement: ast.stmt) -> bool:
    """Whether each training step reaches a statement, under no condition."""
    above = itertools.takewhile(lambda one: not isinstance(one, ast.If), subject.script.above(statement))
    return any(one in subject.steps for one in above)


def _counts_for_one(subject: Subject) -> bool:
    """Whether one process of the program counts GPUs for DataParallel."""
    calls = {name for one in subject.program for _, name in one.script.calls}
    several = subject.parallel_model or any(name.endswith("spawn") for name in calls)
    return "torch.nn.DataParallel" in calls and not several


def _is_number(script: Script, call: ast.Call) -> bool:
    """Whether a count is computed with, assigned, or compared with another number of processes; not ``> 1``, which asks
    whether to use DataParallel.
    """
    outer = script.parents[call]
    if isinstance(outer, ast.Compare):
        return not any(isinstance(one, ast.Constant) for one in (outer.left, *outer.comparators))
    computes = isinstance(outer, ast.Call) and script.dotted(outer.func) in (
        "range",
        "int",
        "float",
        "max",
        "min",
    )
    named = isinstance(outer, ast.keyword) and outer.arg != "nprocs"  # of a spawn, which must go
    return computes or named or isinstance(outer, ast.Assign | ast.AugAssign | ast.BinOp | ast.Return)
