"""The one key pair of a home: made at its first start, readable by its owner only."""

from __future__ import annotations

import json
import secrets
import string
from dataclasses import asdict, dataclass, field
from pathlib import Path

from windtunnel.atomic_file import replace_whole
from windtunnel_local.service.ground.errors import WindtunnelError

ACCOUNT_ID = "000000000000"
REGION = "us-east-1"
_OWNER_ONLY = 0o600


class CredentialsError(WindtunnelError):
    """credentials.json cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Credentials:
    """The key pair of the one account, its id and its region."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    account_id: str = ACCOUNT_ID
    region: str = REGION


def load_or_create(path: Path) -> Credentials:
    """The key pair in the file, which is created if it is missing. Sets the file's mode to 0600.

    Raises:
        CredentialsError: the file holds something else.
    """
    if not path.exists():
        _create(path)
    path.chmod(_OWNER_ONLY)
    try:
        found = Credentials(**json.loads(path.read_text()))
        if not all(isinstance(value, str) and value for value in asdict(found).values()):
            raise TypeError("a member is no text, or empty")
        return found
    except (ValueError, TypeError, RecursionError) as error:
        raise CredentialsError(
            f"{path} is not a key pair of Windtunnel ({error}). Remove it: the next start makes a new one."
        ) from error


def _create(path: Path) -> None:
    alphabet = string.ascii_uppercase + "234567"
    key_id = "AKIA" + "".join(secrets.choice(alphabet) for _ in range(16))
    credentials = Credentials(key_id, secrets.token_urlsafe(30))
    replace_whole(path, json.dumps(asdict(credentials)))  # others can at no time read it
