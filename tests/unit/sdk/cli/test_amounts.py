"""Counts, money and times on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pytest

from tests.unit.conftest import Invoke
from windtunnel.cli import amounts


@pytest.mark.parametrize(
    ("read", "texts"),
    [
        (amounts.whole, {"20": 20, "2.0": 2, "1,024": 1024, "1_000": 1000, "3.6M": 3_600_000, "15 b": 15 * 10**9,
                         "-5": -5}),
        (amounts.count, {"15B": 15 * 10**9, "300m": 300 * 10**6, "1e9": 10**9, "1.5k": 1500, "1,000,000": 10**6}),
        (amounts.number, {"0.5": 0.5, ".5": 0.5, "2,693.25": 2693.25, "2k": 2000, "1e-3": 1e-3, "-10": -10}),
        (amounts.dollars, {"2000": 2000, "$2,000": 2000, "20k": 20_000, "$1.5K": 1500, "5M": 5e6, "-3": -3,
                           "$1,234,567.5": 1_234_567.5}),
        (amounts.hours, {"48h": 48, "90m": 1.5, "3d": 72, "1.5": 1.5, "2 d": 48, "30min": 0.5,
                         "2 days": 48, "48 Hours": 48}),
        (amounts.seconds, {"600": 600, "10m": 600, "1.5h": 5400, "30s": 30, "10 min": 600, "0": 0, "-1": -1}),
        (amounts.whole_seconds, {"3600": 3600, "1.5m": 90, "1e6": 10**6}),
        (amounts.length, {"8192": 8192, "1,024": 1024}),
    ],
)  # fmt: skip
def test_what_people_write(read: Callable[[str], float], texts: dict[str, float]) -> None:
    """With a suffix or commas between thousands."""
    assert {text: read(text) for text in texts} == texts


@pytest.mark.parametrize(
    ("read", "texts", "said"),
    [
        (amounts.whole, ("x", "1.5", "B", "1e", "1..2", "20,00", "1,000,00", "__", "1e99999999T"),
         "is no whole number; .* 3.6M"),
        (amounts.whole, ("1e31", "1e999999"), "is too large: at most 1e30"),
        (amounts.whole, ("1_", "_1", "1__0", "1_000_"), "3.6M"),
        (amounts.count, ("0", "-1"), "a whole number from 1"),
        (amounts.one_of_several, ("1,128", "1,2", "1-8", "2 - 4"), "write several with blanks"),
        (amounts.nodes, ("1-8", "1,2,4", "all"), "not one whole number.*1 to 64 instances: --scaling strong"),
        (amounts.number, ("50%", "100GB", "nan", "inf", ""), "without a unit"),
        (amounts.dollars, ("2,5", "20,00", "nan", "k", "$", "20 thousand"), "is no number of dollars"),
        (
            amounts.hours,
            ("x", "0h", "-1h", "h", "3w", "3 hands", "min", "1h30m"),
            "write it as 48h, 30min or 2d; a number alone is hours",
        ),
        (amounts.seconds, ("10x", "10 more", "s"), "write it as 600, 10m"),
        (amounts.whole_seconds, ("0.5", "9" * 400), "no whole number of seconds"),
        (amounts.length, ("8k", "8K"), "write the number, as 8192"),
    ],
)  # fmt: skip
def test_what_is_none_of_these(read: Callable[[str], float], texts: tuple[str, ...], said: str) -> None:
    """Refused with what is valid; what has a million digits is answered as soon as what is none."""
    for text in texts:
        with pytest.raises(argparse.ArgumentTypeError, match=said):
            read(text)


@pytest.mark.parametrize(
    "words",
    [
        "--samples 3.6M --batch 1,024",
        "--samples 3,600,000 --global-batch 1k --epochs 2",
        "--samples 1M --preparation-seconds 10m --dataset-gib 1.5k",
    ],
)
def test_compare_takes_them(words: str, invoke: Invoke) -> None:
    """As `plan` does."""
    assert "THE ANSWER" in invoke("compare", "--architecture", "BERT-Base", *words.split()).out
