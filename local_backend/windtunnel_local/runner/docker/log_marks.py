"""Which job the lines of a kept container's log belong to. Pure functions.

One log has the output of one job after the other. The keeper ends each job's with a mark on
both streams; where a job's output begins is known as the cursor at which the one before it
ended. A cursor here is the log's own, the order it was read for, and the streams that are
at their end: ``<cursor>|<order>|12``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from windtunnel_local.service.ground.containers import LogBatch

_MARK = re.compile("\x1ewindtunnel:end:([0-9a-f]{32}):([12])\x1e$")
_STREAMS = frozenset("12")


def split_cursor(cursor: str | None, order: str) -> tuple[str | None, set[str]]:
    """The log's own cursor, and which streams of ``order`` were read to their end."""
    if not cursor:
        return None, set()
    own, _, rest = cursor.partition("|")
    read_for, _, ended = rest.partition("|")
    return own or None, set(ended) if read_for == order else set()


def is_complete(ended: set[str]) -> bool:
    """Whether both streams are at their end."""
    return ended >= _STREAMS


def own_lines(batches: Iterable[LogBatch], order: str, mark: str, ended: set[str]) -> Iterator[LogBatch]:
    """The batches without marks, up to the end of both streams of ``order``; ``ended`` is kept up to date.

    ``mark`` is the order's own. It may stand behind a line that the job did not end: that line is the
    job's. Other marks, of earlier orders or made up by a job, are passed over.
    """
    for batch in batches:
        lines = []
        for line in batch.lines:
            found = _MARK.search(line.text)
            if found is None:
                lines.append(line)
                continue
            if found.start():
                lines.append(replace(line, text=line.text[: found.start()]))
            if found[1] == mark:
                ended.add(found[2])
        yield LogBatch(tuple(lines), f"{batch.cursor}|{order}|{''.join(sorted(ended))}")
        if is_complete(ended):
            return
