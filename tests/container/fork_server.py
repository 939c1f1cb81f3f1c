"""The process from which `forked.py` has its programs forked.

fork_server.py LISTENER_FD
"""

import runpy
import socket
import sys
from pathlib import Path

from neuron_sim.launcher import interpreter
from neuron_sim.warm.fork_server import ForkServer
from neuron_sim.warm.likeness import Likeness


def main() -> None:
    """Answer requests; returns in processes that it has forked, at the end of their program."""
    listener = socket.socket(fileno=int(sys.argv[1]))
    likeness = Likeness()
    with likeness.watching(), interpreter.importing():
        from neuron_sim.launcher import preload, torchrun

        preload.core()
    likeness.imported()
    assert preload.safe_to_fork()
    ForkServer(listener, likeness).serve()
    if Path(sys.argv[0]).name == "torchrun":
        interpreter.run(torchrun.main)
    # As the end of `import torch_xla` does it in a new process.
    from neuron_sim.hooks import activation

    activation.activate()
    interpreter.run(lambda: runpy.run_path(sys.argv[0], run_name="__main__"))


if __name__ == "__main__":
    main()
