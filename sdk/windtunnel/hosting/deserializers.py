"""Deserializers: a model's answer as a Python object. Names and results are SDK v2's. numpy loads on first use."""

from __future__ import annotations

import csv
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import IO, Any, Protocol

from windtunnel.errors import WindtunnelError

_UNREADABLE = (ValueError, EOFError, RecursionError, csv.Error)
"""Errors of json, csv and numpy for bytes that they cannot read."""


class AnyDeserializer(Protocol):
    """The members of a deserializer that a `Predictor` uses. It may be ours, SDK v2's, or your own."""

    @property
    def ACCEPT(self) -> Sequence[str] | str:  # noqa: N802 - SDK v2's name
        """The MIME types that the deserializer can read."""

    def deserialize(self, stream: Any, content_type: str) -> Any:
        """Read the answer from a binary file with the given MIME type."""


class Deserializer(ABC):
    """Base of our deserializers. ``accept``: the MIME types to ask for; it may be changed."""

    def __init__(self, accept: str | Sequence[str] = "*/*") -> None:
        self.accept = accept

    @property
    def ACCEPT(self) -> Sequence[str]:  # noqa: N802 - SDK v2's name
        """The MIME types that the model is asked to answer with."""
        return (self.accept,) if isinstance(self.accept, str) else self.accept

    def deserialize(self, stream: IO[bytes], content_type: str) -> Any:
        """The answer as a Python object. Reads the stream to its end and closes it.

        Raises:
            WindtunnelError: the answer does not fit its MIME type, or this class does not read that type.
        """
        with stream:
            body = stream.read()
        try:
            return self._read(body, content_type.partition(";")[0].strip())
        except _UNREADABLE as error:
            raise WindtunnelError(
                f"{type(self).__name__}: an answer of {content_type!r} with {len(body)} bytes cannot be read: {error}. "
                f"It begins with {body[:80]!r}. Use another deserializer, or correct the model's output_fn."
            ) from error

    @abstractmethod
    def _read(self, body: bytes, kind: str) -> Any:
        """Read the bytes; raises one of `_UNREADABLE` if that is not possible. ``kind``: the MIME type."""


class BytesDeserializer(Deserializer):
    """Returns the bytes unchanged."""

    def _read(self, body: bytes, kind: str) -> bytes:  # noqa: ARG002
        return body


class StringDeserializer(Deserializer):
    """Returns text."""

    def __init__(self, encoding: str = "UTF-8", accept: str | Sequence[str] = "application/json") -> None:
        super().__init__(accept)
        self.encoding = encoding

    def _read(self, body: bytes, kind: str) -> str:  # noqa: ARG002
        return body.decode(self.encoding)


class CSVDeserializer(Deserializer):
    """Returns a list of rows, each a list of strings."""

    def __init__(self, encoding: str = "utf-8", accept: str | Sequence[str] = "text/csv") -> None:
        super().__init__(accept)
        self.encoding = encoding

    def _read(self, body: bytes, kind: str) -> list[list[str]]:  # noqa: ARG002
        return list(csv.reader(body.decode(self.encoding).splitlines()))


class JSONDeserializer(Deserializer):
    """Returns the value of JSON text."""

    def __init__(self, accept: str | Sequence[str] = "application/json") -> None:
        super().__init__(accept)

    def _read(self, body: bytes, kind: str) -> Any:  # noqa: ARG002
        return json.loads(body)


class NumpyDeserializer(Deserializer):
    """Returns a numpy array, from .npy, .npz, JSON or CSV. Needs numpy."""

    def __init__(
        self, dtype: Any = None, accept: str | Sequence[str] = "application/x-npy", allow_pickle: bool = False
    ) -> None:
        super().__init__(accept)
        self.dtype = dtype
        self.allow_pickle = allow_pickle

    def _read(self, body: bytes, kind: str) -> Any:
        import numpy as np

        if kind == "text/csv":
            return np.genfromtxt(io.StringIO(body.decode()), delimiter=",", dtype=self.dtype)
        if kind == "application/json":
            return np.array(json.loads(body), dtype=self.dtype)
        if kind in ("application/x-npy", "application/x-npz"):
            from zipfile import BadZipFile

            try:
                return np.load(io.BytesIO(body), allow_pickle=self.allow_pickle)
            except BadZipFile as error:
                raise ValueError(str(error)) from error
        raise ValueError("only application/x-npy, application/x-npz, application/json and text/csv are read")
