"""Which flags XLA gets, by workers and processors, and that the user's own win."""

from __future__ import annotations

import pytest

from neuron_sim.launcher import xla_flags


def test_a_flag_of_the_users_stays_and_is_not_given_twice() -> None:
    """Whatever its value, and also when it stands among others."""
    chosen = xla_flags.choose(workers=32, processors=2)
    given = "--xla_backend_optimization_level=3  --xla_dump_to=/tmp/x"
    result = xla_flags.added_to(given, chosen).split()
    assert result[:2] == given.split()
    names = [flag.partition("=")[0] for flag in result]
    assert len(names) == len(set(names))
    assert set(names) == {f"--{name}" for name in chosen} | {"--xla_dump_to"}


def test_flags_are_added_once_however_often_they_are_asked_for() -> None:
    """A torchrun that a script starts in turn inherits XLA_FLAGS."""
    chosen = xla_flags.choose(workers=32, processors=2)
    once = xla_flags.added_to("", chosen)
    assert xla_flags.added_to(once, chosen) == once


@pytest.mark.parametrize(
    ("workers", "processors", "eigen", "level"),
    [(1, 8, None, None), (8, 8, "false", None), (32, 8, "false", "1"), (3, 2, "false", "1")],
)
def test_fewer_threads_and_less_compilation_only_where_processors_are_short(
    workers: int, processors: int, eigen: str | None, level: str | None
) -> None:
    """A worker with processors to spare keeps XLA's threads and its optimisation."""
    chosen = xla_flags.choose(workers, processors)
    assert chosen.get("xla_cpu_multi_thread_eigen") == eigen
    assert chosen.get("xla_backend_optimization_level") == level


@pytest.mark.parametrize("workers", [1, 2, 32])
def test_no_flag_touches_what_the_numbers_mean(workers: int) -> None:
    """No fast-math: NaN and infinities stay what they are."""
    assert not any("fast_m" in name or "honor" in name for name in xla_flags.choose(workers, 2))
