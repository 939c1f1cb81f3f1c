"""How the server's log is written: no name, path or message of others can forge a line of it."""

from __future__ import annotations

import logging
from types import TracebackType

from windtunnel_local.service.ground.printable import printable

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class OneLine(logging.Formatter):
    """A record is one line; the lines of a traceback are indented."""

    def __init__(self) -> None:
        """Use `FORMAT`."""
        super().__init__(FORMAT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's name
        """The record's line."""
        return printable(super().formatMessage(record))

    def formatException(self, ei: _ExcInfo) -> str:  # noqa: N802  logging's name
        """The traceback."""
        return "\n".join(f"    {printable(line)}" for line in super().formatException(ei).split("\n"))


def log_to(handler: logging.Handler) -> None:
    """Send all of the process's log to a handler, in this form."""
    handler.setFormatter(OneLine())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
