"""Which session an estimator, a job or a command uses: the one given, or this machine's."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from windtunnel import settings
from windtunnel.errors import ConfigurationError
from windtunnel.session.aws import AwsSession
from windtunnel.session.local import LocalSession
from windtunnel.session.session import Session

_shared: dict[Path, LocalSession] = {}
_shared_lock = threading.Lock()


def shared_local_session() -> LocalSession:
    """The session of the default home: one for the whole process, so that its clients are made once."""
    home = settings.home()
    with _shared_lock:
        return _shared.setdefault(home, LocalSession(home))


def resolve_session(session: Any = None, sagemaker_session: Any = None) -> Session:
    """The session an estimator or job uses, from either of its two argument names.

    Raises:
        ConfigurationError: two sessions were given, or something that is no session.
    """
    if session is not None and sagemaker_session is not None and session is not sagemaker_session:
        raise ConfigurationError("session= and sagemaker_session= are the same argument. Give one.")
    given = session if session is not None else sagemaker_session
    if given is None:
        return shared_local_session()
    if isinstance(given, Session):
        return given
    is_boto3 = callable(getattr(given, "client", None)) and hasattr(given, "region_name")
    if is_boto3 and sagemaker_session is None:
        return AwsSession(given)
    raise ConfigurationError(
        f"session: cannot use {type(given).__module__}.{type(given).__qualname__}. Leave it out to rehearse "
        "here, or name AWS explicitly with session=AwsSession(boto3.Session()): that run is billed."
    )


def get_execution_role(session: Session | None = None) -> str:
    """A value for ``role=``, under SDK v2's name. It is the local backend's role; on AWS, name your own."""
    return resolve_session(session).resolve_role(None)
