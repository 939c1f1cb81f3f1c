"""The context that handlers may take as their last argument, with TorchServe's names (pytorch/serve, ts/context.py).

AWS's toolkit keeps the context with which the model was loaded, and passes it to the handlers of each request. So a
worker has one context, whose request changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from starlette.datastructures import Headers


class RequestProcessor:
    """One request's headers (in any case), and what is set for its response."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._request_headers = Headers(headers)
        self._status: tuple[int, str] = (200, "")
        self._response_headers: dict[str, str] = {}

    def get_request_property(self, key: str) -> str | None:
        """A header of the request."""
        return self._request_headers.get(key)

    def get_request_properties(self) -> Headers:
        """All headers of the request."""
        return self._request_headers

    def report_status(self, code: int, reason_phrase: str | None = None) -> None:
        """Set the response's status. The phrase is kept, and not sent."""
        self._status = (code, reason_phrase or "")

    def get_response_status_code(self) -> int:
        """The response's status."""
        return self._status[0]

    def get_response_status_phrase(self) -> str:
        """The reason phrase of the response's status."""
        return self._status[1]

    def add_response_property(self, key: str, value: str) -> None:
        """Set a header of the response."""
        self._response_headers[key.lower()] = value

    def get_response_headers(self) -> dict[str, str]:
        """The headers that were set for the response, by name in lower case."""
        return self._response_headers

    def get_response_header(self, key: str) -> str | None:
        """A header of the response, if it is set."""
        return self._response_headers.get(key.lower())


class Context:
    """What a worker's handlers may know of the model and of the request in progress. ``idx`` is always 0."""

    model_name = "model"
    manifest: Mapping[str, object] = {}
    metrics = None

    def __init__(self, model_dir: Path) -> None:
        self.system_properties = {"model_dir": str(model_dir), "gpu_id": None, "batch_size": 1}
        self.request_processor = [RequestProcessor({})]

    def begin(self, headers: Mapping[str, str]) -> RequestProcessor:
        """Begin the next request."""
        self.request_processor = [RequestProcessor(headers)]
        return self.request_processor[0]

    def get_request_header(self, idx: int, key: str) -> str | None:
        """A header of the request, such as X-Amzn-SageMaker-Custom-Attributes."""
        return self.request_processor[idx].get_request_property(key)

    def get_all_request_header(self, idx: int) -> Headers:
        """All headers of the request."""
        return self.request_processor[idx].get_request_properties()

    def set_response_content_type(self, idx: int, value: str) -> None:
        """Set the response's content type."""
        self.set_response_header(idx, "content-type", value)

    def get_response_content_type(self, idx: int) -> str | None:
        """The response's content type, if it is set."""
        return self.request_processor[idx].get_response_header("content-type")

    def set_response_status(self, code: int = 200, phrase: str = "", idx: int = 0) -> None:
        """Set the response's status."""
        self.request_processor[idx].report_status(code, phrase)

    def get_response_status(self, idx: int) -> tuple[int, str]:
        """The response's status and reason phrase."""
        processor = self.request_processor[idx]
        return processor.get_response_status_code(), processor.get_response_status_phrase()

    def set_response_header(self, idx: int, key: str, value: str) -> None:
        """Set a header of the response."""
        self.request_processor[idx].add_response_property(key, value)

    def get_response_headers(self, idx: int) -> dict[str, str]:
        """The headers that were set for the response."""
        return self.request_processor[idx].get_response_headers()
