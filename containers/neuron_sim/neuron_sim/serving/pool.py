"""The workers: each gets one request at a time, and is replaced when it ends or takes too long."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Mapping

from neuron_sim import settings
from neuron_sim.diagnostics import log
from neuron_sim.serving import frames

_LONGEST_QUEUE = 100
"""The most requests that wait for a worker; TorchServe's default (`job_queue_size`)."""

Answer = tuple[frames.Head, frames.Body]


class ModelNotLoadedError(Exception):
    """A worker could not load the model; the message says why."""


class Worker:
    """One process with the model, in a session of its own: processes that the handlers start end with it."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer

    @classmethod
    async def started(cls, environment: Mapping[str, str]) -> Worker:
        """Start a process; it goes on to load the model."""
        ours, its = socket.socketpair()
        with its:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "neuron_sim.serving.worker", str(its.fileno())),
                pass_fds=[its.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                env=dict(environment),
                start_new_session=True,
            )
        return cls(process, *await asyncio.open_unix_connection(sock=ours))

    @property
    def alive(self) -> bool:
        """Whether the process has not ended."""
        return self._process.returncode is None

    async def loaded(self) -> None:
        """Wait for the model. Raises `ModelNotLoadedError`."""
        try:
            head, body = await frames.next_message(self._reader)
        except (asyncio.IncompleteReadError, ConnectionError):
            raise ModelNotLoadedError(
                f"A worker has ended while it loaded the model: {await self.ended()}."
            ) from None
        if head.status != 200:
            raise ModelNotLoadedError(body.decode())

    async def ask(self, head: frames.Head, body: frames.Body) -> Answer:
        """The handlers' answer. Raises IncompleteReadError or ConnectionError if the process ends meanwhile."""
        self._writer.writelines(frames.packed(head, body))
        await self._writer.drain()
        return await frames.next_message(self._reader)

    async def ended(self) -> str:
        """Wait for the end of the process, end what it has started, and say how it ended."""
        code = await self._process.wait()
        self.kill()
        self._writer.close()
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def kill(self) -> None:
        """Kill the process at once, with all that it has started. Idempotent."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


class Pool:
    """A fixed number of workers, whose processes are replaced when they end."""

    def __init__(self, serving: settings.Serving) -> None:
        self._serving = serving
        self._environment = serving.worker_environment()
        self._idle: asyncio.Queue[Worker] = asyncio.Queue()
        self._waiting = 0
        self._to_load = serving.workers

    @property
    def ready(self) -> bool:
        """Whether every worker has loaded the model once. Later replacements only make requests wait."""
        return self._to_load == 0

    async def start(self) -> asyncio.Future[list[None]]:
        """Start the workers. The future keeps them running, and ends only in `ModelNotLoadedError`."""
        first = [await Worker.started(self._environment) for _ in range(self._serving.workers)]
        return asyncio.gather(*(self._keep(worker) for worker in first))

    async def ask(self, head: frames.Head, body: frames.Body) -> Answer:
        """Have the next free worker answer a request; status 500 if it dies, 503 if too many requests wait."""
        if self._waiting >= _LONGEST_QUEUE:
            return frames.failure(
                503, f"{_LONGEST_QUEUE} requests wait for a worker already. Ask again later."
            )
        self._waiting += 1
        try:
            while not (worker := await self._idle.get()).alive:
                pass
        finally:
            self._waiting -= 1
        try:
            answer = await asyncio.wait_for(worker.ask(head, body), self._serving.timeout_s)
        except asyncio.TimeoutError:
            worker.kill()
            why = f"no answer within SAGEMAKER_MODEL_SERVER_TIMEOUT, {self._serving.timeout_s} s"
        except (asyncio.IncompleteReadError, ConnectionError):
            why = f"its process ended ({await worker.ended()})"
        except BaseException:
            worker.kill()  # or the next request would get this one's answer
            raise
        else:
            self._idle.put_nowait(worker)
            return answer
        return frames.failure(500, f"Worker died: {why}.")

    async def _keep(self, worker: Worker) -> None:
        """Keep one worker running: start another one each time it ends."""
        await worker.loaded()
        self._to_load -= 1
        if self.ready:
            count = self._serving.workers
            log.say(f"The model is loaded in {count} worker{'s' if count > 1 else ''}.")
        while True:
            self._idle.put_nowait(worker)
            how = await worker.ended()
            log.say(f"warning: a worker has ended ({how}). Another one loads the model.")
            worker = await Worker.started(self._environment)
            await worker.loaded()
