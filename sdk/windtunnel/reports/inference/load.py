"""Load on an endpoint: questions at a given rate, or as fast as answers come, and what came back.

At a rate the questions are due at even intervals, however slow the answers are, and a latency counts from when its
question was due: a server that stalls is not spared the questions that would have come meanwhile. Those for which no
client was free until the time was over are not sent, and counted.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import chain

from windtunnel.errors import ConfigurationError, ServiceCallFailed, WindtunnelError
from windtunnel.rendering import format as fmt

_MOST = 1_000_000
"""Seconds, and questions a second."""


@dataclass(frozen=True)
class Load:
    """What is sent. ``rate_per_s`` None: each client asks again as soon as it has its answer.

    ``clients``: that ask at the same time; at a rate the most that do.

    Raises:
        ConfigurationError: a number out of range.
    """

    duration_s: float
    rate_per_s: float | None = None
    clients: int = 1

    def __post_init__(self) -> None:
        """Check all three."""
        if self.clients < 1:
            raise ConfigurationError(f"clients must be 1 or more, not {self.clients}")
        for name, value in (("duration", self.duration_s), ("rate", self.rate_per_s)):
            if value is not None and not 0 < value <= _MOST:
                raise ConfigurationError(
                    f"{name} must be above 0 and at most {_MOST:,}, not {fmt.given(value)}"
                )

    @property
    def due(self) -> int:
        """Questions that are due in the time; 0 without a rate."""
        return math.ceil(round(self.duration_s * (self.rate_per_s or 0.0), 6))


@dataclass
class Answers:
    """What came back. ``latencies_s``: of answers without error; ``errors``: by what failed.

    ``unsent``: questions that were due, and never sent. ``took_s``: from the first question to the last answer.
    """

    latencies_s: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    unsent: int = 0
    took_s: float = 0.0

    @property
    def asked(self) -> int:
        """Questions in all."""
        return len(self.latencies_s) + sum(self.errors.values())

    @property
    def throughput_per_s(self) -> float:
        """Answers a second, errors left out."""
        return len(self.latencies_s) / self.took_s if self.took_s else 0.0

    def percentile_s(self, percent: float) -> float | None:
        """The latency that so many percent of the answers did not exceed; None without an answer."""
        ordered = sorted(self.latencies_s)
        return ordered[math.ceil(percent / 100 * len(ordered)) - 1] if ordered else None


def send(
    load: Load,
    ask: Callable[[], object],
    *,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] | None = None,
) -> Answers:
    """Send the load and wait for what was sent. Blocks; ``ask`` runs in as many threads as there are clients.

    Ctrl-C, and an error that is none of a call, end it when the questions under way are answered.
    """
    stopped = threading.Event()
    pause = sleep or stopped.wait
    rate, begun = load.rate_per_s, now()
    over = begun + load.duration_s
    numbers = itertools.count()

    def one(due: float) -> float | str:
        """The latency, or what failed."""
        try:
            ask()
        except ServiceCallFailed as error:
            return f"{error.code}: {error.service_message}"
        except WindtunnelError as error:
            return type(error).__name__
        return now() - due

    def client() -> list[float | str]:
        """Take the question that is due next, and ask it when it is."""
        outcomes: list[float | str] = []
        while not stopped.is_set():
            due = now() if rate is None else begun + next(numbers) / rate
            if due < over:
                pause(max(0.0, due - now()))
            if max(due, now()) >= over:
                break
            outcomes.append(one(due))
        return outcomes

    with ThreadPoolExecutor(load.clients) as clients:
        loops = [clients.submit(client) for _ in range(load.clients)]
        try:
            wait(loops, return_when=FIRST_EXCEPTION)
        finally:
            stopped.set()
        answers = _counted(chain.from_iterable(loop.result() for loop in loops))
    answers.took_s = now() - begun
    answers.unsent = max(0, load.due - answers.asked)
    return answers


def _counted(outcomes: Iterable[float | str]) -> Answers:
    answers = Answers()
    for outcome in outcomes:
        if isinstance(outcome, str):
            answers.errors[outcome] += 1
        else:
            answers.latencies_s.append(outcome)
    return answers
