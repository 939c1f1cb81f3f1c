"""The command `train`: AWS's training toolkit, with five of its functions replaced.

It need not import torch to know its version (2 to 3 seconds, in a process that computes nothing),
`requirements` says what is done about pins that cannot be had here, `missing` about packages that are not here,
and a script that has ended without a NeuronCore, or without a model, is told so. The NeuronCores are counted once:
the toolkit has neuron-ls count them five times.

SIGTERM, which a stop and a spot interruption send, ends the toolkit and with it the container: the script is not
told (aws/sagemaker-training-toolkit, issue 125). WINDTUNNEL_FORWARD_SIGTERM=1 tells it. The log's last line is then
where ranks waited for each other, if they did for long.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import runpy
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from neuron_sim import processes, settings
from neuron_sim.diagnostics import log
from neuron_sim.interconnect import notes

_MODEL = Path("/opt/ml/model")


def main() -> int | None:
    """Run the container's job; ends like the toolkit's own command. Blocks."""
    from sagemaker_pytorch_container import training  # type: ignore[import-not-found]
    from sagemaker_training import entry_point, environment, modules, process  # type: ignore[import-not-found]
    from sagemaker_training.cli import train  # type: ignore[import-not-found]

    from neuron_sim.launcher.error_names import with_our_names
    from neuron_sim.launcher.missing import with_advice
    from neuron_sim.launcher.requirements import with_stand_ins

    process.check_error = with_advice(with_our_names(process.check_error, process._PYTHON_ERRORS_))
    modules.install_requirements = with_stand_ins(modules.install_requirements)
    training._set_torch_version_environment = set_torch_version
    entry_point.run = with_last_word(entry_point.run)
    environment.num_neurons = functools.cache(environment.num_neurons)
    signal.signal(signal.SIGTERM, _ended)
    return train.main()  # type: ignore[no-any-return]


def with_last_word(run: Callable[..., Any]) -> Callable[..., Any]:
    """Around the toolkit's run of the script, which raises when that fails: says what the job has not come to.

    A core that ran has left its counters; what is kept of the job is in SageMaker's folder for the model.
    """

    @functools.wraps(run)
    def and_look(*arguments: Any, **keywords: Any) -> Any:
        result = run(*arguments, **keywords)
        counters = os.environ.get("WINDTUNNEL_COUNTERS_DIR")
        if counters and not any(Path(counters).glob("rank-*.jsonl")):
            log.say(
                "warning: the script has ended and nothing ran on a NeuronCore, which trn1 would bill. "
                "To train on them it imports torch_xla and moves its model to torch_xla.device()."
            )
        if counters and _MODEL.is_dir() and not any(_MODEL.iterdir()) and settings.read().host == "algo-1":
            log.say(
                f"warning: the script has ended and left nothing in {_MODEL}, so the job has no model. Save it to "
                "the folder that the environment variable SM_MODEL_DIR names."
            )
        return result

    return and_look


def _ended(number: int, _: object) -> None:
    """Say where ranks have waited for long. Then hand the signal on, if that is asked for; else it ends the toolkit."""
    for line in notes.lines(notes.there(settings.waits_dir())):
        # Not `print`: the signal may have come amid one, which refuses another.
        os.write(1, f"[windtunnel] warning: when the job was stopped, {line}.\n".encode())
    _forward(number, processes.children(os.getpid()) if settings.forward_sigterm() else [])


def _forward(number: int, started: Iterable[int]) -> None:
    """Hand the signal on to what the toolkit has started: the script, its launcher, pip. Else it ends the toolkit."""
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
