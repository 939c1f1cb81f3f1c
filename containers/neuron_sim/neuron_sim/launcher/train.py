"""The command `train`: AWS's training toolkit, with five of its functions replaced.

torch's version is found without importing torch (2 to 3 seconds, in a process that computes nothing). `requirements`
handles pins that cannot be had here, `missing` and `error_names` a program's errors. After a script that used no
NeuronCore, or saved no model, the log says so. The NeuronCores are counted once; the toolkit has neuron-ls count them
five times.

SIGTERM, which a stop and a spot interruption send, ends the toolkit and with it the container; the script does not get
it (aws/sagemaker-training-toolkit, issue 125). With WINDTUNNEL_FORWARD_SIGTERM=1 it does. On SIGTERM the log also says
where ranks had been waiting for each other for long.
"""

from __future__ import annotations

import functools
import importlib.util
import json
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
    """Wrap the toolkit's run of the script: when it has succeeded, warn if no NeuronCore was used or no model saved.

    A core that ran has left its counters; a saved model is in SageMaker's model folder.
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
        is_empty = _MODEL.is_dir() and not any(_MODEL.iterdir())
        if counters and is_empty and settings.read().host == "algo-1" and not _was_ended(Path(counters)):
            log.say(
                f"warning: the script has ended and left nothing in {_MODEL}, so the job has no model. Save it to "
                "the folder that the environment variable SM_MODEL_DIR names."
            )
        return result

    return and_look


def _was_ended(counters: Path) -> bool:
    """Whether a short rehearsal, which had seen enough, ended the script before it could save its model."""
    if settings.read().rehearsed_steps is None:
        return False
    for core in counters.glob("rank-*.jsonl"):
        loaders = [line for line in core.read_text().splitlines() if line.startswith('{"kind":"loaders"')]
        if loaders and json.loads(loaders[-1])["ended_early"]:
            return True
    return False


def _ended(number: int, _: object) -> None:
    """Handle SIGTERM: say where ranks have waited for long, then pass it on if asked to, else end the toolkit."""
    for line in notes.lines(notes.there(settings.waits_dir())):
        # Not `print`: the signal may have interrupted one, and then a second one raises.
        os.write(1, f"[windtunnel] warning: when the job was stopped, {line}.\n".encode())
    _forward(number, processes.children(os.getpid()) if settings.forward_sigterm() else [])


def _forward(number: int, started: Iterable[int]) -> None:
    """Pass the signal on to the processes ``started`` by the toolkit (launcher, script, pip); without any, end it."""
    for process in started:
        print(f"Windtunnel: SIGTERM is handed on to {processes.command(process)[:80]}.", flush=True)
        os.kill(process, number)
    if not started:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def set_torch_version() -> None:
    """Set SM_DLC_TORCH_VERSION for the script, if torch is installed; replaces the toolkit's function that does so."""
    torch = importlib.util.find_spec("torch")
    if torch is not None and torch.origin is not None:
        version = runpy.run_path(str(Path(torch.origin).with_name("version.py")))["__version__"]
        os.environ["SM_DLC_TORCH_VERSION"] = version


if __name__ == "__main__":
    sys.exit(main())
