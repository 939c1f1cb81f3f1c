"""Load on an endpoint: questions at a given rate, or as fast as answers come, and what came back.

At a rate the questions are due at even intervals, however slow the answers are, and a latency counts from when its
question was due: a server that stalls is not spared the questions that would have come meanwhile. Those for which no
client was free until the time was over are not sent, and counted.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain

from windtunnel.errors import ConfigurationError, ServiceCallFailed, WindtunnelError


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
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise ConfigurationError(f"{name} must be above 0, not {value:g}")


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
    sleep: Callable[[float], object] = time.sleep,
) -> Answers:
    """Send the load and wait for what was sent. Blocks; ``ask`` runs in as many threads as there are clients."""
    begun = now()
    over = begun + load.duration_s

    def one(due: float) -> float | str:
        """The latency, or what failed."""
        try:
            ask()
        except ServiceCallFailed as error:
            return f"{error.code}: {error.service_message}"
        except WindtunnelError as error:
            return type(error).__name__
        return now() - due

    def in_time(due: float) -> float | str | None:
        return one(due) if now() < over else None

    def again() -> list[float | str]:
        outcomes = []
        while (asked := now()) < over:
            outcomes.append(one(asked))
        return outcomes

    with ThreadPoolExecutor(load.clients) as clients:
        if load.rate_per_s is None:
            loops = [clients.submit(again) for _ in range(load.clients)]
            return _counted(chain.from_iterable(loop.result() for loop in loops), lambda: now() - begun)
        sent: list[Future[float | str | None]] = []
        while (due := begun + len(sent) / load.rate_per_s) < over:
            sleep(max(0.0, due - now()))
            sent.append(clients.submit(in_time, due))
        return _counted((question.result() for question in sent), lambda: now() - begun)


def _counted(outcomes: Iterable[float | str | None], passed_s: Callable[[], float]) -> Answers:
    """``passed_s`` is asked when the last outcome has come."""
    answers = Answers()
    for outcome in outcomes:
        if outcome is None:
            answers.unsent += 1
        elif isinstance(outcome, str):
            answers.errors[outcome] += 1
        else:
            answers.latencies_s.append(outcome)
    answers.took_s = passed_s()
    return answers
