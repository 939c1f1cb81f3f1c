"""Load on an endpoint: questions at a given rate, or as fast as answers come, and what came back.

At a rate the questions are due at even intervals, however slow the answers are, and a latency counts from when its
question was due: a server that stalls is not spared the questions that would have come meanwhile.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

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
    """What came back. ``latencies_s``: of answers without error, in the order of their end; ``errors``: by what failed.

    ``took_s``: from the first question to the last answer.
    """

    latencies_s: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
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
    """Send the load and wait for the last answer. Blocks; ``ask`` runs in as many threads as there are clients."""
    answers, begun = Answers(), now()

    def one(due: float | None) -> None:
        since = now() if due is None else begun + due
        try:
            ask()
        except ServiceCallFailed as error:
            answers.errors[f"{error.code}: {error.service_message}"] += 1
        except WindtunnelError as error:
            answers.errors[type(error).__name__] += 1
        else:
            answers.latencies_s.append(now() - since)

    def again() -> None:
        while now() - begun < load.duration_s:
            one(None)

    with ThreadPoolExecutor(load.clients) as clients:
        if load.rate_per_s is None:
            futures = [clients.submit(again) for _ in range(load.clients)]
        else:
            futures = []
            while (due := len(futures) / load.rate_per_s) < load.duration_s:
                sleep(max(0.0, begun + due - now()))
                futures.append(clients.submit(one, due))
    for future in futures:
        future.result()
    answers.took_s = now() - begun
    return answers
