"""Each collective equals a torch reference in one process: any world of 1-8, group, dtype and shape."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from collective_pool import Pool
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neuron_sim.interconnect import reduction

DTYPES = (
    torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
)  # fmt: skip
RELAXED = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """Eight processes for all examples; half a MiB of shared memory, so that large tensors need many pieces."""
    with Pool(8, 2**19) as made:
        yield made


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, list[int], torch.dtype, tuple[int, ...], int]:
    """World size, a group in it in any order, dtype, shape (also empty and scalar) and a seed."""
    world = draw(st.integers(1, 8))
    group = draw(st.lists(st.sampled_from(range(world)), min_size=1, unique=True))
    shape = draw(
        st.one_of(
            st.just(()),
            st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple),
            # Around what fits a slot, and pieces that do not come out even.
            st.sampled_from([(511,), (4097,), (3, 7_001)]),
        )
    )
    return world, group, draw(st.sampled_from(DTYPES)), shape, draw(st.integers(0, 2**31))


def values(count: int, dtype: torch.dtype, shape: tuple[int, ...], seed: int) -> list[torch.Tensor]:
    """What each rank of the group brings: small whole numbers, exact in every dtype."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(0, 3, shape, generator=generator).to(dtype) for _ in range(count)]


def same(got: object, wanted: torch.Tensor) -> None:
    """Equal in every bit, in dtype and in shape."""
    assert isinstance(got, torch.Tensor), got
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    raw = [tensor.contiguous().reshape(-1).view(torch.uint8) for tensor in (got, wanted)]
    assert torch.equal(*raw)


def reference(name: str, parts: list[torch.Tensor]) -> torch.Tensor:
    """The reduction as plain torch has it, small floats in fp32."""
    dtype = parts[0].dtype
    small = dtype.is_floating_point and dtype.itemsize < 4
    stacked = torch.stack([part.float() if small else part for part in parts])
    if dtype == torch.bool:
        return stacked.any(0) if name in ("sum", "max", "or") else stacked.all(0)
    if name in ("and", "or"):
        total = stacked[0]
        for part in stacked[1:]:
            total = total & part if name == "and" else total | part
        return total
    if name == "sum":
        return stacked.sum(0, dtype=stacked.dtype).to(dtype)
    if name == "mul":
        return stacked.prod(0, dtype=stacked.dtype).to(dtype)
    return (stacked.amin(0) if name == "min" else stacked.amax(0)).to(dtype)


@RELAXED
@given(case=cases(), name=st.sampled_from(["sum", "mul", "min", "max", "and", "or"]))
def test_all_reduce_equals_the_reduction_of_all(pool, case, name):
    """The same bits on every rank, equal to the reference; in place as well."""
    world, group, dtype, shape, seed = case
    if name in ("and", "or") and dtype.is_floating_point:
        dtype = torch.int32
    brought = values(len(group), dtype, shape, seed)
    wanted = reference(name, brought)
    for method in ("all_reduce", "all_reduce_"):
        arguments = [(tensor, name, group) for tensor in brought]
        for result in pool.call(group, method, arguments, world):
            same(result, wanted)


@RELAXED
@given(case=cases())
def test_all_gather_brings_everything_in_the_order_of_the_group(pool, case):
    """The group's order decides, also when it is not sorted."""
    world, group, dtype, shape, seed = case
    brought = values(len(group), dtype, shape, seed)
    for result in pool.call(group, "all_gather", [(tensor, group) for tensor in brought], world):
        same(result, torch.stack(brought))


@RELAXED
@given(case=cases(), name=st.sampled_from(["sum", "mul", "min", "max"]))
def test_reduce_scatter_gives_each_rank_its_part_of_the_reduction(pool, case, name):
    """Part i of everyone, reduced, on the group's rank i."""
    world, group, dtype, shape, seed = case
    brought = [torch.stack(values(len(group), dtype, shape, seed + n)) for n in range(len(group))]
    results = pool.call(group, "reduce_scatter", [(parts, name, group) for parts in brought], world)
    for position, result in enumerate(results):
        same(result, reference(name, [parts[position] for parts in brought]))


@RELAXED
@given(case=cases())
def test_all_to_all_transposes(pool, case):
    """Part j of rank i becomes part i of rank j."""
    world, group, dtype, shape, seed = case
    brought = [torch.stack(values(len(group), dtype, shape, seed + n)) for n in range(len(group))]
    results = pool.call(group, "all_to_all", [(parts, group) for parts in brought], world)
    for position, result in enumerate(results):
        same(result, torch.stack([parts[position] for parts in brought]))


@RELAXED
@given(case=cases(), data=st.data())
def test_permute_delivers_to_targets_and_zeros_to_the_rest(pool, case, data):
    """Whoever is no target gets zeros, as XLA defines it; ranks that no pair names need not call at all. A broadcast
    has one source for all.
    """
    world, group, dtype, shape, seed = case
    sources = data.draw(st.permutations(group) | st.sampled_from(group).map(lambda one: [one] * len(group)))
    count = data.draw(st.integers(1, len(group)))
    pairs = [[source, target] for source, target in zip(sources, group, strict=True)][:count]
    members = sorted({rank for pair in pairs for rank in pair})
    brought = dict(zip(members, values(len(members), dtype, shape, seed), strict=True))
    results = pool.call(members, "permute", [(brought[rank], pairs) for rank in members], world)
    came_from = {target: source for source, target in pairs}
    for rank, result in zip(members, results, strict=True):
        same(result, brought[came_from[rank]] if rank in came_from else torch.zeros(shape, dtype=dtype))


def test_disjoint_groups_of_the_same_world_do_not_disturb_each_other(pool):
    """Groups that overlap, follow each other at once, and share the workers' buffers."""
    large = 60_000
    rounds = [[[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 4], [1, 5], [2, 6], [3, 7]], [[7, 0, 3], [1, 2, 4, 5, 6]]]
    for number in range(30):
        groups = rounds[number % 3]
        for group in groups:
            for rank in group:
                pool.start(rank, "all_reduce", torch.full((large,), rank + number), "sum", group)
        for group in groups:
            for rank in group:
                same(pool.answer(rank), torch.full((large,), sum(group) + number * len(group)))


def test_float_sums_are_equal_in_every_bit_and_do_not_depend_on_the_place(pool):
    """Training must not drift apart; and an element's sum is the same wherever it lies in a tensor."""
    group = list(range(8))
    brought = [torch.randn(300_003) for _ in group]
    results = pool.call(group, "all_reduce", [(tensor, "sum", group) for tensor in brought])
    for result in results:
        same(result, reduction.reduce("sum", brought))
