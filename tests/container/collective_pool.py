"""Processes that stay alive over many collective calls, and say what each of them got."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch

from neuron_sim.interconnect import region
from neuron_sim.interconnect.communicator import LAUNCH_VARIABLE, Communicator
from neuron_sim.interconnect.long_wait import Patience
from neuron_sim.settings import Identity

LONGEST_S = 60.0
"""Until who waits in a collective is told that it cannot end; without news it would wait for twice as long."""


def serve(
    rank: int, name: str, shared_bytes: int, timeout_s: float, patience: Patience, pipe: Connection
) -> None:
    """A worker: runs the calls that come through the pipe, in a world of any size that it has a rank in.

    A call is a method's name, or a function that takes the communicator.
    """
    torch.set_num_threads(1)
    communicators: dict[int, Communicator] = {}
    while (call := pipe.recv()) is not None:
        world, method, arguments = call
        if world not in communicators:
            os.environ[LAUNCH_VARIABLE] = f"{name}-{world}"
            communicators[world] = Communicator(
                Identity(rank, world, rank, world), shared_bytes, timeout_s, patience
            )
            communicators[world].join()
        try:
            function = getattr(Communicator, method) if isinstance(method, str) else method
            pipe.send(function(communicators[world], *arguments))
        except Exception as error:  # noqa: BLE001 - sent to the test, which judges it
            pipe.send(error)


class Pool:
    """Forked workers; each world from 1 to their number has a region of its own."""

    def __init__(
        self,
        workers: int,
        shared_bytes: int = 2**20,
        timeout_s: float = 2 * LONGEST_S,
        patience: Patience = Patience(),  # noqa: B008 - frozen
    ) -> None:
        self.name = f"test-{os.getpid()}-{time.monotonic_ns()}"
        self.workers = workers
        context = multiprocessing.get_context("fork")
        self.pipes: list[Connection] = []
        self.processes = []
        for rank in range(workers):
            mine, theirs = context.Pipe()
            process = context.Process(
                target=serve, args=(rank, self.name, shared_bytes, timeout_s, patience, theirs), daemon=True
            )
            process.start()
            theirs.close()
            self.pipes.append(mine)
            self.processes.append(process)

    def start(
        self, rank: int, method: str | Callable[..., Any], *arguments: Any, world: int | None = None
    ) -> None:
        """Call the method on one rank; `answer` has what becomes of it."""
        self.pipes[rank].send((world or self.workers, method, arguments))

    def answer(self, rank: int) -> Any:
        """The result of the call, or its error."""
        return self.pipes[rank].recv()

    def call(
        self,
        ranks: list[int],
        method: str | Callable[..., Any],
        arguments: list[tuple[Any, ...]],
        world: int | None = None,
    ) -> list[Any]:
        """Call the method on these ranks at the same time; their results, or the errors."""
        for rank, own in zip(ranks, arguments, strict=True):
            self.start(rank, method, *own, world=world)
        return [self.answer(rank) for rank in ranks]

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe, process in zip(self.pipes, self.processes, strict=True):
            if process.is_alive():
                pipe.send(None)
            process.join(10)
            if process.is_alive():
                process.kill()
                process.join(10)
            process.close()
            pipe.close()
        region.forget(self.name)
