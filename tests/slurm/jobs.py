"""Jobs without torch: the interpreter of the tests' own, and what its jobs run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.fakes.wire import IMAGE, create_request
from windtunnel_local.runner.without_container.interpreter import REQUIRED_MODULES

BUCKET = "slurm"

TRAIN = """
import os, pathlib, signal, sys, time

ml = pathlib.Path(os.environ["SAGEMAKER_BASE_DIR"])

def saved(number, frame):
    os.write(1, b"saved\\n")  # whole, though the signal may come again meanwhile
    sys.exit(0)

if os.environ.get("SAVES"):
    signal.signal(signal.SIGTERM, saved)
count = int(os.environ["LINES"])
mark = pathlib.Path(os.environ["MARK"] or os.devnull)
if not mark.exists():
    mark.touch()
    count = 100_000
for number in range(count):
    print("line", number, flush=True)
    time.sleep(float(os.environ["PAUSE"]))
(ml / "model" / "weights").write_text("w")
sys.exit(int(os.environ["CODE"]))
"""


def make_interpreter(folder: Path) -> Path:
    """This interpreter, with stand-ins for the modules that real jobs need: these jobs import none of them."""
    for module in REQUIRED_MODULES:
        (folder / "modules" / module).mkdir(parents=True)
        (folder / "modules" / module / "__init__.py").touch()
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}/modules" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (folder / "train.py").write_text(TRAIN)
    (folder / "meet.py").write_text(MEET)
    return python


def request(
    name: str,
    train: Path,
    lines: int = 3,
    pause_s: float = 0.0,
    code: int = 0,
    hosts: int = 1,
    saves: bool = False,
    retries: int = 0,
    mark: Path | None = None,
) -> dict[str, Any]:
    """CreateTrainingJob's members. ``train``: the script that each host runs; ``saves``: SIGTERM ends it well.

    ``mark``: a file that the first attempt makes, which then goes on without end.
    """
    environment = {
        "LINES": lines,
        "PAUSE": pause_s,
        "CODE": code,
        "SAVES": "1" if saves else "",
        "MARK": mark or "",
    }
    algorithm = {"TrainingImage": IMAGE, "TrainingInputMode": "File"}
    return create_request(
        name,
        AlgorithmSpecification={**algorithm, "ContainerEntrypoint": [sys.executable, str(train)]},
        OutputDataConfig={"S3OutputPath": f"s3://{BUCKET}/out"},
        ResourceConfig={"InstanceType": "ml.trn1.2xlarge", "InstanceCount": hosts, "VolumeSizeInGB": 1},
        Environment={key: str(value) for key, value in environment.items()},
        RetryStrategy={"MaximumRetryAttempts": retries} if retries else None,
    )


MEET = """
import socket, time

first, second = "algo-1", "algo-2"
me = socket.gethostname()
if me == first:
    with socket.create_server(("", 29555)) as server:
        friend, _ = server.accept()
        print("met", friend.makefile().readline().strip(), flush=True)
else:
    for _ in range(3000):
        try:
            friend = socket.create_connection((first, 29555))
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    with friend:
        friend.sendall(f"{me} of {socket.gethostbyname(second)}\\n".encode())
"""
"""The second host of a job calls the first by its name."""


def lines(count: int) -> list[str]:
    """What such a job prints."""
    return [f"line {number}" for number in range(count)]
