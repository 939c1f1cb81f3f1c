"""What a short rehearsal says of steps that take long."""

from __future__ import annotations

from collections.abc import Mapping

from neuron_sim.diagnostics.progress import Progress


def _idle() -> tuple[int, int, float]:
    return 2, 2, 4.0


def _told(*steps: Mapping[str, bool]) -> list[str]:
    lines: list[str] = []
    progress = Progress(7, lines.append, lambda: True, _idle)
    for step in steps:
        progress.step({"optimizer": True, "seconds": 12.0, "compile_seconds": 0.0, **step})
    return [line.removeprefix("short rehearsal: training step ").partition(" took")[0] for line in lines]


def test_of_how_many() -> None:
    """As many as a first pass has; of those behind it there is no number."""
    assert _told(*[{"updated": True}] * 8)[5:] == ["6 of 7", "7 of 7", "8"]


def test_of_how_many_is_not_said_of_steps_that_accumulate() -> None:
    """Such a pass is longer: some steps of the optimizer belong to it."""
    assert _told({}, {}, {"updated": True}, {}) == ["1", "2", "3", "4"]


def test_a_step_without_training_is_not_told() -> None:
    """It is another's, as of an evaluation."""
    assert _told({"optimizer": False}, {"updated": True}) == ["1 of 7"]


def test_a_process_that_is_no_core_has_no_step_that_goes_on() -> None:
    """One that starts others, or reads data for them, said so of steps that it never makes."""
    lines: list[str] = []
    for is_core in (False, True):
        Progress(7, lines.append, lambda is_core=is_core: is_core, _idle).waits(31.0)  # type: ignore[misc]
    (line,) = lines
    assert line.startswith("short rehearsal: training step 1 has not ended after 31 s (")


def test_what_goes_on_behind_the_first_pass_may_be_no_training_step() -> None:
    """No step follows "3 of 3" for sure; nor is it known of a pass whose steps accumulate how many it has."""
    for updated, behind in ((True, 3), (False, 1)):
        lines: list[str] = []
        progress = Progress(3, lines.append, lambda: True, _idle)
        for _ in range(behind):
            progress.step({"optimizer": True, "updated": updated, "seconds": 1.0, "compile_seconds": 0.0})
        progress.waits(31.0)
        (line,) = lines
        said = (
            f"what follows training step {behind}, such as an evaluation or a later pass, has not ended after"
        )
        assert line.startswith(f"short rehearsal: {said} 31 s (")


def test_a_first_step_says_whether_it_compiles() -> None:
    """Within twenty seconds, and again each time after twice as long: a large model takes minutes, in silence."""
    lines: list[str] = []
    begun = 3
    progress = Progress(7, lines.append, lambda: True, lambda: (begun, 2, 4.0))
    for seconds in (10.0, 20.0, 30.0):
        progress.waits(seconds)
    begun = 2
    progress.waits(40.0)
    first = "short rehearsal: training step 1 has not ended after"
    so_far = "it; so far 2 graphs compiled in 4 s)."
    assert [line.partition(" The script is at ")[0] for line in lines] == [
        f"{first} 20 s (this machine's processors compile {so_far}",
        f"{first} 40 s (this machine's processors record or compute {so_far}",
    ]
