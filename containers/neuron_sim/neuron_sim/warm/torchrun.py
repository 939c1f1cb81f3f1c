"""The command `torchrun`: forked where a kept container has a server for it, else the launcher itself."""

from __future__ import annotations

import sys

from neuron_sim.launcher import interpreter
from neuron_sim.warm import fork_client


def main() -> int:
    """Launch; ends like torch's torchrun. Blocks."""
    code = fork_client.run("torchrun", sys.argv)
    if code is None:
        with interpreter.importing():
            # Not at the top: it imports torch, which is what a fork server saves.
            from neuron_sim.launcher import torchrun
        interpreter.run(torchrun.main)
    return code
