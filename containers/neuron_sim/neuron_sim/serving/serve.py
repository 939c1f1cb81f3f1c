"""The command `serve`: what SageMaker runs in a container of an endpoint.

The server itself takes requests and answers /ping, so that no handler can block it. Handlers run in workers, which are
processes that it can kill. AWS's toolkit would start TorchServe here, a Java program of the same structure.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from neuron_sim import processes, settings
from neuron_sim.diagnostics import log
from neuron_sim.serving.pool import ModelNotLoadedError, Pool

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def main() -> int:
    """Serve the model until SIGTERM; the exit code. Blocks."""
    for number in _SIGNALS:
        signal.signal(number, _end)
    serving = settings.serving()
    try:
        if not _requirements(serving.code_dir):
            return 1
        return asyncio.run(_serve(serving))
    except ModelNotLoadedError as error:
        # The last line of the log, where a user looks for the reason.
        sys.stdout.write(f"{error}\n")
        return 1
    finally:
        _kill_children()


def _end(number: int, _: object) -> None:
    raise SystemExit(128 + number)


def _kill_children() -> None:
    for pid in processes.children(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            kill = os.killpg if os.getpgid(pid) == pid else os.kill
            kill(pid, signal.SIGKILL)


def _requirements(code: Path) -> bool:
    """Install the model's requirements.txt like that of a job. Returns whether that succeeded. Blocks."""
    file = code / "requirements.txt"
    if not file.is_file():
        return True
    # Imported here, since it takes 0.5 s and only such a model needs it.
    from sagemaker_training import modules  # type: ignore[import-not-found]
    from sagemaker_training.errors import InstallRequirementsError  # type: ignore[import-not-found]

    from neuron_sim.launcher.requirements import with_stand_ins

    # The model's folder may be read-only, and stand-ins are written into the file.
    with tempfile.TemporaryDirectory() as folder:
        for entry in code.iterdir():
            if entry != file:
                Path(folder, entry.name).symlink_to(entry.resolve())
        shutil.copyfile(file, Path(folder, file.name))
        try:
            with_stand_ins(modules.install_requirements)(folder, False)
        except InstallRequirementsError:
            log.say(f"error: pip cannot install {file}. What it says is above. The container ends.")
            return False
    return True


async def _serve(serving: settings.Serving) -> int:
    pool = Pool(serving)
    with socket.create_server(("", serving.port)) as listener:
        # Inherited by connections. asyncio sets it only on sockets that name TCP; without it each answer takes 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        kept = await pool.start()
        # Imported while the workers import torch.
        from neuron_sim.serving.http import server_of

        server = server_of(pool)
        for number in _SIGNALS:
            signal.signal(number, lambda *_: setattr(server, "should_exit", True))
        served = asyncio.create_task(server.serve([listener]))
        running: list[asyncio.Future[Any]] = [served, kept]
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        server.should_exit, server.force_exit = True, kept.done()
        await served
    kept.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await kept
    return 0


if __name__ == "__main__":
    sys.exit(main())
