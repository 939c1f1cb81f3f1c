"""The processes from which a kept container's jobs are forked: one for `train`, one for `torchrun`.

Each has imported what its program imports anyway, and nothing more: torch_xla is not imported
in the toolkit's process, nor the toolkit in a script's. Both are forked from one process that
has imported torch.
"""

from __future__ import annotations

import os
import socket
import sys

from neuron_sim.launcher import interpreter
from neuron_sim.warm import leftovers
from neuron_sim.warm.fork_server import ForkServer
from neuron_sim.warm.likeness import Likeness

TRAIN = "train"
TORCHRUN = "torchrun"


def main() -> None:
    """``servers TRAIN_FD TORCHRUN_FD TELL_FD``: become both servers; returns in the processes that they fork.

    The second server's process id is written to TELL_FD, which both close when they have imported all.
    """
    train, torchrun, tell = (int(word) for word in sys.argv[1:4])
    if sys.path and sys.path[0] == "":
        del sys.path[0]  # of `python -c`; a command has its own folder there
    likeness = Likeness()
    with likeness.watching(), interpreter.importing():
        import torch  # noqa: F401
    pid = os.fork()
    if pid:
        os.write(tell, f"{pid} {leftovers.started(pid)}\n".encode())
        os.close(torchrun)
        _train(socket.socket(fileno=train), likeness, tell)
    else:
        os.close(train)
        _torchrun(socket.socket(fileno=torchrun), likeness, tell)


def _train(listener: socket.socket, likeness: Likeness, tell: int) -> None:
    """The server with AWS's toolkit."""
    with likeness.watching(), interpreter.importing():
        import sagemaker_pytorch_container.training  # type: ignore[import-not-found]  # noqa: F401
        import sagemaker_training.cli.train  # type: ignore[import-not-found]  # noqa: F401

        from neuron_sim.launcher import train
    likeness.imported()
    os.close(tell)
    ForkServer(listener, likeness).serve()
    interpreter.run(train.main)


def _torchrun(listener: socket.socket, likeness: Likeness, tell: int) -> None:
    """The server with the launcher and torch_xla, but without an XLA client."""
    with likeness.watching(), interpreter.importing():
        from neuron_sim.launcher import preload, torchrun

        preload.core()
    likeness.imported()
    os.close(tell)
    if not preload.safe_to_fork():
        sys.exit("torch_xla or another module has started threads when it was imported")
    ForkServer(listener, likeness).serve()
    interpreter.run(torchrun.main)
