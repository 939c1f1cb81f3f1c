"""One asynchronous invocation: reads its input from S3, calls a container, and stores the answer in S3."""

from __future__ import annotations

import http.client
import time
from contextlib import closing
from typing import BinaryIO, cast

from windtunnel_local.service.ground.errors import ObjectError
from windtunnel_local.service.ground.hosting import Invocation
from windtunnel_local.service.ground.ports import ObjectStore
from windtunnel_local.service.ground.uris import parse_s3
from windtunnel_local.service.hosting.container_answer import ContainerAnswer, TooLargeError

MAX_PAYLOAD_BYTES = 1 << 30
"""Largest input, and largest answer, in bytes. Source: AWS, "Asynchronous inference" (1 GB)."""
_SHOWN_BYTES = 2048


class InvocationFailedError(Exception):
    """The invocation has failed for good; the message says why. ``status``: the container's, 0 if it sent none."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class NotReachedError(Exception):
    """The invocation reached no container."""


def is_answered(invocation: Invocation, objects: ObjectStore) -> bool:
    """Whether an answer is stored already, by a server that was killed before it removed the invocation."""
    places = (invocation.output, invocation.failure)
    return any(uri is not None and objects.head(*parse_s3(uri)) is not None for uri in places)


def ask(invocation: Invocation, variant: str, address: tuple[str, int], objects: ObjectStore) -> None:
    """Send the input to a container, and store the answer. Blocks for up to an hour.

    Raises:
        InvocationFailedError: there is no such input, the model failed or was slow, or input or answer is too large.
        NotReachedError: nothing listens at the address.
        OSError, http.client.HTTPException: the connection broke off before the answer was complete.
    """
    bucket, key = parse_s3(invocation.input)
    try:
        found, path = objects.head(bucket, key), objects.path(bucket, key)
    except ObjectError:  # also for a key that is not valid
        found = None
    if found is None:
        raise InvocationFailedError(f"Could not find the input at {invocation.input}.")
    if found.size > MAX_PAYLOAD_BYTES:
        raise InvocationFailedError(
            f"The input at {invocation.input} has {found.size} bytes; an asynchronous endpoint takes"
            f" {MAX_PAYLOAD_BYTES} at most."
        )
    deadline = time.monotonic() + invocation.timeout_s
    kind = found.metadata.get("content-type", "application/octet-stream")
    headers = {"Content-Type": kind, **invocation.headers, "Content-Length": str(found.size)}
    with closing(http.client.HTTPConnection(*address, timeout=invocation.timeout_s)) as connection:
        try:
            connection.connect()
        except OSError as error:
            raise NotReachedError(str(error)) from error
        try:
            with path.open("rb") as body:
                answer = ContainerAnswer(connection, body, headers, deadline, MAX_PAYLOAD_BYTES)
            if answer.status >= http.HTTPStatus.BAD_REQUEST:
                raise InvocationFailedError(_words(answer, variant), answer.status)
            answered = {"content-type": answer.headers.get("content-type", "application/octet-stream")}
            objects.put(*parse_s3(invocation.output), cast(BinaryIO, answer), answered)
        except TooLargeError:
            raise InvocationFailedError(
                f"The answer is larger than {MAX_PAYLOAD_BYTES} bytes, the most that an asynchronous endpoint stores."
            ) from None
        except TimeoutError:
            raise InvocationFailedError(
                f"The invocation timed out while waiting for a response from container {variant}: its"
                f" InvocationTimeoutSeconds are {invocation.timeout_s}."
            ) from None


def _words(answer: ContainerAnswer, variant: str) -> str:
    kind = "client" if answer.status < http.HTTPStatus.INTERNAL_SERVER_ERROR else "server"
    message = answer.read(_SHOWN_BYTES).decode(errors="replace")
    return f'Received {kind} error ({answer.status}) from {variant} with message "{message}".'
