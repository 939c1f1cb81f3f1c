"""A warning that torch raises behind a hook is the script's: it names the script's line, and obeys its filters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.unit.neuron_sim.test_failure import SCRIPT, SIMULATOR, made

from neuron_sim.hooks import warned

INNER = "def f(*arguments):\n    return warn(*arguments)\n"
CALLS = "def f():\n    hook('one', Kind)\n    hook('one', Kind)\n\n    for _ in range(2):\n        hook('two', Kind)\n"


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The warnings that are shown, by Python's own rules and a script's."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.resetwarnings()
        warned.start()
        monkeypatch.setattr(warnings, "_showwarnmsg", warned.around_show(warnings._showwarnmsg))  # type: ignore[attr-defined]
        yield seen


def calls(kind: type[Warning] = UserWarning, **space: Any) -> Callable[[], None]:
    """A script that calls a function of torch's, which warns, through two functions of the simulator."""
    inner = made(SIMULATOR, INNER, warn=warnings.warn, __name__="neuron_sim.inner")
    outer = made(SIMULATOR, INNER, warn=inner, __name__="neuron_sim.outer")
    function: Callable[[], None] = made(SCRIPT, CALLS, hook=outer, Kind=kind, __name__="__main__", **space)
    return function


@pytest.mark.parametrize(
    ("action", "lines"),
    [("", [2, 3, 6]), ("default", [2, 3, 6]), ("module", [2, 6]), ("once", [2, 6]), ("always", [2, 3, 6, 6])],
)
def test_each_line_is_named_as_the_filters_say(shown: list[Any], action: Any, lines: list[int]) -> None:
    """By Python's default once: the same line again says nothing new."""
    if action:
        warnings.simplefilter(action)
    calls()()
    assert [(one.filename, one.lineno) for one in shown] == [(SCRIPT, line) for line in lines]


def test_a_warning_from_elsewhere_stays_as_it_is(shown: list[Any]) -> None:
    """Nobody of the simulator is between."""
    made(SCRIPT, "def f():\n    warn('plain')\n", warn=warnings.warn, __name__="__main__")()
    assert [(one.filename, one.lineno) for one in shown] == [(SCRIPT, 2)]


def test_filters_see_the_script_s_module(shown: list[Any]) -> None:
    """Python's default shows a DeprecationWarning of `__main__` alone; a filter may make it an error."""
    warnings.filterwarnings("ignore", category=DeprecationWarning, append=True)
    warnings.filterwarnings("default", category=DeprecationWarning, module="__main__", append=False)
    calls(DeprecationWarning)()
    assert len(shown) == 3
    warnings.filterwarnings("error", module="__main__")
    with pytest.raises(FutureWarning, match="one"):
        calls(FutureWarning)()
    warnings.filterwarnings("ignore", module="__main__")
    calls(ResourceWarning)()
    assert len(shown) == 3
