"""Lightning, whose Trainer and Fabric know GPUs and TPUs, but no NeuronCore."""

from __future__ import annotations

from collections.abc import Iterator

from windtunnel.porting.finding import Finding
from windtunnel.porting.subject import Subject

_PACKAGES = ("lightning", "pytorch_lightning", "lightning_fabric")
_RUNNERS = ("Trainer", "Fabric", "LightningCLI")
_FOR_NEURON = ("neuronx_distributed", "neuronx_distributed_training")
"""Packages with a strategy for it: NxD's NeuronXLAStrategy."""


def without_neuron(subject: Subject) -> Iterator[Finding]:
    """What it runs, unless something that the program imports brings NeuronCores to it."""
    if any(name in one.script.packages for one in subject.program for name in _FOR_NEURON):
        return
    for call, name in subject.script.calls:
        package, _, rest = name.partition(".")
        if package in _PACKAGES and rest.rpartition(".")[2] in _RUNNERS:
            yield Finding(
                call.lineno,
                "device_unused",
                'Lightning uses no NeuronCore by itself: accelerator="gpu" and "tpu" end with an error, "auto" trains '
                "on the host's CPU. AWS has NeuronXLAStrategy and NeuronLTModule (neuronx_distributed.lightning), "
                "not tried here. Or train in a loop of your own: training_step(batch, index) gives the loss.",
            )
