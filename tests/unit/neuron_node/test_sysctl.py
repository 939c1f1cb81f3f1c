"""`sysctl` of a node, where /proc/sys cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuron_node import sysctl

PORTS = "net.ipv4.ip_local_reserved_ports"


@pytest.fixture
def answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """Run it before a kernel of two values, and a real sysctl that fails with a message of its own."""
    for name, value in ((PORTS, "44000,48620-48622"), ("kernel.shmmni", "4096")):
        file = tmp_path.joinpath("proc", *name.split("."))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
    real = tmp_path / "real"

    def run(*arguments: str, code: int = 255) -> tuple[int, str, str]:
        real.write_text(f"#!/bin/sh\necho real \"$@\"\necho 'permission denied on key' >&2\nexit {code}\n")
        real.chmod(0o755)
        got = sysctl.main(arguments, real=str(real), values=tmp_path / "proc")
        said = capsys.readouterr()
        return got, said.out, said.err

    return run


@pytest.mark.parametrize("ports", ["48620", "44000,48620", "48621-48622"])
def test_reserved_ports_that_are_reserved_count_as_set(answer, ports: str) -> None:  # type: ignore[no-untyped-def]
    """The first line of AWS's scripts; what holds is shown as it is."""
    code, out, err = answer("-w", f"{PORTS}={ports}")
    assert (code, out) == (0, f"{PORTS} = 44000,48620-48622\n")
    assert "not written" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("-w", f"{PORTS}=48620,48623"),
        ("-w", f"{PORTS}=all"),
        ("-w", "kernel.shmmni=4097"),
        ("-w", f"{PORTS}=48620", "kernel.shmmni=1"),
        ("-w", "kernel.nowhere=1"),
        ("-p", f"{PORTS}=48620"),
        ("kernel.shmmni",),
    ],
)
def test_what_does_not_hold_has_the_real_answer(answer, arguments: tuple[str, ...]) -> None:  # type: ignore[no-untyped-def]
    """Exit code, output and message: nothing is said to be set that is not."""
    assert answer(*arguments) == (255, f"real {' '.join(arguments)}\n", "permission denied on key\n")


def test_what_the_real_one_can_write_is_its_affair(answer) -> None:  # type: ignore[no-untyped-def]
    """As on a node whose kernel allows it."""
    assert answer("-w", "kernel.shmmni=9", code=0)[:2] == (0, "real -w kernel.shmmni=9\n")


def test_other_values_must_be_the_same(answer) -> None:  # type: ignore[no-untyped-def]
    """Of these more is not enough; a name may be written with slashes."""
    assert answer("-w", "kernel.shmmni=4096")[0] == 0
    assert answer("-w", "kernel/shmmni=4096")[0] == 0
