"""Questions and answers have the form that SageMaker SDK v2 gives them."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pytest

from windtunnel import (
    BytesDeserializer,
    ConfigurationError,
    CSVDeserializer,
    CSVSerializer,
    IdentitySerializer,
    JSONDeserializer,
    JSONSerializer,
    NumpyDeserializer,
    NumpySerializer,
    StringDeserializer,
    WindtunnelError,
)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([1, "a", None], '[1, "a", null]'),
        ({"x": np.array([[1, 2]]), "y": [np.float32(0.5)]}, '{"x": [[1, 2]], "y": [0.5]}'),
        (np.arange(3), "[0, 1, 2]"),
        (io.StringIO("{}"), "{}"),
    ],
)
def test_json(data: Any, text: str) -> None:
    """Arrays become lists wherever they are."""
    assert JSONSerializer().serialize(data) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([1, 2.5, "a,b"], '1,2.5,"a,b"'),
        ([[1, 2], [3, 4]], "1,2\n3,4"),
        (np.array([[0.1, 2.0]], dtype=np.float32), "0.1,2.0"),
        (np.arange(8).reshape(2, 2, 2), "0,1,2,3\n4,5,6,7"),
        ("1,2", "1,2"),
        (["1,2", "3,4"], "1,2\n3,4"),
        (((1, 2)), "1,2"),
    ],
)
def test_csv(data: Any, text: str) -> None:
    """Rows on lines; a flat one is a row; text stays."""
    assert CSVSerializer().serialize(data) == text


def test_numpy_there_and_back() -> None:
    """.npy, with type and shape; JSON and CSV are read as arrays too."""
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    for data in (array, array.tolist()):
        sent = NumpySerializer(dtype="int16").serialize(data)
        back = NumpyDeserializer().deserialize(io.BytesIO(sent), "application/x-npy")
        assert back.dtype == np.int16 and (back == array).all()
    read = NumpyDeserializer()
    assert read.deserialize(io.BytesIO(b"[[1, 2]]"), "application/json; charset=utf-8").shape == (1, 2)
    assert read.deserialize(io.BytesIO(b"1,2\n3,4\n"), "text/csv").shape == (2, 2)


def test_other_answers() -> None:
    """Bytes, text, rows, JSON; the stream is closed."""
    stream = io.BytesIO("ä,b\n1,2\n".encode())
    assert CSVDeserializer().deserialize(stream, "text/csv") == [["ä", "b"], ["1", "2"]]
    assert stream.closed
    assert StringDeserializer().deserialize(io.BytesIO("ä".encode()), "text/plain") == "ä"
    assert BytesDeserializer().deserialize(io.BytesIO(b"\0"), "x") == b"\0"
    assert JSONDeserializer().deserialize(io.BytesIO(b'{"a": [1]}'), "application/json") == {"a": [1]}
    assert IdentitySerializer("image/png").serialize(b"png") == b"png"
    kinds = [
        kind().CONTENT_TYPE for kind in (JSONSerializer, CSVSerializer, NumpySerializer, IdentitySerializer)
    ]
    assert kinds == ["application/json", "text/csv", "application/x-npy", "application/octet-stream"]
    readers: list[Any] = [JSONDeserializer(), CSVDeserializer(), NumpyDeserializer(), BytesDeserializer()]
    assert [list(one.ACCEPT) for one in readers] == [
        ["application/json"], ["text/csv"], ["application/x-npy"], ["*/*"]
    ]  # fmt: skip


def _pickled() -> bytes:
    out = io.BytesIO()
    np.save(out, np.array([{}]), allow_pickle=True)
    return out.getvalue()


@pytest.mark.parametrize(
    ("reader", "data", "kind"),
    [
        (JSONDeserializer(), b"<html>busy</html>", "application/json"),
        (NumpyDeserializer(), b"x", "text/html"),
        (NumpyDeserializer(), _pickled(), "application/x-npy"),
        (NumpyDeserializer(), b"", "application/x-npy"),
        (NumpyDeserializer(), b"PK\x03\x04cut off", "application/x-npz"),
        (JSONDeserializer(), b"[" * 100_000, "application/json"),
        (CSVDeserializer(), b"x" * 200_000, "text/csv"),
        (StringDeserializer(), b"\xff", "text/plain"),
    ],
)
def test_an_answer_that_is_something_else(reader: Any, data: bytes, kind: str) -> None:
    """Says what came, and of what type; pickles are not opened unasked."""
    limit = csv.field_size_limit(131_072)  # its usual one: the backend, in this process too, raises it
    try:
        with pytest.raises(WindtunnelError, match="cannot be read") as wrong:
            reader.deserialize(io.BytesIO(data), kind)
    finally:
        csv.field_size_limit(limit)
    assert kind in str(wrong.value) and repr(data[:80]) in str(wrong.value)


@pytest.mark.parametrize(
    ("writer", "data"),
    [(JSONSerializer(), object()), (CSVSerializer(), []), (CSVSerializer(), 3), (NumpySerializer(), [])],
)
def test_what_cannot_be_sent(writer: Any, data: Any) -> None:
    """Named, with what can."""
    with pytest.raises(ConfigurationError, match=type(writer).__name__):
        writer.serialize(data)
