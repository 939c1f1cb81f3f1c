"""All remarks on a script."""

from __future__ import annotations

from pathlib import Path

from windtunnel.porting import batches, cuda_only, device, files, logs, precision, processes, reads, steps
from windtunnel.porting.finding import Finding
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject

_TOPICS = (
    device.uses_of_cuda,
    device.unused_device,
    cuda_only.cuda_only,
    processes.groups,
    precision.mixed_precision,
    batches.ends_of_steps,
    batches.same_data,
    batches.last_batches,
    steps.early_optimizers,
    steps.no_exchange,
    steps.early_clips,
    reads.host_reads,
    files.saves,
    logs.unheard,
)
_USE_A_CORE = {"torch_xla", "torch_neuronx", "optimum", "accelerate", "transformers"}


def read(script: Script, version: str = "2.9", *, several: bool = True) -> list[Finding]:
    """What stands between a script and Trainium, in the order of its lines.

    ``version``: of the framework. ``several``: torchrun starts it once for each NeuronCore.
    """
    subject = Subject(script, version, several=several)
    found = [finding for topic in _TOPICS for finding in topic(subject)]
    return sorted(found, key=lambda finding: finding.line)


def of_its_imports(script: Script, *, packed: bool) -> list[str]:
    """Remarks on what it imports. ``packed``: its directory goes into the container too, not it alone."""
    notes = []
    beside = own_modules(script)
    if beside and not packed:
        notes.append(
            f"imports {', '.join(beside)} from its own directory, which does not go into the container "
            "unless --source-dir names it (or --dependency the file)."
        )
    if not script.packages & _USE_A_CORE:
        notes.append(
            "imports nothing that uses a NeuronCore (torch_xla, ...): it would train on the instance's CPU."
        )
    return notes


def own_modules(script: Script) -> list[str]:
    """What it imports from its own directory. These are not read: whether a module lacks something, as an exchange of
    gradients, only the whole program tells.
    """
    return sorted(name for name in script.packages if is_module(script.path.parent, name))


def is_module(folder: Path, name: str) -> bool:
    """Whether ``import name`` would find a module in this directory."""
    return (folder / f"{name}.py").is_file() or (folder / name).is_dir()
