"""Requests of AWS's operations as bytes, serialised and signed by botocore itself."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

import cbor2
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ParamValidationError
from botocore.loaders import Loader
from botocore.model import OperationModel, ServiceModel
from botocore.serialize import create_serializer

from tests.fuzz.values import Values
from tests.fuzz.wire import Message

# By model: the name in the credential scope, and the protocols spoken.
SERVICES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "sagemaker": ("sagemaker", ("json",)),
    "logs": ("logs", ("json",)),
    "sts": ("sts", ("query",)),
    "iam": ("iam", ("query",)),
    "s3": ("s3", ("rest-xml",)),
    "cloudwatch": ("monitoring", ("json", "query", "smithy-rpc-v2-cbor")),
}
_NO_NAME = re.compile("[^A-Za-z0-9-]")
_FORM = "application/x-www-form-urlencoded; charset=utf-8"


@dataclass(frozen=True)
class Call:
    """One request: what it asks for, in which protocol, as bytes."""

    service: str
    operation: OperationModel
    protocol: str
    kind: str
    message: Message


class Keys:
    """The key pair, and who it is for."""

    def __init__(self, access_key_id: str, secret_access_key: str, port: int) -> None:
        """Sign for the server at a port of loopback."""
        self._credentials = Credentials(access_key_id, secret_access_key)
        self.port = port

    def signed(self, message: Message, signing_name: str, region: str = "us-east-1") -> Message:
        """The message with botocore's signature."""
        request = AWSRequest(
            message.method, f"http://127.0.0.1:{self.port}{message.target}", data=message.body
        )
        for name, value in message.headers:
            request.headers[name] = value
        signer = S3SigV4Auth if signing_name == "s3" else SigV4Auth
        request.context["payload_signing_enabled"] = True
        signer(self._credentials, signing_name, region).add_auth(request)
        headers = [(str(name), _text(value)) for name, value in request.headers.items()]
        return addressed(Message(message.method, message.target, headers, message.body), self.port)


class Caller:
    """Makes requests of all operations of AWS's models."""

    def __init__(self, random: Random, served: Mapping[str, list[str]]) -> None:
        """``served``: by signing name, the operations that are more than refused; half of all requests ask them."""
        self._random = random
        self._values = Values(random)
        loader = Loader()
        self.models = {
            name: ServiceModel(loader.load_service_model(name, "service-2"), name) for name in SERVICES
        }
        self._operations = [(name, op) for name, model in self.models.items() for op in model.operation_names]
        self._served = [
            (name, op) for name, (signing, _) in SERVICES.items() for op in served.get(signing, ())
        ]
        self._served += [("sagemaker", "CreateTrainingJob")] * 10
        self._serializers = {
            protocol: create_serializer(protocol, include_validation=False)
            for _, protocols in SERVICES.values()
            for protocol in protocols
        }

    def all_operations(self) -> list[tuple[str, OperationModel]]:
        """Every operation of every model."""
        return [(service, self.models[service].operation_model(name)) for service, name in self._operations]

    def unsigned(self, *, valid: bool) -> Call:
        """A request of a random operation, without a signature."""
        choice = self._served if self._random.random() < 0.6 else self._operations
        service, name = self._random.choice(choice)
        return self.of(service, self.models[service].operation_model(name), valid=valid)

    def of(self, service: str, operation: OperationModel, *, valid: bool) -> Call:
        """A request of one operation, without a signature."""
        protocol = self._random.choice(SERVICES[service][1])
        shape = operation.input_shape
        if operation.name == "CreateTrainingJob":
            parameters = self._values.create_training_job(shape)
        else:
            parameters = self._values.valid(shape) if shape else {}
        try:
            message = self._serialized(operation, protocol, parameters)
        except (
            TypeError,
            ValueError,
            AttributeError,
            KeyError,
            ParamValidationError,
        ):  # no client could send it
            message = Message("POST", "/", _head(operation, protocol), b"")
        if not valid and protocol != "rest-xml":
            body = self._encoded(operation, protocol, self._values.broken(parameters))
            message = Message(message.method, message.target, message.headers, body)
        return Call(service, operation, protocol, "valid" if valid else "broken", message)

    def _serialized(self, operation: OperationModel, protocol: str, parameters: Any) -> Message:
        request = self._serializers[protocol].serialize_to_request(parameters, operation)
        target = quote(request["url_path"], safe="/-_.~%?=&")
        pairs = list(request["query_string"].items()) if request["query_string"] else []
        if pairs:
            target += ("&" if "?" in target else "?") + urlencode(pairs, doseq=True, quote_via=quote)
        body = request["body"]
        if isinstance(body, dict):
            body = urlencode(body, doseq=True)
        headers = [(str(n), _text(v)) for n, v in request["headers"].items()]
        data = body.encode() if isinstance(body, str) else bytes(body or b"")
        return Message(
            request["method"], target, [(_NO_NAME.sub("-", n), _one_line(v)) for n, v in headers], data
        )

    def _encoded(self, operation: OperationModel, protocol: str, document: Any) -> bytes:
        """A document that no serializer of AWS's would take."""
        if protocol == "json":
            return json.dumps(document, default=str).encode()
        if protocol == "query":
            fields = [("Action", operation.name), ("Version", "2010-01-01"), *_flat(document, "")]
            return urlencode(fields, errors="replace").encode()
        try:
            return cbor2.dumps(document)
        except (ValueError, TypeError, RecursionError, cbor2.CBOREncodeError):
            return b"\xbf\x61\x61"


def addressed(message: Message, port: int) -> Message:
    """The message with its Host and the length of its body."""
    own = ("host", "content-length")
    headers = [(name, value) for name, value in message.headers if name.lower() not in own]
    length = ("Content-Length", str(len(message.body)))
    return replace(message, headers=[*headers, ("Host", f"127.0.0.1:{port}"), length])


def _head(operation: OperationModel, protocol: str) -> list[tuple[str, str]]:
    metadata = operation.service_model.metadata
    if protocol == "query":
        return [("Content-Type", _FORM)]
    if protocol == "json":
        target = f"{metadata['targetPrefix']}.{operation.name}"
        return [
            ("X-Amz-Target", target),
            ("Content-Type", f"application/x-amz-json-{metadata['jsonVersion']}"),
        ]
    return [("Smithy-Protocol", "rpc-v2-cbor"), ("Content-Type", "application/cbor")]


def _flat(value: Any, prefix: str) -> list[tuple[str, str]]:
    """A document as fields of a form, however deep it is."""
    fields, pending = [], [(prefix, value)]
    while pending:
        name, inner = pending.pop()
        if isinstance(inner, dict):
            pending += [(f"{name}.{key}".strip("."), item) for key, item in inner.items()]
        elif isinstance(inner, list):
            pending += [(f"{name}.member.{number}", item) for number, item in enumerate(inner, 1)]
        else:
            fields.append((name or "x", str(inner)[:5000]))
    return fields


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _one_line(value: str) -> str:
    return value.replace("\r", " ").replace("\n", " ").strip()[:4000].encode("ascii", "replace").decode()
