"""What a short rehearsal reads of a script's variables, it does not keep."""

from __future__ import annotations

import ast
import sys
import weakref

from neuron_sim.rehearsal import loops


class Model:
    """Something large."""


def test_what_a_function_puts_aside_is_gone() -> None:
    """Python keeps the dict in which it shows a function's variables: with it a script's first model lived on."""
    model, steps = Model(), 3
    assert loops.value(ast.parse("steps + 1", mode="eval").body, sys._getframe()) == 4
    first = weakref.ref(model)
    model = Model()
    assert first() is None and steps == 3 and model is not None
