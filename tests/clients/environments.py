"""Environments of the clients' own: real packages at pinned versions, made once and kept outside of the checkout.

They lie in ``${XDG_CACHE_HOME:-~/.cache}/windtunnel/test-clients/``, in folders named after a hash of what
is in them. One that was interrupted while it was made is completed by the next run.
"""

from __future__ import annotations

import ast
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).parent / "requirements"
_COMPLETE = ".complete"
_UV_ENV = Path(__file__).parents[2] / "containers" / "training" / "uv-env.sh"


def environment(name: str) -> Path:
    """The virtual environment of ``requirements/<name>.txt``; blocks for minutes the first time.

    Raises:
        RuntimeError: neither uv nor pip could install it; ends with what pip said.
    """
    requirements = REQUIREMENTS / f"{name}.txt"
    text = f"{sys.version_info[:2]}\n{requirements.read_text()}"
    folder = _cache() / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if _complete(folder):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _complete(folder):
            _make(folder, requirements)
            (folder / _COMPLETE).touch()
    return folder


def _complete(folder: Path) -> bool:
    # The interpreter is a link: it may lead to one that was removed since.
    return (folder / _COMPLETE).exists() and (folder / "bin" / "python").exists()


def _make(folder: Path, requirements: Path) -> None:
    python = folder / "bin" / "python"
    works = (
        python.exists() and not subprocess.run([python, "-m", "pip", "-V"], capture_output=True).returncode
    )
    if not works:
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
    try:
        _install_with_uv(python, requirements)
    except RuntimeError:
        words = ["install", "--disable-pip-version-check", "-q", "-r", str(requirements)]
        _run([str(python), "-m", "pip", *words])


def _install_with_uv(python: Path, requirements: Path) -> None:
    """From where pip would take it, in a tenth of its time; as scripts/setup.sh does."""
    own = Path(sys.executable).with_name("uv")
    uv = str(own) if own.exists() else shutil.which("uv")
    if uv is None:
        raise RuntimeError("there is no uv")
    # pip's configuration files as the variables that pip would take instead.
    listed = subprocess.run([python, "-m", "pip", "config", "list"], capture_output=True, text=True).stdout
    found = (line.partition("=") for line in listed.splitlines())
    given = {
        f"PIP_{key.rpartition('.')[2].upper().replace('-', '_')}": " ".join(ast.literal_eval(value).split())
        for key, _, value in found
    }
    words = ["pip", "install", "-q", "--python", str(python), "-r", str(requirements)]
    _run(["sh", "-ec", f'. "{_UV_ENV}"; exec "$@"', "sh", uv, *words], given | os.environ)


def _run(command: list[str], environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}")


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(root).expanduser() / "windtunnel" / "test-clients"
