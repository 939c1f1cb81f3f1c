"""An image build's output as a few lines for a person: steps with their time, and what they wait for."""

from __future__ import annotations

import queue
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from windtunnel_local.service.ground.ports import Progress

REPORT_EVERY_S = 15.0
_TAIL_LINES = 20
_STEP = re.compile(r"(?:Step|(?P<podman>(?:\[\d+/\d+\] )?STEP)) (?P<number>\d+/\d+) ?: (?P<instruction>.*)")
_TITLES = (
    ("cluster/software/requirements.txt", "installing packages that AWS's samples need"),
    ("requirements.txt", "installing torch, torch_xla, the SageMaker toolkit, transformers (the large one)"),
    ("neuron_sim", "installing the NeuronCore simulator"),
    ("apt-get", "installing system packages"),
    ("test-tools", "installing test tools"),
)
_PHASES = (
    ("Using Python", "choosing versions"),
    ("Resolved ", "fetching packages"),
    ("Prepared ", "installing them"),
    ("Installed ", "writing byte code"),
)
"""What goes on behind a line of uv's, which tells bytes to a terminal only: else that a file begins, and is there."""
_MIB = {"KiB": 1 / 1024, "MiB": 1.0, "GiB": 1024.0}


class BuildReport:
    """Feed it the engine's output; it tells ``progress`` what matters and keeps the tail for an error."""

    def __init__(self, progress: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._progress = progress
        self._clock = clock
        self._started = self._reported = clock()
        self._step = self._title = self._doing = ""
        self._begin("", "")
        self._rest = ""
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)

    @property
    def tail(self) -> str:
        """The last lines of output."""
        return "\n".join([*self._tail, self._rest]).rstrip()

    def feed(self, text: str) -> None:
        """Take a piece of the builder's output, which may end within a line."""
        *lines, self._rest = (self._rest + text).replace("\r", "\n").split("\n")
        for raw in lines:
            line = re.sub(r"\x1b\[[0-9;]*m", "", raw).strip()
            if not line:
                continue
            self._tail.append(line)
            step = _STEP.match(line)
            if step:
                self._begin(step["number"], step["instruction"])
            # Not said of a step from Docker's cache. Podman says nothing between a step and its output.
            if self._title and (line.startswith("---> Running in") or (step and step["podman"])):
                self._say(f"step {self._step}: {self._title}")
            elif line.startswith("Downloading "):
                self._downloads[line.split()[1]] = line.partition(" ")[2]
            elif line.startswith("Downloaded "):
                self._fetched_mib += _size_mib(self._downloads.pop(line.split()[1], ""))
            elif line.startswith(("Installed ", "Left out: ")):
                self._say(line)
            self._doing = next((doing for mark, doing in _PHASES if line.startswith(mark)), self._doing)
        self.tick()

    def tick(self) -> None:
        """Report a long step as still going; call it now and then when there is no output."""
        if self._clock() - self._reported >= REPORT_EVERY_S and self._step:
            self._say(f"step {self._step} is at {self._clock() - self._step_started:.0f} s{self._now()}")

    def _now(self) -> str:
        """What the step is at, as far as its output tells."""
        if not self._downloads:
            return f": {self._doing}" if self._doing else ""
        fetched = f", {self._fetched_mib:,.0f} MiB are here" if self._fetched_mib else ""
        return f": downloading {', '.join(self._downloads.values())}{fetched}"

    def _begin(self, number: str, instruction: str) -> None:
        self._step, self._step_started = number, self._clock()
        self._downloads: dict[str, str] = {}
        self._fetched_mib, self._doing = 0.0, ""
        title = next((title for mark, title in _TITLES if mark in instruction), "preparing")
        self._title = title if instruction.startswith("RUN") else ""

    def _say(self, text: str) -> None:
        self._reported = self._clock()
        minutes, seconds = divmod(int(self._reported - self._started), 60)
        self._progress(f"[{minutes}:{seconds:02d}] {text}")


def _size_mib(download: str) -> float:
    """The size in ``torch (858.1MiB)``; 0 where there is none."""
    size = re.search(r"\(([\d.]+)([KMG]iB)\)", download)
    return float(size[1]) * _MIB[size[2]] if size else 0.0


def with_ticks(messages: Iterator[Mapping[str, Any]], every_s: float) -> Iterator[Mapping[str, Any] | None]:
    """``messages`` as they come, and None whenever none has come for ``every_s`` seconds."""
    passed: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def read() -> None:
        try:
            while True:
                passed.put(next(messages))
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            passed.put(error)

    threading.Thread(target=read, name="image build", daemon=True).start()
    while True:
        try:
            item = passed.get(timeout=every_s)
        except queue.Empty:
            item = None
        if isinstance(item, StopIteration):
            return
        if isinstance(item, BaseException):
            raise item
        yield item
