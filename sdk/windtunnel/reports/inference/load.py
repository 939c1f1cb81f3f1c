"""Load on an endpoint: requests at a given rate, or as fast as answers come, and what came back.

At a rate, requests are due at even intervals however slow the answers are, and a latency counts from when its request
was due: a server that stalls is charged with the requests that were due meanwhile. Requests for which no client was
free before the time was over are counted, but not sent.
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
"""The most seconds of a load, and the most requests a second."""


@dataclass(frozen=True)
class Load:
    """The load to send. ``rate_per_s``: None: each client sends its next request as soon as it has an answer.

    ``clients``: how many send at the same time; at a rate, the most that do.

    Raises:
        ConfigurationError: a number out of range.
    """

    duration_s: float
    rate_per_s: float | None = None
    clients: int = 1

    def __post_init__(self) -> None:
        """Check that all three numbers are in range."""
        if self.clients < 1:
            raise ConfigurationError(f"clients must be 1 or more, not {self.clients}")
        for name, value in (("duration", self.duration_s), ("rate", self.rate_per_s)):
            if value is not None and not 0 < value <= _MOST:
                raise ConfigurationError(
                    f"{name} must be above 0 and at most {_MOST:,}, not {fmt.given(value)}"
                )

    @property
    def due(self) -> int:
        """Requests that are due within the duration; 0 without a rate."""
        return math.ceil(round(self.duration_s * (self.rate_per_s or 0.0), 6))


@dataclass
class Answers:
    """What came back. ``latencies_s``: of answers without error; ``errors``: counts by kind of error.

    ``unsent``: requests that were due, and never sent. ``took_s``: seconds from the start to the last answer.
    """

    latencies_s: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    unsent: int = 0
    took_s: float = 0.0

    @property
    def asked(self) -> int:
        """Requests that were sent."""
        return len(self.latencies_s) + sum(self.errors.values())

    @property
    def throughput_per_s(self) -> float:
        """Answers a second, errors left out."""
        return len(self.latencies_s) / self.took_s if self.took_s else 0.0

    def percentile_s(self, percent: float) -> float | None:
        """The latency in seconds that so many percent of the answers did not exceed; None without an answer."""
        ordered = sorted(self.latencies_s)
        return ordered[math.ceil(percent / 100 * len(ordered)) - 1] if ordered else None


def send(
    load: Load,
    ask: Callable[[], object],
    *,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] | None = None,
) -> Answers:
    """Send the load and wait for the answers. Blocks; ``ask`` runs in as many threads as there are clients.

    Ctrl-C, or an error that is not a failed request's, ends it once the requests under way are answered.
    """
    stopped = threading.Event()
    pause = sleep or stopped.wait
    rate, begun = load.rate_per_s, now()
    over = begun + load.duration_s
    numbers = itertools.count()

    def one(due: float) -> float | str:
        """Send one request: the latency in seconds, or the error as text."""
        try:
            ask()
        except ServiceCallFailed as error:
            return f"{error.code}: {error.service_message}"
        except WindtunnelError as error:
            return type(error).__name__
        return now() - due

    def client() -> list[float | str]:
        """Take the next request, wait until it is due, and send it, until the time is over."""
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
