"""A socket's path may be longer than a socket's name can be."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from windtunnel_local.service.ground import unix_socket


@pytest.mark.parametrize("length", [20, 103, 104, 108, 250])
def test_both_sides_meet_however_long_the_path_is(tmp_path: Path, length: int) -> None:
    folder = tmp_path / "home"
    while len(os.fsencode(folder)) < length - 60:
        folder /= "f" * 40
    folder.mkdir(parents=True)
    path = folder / "s".ljust(max(1, length - len(os.fsencode(folder)) - 1), "s")
    with socket.socket(socket.AF_UNIX) as bound, socket.socket(socket.AF_UNIX) as asked:
        unix_socket.named(path, bound.bind)
        bound.listen()
        unix_socket.named(path, asked.connect)
    assert path.is_socket()


def test_without_linux_a_short_path_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a long one is an error of the system's own."""
    monkeypatch.delattr(os, "O_PATH")
    long = tmp_path / ("f" * 120)
    long.mkdir()
    with socket.socket(socket.AF_UNIX) as bound:
        with pytest.raises(OSError, match="too long"):
            unix_socket.named(long / "socket", bound.bind)
        unix_socket.named(tmp_path / "s", bound.bind)
    assert (tmp_path / "s").is_socket()
