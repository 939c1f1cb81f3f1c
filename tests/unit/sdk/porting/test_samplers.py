"""Samplers that divide nothing: with one each core goes through all of the data."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_patch import changed
from tests.unit.sdk.porting.test_program import HEAD, LOOP, said

_TEXT = (HEAD + LOOP).replace(", DistributedSampler", ", RandomSampler")
_EPOCHS = _TEXT.replace("for batch", "for epoch in range(3):\n  for batch").replace("\n    ", "\n      ")


def _told(text: str) -> list[str]:
    return [one for one in said(text) if "same_data" in one]


@pytest.mark.parametrize("sampler", ["RandomSampler(data)", "RandomSampler(data, replacement=True)",
                                     "SubsetRandomSampler(train)", "own", "None",
                                     "RandomSampler(data) if new else SequentialSampler(data)"])  # fmt: skip
def test_a_sampler_of_all_the_data(sampler: str) -> None:
    """Any sampler passed for one that shares the data out."""
    text = _TEXT.replace("DistributedSampler(data)", sampler).replace(
        "device =", "own = RandomSampler(data)\ndevice ="
    )
    (found,) = _told(text)
    assert "every core gets the same batches" in found


@pytest.mark.parametrize(
    "sampler",
    ["mine(data)", "DistributedSampler(data)", "argument", "SubsetRandomSampler(every[rank::cores])",
     "RandomSampler(data) if one else mine(data)"],
)  # fmt: skip
def test_a_sampler_that_may_share(sampler: str) -> None:
    """Of the script's own, or not known."""
    assert _told(_TEXT.replace("DistributedSampler(data)", sampler)) == []


def test_the_edit_of_a_random_sampler() -> None:
    """It shuffles as before, where it has nothing more to say than the data; else it stays and is told."""
    text = _EPOCHS.replace("sampler=DistributedSampler(data)", "batch_size=8, sampler=RandomSampler(data)")
    made = changed(text)
    assert "sampler = DistributedSampler(data, num_replicas=xr.world_size(), " in made
    assert "shuffle=True)\nloader = DataLoader(data, batch_size=8, sampler=sampler)\n" in made
    assert "  loader.sampler.set_epoch(epoch)\n" in made
    more = text.replace("RandomSampler(data)", "RandomSampler(data, num_samples=9)")
    assert "RandomSampler(data, num_samples=9)" in changed(more)


@pytest.mark.parametrize(
    ("made", "taken", "told"),
    [
        ("cycle(DataLoader(data, batch_size=8))", "next(batches)", 1),
        ("iter(loader)", "next(batches)", 1),
        ("iter(loader)", "next(batches)[0]", 1),
        ("cycle(DataLoader(data, sampler=DistributedSampler(data)))", "next(batches)", 0),
        ("cycle(other)", "next(batches)", 0),
        ("iter(loader)", "fixed\n    if step % 100 == 0:\n        evaluate(model, next(batches))", 0),
    ],
)
def test_batches_that_a_loop_takes_with_next(made: str, taken: str, told: int) -> None:
    """Of a loader that begins anew for ever, as where steps are counted; not what is evaluated now and then."""
    loop = LOOP[LOOP.index("for batch") :].replace(
        "batch in pl.MpDeviceLoader(loader, device)", "step in range(9)"
    )
    loop = loop.replace("    loss =", f"    batch = {taken}\n    loss =", 1)
    text = f"{HEAD}optimizer = torch.optim.SGD(model.parameters())\nloader = DataLoader(data)\nbatches = {made}\n{loop}"
    assert len(_told(text.replace(", DistributedSampler", ""))) == told
