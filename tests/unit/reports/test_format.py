"""How a number is written."""

from __future__ import annotations

import pytest

import windtunnel
from tests.fakes.reports import text_of
from windtunnel import FullScale
from windtunnel.rendering import format as fmt

_HOUR_S = 3600.0


@pytest.mark.parametrize(
    ("written", "value", "text"),
    [
        (fmt.significant, 9_940_000, "9,900,000"),
        (fmt.significant, 9_960_000, "10 million"),
        (fmt.significant, 999_999_999, "1.0 billion"),
        (fmt.significant, -1.23e7, "-12 million"),
        (fmt.significant, 1.1e16, "11,000 trillion"),
        (fmt.dollars, 2.6e9, "$2.6 billion"),
        (fmt.dollars, 1.2e7, "$12 million"),
        (fmt.modelled_seconds, 0.9949, "990 ms"),
        (fmt.modelled_seconds, 0.996, "1.0 s"),
        (fmt.modelled_seconds, 9_000 * _HOUR_S, "9,000 h"),
        (fmt.modelled_seconds, 20_000 * _HOUR_S, "2.3 years"),
        (fmt.modelled_seconds, 1.1e11 * _HOUR_S, "13 million years"),
        (fmt.in_words, 12_345_678, "12.3 million"),
        (fmt.in_words, 8.192e18, "8,190,000 trillion"),
        (fmt.given, -1_234_567.89, "-1,234,568"),
        (fmt.given, 99_999_999_999.0, "99,999,999,999"),
        (fmt.given, 1e300, "1e+300"),
        (fmt.short, 997, "1.0k"),
        (fmt.short, 4.61e6, "4.6M"),
    ],
)
def test_a_large_number_is_said_in_words(written: object, value: float, text: str) -> None:
    """Also where it rounds up to the next word; a very long time in years."""
    assert callable(written)
    assert written(value) == text


def test_numbers_carry_units_and_no_false_precision() -> None:
    """Two digits for what is modelled, separators, prices as listed."""
    assert [fmt.modelled_seconds(value) for value in (0, 0.000834, 0.1012, 5123.4, 18_000)] == [
        "0 s", "0.83 ms", "100 ms", "5,100 s", "5.0 h",
    ]  # fmt: skip
    assert [fmt.dollars(value) for value in (0.0341, 9.96, 41.4, 1234)] == ["$0.034", "$10", "$41", "$1,200"]
    assert [fmt.price(value) for value in (24.725, 25.251286, 37.69, 21.5)] == [
        "$24.725", "$25.251286", "$37.69", "$21.50",
    ]  # fmt: skip
    assert fmt.interval("$4.1", "$7.6") == "$4.1 to $7.6"
    assert fmt.interval("45 ms", "84 ms") == "45 to 84 ms"
    assert fmt.interval("800 ms", "1.2 s") == "800 ms to 1.2 s"
    assert [fmt.signed_percent(value) for value in (-0.2, -170)] == ["-20 %", "<-999 %"]
    assert [fmt.difference(value) for value in (0.35, -0.2, -2.5)] == [
        "35 % less",
        "20 % more",
        "3.5 times as much",
    ]
    assert fmt.quantity(4.4e8, "B") == "440 MB"
    assert (fmt.quantity(21, ""), fmt.quantity(21, "B")) == ("21", "21 B")
    assert fmt.gibibytes(2**30) == "1.00 GiB"


@pytest.mark.parametrize("samples", [10**9, 10**12, 10**15])
def test_the_first_screen_of_a_huge_job_has_no_exponent(samples: int) -> None:
    """Nor of a huge batch."""
    job = windtunnel.Workload.transformer("Llama-3.1-8B", global_batch=20_000_000)
    report = windtunnel.compare(job, full_scale=FullScale(samples))
    text = report.to_text()
    assert "e+" not in text
    assert " years)" in text and "20 million (" in text


def test_a_large_pass_has_no_exponent() -> None:
    """Of the text of a comparison, and of a plan."""
    job = windtunnel.Workload.transformer("BERT-base", global_batch=2**24, sequence_length=2)
    text = text_of(windtunnel.compare(job, full_scale=FullScale(10**9)))
    assert "e+" not in text
    assert "passes of 32,768 on p4d.24xlarge" in text
