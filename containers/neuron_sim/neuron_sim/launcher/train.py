"""The command `train`: AWS's training toolkit, with three of its functions replaced.

It need not import torch to know its version (2 to 3 seconds, in a process that computes nothing),
`requirements` says what is done about pins that cannot be had here, and a script that has ended without a
NeuronCore is told so.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def main() -> int | None:
    """Run the container's job; ends like the toolkit's own command. Blocks."""
    from sagemaker_pytorch_container import training  # type: ignore[import-not-found]
    from sagemaker_training import entry_point, modules  # type: ignore[import-not-found]
    from sagemaker_training.cli import train  # type: ignore[import-not-found]

    from neuron_sim.launcher.requirements import with_stand_ins

    modules.install_requirements = with_stand_ins(modules.install_requirements)
    training._set_torch_version_environment = set_torch_version
    entry_point.run = with_last_word(entry_point.run)
    return train.main()  # type: ignore[no-any-return]


def with_last_word(run: Callable[..., Any]) -> Callable[..., Any]:
    """Around the toolkit's run of the script, which raises when that fails: a core that ran has left its counters."""

    @functools.wraps(run)
    def and_look(*arguments: Any, **keywords: Any) -> Any:
        result = run(*arguments, **keywords)
        counters = os.environ.get("WINDTUNNEL_COUNTERS_DIR")
        if counters and not any(Path(counters).glob("rank-*.jsonl")):
            print(
                "[windtunnel] warning: the script has ended and nothing ran on a NeuronCore, which trn1 would bill. "
                "To train on them it imports torch_xla and moves its model to torch_xla.device().",
                flush=True,
            )
        return result

    return and_look


def set_torch_version() -> None:
    """What the toolkit's function of this purpose does: SM_DLC_TORCH_VERSION for the script, if torch is there."""
    torch = importlib.util.find_spec("torch")
    if torch is not None and torch.origin is not None:
        version = runpy.run_path(str(Path(torch.origin).with_name("version.py")))["__version__"]
        os.environ["SM_DLC_TORCH_VERSION"] = version


if __name__ == "__main__":
    sys.exit(main())
