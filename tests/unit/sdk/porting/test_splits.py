"""Data that is split for training and evaluation, by each core in its own way."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_program import HEAD, LOOP, said

_SPLIT = "train, held_out = torch.utils.data.random_split(data, [9, 1])\n"
_PERMUTED = "order = torch.randperm(len(data)).tolist()\ntrain = torch.utils.data.Subset(data, order[:-9])\n"
_SHUFFLED = (
    "order = list(range(9))\nnumpy.random.shuffle(order)\ntrain_ids, other = order[3:], order[:3]\n"
    "sampler = torch.utils.data.SubsetRandomSampler(train_ids)\n"
)


def _told(text: str, *, several: bool = True) -> list[str]:
    found = said(f"import numpy, random\n{HEAD}{text}{LOOP}", several=several)
    return [one for one in found if "in its own way" in one]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (_SPLIT, 8),
        ("from torch.utils.data import random_split as s\ntrain, held_out = s(data, [0.9, 0.1])\n", 9),
        (
            "from sklearn.model_selection import train_test_split\na, b = train_test_split(rows, test_size=0.1)\n",
            9,
        ),
        ("parts = data.train_test_split(test_size=0.1)\n", 8),
        ("parts = data.train_test_split(test_size=0.1, seed=None)\n", 8),
        (_PERMUTED, 9),
        (_SHUFFLED, 11),
        (f"numpy.random.seed(1)\n{_SPLIT}", 9),
        (f"torch.manual_seed(rank)\n{_SPLIT}", 9),
    ],
)
def test_a_split_that_each_core_draws(text: str, line: int) -> None:
    """What one trains on, another evaluates: a note, once."""
    (found,) = _told(text)
    assert found.startswith(f"{line}: note: each core splits the data")


@pytest.mark.parametrize(
    "text",
    [
        f"torch.manual_seed(0)\n{_SPLIT}",
        f"set_seed(0)\n{_SPLIT}",
        _SPLIT.replace("[9, 1])", "[9, 1], generator=torch.Generator().manual_seed(0))"),
        _SPLIT.replace("[9, 1])", "[9, 1], torch.Generator().manual_seed(0))"),
        "from sklearn.model_selection import train_test_split\na, b = train_test_split(rows, random_state=1)\n",
        "parts = data.train_test_split(test_size=0.1, seed=args.seed)\n",
        "parts = data.train_test_split(test_size=0.1, shuffle=False)\n",
        f"numpy.random.seed(0)\n{_SHUFFLED}",
        "train = torch.utils.data.Subset(data, range(9))\n",
        "order = torch.randperm(9)\n",
    ],
)
def test_a_split_that_is_alike(text: str) -> None:
    """By a seed, or by no chance."""
    assert _told(text) == []


def test_one_process_splits_once() -> None:
    """There is no other."""
    assert _told(_SPLIT, several=False) == []
