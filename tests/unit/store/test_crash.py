"""kill -9 in the middle of appends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from windtunnel_local.store import SqliteStore

WRITER = """
import sys
from pathlib import Path
from tests.unit.service.samples import job, request
from windtunnel_local.service.ground.containers import LogBatch, LogLine
from windtunnel_local.store import SqliteStore

path = Path(sys.argv[1])
store = SqliteStore(path)
if store.get_job("a") is None:
    store.insert_job(job(path.parent, request("a")))
store.open_log_stream("a", "algo-1", "s", 1)
n = int(store.log_cursor("s") or 0)
while True:
    count = n % 4 + 1
    lines = tuple(LogLine(n + i, f"line {n + i}") for i in range(count))
    n += count
    store.append_log("s", LogBatch(lines, str(n)), n)
    print("written", flush=True)
"""


def test_no_line_is_lost_or_doubled(tmp_path: Path) -> None:
    """After every kill: sequences without a gap, and a cursor that fits the last line."""
    path = tmp_path / "state.sqlite"
    before = 0
    for i in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        ) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"written\n"
            time.sleep(0.15 + 0.037 * i)
            child.send_signal(signal.SIGKILL)
        store = SqliteStore(path)
        events = store.read_log("s", 0, 1_000_000)
        assert [event.message for event in events] == [f"line {n}" for n in range(len(events))]
        assert [event.sequence for event in events] == list(range(len(events)))
        assert store.log_cursor("s") == str(len(events))
        assert store.log_streams("s")[0].events == len(events)
        store.close()
        assert len(events) > before, "the writer went on where it was killed"
        before = len(events)
