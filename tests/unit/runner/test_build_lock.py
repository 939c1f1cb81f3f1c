"""Builds on one machine wait for each other."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import pytest

from windtunnel_local.runner.docker import image


@pytest.fixture(autouse=True)
def _own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_who_waits_is_let_in_when_the_other_has_ended() -> None:
    """And says what it waits for."""
    said: list[str] = []
    waits, came = threading.Event(), threading.Event()

    def progress(line: str) -> None:
        said.append(line)
        waits.set()

    def build() -> None:
        with image.build_lock(progress):
            came.set()

    with image.build_lock(said.append):
        thread = threading.Thread(target=build)
        thread.start()
        assert waits.wait(20)
        assert not came.is_set()
    thread.join(20)
    assert came.is_set()
    assert said == ["Another build is running; waiting for it."]


def test_who_waits_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job's stop is raised by its progress, and would be seen only after the minutes of the other build."""
    monkeypatch.setattr(image, "REPORT_EVERY_S", 0.01)
    said: list[str] = []

    def progress(line: str) -> None:
        said.append(line)
        if len(said) == 2:
            raise InterruptedError

    def build() -> None:
        with pytest.raises(InterruptedError), image.build_lock(progress):
            pass

    with image.build_lock(said.append):
        thread = threading.Thread(target=build, daemon=True)
        thread.start()
        thread.join(20)
        assert not thread.is_alive()
