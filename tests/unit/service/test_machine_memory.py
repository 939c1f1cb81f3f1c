"""How much of this machine's memory a new container may take."""

from __future__ import annotations

from pathlib import Path

import pytest

from windtunnel_local.service.ground.machine_memory import room_bytes, spare_bytes, total_bytes

_KIB = 1024


@pytest.mark.parametrize(
    ("available_kib", "room_kib"),
    [
        (900, 850),  # what is free, less 5 % of all
        (400, 350),
        (200, 250),  # a quarter, since what fills the machine may soon end
    ],
)
def test_a_container_gets_what_is_free(tmp_path: Path, available_kib: int, room_kib: int) -> None:
    """Not 90 % of a machine that others have filled: it would crawl."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(
        f"MemTotal:  1000 kB\nMemFree:  1 kB\nMemAvailable:  {available_kib} kB\nHugePages_Total:  0\n"
    )
    assert room_bytes(meminfo) == room_kib * _KIB


@pytest.mark.parametrize("text", [None, "", "MemTotal: 1000 kB\n", "MemTotal: x kB\nMemAvailable: 1 kB\n"])
def test_where_the_system_does_not_say_nothing_is_taken_from_the_limit(
    tmp_path: Path, text: str | None
) -> None:
    """As on macOS, or an old kernel."""
    meminfo = tmp_path / "meminfo"
    if text is not None:
        meminfo.write_text(text)
    assert room_bytes(meminfo) is None


def test_on_this_machine() -> None:
    """The real file has the names that are read."""
    room = room_bytes()
    assert room is None or total_bytes() // 5 < room < total_bytes()
    assert spare_bytes() < total_bytes()
