"""The service's errors.

WindtunnelError
├── ServiceError             answered to the client; `code` is AWS's error code
│   ├── ValidationFailed     ValidationException
│   ├── JobNotFound          ValidationException "Requested resource not found."
│   ├── JobExists            ResourceInUse: the name is taken
│   ├── JobInUse             ResourceInUse: the job cannot be deleted yet
│   ├── ResourceNotFound     ValidationException "Could not find ..."
│   ├── ResourceExists       ValidationException "Cannot create already existing ..."
│   ├── LogsNotFound         ResourceNotFoundException
│   ├── InvalidParameter     InvalidParameterException (the logs service's word for a bad request)
│   ├── StoreUnavailable     ServiceUnavailable: the record cannot be written, in most cases for a full disk
│   └── OutOfThreads         ServiceUnavailable: the system starts no more threads
├── IllegalTransition        an event that the job's current status does not allow
├── RunnerError              a job cannot run; its text becomes the FailureReason
│   ├── RunnerUnavailable    no container engine
│   └── ImageNotFound        an image that the engine does not have
├── InputError               a channel or the source cannot be provided; becomes the FailureReason
└── ObjectError              the object store
    ├── NoSuchBucket
    ├── NoRoom               the object is larger than the free disk space
    └── NoSuchKey
"""

from __future__ import annotations

import errno
from typing import TypeGuard


class WindtunnelError(Exception):
    """Root of the backend's own errors."""


class ServiceError(WindtunnelError):
    """An answer to the client. ``code``: AWS's error code; ``status``: the HTTP status."""

    code = "InternalFailure"
    status = 400


class ValidationFailed(ServiceError):
    """The request is not valid."""

    code = "ValidationException"


class JobNotFound(ServiceError):
    """No such training job; AWS answers a ValidationException."""

    code = "ValidationException"

    def __init__(self) -> None:
        super().__init__("Requested resource not found.")


class JobExists(ServiceError):
    """The name is taken."""

    code = "ResourceInUse"


class JobInUse(ServiceError):
    """The job cannot be deleted yet."""

    code = "ResourceInUse"


_WORDS = {"endpoint-config": "endpoint configuration", "transform-job": "transform job"}
"""Kinds whose name in AWS's error texts differs from the name in ARNs."""


class ResourceNotFound(ServiceError):
    """No such model, endpoint configuration, endpoint or transform job. In AWS's words: SDKs search for them."""

    code = "ValidationException"

    def __init__(self, kind: str, arn: str) -> None:
        super().__init__(f'Could not find {_WORDS.get(kind, kind)} "{arn}".')


class ResourceExists(ServiceError):
    """The name is taken. In AWS's words: SDKs search for them."""

    code = "ValidationException"

    def __init__(self, kind: str, arn: str) -> None:
        super().__init__(f'Cannot create already existing {_WORDS.get(kind, kind)} "{arn}".')


class LogsNotFound(ServiceError):
    """No such log group or stream."""

    code = "ResourceNotFoundException"


class InvalidParameter(ServiceError):
    """A request to the logs service is not valid."""

    code = "InvalidParameterException"


class StoreUnavailable(ServiceError):
    """The record cannot be written now; nothing of the change was stored, so it can be tried again."""

    code = "ServiceUnavailable"
    status = 503


class OutOfThreads(ServiceError):
    """The system starts no more threads for this process."""

    code = "ServiceUnavailable"
    status = 503

    def __init__(self) -> None:
        super().__init__(
            "The backend can start no more threads. Raise the limit of its user's processes (`ulimit -u`; of a"
            " container, its pids), or run fewer jobs at once."
        )


class IllegalTransition(WindtunnelError):
    """The job's current status does not allow the event."""


class RunnerError(WindtunnelError):
    """A job cannot be run; says why and what to do."""


class RunnerUnavailable(RunnerError):
    """The engine cannot be reached."""


class ImageNotFound(RunnerError):
    """The engine has no such image."""


class InputError(WindtunnelError):
    """A channel or the source code cannot be provided."""


class ObjectError(WindtunnelError):
    """The object store refuses a request."""


class NoRoom(ObjectError):
    """The object is larger than the free space on the disk."""


class NoSuchBucket(ObjectError):
    """The bucket does not exist."""


class NoSuchKey(ObjectError):
    """The object does not exist."""


def is_out_of_threads(error: BaseException) -> bool:
    """Whether the error means that a thread could not be started; Python has no class of its own for it."""
    return isinstance(error, RuntimeError) and str(error) == "can't start new thread"


def is_full_disk(error: BaseException) -> TypeGuard[OSError]:
    """Whether the error means that the disk, or the user's quota on it, is full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
