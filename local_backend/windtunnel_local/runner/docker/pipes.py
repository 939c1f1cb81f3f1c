"""Keep what a container prints while its engine is away.

A container prints into two pipes of its shim, out of which the engine reads into its log. The shim
outlives the engine and the pipes hold 64 KiB each, so an engine that comes back reads on where it
was. But when the container ends meanwhile, the shim closes its pipes, and the kernel throws away
what is in them. It does not while somebody else has them open. That somebody is us: we never read,
but for the rest of a container that ended while no engine was there to read it.

Only where the engine is on this machine and we are root; elsewhere nothing is held, and what such a
container printed last is lost. What the engine had read, but not yet written, when it was killed is
lost in any case: microseconds of output.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from windtunnel_local.runner.docker import shims

_STREAMS = ("init-stdout", "init-stderr")
_PIECE = 1 << 16


class OutputPipes:
    """The pipes of one container, open. `close` it."""

    def __init__(self, container_id: str) -> None:
        """Opens what can be opened; nothing raises, and it never blocks for long."""
        self._descriptors: list[int] = []
        self._rest: list[str] = []
        with suppress(OSError):
            shim = shims.find(container_id)
            if shim is not None:
                self._descriptors = _open_pipes(shim)

    def __len__(self) -> int:
        """How many pipes are held."""
        return len(self._descriptors)

    def rest(self) -> list[str]:
        """Lines that nobody read. Only for a container that has ended and that no engine reads any more.

        May be asked again. Stdout comes before stderr, for their order is lost.
        """
        for descriptor in self._descriptors:
            data = b""
            with suppress(BlockingIOError):
                while piece := os.read(descriptor, _PIECE):
                    data += piece
            pieces = data.removesuffix(b"\n").split(b"\n") if data else []
            self._rest += [piece.decode("utf-8", "replace").removesuffix("\r") for piece in pieces]
        return self._rest

    def close(self) -> None:
        """Let go of the pipes. Idempotent."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors = []


def _open_pipes(shim: Path) -> list[int]:
    """The shim's pipes for reading, one a stream; all of them or none."""
    opened: dict[str, int] = {}
    try:
        for link in sorted((shim / "fd").iterdir()):
            name = link.readlink().name
            if name in _STREAMS and name not in opened:
                opened[name] = os.open(link, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        for descriptor in opened.values():
            os.close(descriptor)
        return []
    return [opened[name] for name in _STREAMS if name in opened]
