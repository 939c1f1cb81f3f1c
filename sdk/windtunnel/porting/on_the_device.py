"""All code of a file that runs on the device again and again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.each_step import evaluations_on_the_device, handed_over, steps_on_the_device
from windtunnel.porting.forwards import forward_passes
from windtunnel.porting.reads import Tensors
from windtunnel.porting.subject import Subject


def runs_on_the_device(subject: Subject) -> Iterator[tuple[ast.AST, Tensors, bool]]:
    """Steps, forward passes, functions that steps hand tensors to, and evaluations, with their tensors.

    Last: whether only these tensors count, as of an evaluation's results, which are often fetched first.
    """
    yield from ((place, tensors, False) for place, tensors in steps_on_the_device(subject))
    yield from ((one.function, one.tensors, False) for one in forward_passes(subject))
    for (where, function), (names, *_) in handed_over(tuple(subject.program)).items():
        if where is subject:
            yield function, Tensors(subject.script, function, names), False
    yield from ((loop, tensors, True) for loop, tensors in evaluations_on_the_device(subject))
