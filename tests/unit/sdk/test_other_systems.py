"""What needs no local backend works where Python lacks Linux's modules and calls: on macOS and Windows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

_ABSENT = """
import os, sys
for name in ("fcntl", "grp", "pwd", "readline", "resource", "syslog", "termios"):
    sys.modules[name] = None
for name in ("chown", "fchmod", "fork", "geteuid", "getuid", "killpg", "sched_getaffinity", "setsid", "sysconf",
             "copy_file_range", "posix_fallocate", "O_PATH", "O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC"):
    delattr(os, name)
"""


_RUN = """
import json
from windtunnel.cli.main import main
print("codes", [main(words) for words in json.loads(sys.argv[1])])
"""


def _without_linux(program: str, argument: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _ABSENT + program, argument], capture_output=True, text=True, check=False
    )


def test_commands_that_ask_no_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDTUNNEL_HOME", str(tmp_path / "home"))
    script = tmp_path / "train.py"
    script.write_text("import torch\nmodel = torch.nn.Linear(2, 2).cuda()\n")
    commands = (
        "compare --architecture Llama-3.1-8B --global-batch 256 --samples 10000",
        "prices",
        "calibrate --forget",
        f"check {script}",
    )

    done = _without_linux(_RUN, json.dumps([command.split() for command in commands]))

    assert "codes [0, 0, 0, 1]" in done.stdout, done.stderr
    for words in ("Llama-3.1-8B", "EC2 Capacity Block", "forget", ".cuda()"):
        assert words in done.stdout


def test_windows_has_no_backend_and_the_error_says_what_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDTUNNEL_HOME", str(tmp_path / "home"))
    program = """
import windtunnel.session.local_server, pathlib
windtunnel.session.local_server.os.name = "nt"
from windtunnel.errors import BackendError
home = pathlib.PosixPath(sys.argv[1])
try:
    windtunnel.session.local_server.Backend(home).ensure()
except BackendError as error:
    print(error)
"""
    done = _without_linux(program, str(tmp_path))

    assert "WSL2" in done.stdout, done.stderr
