"""Which instance gets a request: by the variants' weights, then the one that has least to do."""

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
    """An instance that answers. ``key``: its slot."""

    key: str
    variant: str
    address: tuple[str, int]


class Router:
    """The instances in service of one endpoint. Safe from several threads."""

    def __init__(self) -> None:
        """Nothing is in service."""
        self._lock = threading.Lock()
        self._targets: dict[str, Target] = {}
        self._weights: Mapping[str, float] = {}
        self._busy: Counter[str] = Counter()
        self.at_once: int | None = None
        """Of an asynchronous endpoint: how many requests an instance is asked at once."""

    def serve(
        self, targets: Sequence[Target], weights: Mapping[str, float], at_once: int | None = None
    ) -> None:
        """From now on these instances, and these weights of variants."""
        with self._lock:
            self.at_once = at_once
            self._targets = {target.key: target for target in targets}
            self._weights = weights

    def busy(self, key: str) -> int:
        """Requests that an instance has not answered yet."""
        with self._lock:
            return self._busy[key]

    @contextmanager
    def taken(self, variant: str | None = None) -> Iterator[Target | None]:
        """An instance for one request, of ``variant`` if that is given; None: none is ready now.

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
        # A share of traffic, no secret.
        chosen = names[0] if len(names) == 1 else random.choices(names, weights)[0]  # noqa: S311
        return min((t for t in ready if t.variant == chosen), key=lambda t: self._busy[t.key])
