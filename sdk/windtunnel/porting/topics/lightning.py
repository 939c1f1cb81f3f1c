"""Lightning, whose Trainer and Fabric know GPUs and TPUs, but no NeuronCore."""

from __future__ import annotations

from collections.abc import Iterator

from windtunnel.porting.finding import Finding
from windtunnel.porting.nodes import argument, constant
from windtunnel.porting.subject import Subject

_PACKAGES = ("lightning", "pytorch_lightning", "lightning_fabric")
_RUNNERS = ("Trainer", "Fabric", "LightningCLI")
_GPUS = ("gpu", "cuda")
_FOR_NEURON = ("neuronx_distributed", "neuronx_distributed_training")
"""Packages with a Lightning strategy for NeuronCores: NxD's NeuronXLAStrategy."""


def without_neuron(subject: Subject) -> Iterator[Finding]:
    """Findings on what runs Lightning, unless the program imports what brings NeuronCores to it; and on an accelerator
    "gpu" beside that, which no strategy makes up for.
    """
    of_neuron = any(name in one.script.packages for one in subject.program for name in _FOR_NEURON)
    for call, name in subject.script.calls:
        package, _, rest = name.partition(".")
        if package not in _PACKAGES or rest.rpartition(".")[2] not in _RUNNERS:
            continue
        asked = argument(call, "accelerator")
        if not of_neuron:
            yield Finding(
                call.lineno,
                'Lightning uses no NeuronCore by itself: accelerator="gpu" and "tpu" end with an error, "auto" trains '
                "on the host's CPU. AWS has NeuronXLAStrategy and NeuronLTModule (neuronx_distributed.lightning). Or "
                "train in a loop of your own: training_step(batch, index) gives the loss.",
                kind="device_unused",
            )
        elif asked and constant(asked) in _GPUS:
            yield Finding(
                call.lineno,
                f"{subject.script.segment(asked)} as Lightning's accelerator ends with an error, as there is no "
                "GPU. Leave it out, and give strategy=NeuronXLAStrategy(...).",
            )
