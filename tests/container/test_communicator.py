"""Collectives between processes equal a reference computed in one process, bit for bit across ranks."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neuron_sim.collectives import reduction, region
from neuron_sim.collectives.communicator import LAUNCH_VARIABLE, Communicator
from neuron_sim.errors import CollectiveError, MismatchError
from neuron_sim.settings import Identity

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.int64, torch.uint8, torch.bool)


def serve(rank: int, world: int, shared_bytes: int, pipe: Connection) -> None:
    """A worker: runs the calls that come through the pipe on its communicator."""
    torch.set_num_threads(1)
    communicator = Communicator(Identity(rank, world, rank, world), shared_bytes, timeout_s=20)
    while (call := pipe.recv()) is not None:
        method, arguments = call
        try:
            pipe.send(getattr(communicator, method)(*arguments))
        except Exception as error:  # noqa: BLE001 - sent to the test, which judges it
            pipe.send(error)


class Pool:
    """Workers that stay alive over many calls."""

    def __init__(self, world: int, shared_bytes: int = 2**20) -> None:
        self.name = os.environ[LAUNCH_VARIABLE] = f"test-{os.getpid()}-{world}-{time.monotonic_ns()}"
        context = multiprocessing.get_context("fork")
        self.pipes: list[Connection] = []
        self.processes = []
        for rank in range(world):
            mine, theirs = context.Pipe()
            process = context.Process(target=serve, args=(rank, world, shared_bytes, theirs), daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(mine)
            self.processes.append(process)

    def call(self, ranks: list[int], method: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """Call the method on these ranks at the same time; their results, or the errors."""
        for rank, own in zip(ranks, arguments, strict=True):
            self.pipes[rank].send((method, own))
        return [self.pipes[rank].recv() for rank in ranks]

    def close(self) -> None:
        for pipe, process in zip(self.pipes, self.processes, strict=True):
            if process.is_alive():
                pipe.send(None)
            process.join(10)
            process.close()
            pipe.close()
        region.forget(self.name)


@pytest.fixture(scope="module")
def pools() -> Iterator[dict[int, Pool]]:
    """One pool a world size from 1 to 8; half a MiB of shared memory, so that large tensors need many rounds."""
    made = {world: Pool(world, 2**19) for world in range(1, 9)}
    yield made
    for pool in made.values():
        pool.close()


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, list[int], torch.dtype, tuple[int, ...], int]:
    """World size, a group in it, dtype, shape (also empty and scalar) and a seed."""
    world = draw(st.integers(1, 8))
    group = draw(st.lists(st.sampled_from(range(world)), min_size=1, unique=True))
    shape = draw(
        st.one_of(
            st.just(()),
            st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple),
            st.sampled_from([(70_000,), (3, 50_000)]),
        )
    )
    return world, group, draw(st.sampled_from(DTYPES)), shape, draw(st.integers(0, 2**31))


def values(group: list[int], dtype: torch.dtype, shape: tuple[int, ...], seed: int) -> list[torch.Tensor]:
    """What each rank of the group brings."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(0, 5, shape, generator=generator).to(dtype) for _ in group]


RELAXED = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@RELAXED
@given(case=cases(), name=st.sampled_from(["sum", "mul", "min", "max"]))
def test_all_reduce_equals_the_reduction_of_all(pools, case, name):
    """The same bits on every rank, equal to the reference, in any group, dtype and shape."""
    world, group, dtype, shape, seed = case
    brought = values(group, dtype, shape, seed)
    results = pools[world].call(group, "all_reduce", [(tensor, name, group) for tensor in brought])
    wanted = reduction.reduce(name, brought)
    for result in results:
        assert torch.equal(result, wanted)
        assert (result.dtype, result.shape) == (dtype, torch.Size(shape))


@RELAXED
@given(case=cases())
def test_all_gather_brings_everything_in_the_order_of_the_group(pools, case):
    """The group's order decides, also when it is not sorted."""
    world, group, dtype, shape, seed = case
    brought = values(group, dtype, shape, seed)
    for result in pools[world].call(group, "all_gather", [(tensor, group) for tensor in brought]):
        assert torch.equal(result, torch.stack(brought))


@RELAXED
@given(case=cases())
def test_all_to_all_transposes(pools, case):
    """Part j of rank i becomes part i of rank j."""
    world, group, dtype, shape, seed = case
    brought = [torch.stack(values(group, dtype, shape, seed + index)) for index in range(len(group))]
    results = pools[world].call(group, "all_to_all", [(parts, group) for parts in brought])
    for position, result in enumerate(results):
        assert torch.equal(result, torch.stack([parts[position] for parts in brought]))


@RELAXED
@given(case=cases(), data=st.data())
def test_permute_delivers_to_targets_and_zeros_to_the_rest(pools, case, data):
    """Whoever is no target gets zeros, as XLA defines it; ranks that no pair names need not call at all."""
    world, group, dtype, shape, seed = case
    targets = data.draw(st.permutations(group))
    count = data.draw(st.integers(1, len(group)))
    pairs = [[source, target] for source, target in zip(group, targets, strict=True)][:count]
    members = sorted({rank for pair in pairs for rank in pair})
    brought = dict(zip(members, values(members, dtype, shape, seed), strict=True))
    results = pools[world].call(members, "permute", [(brought[rank], pairs) for rank in members])
    came_from = {target: source for source, target in pairs}
    for rank, result in zip(members, results, strict=True):
        wanted = brought[came_from[rank]] if rank in came_from else torch.zeros(shape, dtype=dtype)
        assert torch.equal(result, wanted)


def test_float_sums_are_equal_in_every_bit_on_every_rank(pools):
    """Training must not drift apart: not even the last bit of a rounded sum may differ."""
    group = list(range(8))
    brought = [torch.randn(100_003) for _ in group]
    results = pools[8].call(group, "all_reduce", [(tensor, "sum", group) for tensor in brought])
    assert all(torch.equal(result, results[0]) for result in results)
    torch.testing.assert_close(results[0], torch.stack(brought).sum(0), rtol=1e-5, atol=1e-5)


def test_mismatched_collectives_are_named_with_each_ranks_words():
    """Different calls on different ranks end in an error on all of them, not in wrong data."""
    pool = Pool(2)
    try:
        answers = pool.call(
            [0, 1], "agree", [([0, 1], "all_reduce sum at a.py:1"), ([0, 1], "all_gather at a.py:9")]
        )
        for answer in answers:
            assert isinstance(answer, MismatchError)
            assert "a.py:1" in str(answer) and "a.py:9" in str(answer)
        # The place in the script alone may differ.
        assert pool.call([0, 1], "agree", [([0, 1], "x at a.py:1"), ([0, 1], "x at a.py:2")]) == [None, None]
    finally:
        pool.close()


@pytest.mark.parametrize("delay_s", [0.0, 0.3])
def test_a_killed_peer_ends_the_wait_with_an_error(delay_s):
    """A survivor is told which rank has ended, within seconds."""
    pool = Pool(3)
    group = [0, 1, 2]
    try:
        pool.call(group, "all_reduce", [(torch.ones(4), "sum", group)] * 3)
        for rank in (0, 2):
            pool.pipes[rank].send(("all_reduce", (torch.ones(4), "sum", group)))
        time.sleep(delay_s)
        os.kill(pool.processes[1].pid, signal.SIGKILL)
        started = time.monotonic()
        answers = [pool.pipes[rank].recv() for rank in (0, 2)]
        assert time.monotonic() - started < 10
        assert all(isinstance(answer, CollectiveError) for answer in answers)
        assert any("local rank 1 has ended" in str(answer) for answer in answers)
    finally:
        pool.close()


def test_a_peer_that_has_left_ends_the_wait_though_its_process_lives():
    """torch's agent keeps workers that have succeeded until all have. What came before leaving still counts."""
    pool = Pool(2)
    try:
        assert pool.call([0, 1], "join", [(), ()]) == [None, None]
        both = [(torch.ones(1), "sum", [0, 1])] * 2
        assert all(
            torch.equal(total, torch.full((1,), 2.0)) for total in pool.call([0, 1], "all_reduce", both)
        )
        pool.call([1], "leave", [()])
        started = time.monotonic()
        (answer,) = pool.call([0], "all_reduce", both[:1])
        assert isinstance(answer, CollectiveError) and "local rank 1 has ended" in str(answer)
        assert time.monotonic() - started < 10
    finally:
        pool.close()


def test_nothing_is_left_in_shared_memory():
    """The region has no name once all have attached: it cannot outlive its workers."""
    pool = Pool(3)
    try:
        pool.call([1, 2], "all_reduce", [(torch.ones(1), "sum", [1, 2])] * 2)
        pool.call([0, 1, 2], "all_reduce", [(torch.ones(1), "sum", [0, 1, 2])] * 3)
        assert not list(region.SHARED_MEMORY.glob(f"{region.FILE_PREFIX}{pool.name}*"))
    finally:
        pool.close()


def test_ranks_outside_all_groups_are_told():
    """A wrong group is an error, not a hang."""
    communicator = Communicator(Identity(3, 4, 3, 4), 2**20, 1)
    with pytest.raises(ValueError, match="rank 3 is in none of the groups"):
        communicator.group_of([[0, 1], [2]])
    with pytest.raises(ValueError, match="not a set of ranks"):
        communicator.group_of([[3, 7]])
