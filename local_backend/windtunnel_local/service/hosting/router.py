"""Chooses the instance for a request: a variant at random by weight, then its instance with the fewest requests."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from windtunnel_local.service.ground.errors import ValidationFailed


@dataclass(frozen=True)
class Target:
    """An instance in service. ``key``: its slot; ``address``: host and port."""

    key: str
    variant: str
    address: tuple[str, int]


class Router:
    """Chooses among the instances of one endpoint that are in service. Thread-safe."""

    def __init__(self) -> None:
        """Starts with no instance in service."""
        self._lock = threading.Lock()
        self._targets: dict[str, Target] = {}
        self._weights: Mapping[str, float] = {}
        self._busy: Counter[str] = Counter()
        self.at_once: int | None = None
        """How many requests an instance gets at once, at most; None: no limit (a real-time endpoint)."""

    def serve(
        self, targets: Sequence[Target], weights: Mapping[str, float], at_once: int | None = None
    ) -> None:
        """Set the instances in service and the weights of the variants."""
        with self._lock:
            self.at_once = at_once
            self._targets = {target.key: target for target in targets}
            self._weights = weights

    def busy(self, key: str) -> int:
        """The number of requests that an instance has not answered yet."""
        with self._lock:
            return self._busy[key]

    @contextmanager
    def taken(self, variant: str | None = None) -> Iterator[Target | None]:
        """Reserve an instance for one request, of ``variant`` if given; None if no instance is free now.

        Raises:
            ValidationFailed: there is no such variant.
        """
        with self._lock:
            target = self._choose(variant)
            if target is not None:
                self._busy[target.key] += 1
        try:
            yield target
        finally:
            if target is not None:
                with self._lock:
                    self._busy[target.key] -= 1
                    if not self._busy[target.key]:
                        del self._busy[target.key]

    def _choose(self, variant: str | None) -> Target | None:
        if variant is not None and variant not in self._weights:
            raise ValidationFailed(
                f"Variant {variant} not found. This endpoint has {', '.join(sorted(self._weights)) or 'none yet'}."
            )
        ready = [t for t in self._targets.values() if variant in (None, t.variant)]
        if self.at_once is not None:
            ready = [t for t in ready if self._busy[t.key] < self.at_once]
        names = sorted({t.variant for t in ready})
        weights = [1.0 if variant is not None else self._weights.get(name, 0.0) for name in names]
        if sum(weights) <= 0:
            return None
        # Only shares out the traffic: the random numbers need not be secret.
        chosen = names[0] if len(names) == 1 else random.choices(names, weights)[0]  # noqa: S311
        return min((t for t in ready if t.variant == chosen), key=lambda t: self._busy[t.key])
