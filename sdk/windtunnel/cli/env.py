"""`windtunnel env`: print shell lines that make AWS's own clients use the local backend."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from windtunnel import settings
from windtunnel.atomic_file import replace_whole
from windtunnel.errors import BackendError, ConfigurationError
from windtunnel.session import client_environment

_DESCRIPTION = """\
Start the local backend if none runs, and print the lines by which boto3, the AWS CLI and the SageMaker
SDKs v2 and v3 use it, and not your real account:

    eval "$(windtunnel env)"              this shell's clients now use the backend
    eval "$(windtunnel env --unset)"      undo that
    windtunnel env -- python train.py     for one command only

A backend that this command used does not end when it is idle; `windtunnel down` ends it.
"""
# The last line: whoever leaves out eval's quotes has all lines in one.
_NOT_REACHED = (
    "# No variable leads get_execution_role of the SageMaker SDKs here: name a role (docs/how_to/clients)."
)


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "env",
        help="point boto3, the AWS CLI and SageMaker's own SDKs at the local backend",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--unset", action="store_true", help="print the lines that undo it")
    parser.add_argument(
        "--shell", choices=sorted(SHELLS), default="sh", help="the shell's syntax (default: sh)"
    )
    parser.add_argument("--json", action="store_true", help="print an object: a value to set, null to unset")
    parser.set_defaults(func=_env)


def _env(arguments: argparse.Namespace) -> None:
    before = settings.environment()
    if arguments.unset:
        changes = client_environment.leaving(before)
        if not changes:
            print("windtunnel: this shell is not in the environment of `windtunnel env`.", file=sys.stderr)
    else:
        changes = _enter(before)
    if arguments.words:
        _become(arguments.words, before, changes)
    if sys.stdout.isatty():
        changes = {name: _shown(name, value) for name, value in changes.items()}
    lines = SHELLS[arguments.shell](changes)
    if not arguments.unset:
        lines.append(_NOT_REACHED)
    text = json.dumps(changes, indent=2) if arguments.json else "\n".join(lines)
    # A path may hold bytes that are no UTF-8; they must be written unchanged.
    sys.stdout.buffer.write(os.fsencode(f"{text}\n" if text else ""))
    if sys.stdout.isatty() and not arguments.unset:
        print(f"\nNothing is set yet. To do so: {_ENTERED[arguments.shell]}", file=sys.stderr)


def _shown(name: str, value: str | None) -> str | None:
    """The value for a terminal, without secrets, which would stay in its scroll-back."""
    secret = name == client_environment.SAVED or "SECRET" in name or "TOKEN" in name
    return "(not shown on a terminal)" if secret and value is not None else value


def _enter(before: Mapping[str, str]) -> dict[str, str | None]:
    from windtunnel.session.resolve import shared_local_session

    session = shared_local_session()
    backend = session.backend
    if not before.get(settings.IDLE_VARIABLE):  # a user who sets it wants the backend to end when idle
        backend.keep()
    running = backend.ensure()
    credentials = backend.credentials()
    folder = backend.home / "clients"
    _write(
        folder, client_environment.files(credentials, session.default_bucket(), session.resolve_role(None))
    )
    return client_environment.entering(before, backend.home, folder, running.endpoint, credentials)


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """Write each file as a whole, for its owner only."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, text in files.items():
            replace_whole(folder / name, text)
    except OSError as error:
        raise BackendError(f"{folder} cannot be written: {error}.") from error


def _become(words: list[str], before: Mapping[str, str], changes: client_environment.Changes) -> None:
    """Replace this process by a command in the changed environment."""
    after = {name: value for name, value in {**before, **changes}.items() if value is not None}
    sys.stdout.flush()
    try:
        os.execvpe(words[0], words, after)  # noqa: S606 - replaces this process; needs no shell
    except OSError as error:
        raise ConfigurationError(f"{words[0]} cannot be started: {error.strerror}.") from error


def _sh(changes: client_environment.Changes) -> list[str]:
    lines = [f"export {name}={shlex.quote(value)}" for name, value in changes.items() if value is not None]
    gone = [name for name, value in changes.items() if value is None]
    return [*lines, f"unset {' '.join(gone)}"] if gone else lines


def _fish(changes: client_environment.Changes) -> list[str]:
    lines = []
    for name, value in changes.items():
        if value is None:
            lines.append(f"set -e {name}")
        else:
            quoted = value.replace("\\", "\\\\").replace("'", "\\'")
            lines.append(f"set -gx {name} '{quoted}'")
    return lines


_ENTERED = {"sh": 'eval "$(windtunnel env)"', "fish": "windtunnel env --shell fish | source"}
SHELLS: Mapping[str, Callable[[client_environment.Changes], list[str]]] = {"sh": _sh, "fish": _fish}
