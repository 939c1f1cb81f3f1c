"""Charts: where values lie, what is left out, and that a name stays a name."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel_local.ui.charts.by_count_chart import Line, Point, by_count_chart
from windtunnel_local.ui.charts.downsample import thinned
from windtunnel_local.ui.charts.line_chart import Series, line_chart
from windtunnel_local.ui.charts.scale import time_axis, value_axis

number = st.floats(-1e300, 1e300)
point = st.tuples(st.floats(0, 1e9), number)
points = st.lists(point, max_size=600).map(sorted)


@given(st.lists(number, min_size=1, max_size=50))
def test_every_value_lies_on_its_axis(values: list[float]) -> None:
    """Between 0 and 1, from the smallest float to the largest; ticks rise and have labels."""
    axis = value_axis(values)
    assert all(-1e-9 <= axis.place(value) <= 1 + 1e-9 for value in values)
    assert 2 <= len(axis.ticks) == len(axis.labels) <= 12
    assert list(axis.ticks) == sorted(axis.ticks)
    assert all(axis.labels)


@given(st.floats(0, 1e10))
def test_times_have_ticks_that_people_count_in(end_s: float) -> None:
    """From nothing to three hundred years: few, in order, none beyond the end."""
    axis = time_axis(end_s)
    assert 1 <= len(axis.ticks) <= 12
    assert axis.ticks[-1] <= axis.high * (1 + 1e-9)
    assert len(set(axis.labels)) == len(axis.labels)


@pytest.mark.parametrize(
    ("end_s", "labels"),
    [
        (10, ("0 s", "2 s", "4 s", "6 s", "8 s", "10 s")),
        (60, ("0 s", "10 s", "20 s", "30 s", "40 s", "50 s", "60 s")),
        (600, ("0 s", "2 min", "4 min", "6 min", "8 min", "10 min")),
        (7200, ("0 s", "30 min", "1 h", "1.5 h", "2 h")),
        (0.5, ("0 s", "0.1 s", "0.2 s", "0.3 s", "0.4 s", "0.5 s")),
        (3 * 86400, ("0 s", "12 h", "24 h", "36 h", "48 h", "60 h", "72 h")),
    ],
)
def test_labels_of_times(end_s: float, labels: tuple[str, ...]) -> None:
    """Seconds, minutes, hours: as large as the span."""
    found = time_axis(end_s).labels
    assert [label.replace("0 min", "0 s") if label == "0 min" else label for label in found][1:] == list(
        labels
    )[1:]


@given(points, st.integers(4, 300))
def test_thinning_keeps_ends_and_extremes(found: list[tuple[float, float]], most: int) -> None:
    """At most so many, out of the given ones and in their order, and no peak is lost."""
    kept = thinned(found, most)
    assert len(kept) <= max(most, min(len(found), most))
    assert kept == sorted(kept, key=lambda one: one[0])
    assert set(kept) <= set(found)
    if found:
        assert (kept[0], kept[-1]) == (found[0], found[-1])
        assert {min(v for _, v in kept), max(v for _, v in kept)} == {
            min(v for _, v in found),
            max(v for _, v in found),
        }


@given(points, st.text(max_size=20))
def test_a_chart_is_sound_whatever_is_drawn(found: list[tuple[float, float]], name: str) -> None:
    """Well-formed, of a bounded size, every coordinate within the picture, and no element comes out of a name."""
    text = str(line_chart(name, [Series(name, found)], key="k"))
    root = ElementTree.fromstring(text)  # noqa: S314  ours
    assert {element.tag for element in root.iter()} <= {
        "svg", "title", "desc", "g", "path", "text", "polyline", "circle",
    }  # fmt: skip
    assert len(text) < 12_000
    for line in root.iter("polyline"):
        places = [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()]
        assert all(-1 <= x <= 421 and -1 <= y <= 191 for x, y in places)


def test_a_chart_says_in_words_what_it_shows() -> None:
    """How many values, from where to where, and the extremes; NaN is left out."""
    text = str(
        line_chart("loss", [Series("loss", [(0, 2.5), (10, 0.25), (20, math.nan), (30, 0.5)])], key="k")
    )
    assert '<title id="k-t">loss over time</title>' in text
    assert re.search(
        r"3 values up to 30 s; first 2.5, last 0.5, lowest 0.25 after 10 s, highest 2.5 after 0 s", text
    )
    assert "no value yet" in str(line_chart("loss", [Series("loss", [])], key="k"))


@pytest.mark.parametrize(
    ("value", "ticks"), [(2e-5, "0.00002"), (0.02, "0.02"), (2e5, "200,000"), (2e6, "2M"), (2e9, "2B")]
)
def test_axes_of_numbers_of_instances_have_no_exponent(value: float, ticks: str) -> None:
    """From a job's hundredth of a cent to millions of samples a second."""
    line = Line("trn1", [Point(count, value, value / 2, value * 2, "words") for count in (1, 2)], 0)
    drawn = str(by_count_chart("Cost", "US dollars", [line], key="cost"))
    assert f">{ticks}</text>" in drawn
    assert not re.search(r">[\d.]+e[-+]?\d+</text>", drawn)
