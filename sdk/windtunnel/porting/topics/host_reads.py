"""Values of the device that the host reads in each step of a training loop, or for each batch that it evaluates, and
other waits for the device.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from windtunnel.porting.each_step import (
    LEAVES,
    evaluations_on_the_device,
    handed_over,
    steps_on_the_device,
)
from windtunnel.porting.finding import Finding, also_in
from windtunnel.porting.forwards import forward_passes, is_trained
from windtunnel.porting.nodes import constant, is_method
from windtunnel.porting.passes import each_pass
from windtunnel.porting.reads import Tensors, question_at, read_at
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject
from windtunnel.porting.tensors import FETCHES

_ENDS = ("torch_xla.sync", "torch_xla.core.xla_model.mark_step")
_WAIT = "torch_xla.core.xla_model.wait_device_ops"


def host_reads(subject: Subject) -> Iterator[Finding]:
    """Findings on `loss.item()` and its like, where they run in every step."""
    script = subject.script
    if not _has_loops_of_its_own(subject):
        return
    said: set[int] = set()
    for step, tensors in steps_on_the_device(subject):
        yield from _remarks(script, each_pass(step.body), tensors, said)
        yield from _waits(script, each_pass(step.body), said)
    for (where, function), (names, one, call) in handed_over(tuple(subject.program)).items():
        if where is not subject or function in subject.steps:
            continue
        tensors = Tensors(script, function, names)
        given = f", with a tensor of the device from {subject.line_in(one, call.lineno)}"
        yield from _remarks(script, each_pass(function.body, LEAVES), tensors, said, given)
    yield from _of_forward_passes(subject, said)


def reads_of_evaluations(subject: Subject) -> Iterator[Finding]:
    """A note on the reads of each loop that evaluates: how much of the time that is, the text does not tell."""
    script = subject.script
    if not _has_loops_of_its_own(subject):
        return
    for loop, tensors in evaluations_on_the_device(subject):
        reads = list(_reads(script, each_pass(loop.body), tensors))
        if reads:
            yield Finding(
                reads[0].lineno,
                f"{_shown(script, reads[0])} for each batch that is evaluated{also_in(reads)}: the host waits for the "
                "device. Keep sums on the device, and read them once behind the loop.",
                sure=False,
                kind="host_read",
            )


def _has_loops_of_its_own(subject: Subject) -> bool:
    """Whether the program is for a device, and no library runs its loops: with accelerate they are the script's own."""
    accelerated = any("accelerate" in one.script.packages for one in subject.program)
    return accelerated or (not subject.managed and subject.uses_device)


def _waits(script: Script, run: Iterable[ast.AST], said: set[int]) -> Iterator[Finding]:
    """Findings on calls that wait in each step and read nothing."""
    for node in run:
        if not isinstance(node, ast.Call) or node.lineno in said:
            continue
        name = script.dotted(node.func)
        first = [*node.args[:1], *(one.value for one in node.keywords if one.arg == "wait")]
        if (name in _ENDS and any(map(constant, first))) or name == _WAIT:
            said.add(node.lineno)
            yield Finding(
                node.lineno,
                f"{_shown(script, node)} in each step: the host waits for the device, and cannot record the next step "
                "meanwhile. Leave the wait out: reading a value waits anyway. To time steps, wait before and after "
                "many.",
                kind="host_read",
            )


def _of_forward_passes(subject: Subject, said: set[int]) -> Iterator[Finding]:
    """Findings on reads in forward passes; notes where the module may be of something that is not trained."""
    script = subject.script
    for one in forward_passes(subject):
        run = [*each_pass(one.function.body, LEAVES)]
        of_buffers = Tensors(script, one.function, one.buffers)
        yield from _remarks(
            script, run, of_buffers, said, ", of a buffer (a Python number beside it may do the counting)"
        )
        for read in _reads(script, run, one.tensors):
            if read.lineno not in said:
                said.add(read.lineno)
                trained = is_trained(subject.program, one.module)
                when = (
                    "in each step" if trained else "in each step, if that is of the trained model or its loss"
                )
                yield Finding(
                    read.lineno,
                    f"{_shown(script, read)} in the forward pass of {one.module.name}: the host waits for the device "
                    f"{when}. Compute with tensors, or with numbers that the host has anyway.",
                    sure=trained,
                    kind="host_read",
                )


def _remarks(
    script: Script, run: Iterable[ast.AST], tensors: Tensors, said: set[int], given: str = ""
) -> Iterator[Finding]:
    """Findings on reads of these tensors in the code that is run; at most one a line."""
    for read in _reads(script, run, tensors):
        if read.lineno not in said:
            said.add(read.lineno)
            yield Finding(
                read.lineno,
                f"{_shown(script, read)} in each step{given}: the host waits for the device. Do this in "
                "xm.add_step_closure(fn, args=(tensor,)), or every N steps only. Keep sums on the device.",
                kind="host_read",
            )


def _reads(script: Script, run: Iterable[ast.AST], tensors: Tensors) -> Iterator[ast.expr]:
    """What reads these tensors in the code that is run."""
    for node in run:
        read, *of = read_at(script, node) or question_at(node) or (None,)
        fetches = is_method(read, *FETCHES)  # only tensors, or numpy's arrays, have these
        if read is not None and any(tensors.gave(one, widely=fetches) for one in of):
            yield read


def _shown(script: Script, read: ast.expr) -> str:
    text = script.segment(read)
    return f"{ast.unparse(read.func)}(...)" if isinstance(read, ast.Call) and "\n" in text else text
