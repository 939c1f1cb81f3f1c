"""The command `train`: AWS's training toolkit, with three of its functions replaced.

It need not import torch to know its version (2 to 3 seconds, in a process that computes nothing),
`requirements` says what is done about pins that cannot be had here, and `missing` about packages that are not here.

SIGTERM, which a stop and a spot interruption send, ends the toolkit and with it the container: the script is not
told (aws/sagemaker-training-toolkit, issue 125). WINDTUNNEL_FORWARD_SIGTERM=1 tells it.
"""

from __future__ import annotations

import importlib.util
import os
import runpy
import signal
import sys
from pathlib import Path

from neuron_sim import settings
from neuron_sim.runtime import processes


def main() -> int | None:
    """Run the container's job; ends like the toolkit's own command. Blocks."""
    from sagemaker_pytorch_container import training  # type: ignore[import-not-found]
    from sagemaker_training import modules, process  # type: ignore[import-not-found]
    from sagemaker_training.cli import train  # type: ignore[import-not-found]

    from neuron_sim.launcher.missing import with_advice
    from neuron_sim.launcher.requirements import with_stand_ins

    process.check_error = with_advice(process.check_error)
    modules.install_requirements = with_stand_ins(modules.install_requirements)
    training._set_torch_version_environment = set_torch_version
    if settings.forward_sigterm():
        signal.signal(signal.SIGTERM, _forward)
    return train.main()  # type: ignore[no-any-return]


def _forward(number: int, _: object) -> None:
    """Hand the signal on to what the toolkit has started: the script, its launcher, pip. Else it ends the toolkit."""
    started = processes.children(os.getpid())
    for process in started:
        print(f"Windtunnel: SIGTERM is handed on to {processes.command(process)[:80]}.", flush=True)
        os.kill(process, number)
    if not started:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def set_torch_version() -> None:
    """What the toolkit's function of this purpose does: SM_DLC_TORCH_VERSION for the script, if torch is there."""
    torch = importlib.util.find_spec("torch")
    if torch is not None and torch.origin is not None:
        version = runpy.run_path(str(Path(torch.origin).with_name("version.py")))["__version__"]
        os.environ["SM_DLC_TORCH_VERSION"] = version


if __name__ == "__main__":
    sys.exit(main())
