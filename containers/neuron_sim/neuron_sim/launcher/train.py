"""The command `train`: AWS's training toolkit, with three of its functions replaced.

It need not import torch to know its version (2 to 3 seconds, in a process that computes nothing),
`requirements` says what is done about pins that cannot be had here, and `missing` about packages that are not here.
"""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
from pathlib import Path


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
    return train.main()  # type: ignore[no-any-return]


def set_torch_version() -> None:
    """What the toolkit's function of this purpose does: SM_DLC_TORCH_VERSION for the script, if torch is there."""
    torch = importlib.util.find_spec("torch")
    if torch is not None and torch.origin is not None:
        version = runpy.run_path(str(Path(torch.origin).with_name("version.py")))["__version__"]
        os.environ["SM_DLC_TORCH_VERSION"] = version


if __name__ == "__main__":
    sys.exit(main())
