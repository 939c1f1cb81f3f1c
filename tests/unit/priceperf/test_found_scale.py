"""The size of a whole job, from the loaders of a short rehearsal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from windtunnel.priceperf.workload.counted_input import Input, Loader
from windtunnel.priceperf.workload.found_scale import found_scale
from windtunnel.priceperf.workload.full_scale import FullScale


def train(**values: Any) -> Loader:
    return Loader(
        **{"line": "train.py:9", "samples": 8, "split": True, "passes": 1, "trains": True, **values}
    )


def scale(
    *loaders: Loader, early: bool = False, world: int = 2, workers: int | None = None
) -> FullScale | str:
    return found_scale(Input(rehearsed_steps=16, ended_early=early, loaders=loaders), world, workers)


def size(*loaders: Loader, **how: Any) -> tuple[int, int, int]:
    found = scale(*loaders, **how)
    assert isinstance(found, FullScale), found
    return found.train_samples, found.epoch_count, found.evaluated


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
    assert found.train_samples * found.epoch_count == batches * passes * samples * world
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
    """In its first pass; what it does after passes that were cut short is another matter."""
    assert size(train(batches=500, taken=10, left=True)) == (10 * 8 * 2, 1, 0)
    assert isinstance(scale(train(batches=500, passes=85, taken=100, left=True)), str)


def test_steps_that_a_script_counts_are_made_by_every_worker_of_the_whole_job() -> None:
    """A data set is split among them; a number of steps is not, and neither is a loader without a sampler."""
    loader = train(batches=14_062, bound=2_000)
    assert size(loader, workers=32) == (min(2_000 * 8 * 32, 14_062 * 8 * 2), 1, 0)
    assert size(train(batches=14_062, bound=100), workers=32) == (100 * 8 * 32, 1, 0)
    assert size(train(batches=50, passes=3, split=False), workers=32) == (50 * 8 * 32, 3, 0)
    # transformers' max_steps, and `while step < 2000:`, are not held up by the end of the data.
    assert size(train(batches=50, passes=40, bound=2_000, decides=True), workers=32) == (2_000 * 8 * 32, 1, 0)


def test_a_limit_within_each_pass_is_one_of_each_pass() -> None:
    for limits in ({"bound_of_pass": 100}, {"left_after": 100}):
        assert size(train(batches=500, passes=3, **limits)) == (100 * 8 * 2, 3, 0)
    made_anew = (train(batches=500, bound=100) for _ in range(3))
    assert size(*made_anew) == (100 * 8 * 2, 3, 0)
    counted_on = (train(batches=500, bound=700 - 8 * done) for done in range(3))
    assert size(*counted_on) == (700 * 8 * 2, 1, 0)


def test_a_limit_that_is_read_between_passes_lets_each_pass_come_to_its_end() -> None:
    assert size(train(batches=500, passes=10, bound_between=700)) == (1_000 * 8 * 2, 1, 0)


def test_a_loop_that_trains_and_evaluates_by_turns_is_two() -> None:
    evaluation = Loader(line="train.py:9", batches=20, samples=10, split=True, passes=3)
    assert size(train(batches=500, passes=3), evaluation) == (500 * 8 * 2, 3, 20 * 10 * 2)


def test_evaluation_within_training_is_repeated_as_often_as_training_goes_on() -> None:
    evaluation = Loader(line="e.py:1", batches=20, samples=10, split=True, passes=2, inside=2, every=4.0)
    assert size(train(batches=500), evaluation) == (500 * 8 * 2, 1, 125 * 20 * 10 * 2)
    once = Loader(line="e.py:1", batches=20, samples=10, passes=1, inside=1)
    assert "within one that trains" in str(scale(train(batches=500), once))


def test_evaluation_after_passes_that_a_limit_ends_is_as_often_as_those() -> None:
    """57 passes of a batch each were 300 steps of one pass of 500."""
    evaluation = Loader(line="e.py:1", batches=20, samples=10, split=True, passes=57)
    loader = train(batches=500, passes=57, bound=300)
    assert size(loader, evaluation, early=True) == (300 * 8 * 2, 1, 20 * 10 * 2)


def test_loaders_that_are_made_anew_for_each_pass_are_one() -> None:
    assert scale(train(batches=10), train(batches=10), train(batches=10)) == scale(
        train(batches=10, passes=3)
    )


def test_a_function_that_evaluates_several_loaders_has_several() -> None:
    """After each of ten epochs the samples of training, and at the end once more these and the fewer of the test: all
    passes counted as the last one.
    """
    again = Loader(line="e.py:89", batches=4, samples=128, split=True, passes=11, planned=10)
    test = Loader(line="e.py:89", batches=1, samples=128, split=True, passes=2)
    loader = train(batches=4, samples=128, passes=10, planned=10)
    assert size(loader, again, test) == (1024, 10, (11 * 1024 + 2 * 256 + 5) // 10)


def test_what_cannot_be_told_says_where() -> None:
    for found, said in (
        (scale(train(batches=None)), "train.py:9 does not tell its length"),
        (scale(train(batches=100, left=True), early=True), "train.py:9 does not tell how often"),
        (scale(early=True), "come from no loader"),
        (scale(train(batches=100, wrapped="zip", bound=7)), "train.py:9 goes through zip()"),
        (scale(train(batches=100, wrapped="islice")), "train.py:9 goes through islice()"),
        (scale(train(batches=100), Loader(line="e.py:1", passes=1, taken=4)), "e.py:1 does not tell its"),
    ):
        assert isinstance(found, str) and said in found


def test_steps_without_a_loader_are_those_of_every_worker() -> None:
    """As the simulator tells them; and evaluation after each 30 of them."""
    own = train(batches=None, split=False, bound=3000, left=True, taken=6)
    evaluation = Loader(line="e.py:1", batches=20, samples=10, split=True, passes=2, inside=2, every=30.0)
    assert size(own, early=True) == (3000 * 8 * 2, 1, 0)
    assert size(own, evaluation, early=True) == (3000 * 8 * 2, 1, 100 * 20 * 10 * 2)
    assert "train.py:9 does not tell how often it runs" in str(scale(replace(own, bound=None), early=True))


def test_a_stream_with_a_bound_is_known() -> None:
    found = scale(train(batches=None, bound=50), early=True)
    assert isinstance(found, FullScale) and found.train_samples == 800


def test_evaluation_that_each_core_repeats_counts_once() -> None:
    loaders = train(batches=100), Loader(line="e.py:1", batches=7, samples=10, passes=1, taken=4)
    found = scale(*loaders)
    assert isinstance(found, FullScale) and found.evaluation_samples == 70


def test_a_rehearsal_that_was_stopped_says_so() -> None:
    """It has seen steps, and left word of its beginning alone."""
    assert scale() == "the rehearsal was stopped before its end"
    assert scale(early=True) == "its training batches come from no loader"


def test_a_rehearsal_that_failed_after_its_passes_has_shown_them() -> None:
    """As in saving its model. Whether more would have followed, the loop around them tells, or nothing does."""
    assert size(train(batches=100, planned=1), early=True) == (100 * 8 * 2, 1, 0)
    assert isinstance(scale(train(batches=100), early=True), str)
    assert isinstance(scale(train(batches=100, planned=1, left=True), early=True), str)


def test_a_loop_over_a_range_tells_how_often_it_goes() -> None:
    """Where the script stopped at the third pass, as nothing could improve, and where it was ended in its 52nd."""
    evaluation = Loader(line="e.py:1", batches=5, samples=10, split=True, passes=3)
    loader = train(batches=100, passes=3, planned=40)
    assert size(loader, evaluation) == (100 * 8 * 2, 40, 5 * 10 * 2)
    ended = train(batches=100, passes=52, planned=100, left=True)
    often = replace(evaluation, passes=51)
    assert size(ended, often, early=True) == (100 * 8 * 2, 100, 5 * 10 * 2)
    assert isinstance(scale(replace(ended, planned=None), often, early=True), str)
    # One in some of its passes goes on so; what no such loop holds has been done once.
    some = replace(evaluation, passes=10, planned=100)
    assert size(ended, some, early=True)[2] == round(10 * 100 / 51 * 5 * 10 * 2 / 100)
    assert size(ended, replace(some, planned=None), early=True)[2] == 10 * 5 * 10 * 2 / 100
    # A limit of its own counts before it.
    assert size(train(batches=100, passes=3, planned=40, bound=50)) == (50 * 8 * 2, 1, 0)


def test_what_is_tried_before_training_does_not_say_how_often_it_is_evaluated() -> None:
    """A loop for learning rates of 40 batches, then 30 epochs that were ended in the 14th."""
    tried = train(line="train.py:3", batches=100, bound=40)
    evaluation = Loader(line="e.py:1", batches=5, samples=10, split=True, passes=13, planned=30)
    found = size(tried, train(batches=100, passes=14, planned=30, left=True), evaluation, early=True)
    assert found == ((40 + 30 * 100) * 8 * 2, 1, 30 * 5 * 10 * 2)


def test_a_smaller_last_batch_has_its_own_samples() -> None:
    """Of a pass that nothing cuts short."""
    evaluation = Loader(line="e.py:1", batches=5, samples=10, last=4, split=True, passes=1)
    assert size(train(batches=100, last=3), evaluation) == ((99 * 8 + 3) * 2, 1, (4 * 10 + 4) * 2)
    assert size(train(batches=100, last=3, bound=50)) == (50 * 8 * 2, 1, 0)
