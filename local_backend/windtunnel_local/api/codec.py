"""botocore's service models as the schema of every request and response of AWS JSON 1.1.

No file here lists fields, as the models do. The models are read from botocore's data files when
first needed (sagemaker: about 0.1 s) and kept in memory.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn

from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.shapes import Writers
from windtunnel_local.api.validate import accepted

# Models whose name is not the service's signing name.
_MODELS = {"monitoring": "cloudwatch"}
_models: dict[str, Any] = {}
_loading = threading.Lock()


def service_model(service: str) -> Any:
    """The `ServiceModel` of botocore for a service; blocks while it is read for the first time."""
    if service in _models:
        return _models[service]
    with _loading:
        if service not in _models:
            # Imported here: the server accepts connections before it needs a model.
            from botocore.loaders import Loader
            from botocore.model import ServiceModel

            name = _MODELS.get(service, service)
            _models[service] = ServiceModel(Loader().load_service_model(name, "service-2"), service)
        return _models[service]


def operation(service: str, name: str) -> Any | None:
    """The `OperationModel` of botocore, or None when the service has no operation of that name."""
    model = service_model(service)
    return model.operation_model(name) if name in model.operation_names else None


def decoded(shape: Any, body: bytes, code: str = "ValidationException") -> dict[str, Any]:
    """The validated input of an operation from its JSON body.

    Raises:
        ApiError: SerializationException (the body is not JSON), or ``code`` (the model refuses it).
    """
    try:
        document = json.loads(body or b"{}", parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ApiError("SerializationException", f"The body is not valid JSON: {error}") from error
    try:
        return accepted(shape, document, code)
    except RecursionError as error:
        raise ApiError("SerializationException", "The body nests too deeply.") from error


def encoded(shape: Any, value: Mapping[str, Any]) -> bytes:
    """An operation's output as JSON: timestamps as Unix seconds, absent members left out.

    Raises:
        TypeError: the value has a member that the shape does not know, or of another type.
    """
    return _dumped({} if shape is None else _JSON.of(shape)(value)).encode()


def _seconds(moment: datetime) -> float:
    return round(moment.timestamp(), 3)


_JSON = Writers(_seconds)
_dumped = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
