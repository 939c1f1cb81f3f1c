"""`sysctl` for a container, where /proc/sys is read-only: setting a value that is set already succeeds.

AWS's scripts begin with ``sudo sysctl -w net.ipv4.ip_local_reserved_ports=48620 || exit 1``. The node is started
with that value. The real sysctl runs first. If it fails, its output and exit code are passed on, unless all the values
are set already.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

REAL = "/usr/sbin/sysctl"
_VALUES = Path("/proc/sys")
_PORTS = "net.ipv4.ip_local_reserved_ports"


def main(argv: Sequence[str] | None = None, *, real: str = REAL, values: Path = _VALUES) -> int:
    """Run sysctl; returns its exit code, or 0 if it failed to write values that are set already."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    done = subprocess.run([real, *arguments], capture_output=True, text=True, check=False)
    asked = dict(_assignments(arguments))
    if done.returncode and asked and all(holds(name, value, values) for name, value in asked.items()):
        for name in asked:
            print(f"{name} = {_current(name, values)}")
        print("sysctl: not written, as it holds already", file=sys.stderr)
        return 0
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return done.returncode


def holds(name: str, asked: str, values: Path = _VALUES) -> bool:
    """Whether the kernel has the value asked for. Reserved ports: whether those asked for are among the reserved."""
    current = _current(name, values)
    if current is None:
        return False
    if name == _PORTS:
        try:
            return _ports(asked) <= _ports(current)
        except ValueError:
            return False
    return current.split() == asked.split()


def _assignments(arguments: Sequence[str]) -> list[tuple[str, str]]:
    """The ``name=value`` words of ``sysctl -w``; none if there are other options, whose words might be files."""
    if any(word.startswith("-") and word not in ("-w", "--write", "-q", "--quiet") for word in arguments):
        return []
    pairs = (word.split("=", 1) for word in arguments if not word.startswith("-"))
    return [(pair[0].strip().replace("/", "."), pair[1].strip()) for pair in pairs if len(pair) == 2]


def _current(name: str, values: Path) -> str | None:
    try:
        return values.joinpath(*name.split(".")).read_text(encoding="utf-8").strip()
    except OSError:
        return None


def _ports(text: str) -> set[int]:
    """The port numbers of a text such as ``44000,48620-48622``."""
    found: set[int] = set()
    for part in filter(None, text.replace(" ", "").split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


if __name__ == "__main__":
    raise SystemExit(main())
