"""SageMaker's part of JSONPath: what AWS's page lists, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from windtunnel_local.service.batch.json_path import JsonPath

VALUE = {
    "id": 7,
    "a b": 1,
    "x": [1, 2, 3],
    "rows": [{"y": 1}, {"y": 2}],
    "SageMakerOutput": {"label": 1},
    "weight [kg]": 3,
    "last, first": 4,
    "it's": 5,
}
ROW = list("abcdefg")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$", VALUE),
        ("$.id", 7),
        ("$['a b']", 1),
        ('$["a b"]', 1),
        ("$['weight [kg]']", 3),
        ("$['last, first', \"it's\"]", {"last, first": 4, "it's": 5}),
        ("$.['last, first']", 4),
        ("$.SageMakerOutput.label", 1),
        ("$.['id','x']", {"id": 7, "x": [1, 2, 3]}),
        ("$['id', 'SageMakerOutput']", {"id": 7, "SageMakerOutput": {"label": 1}}),
        ("$.x[0]", 1),
        ("$.x[-1]", 3),
        ("$.SageMakerOutput.*", [1]),
        ("$.rows[*].y", [1, 2]),
        ("$.rows[1:].y", [2]),
    ],
)
def test_of_objects(path: str, found: Any) -> None:
    """One value where the path names one, an object of several names, else an array."""
    assert JsonPath(path).select(VALUE) == found
    assert not JsonPath(path).is_index or path == "$"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$[0]", "a"),
        ("$[1,3,5]", list("bdf")),
        ("$[1:]", list("bcdefg")),
        ("$[:-1]", list("abcdef")),
        ("$[2:5]", list("cde")),
        ("$[0,5:]", list("afg")),
        ("$[5:9]", list("fg")),
    ],
)
def test_of_rows(path: str, found: Any) -> None:
    """By number, as columns of CSV are named."""
    assert JsonPath(path).select(ROW) == found
    assert JsonPath(path).is_index


@pytest.mark.parametrize(
    "path",
    [
        "",
        "id",
        "$id",
        "$..id",
        "$.x[?(@.y>1)]",
        "$[0:2,5:]",
        "$[-:]",
        "$[1:-]",
        "$[::2]",
        "$['a',1]",
        "$['a]",
        "$['a'b]",
        "$['a',]",
        "$[]",
        "$.",
        "$.x.length()",
    ],
)
def test_what_is_refused(path: str) -> None:
    """With what is valid."""
    with pytest.raises(ValueError, match="It takes"):
        JsonPath(path)


@pytest.mark.parametrize(
    ("path", "value"), [("$.z", VALUE), ("$['id','z']", VALUE), ("$[7]", ROW), ("$[0,-8]", ROW)]
)
def test_what_is_not_there(path: str, value: Any) -> None:
    """It is an error: an empty place would shift all that follows."""
    with pytest.raises(LookupError, match="there is no"):
        JsonPath(path).select(value)
