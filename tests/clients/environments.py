"""Environments of the clients' own: real packages at pinned versions, made once and kept outside of the checkout.

They lie in ``${XDG_CACHE_HOME:-~/.cache}/windtunnel/test-clients/``, in folders named after a hash of what
is in them. One that was interrupted while it was made is completed by the next run.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).parent / "requirements"
_COMPLETE = ".complete"
_SCRIPTS = Path(__file__).parents[2] / "scripts"


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
    # As scripts/setup.sh does it; its .venv is the one that runs the tests.
    install = f'. "{_SCRIPTS}/lib.sh"; install_into "$@"'
    own = {**os.environ, "VENV": str(Path(sys.executable).parents[1])}
    _run(["bash", "-euc", install, "bash", str(folder), "-r", str(requirements)], own)


def _run(command: list[str], environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}")


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(root).expanduser() / "windtunnel" / "test-clients"
