"""Serializers: data as the body of a request. Names and results are those of SageMaker SDK v2.

Only `NumpySerializer` imports numpy, on first use; the others recognise arrays by their methods.
"""

from __future__ import annotations

import csv
import io
import json
from abc import ABC, abstractmethod
from typing import Any, Protocol

from windtunnel.errors import ConfigurationError


class AnySerializer(Protocol):
    """The members of a serializer that a `Predictor` uses. It may be ours, SDK v2's, or your own."""

    @property
    def CONTENT_TYPE(self) -> str:  # noqa: N802 - SDK v2's name
        """The MIME type of the result of `serialize`."""

    def serialize(self, data: Any) -> Any:
        """Turn the data into bytes, text or a readable file."""


class Serializer(ABC):
    """Base of our serializers. ``content_type``: the MIME type to send; it may be changed."""

    def __init__(self, content_type: str) -> None:
        self.content_type = content_type

    @property
    def CONTENT_TYPE(self) -> str:  # noqa: N802 - SDK v2's name
        """The MIME type that the request is sent with."""
        return self.content_type

    @abstractmethod
    def serialize(self, data: Any) -> Any:
        """The request's body as bytes, text, or a readable file."""


class IdentitySerializer(Serializer):
    """Sends bytes or text unchanged."""

    def __init__(self, content_type: str = "application/octet-stream") -> None:
        super().__init__(content_type)

    def serialize(self, data: Any) -> Any:
        """The data itself."""
        return data


class JSONSerializer(Serializer):
    """Sends JSON."""

    def __init__(self, content_type: str = "application/json") -> None:
        super().__init__(content_type)

    def serialize(self, data: Any) -> Any:
        """JSON of lists, dicts, numbers, text, and arrays or tensors within them; a file's content unchanged.

        Raises:
            ConfigurationError: the data holds something else.
        """
        if hasattr(data, "read"):
            return data.read()
        try:
            return json.dumps(data, default=_listed)
        except (TypeError, ValueError, RecursionError) as error:
            raise ConfigurationError(
                f"JSONSerializer: {error}. Give lists, dicts, numbers, text, True, False, None, or arrays."
            ) from error


class CSVSerializer(Serializer):
    """Sends rows of comma-separated values."""

    def __init__(self, content_type: str = "text/csv") -> None:
        super().__init__(content_type)

    def serialize(self, data: Any) -> Any:
        """CSV of a row, a list or array of rows, or a pandas table (no header, no index); text and files unchanged.

        Raises:
            ConfigurationError: the row is empty, or the data is something else.
        """
        if hasattr(data, "read"):
            return data.read()
        if hasattr(data, "to_csv"):
            return data.to_csv(header=False, index=False)
        if hasattr(data, "__setitem__") and _is_sequence(data) and len(data) and _is_sequence(data[0]):
            return "\n".join(_csv_row(row) for row in data)
        return _csv_row(data)


class NumpySerializer(Serializer):
    """Sends an array as .npy. Needs numpy."""

    def __init__(self, dtype: Any = None, content_type: str = "application/x-npy") -> None:
        super().__init__(content_type)
        self.dtype = dtype

    def serialize(self, data: Any) -> Any:
        """The .npy file of an array, or of data that numpy makes an array of; a file's content unchanged.

        Raises:
            ConfigurationError: the array is empty.
        """
        if hasattr(data, "read"):
            return data.read()
        import numpy as np

        array = data if isinstance(data, np.ndarray) else np.array(data, self.dtype)
        if array.size == 0:
            raise ConfigurationError("NumpySerializer: the array is empty. Give one with values.")
        out = io.BytesIO()
        np.save(out, array)
        return out.getvalue()


def _listed(value: Any) -> Any:
    """Convert an array or tensor to lists, for json."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON serializable")


def _is_sequence(value: Any) -> bool:
    return hasattr(value, "__iter__") and hasattr(value, "__getitem__")


def _csv_row(row: Any) -> str:
    if isinstance(row, str):
        return row
    if hasattr(row, "flatten"):
        row = row.flatten()
    if not hasattr(row, "__len__") or not len(row):
        raise ConfigurationError(
            f"CSVSerializer: {row!r:.80} is no row. Give a list of values, or a list of such rows."
        )
    out = io.StringIO()
    csv.writer(out).writerow(row)
    return out.getvalue().rstrip("\r\n")
