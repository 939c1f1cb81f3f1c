"""What `windtunnel env` has told a shell stays true: the server's port, and that somebody listens there."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.contract.test_server_process import Process
from windtunnel.session.local_server import Backend
from windtunnel_local.home import Home
from windtunnel_local.listening_port import listen_for
from windtunnel_local.server import listen


def test_a_taken_port_is_replaced(tmp_path: Path) -> None:
    """By another that is kept from then on; none that outgoing connections use."""
    with listen_for(tmp_path, 0) as other:
        other.listen()
        taken = other.getsockname()[1]
        with listen_for(tmp_path, 0) as ours:
            port = ours.getsockname()[1]
            assert port != taken
            assert 20_000 <= port < 30_000
    with listen_for(tmp_path, 0) as again:
        assert again.getsockname()[1] == port


@pytest.mark.parametrize("note", ["", "port", "0", "70000", "-1", "\N{ARABIC-INDIC DIGIT ONE}"])
def test_a_broken_note_is_no_port(tmp_path: Path, note: str) -> None:
    """A new one is chosen."""
    (tmp_path / "port").write_text(note)
    with listen_for(tmp_path, 0) as ours:
        assert (tmp_path / "port").read_text() == f"{ours.getsockname()[1]}\n"


def test_a_port_that_is_asked_for_is_that_or_an_error(tmp_path: Path) -> None:
    """And says nothing about the next time."""
    with listen(0) as other:
        other.listen()
        taken = other.getsockname()[1]
        with pytest.raises(OSError, match=rf"WINDTUNNEL_PORT={taken} .* in use\. Name another port"):
            listen_for(tmp_path, taken)
    assert not (tmp_path / "port").exists()


def test_a_server_that_is_counted_on_stays(tmp_path: Path) -> None:
    """Idle or not, until it is released; then it leaves when it is idle."""
    home = tmp_path / "home"
    Backend(home).keep()
    process = Process(home, WINDTUNNEL_IDLE_SECONDS="0.2")
    process.note()
    time.sleep(1.0)
    assert process.popen.poll() is None
    Backend(home).release()
    code, output = process.end()
    assert (code, "idle" in output) == (0, True)
    assert not (home / "backend.json").exists()


def test_an_earlier_boot_counts_on_nothing(tmp_path: Path) -> None:
    """The shells that were told of the server are gone."""
    home = Home(tmp_path)
    assert not home.kept()
    Backend(tmp_path).keep()
    assert home.kept()
    (tmp_path / "keep").write_text("another boot\n")
    assert not home.kept()
    Backend(tmp_path).keep()
    assert home.kept()
