"""The format of the server's log. Text from outside (names, paths, messages) cannot forge a line in it."""

from __future__ import annotations

import logging
from types import TracebackType

from windtunnel_local.service.ground.printable import printable

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class OneLine(logging.Formatter):
    """Writes each record as one line, and the lines of a traceback indented."""

    def __init__(self) -> None:
        super().__init__(FORMAT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's name
        """The record as one line, control characters escaped."""
        return printable(super().formatMessage(record))

    def formatException(self, ei: _ExcInfo) -> str:  # noqa: N802  logging's name
        """The traceback, its lines indented and escaped."""
        return "\n".join(f"    {printable(line)}" for line in super().formatException(ei).split("\n"))


def log_to(handler: logging.Handler) -> None:
    """Send the process's log, from INFO on, to a handler in this format."""
    handler.setFormatter(OneLine())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
