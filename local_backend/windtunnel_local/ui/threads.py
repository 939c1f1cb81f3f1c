"""Threads of the page: so few that the API's calls keep theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

Found = TypeVar("Found")


class Threads:
    """Calls in at most so many threads at once; further ones wait. Used in the event loop alone."""

    def __init__(self, most: int) -> None:
        """No thread is there yet."""
        self._most = most
        self._limiter: anyio.CapacityLimiter | None = None

    async def run(self, call: Callable[[], Found]) -> Found:
        """What the call returns."""
        self._limiter = self._limiter or anyio.CapacityLimiter(self._most)
        return await anyio.to_thread.run_sync(call, limiter=self._limiter)
