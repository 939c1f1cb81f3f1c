"""botocore's service models as the schema of every request and response of AWS JSON 1.1.

Nothing here lists fields: the models do. They are read from botocore's data files when first
needed (sagemaker: about 0.1 s) and kept.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn

from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.validate import accepted

_models: dict[str, Any] = {}
_loading = threading.Lock()


def service_model(service: str) -> Any:
    """The `ServiceModel` of botocore for a service; blocks while it is read for the first time."""
    with _loading:
        if service not in _models:
            # Imported here: the server accepts connections before it needs a model.
            from botocore.loaders import Loader
            from botocore.model import ServiceModel

            _models[service] = ServiceModel(Loader().load_service_model(service, "service-2"), service)
        return _models[service]


def operation(service: str, name: str) -> Any | None:
    """The `OperationModel` of botocore, or None when the service has no operation of that name."""
    model = service_model(service)
    return model.operation_model(name) if name in model.operation_names else None


def decoded(shape: Any, body: bytes, code: str = "ValidationException") -> dict[str, Any]:
    """The validated input of an operation from its JSON body.

    Raises:
        ApiError: SerializationException (not JSON), or ``code`` (not what the model asks).
    """
    try:
        document = json.loads(body or b"{}", parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ApiError("SerializationException", f"The body is not valid JSON: {error}") from error
    return accepted(shape, document, code)


def encoded(shape: Any, value: Mapping[str, Any]) -> bytes:
    """An operation's output as JSON: timestamps as Unix seconds, absent members left out.

    Raises:
        TypeError: the value has a member that the shape does not know, or of another type.
    """
    document = {} if shape is None else _structure(shape, value)
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def _plain(shape: Any, value: Any) -> Any:
    kind = shape.type_name
    if kind == "structure":
        return _structure(shape, value)
    if kind == "list":
        return [_plain(shape.member, item) for item in value]
    if kind == "map":
        return {str(key): _plain(shape.value, item) for key, item in value.items()}
    if kind == "timestamp":
        return round(value.timestamp(), 3) if isinstance(value, datetime) else value
    if kind == "blob":
        return base64.b64encode(value).decode()
    if not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
        raise TypeError(f"{shape.name} is of type {kind}; the service gave {type(value).__name__}")
    return value


def _structure(shape: Any, value: Mapping[str, Any]) -> dict[str, Any]:
    unknown = value.keys() - shape.members.keys()
    if unknown:
        raise TypeError(f"{shape.name} has no member {', '.join(sorted(unknown))}")
    return {name: _plain(shape.members[name], item) for name, item in value.items() if item is not None}


_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "boolean": (bool,),
}


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
