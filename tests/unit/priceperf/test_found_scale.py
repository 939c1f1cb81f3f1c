"""The size of a whole job, from the loaders of a short rehearsal."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from windtunnel.priceperf.workload.counters import Input, Loader
from windtunnel.priceperf.workload.found_scale import found_scale
from windtunnel.priceperf.workload.full_scale import FullScale


def train(**values: Any) -> Loader:
    return Loader(
        **{"line": "train.py:9", "samples": 8, "split": True, "passes": 1, "trains": True, **values}
    )


def scale(*loaders: Loader, early: bool = False, world: int = 2) -> FullScale | str:
    return found_scale(Input(rehearsed_steps=16, ended_early=early, loaders=loaders), world)


@given(
    batches=st.integers(1, 10**6),
    passes=st.integers(1, 100),
    samples=st.integers(1, 512),
    world=st.integers(1, 64),
    evaluated=st.integers(0, 10**5),
)
def test_every_sample_of_every_pass_is_in_it(
    batches: int, passes: int, samples: int, world: int, evaluated: int
) -> None:
    loaders = [train(batches=batches, passes=passes, samples=samples, taken=16)]
    if evaluated:
        loaders.append(
            Loader(line="train.py:20", batches=evaluated, samples=5, passes=passes, taken=4, split=True)
        )
    found = scale(*loaders, world=world)
    assert isinstance(found, FullScale)
    assert found.train_samples * found.epochs == batches * passes * samples * world
    assert found.evaluation_samples == evaluated * 5 * world


def test_an_evaluation_without_a_sampler_is_repeated_on_each_core() -> None:
    """Then its samples are those of one core, and each worker of the real job goes through all of them."""
    for split, samples in ((True, 100), (False, 50)):
        evaluation = Loader(line="train.py:20", batches=10, samples=5, passes=1, split=split)
        found = scale(train(batches=10), evaluation)
        assert isinstance(found, FullScale)
        assert (found.evaluation_samples, found.evaluation_split) == (samples, split)


def test_a_bound_of_the_script_ends_the_job() -> None:
    """AWS's own example: 2,000 steps of an epoch of 14,062."""
    found = scale(train(batches=14_062, bound=2_000))
    assert isinstance(found, FullScale)
    assert (found.train_samples, found.epochs) == (2_000 * 8 * 2, 1)
    assert scale(train(batches=100, passes=3, bound=2_000)) == scale(train(batches=100, passes=3))


def test_a_script_that_leaves_its_loop_has_had_all_that_it_wanted() -> None:
    """It counts steps itself, so that passes cut short do not change how many it makes."""
    found = scale(train(batches=500, passes=85, taken=100, left=True))
    assert isinstance(found, FullScale)
    assert found.train_samples == 100 * 8 * 2


def test_loaders_that_are_made_anew_for_each_pass_are_one() -> None:
    assert scale(train(batches=10), train(batches=10), train(batches=10)) == scale(
        train(batches=10, passes=3)
    )


def test_what_cannot_be_told_says_where() -> None:
    for found, said in (
        (scale(train(batches=None)), "train.py:9 does not tell its length"),
        (scale(train(batches=100, left=True), early=True), "train.py:9 does not tell how often"),
        (scale(early=True), "come from no loader"),
    ):
        assert isinstance(found, str) and said in found


def test_a_stream_with_a_bound_is_known() -> None:
    found = scale(train(batches=None, bound=50), early=True)
    assert isinstance(found, FullScale) and found.train_samples == 800


def test_evaluation_that_each_core_repeats_counts_once() -> None:
    loaders = train(batches=100), Loader(line="e.py:1", batches=7, samples=10, passes=1, taken=4)
    found = scale(*loaders)
    assert isinstance(found, FullScale) and found.evaluation_samples == 70
