"""What is in the images is projects of their own: these tests take the parts that need no torch from their folders."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from windtunnel.cli import main as cli

_CONTAINERS = Path(__file__).resolve().parents[2] / "containers"
sys.path[:0] = [str(_CONTAINERS / "neuron_sim"), str(_CONTAINERS / "cluster" / "software")]


class Said(NamedTuple):
    """What a command wrote."""

    out: str
    err: str


class Invoke:
    """The command line of `windtunnel`."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str, exits: int = 0) -> Said:
        """What it wrote; it must end with this status, also where argparse ends it."""
        self._capsys.readouterr()
        status: object
        try:
            status = cli.main(list(words))
        except SystemExit as end:
            status = end.code
        assert status == exits
        return Said(*self._capsys.readouterr())


@pytest.fixture
def invoke(capsys: pytest.CaptureFixture[str]) -> Invoke:
    """Commands of `windtunnel`."""
    return Invoke(capsys)
