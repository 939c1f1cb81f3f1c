"""Writes the two channels of the training job: train/train.csv and val/test.csv.

    python prepare_data.py data --train 24000 --held-out 1000

The reviews are those of Amazon Polarity (title, content, label; 0 negative, 1 positive), drawn
at random through `datasets`, where that package is installed and the hub answers; else made up
with the same columns (`reviews.py`). Which of the two it was is printed.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import importlib.util
import os
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from reviews import Review, generate

Source = Literal["auto", "hub", "generated"]

HUB_DATASET = "fancyzhx/amazon_polarity"
_SHUFFLE_BUFFER = 20_000
"""Rows read ahead to shuffle the stream: enough to mix the labels, and few enough to load quickly."""


class Prepared(NamedTuple):
    """The folders of the two channels, and the source of their reviews."""

    train: Path
    val: Path
    source: Literal["hub", "generated"]


class HubUnavailable(RuntimeError):
    """The real reviews were asked for (source="hub"), but cannot be fetched from here."""


def prepare(
    folder: Path,
    train: int = 32_000,
    held_out: int = 1_000,
    seed: int = 0,
    source: Source = "auto",
    load_dataset: Callable[..., Any] | None = None,
) -> Prepared:
    """Write `train` and `held_out` reviews below `folder`. The same arguments give the same files.

    Args:
        folder: created if missing; files of an earlier run are replaced.
        train: number of training reviews.
        held_out: number of validation reviews.
        seed: seed of the random choice of reviews.
        source: "hub", "generated", or "auto": the hub if it is available, else generated.
        load_dataset: used in place of `datasets.load_dataset` (tests).

    Raises:
        HubUnavailable: the reviews cannot be fetched, with source="hub".
    """
    if source != "generated" and load_dataset is None:
        load_dataset = _hub_loader()
    if source == "hub" and load_dataset is None:
        raise HubUnavailable(
            f"{HUB_DATASET} cannot be fetched: it needs `pip install datasets` and a model hub that answers "
            "(HF_HUB_OFFLINE not set). Or take generated reviews: --source generated."
        )
    if load_dataset is not None and source != "generated":
        write(folder / "train" / "train.csv", _from_hub(load_dataset, "train", train, seed))
        write(folder / "val" / "test.csv", _from_hub(load_dataset, "test", held_out, seed))
        return Prepared(folder / "train", folder / "val", "hub")
    write(folder / "train" / "train.csv", generate(train, seed, "train"))
    write(folder / "val" / "test.csv", generate(held_out, seed, "held_out"))
    return Prepared(folder / "train", folder / "val", "generated")


def write(path: Path, reviews: Iterable[Review]) -> None:
    """Write the reviews to a CSV file with a header line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(Review._fields)
        writer.writerows(reviews)


def read(path: Path) -> list[Review]:
    """Read the reviews of a file that `write` has written."""
    with path.open(newline="", encoding="utf-8") as file:
        return [Review(row["title"], row["content"], int(row["label"])) for row in csv.DictReader(file)]


def _from_hub(load_dataset: Callable[..., Any], split: str, count: int, seed: int) -> Sequence[Review]:
    """`count` reviews of a split, streamed, because the whole data set is a download of 688 MB."""
    stream = load_dataset(HUB_DATASET, split=split, streaming=True).shuffle(
        seed=seed, buffer_size=_SHUFFLE_BUFFER
    )
    rows: Iterable[Mapping[str, Any]] = stream.take(count)
    return [Review(row["title"], row["content"], int(row["label"])) for row in rows]


def _hub_loader(timeout_s: float = 3.0) -> Callable[..., Any] | None:
    """`datasets.load_dataset` if the package is here and the hub answers, else None. Takes 3 s at most."""
    offline = {os.environ.get(name, "0").lower() for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")}
    if offline & {"1", "true", "yes", "on"} or importlib.util.find_spec("datasets") is None:
        return None
    url = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=timeout_s):  # noqa: S310
            pass
    except OSError:
        return None
    loader: Callable[..., Any] = importlib.import_module("datasets").load_dataset
    return loader


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default=Path(__file__).parent / "data")
    parser.add_argument("--train", type=int, default=32_000)
    parser.add_argument("--held-out", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--source", choices=("auto", "hub", "generated"), default="auto")
    given = parser.parse_args()
    prepared = prepare(given.folder, given.train, given.held_out, given.seed, given.source)
    origin = HUB_DATASET if prepared.source == "hub" else "generated reviews"
    print(f"{origin}: {given.train} in {prepared.train}, {given.held_out} in {prepared.val}")


if __name__ == "__main__":
    main()
