"""The channels of the example's job: the real reviews where they can be had, else generated ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import prepare_data
import pytest
from reviews import Review


class Stream:
    """What `datasets` returns with streaming=True, as far as it is used."""

    def __init__(self, name: str, split: str, count: int = 100) -> None:
        self.name, self.split, self.count = name, split, count

    def shuffle(self, **_: int) -> Stream:
        """In order is one of the orders."""
        return self

    def take(self, count: int) -> Iterator[dict[str, Any]]:
        """Rows with the columns in the hub's order."""
        rows = (
            {"label": i % 2, "title": f"{self.split} {i}", "content": 'a "b",\nc'} for i in range(self.count)
        )
        return islice(rows, count)


def load_dataset(name: str, *, split: str, streaming: bool) -> Stream:
    """A hub that holds one data set."""
    assert name == "fancyzhx/amazon_polarity"
    assert streaming
    return Stream(name, split)


def test_real_reviews_where_the_hub_answers(tmp_path: Path) -> None:
    """Training reviews come from the hub's train split, held-out ones from test; commas and quotes survive."""
    prepared = prepare_data.prepare(tmp_path, train=3, held_out=2, load_dataset=load_dataset)
    assert prepared.source == "hub"
    assert prepare_data.read(prepared.train / "train.csv")[1] == Review("train 1", 'a "b",\nc', 1)
    assert [review.title for review in prepare_data.read(prepared.val / "test.csv")] == ["test 0", "test 1"]


def test_generated_reviews_without_a_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HF_HUB_OFFLINE is respected without asking the network; the files come out all the same."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    prepared = prepare_data.prepare(tmp_path, train=10, held_out=4)
    assert prepared == (tmp_path / "train", tmp_path / "val", "generated")
    assert len(prepare_data.read(prepared.train / "train.csv")) == 10
    assert len(prepare_data.read(prepared.val / "test.csv")) == 4


def test_hub_answers_are_not_used_when_generated_reviews_are_wanted(tmp_path: Path) -> None:
    """source="generated" gives the same reviews on a machine with a hub."""
    given = prepare_data.prepare(tmp_path, train=5, held_out=2, source="generated", load_dataset=load_dataset)
    assert given.source == "generated"


def test_the_hub_asked_for_by_name_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """source="hub" never falls back in silence; the error names what to do."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(prepare_data.HubUnavailable, match=r"pip install datasets.*--source generated"):
        prepare_data.prepare(tmp_path, source="hub")
    assert not list(tmp_path.iterdir())


def test_preparing_twice_changes_nothing(tmp_path: Path) -> None:
    """The same arguments write the same bytes, so a channel can be compared or cached."""
    first = prepare_data.prepare(tmp_path, train=20, held_out=5, source="generated")
    before = (first.train / "train.csv").read_bytes()
    prepare_data.prepare(tmp_path, train=20, held_out=5, source="generated")
    assert (first.train / "train.csv").read_bytes() == before
