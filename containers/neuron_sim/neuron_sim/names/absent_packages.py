"""Neuron packages that the image does not have: what each is, and what to do about it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

INDEX = "https://pip.repos.neuron.amazonaws.com"
"""AWS's own index of Python packages. AWS Neuron documentation, "PyTorch Neuron setup"."""

_RUN_ON_TRN1 = "Keep a PyTorch version of it for rehearsals, and run the job on trn1."


@dataclass(frozen=True)
class Package:
    """``module`` is what a script imports. ``here``: whether it can run on simulated NeuronCores, and what to do."""

    module: str
    what: str
    here: str

    @property
    def advice(self) -> str:
        """For a script that imports it."""
        return f"{self.module} is not in the image. It is {self.what}. {self.here}"


PACKAGES = (
    Package(
        "neuronx_distributed",
        "NxD Core, AWS's library for tensor and pipeline parallelism",
        "AWS's training images have it. Its tensor parallelism, ZeRO-1 and checkpoints run here; its NKI kernels, its "
        f"mixtures of experts and inference do not. To have it, put two lines into requirements.txt: "
        f"`--extra-index-url {INDEX}` and `neuronx-distributed`.",
    ),
    Package(
        "neuronx_distributed_training",
        "NxD Training, AWS's configurations and Lightning modules on top of NxD Core",
        "Its own configurations run here, in an image that has it, NeMo and what else its installation guide lists: "
        "build one on top of Windtunnel's, and pass it as image_uri.",
    ),
    Package(
        "neuronx_distributed_inference",
        "NxD Inference, which compiles models for serving",
        "There is no compiler for the device here: run it on trn1 or inf2.",
    ),
    Package(
        "transformers_neuronx",
        "AWS's former library for serving language models, which compiles them for the device",
        "There is no compiler for the device here: run it on trn1 or inf2.",
    ),
    Package(
        "optimum.neuron",
        "Hugging Face's library for Neuron (optimum-neuron)",
        "Its trainers run here. To have them, put three lines into requirements.txt: "
        f"`--extra-index-url {INDEX}`, `neuronx-distributed==0.15.*` and `optimum-neuron[training]==0.4.5`.",
    ),
    Package(
        "neuronxcc",
        "the Neuron compiler (neuronx-cc), with NKI in it",
        f"Nothing of it is simulated: NKI kernels need the real compiler and device. {_RUN_ON_TRN1}",
    ),
    Package(
        "nki", "NKI, the language of kernels for the device", f"It needs the real compiler. {_RUN_ON_TRN1}"
    ),
    Package("nkilib", "AWS's library of NKI kernels", f"It needs the real compiler. {_RUN_ON_TRN1}"),
    Package(
        "torch_neuron",
        "the plug-in for Inf1, which cannot train",
        "Trainium's is torch_neuronx, which is here.",
    ),
)


def package_of(module: str) -> Package | None:
    """The package that contains a dotted name, or is inside it: a missing `optimum.neuron` is reported as `optimum`."""
    dotted = f"{module}."
    return next(
        (p for p in PACKAGES if dotted.startswith(f"{p.module}.") or p.module.startswith(dotted)), None
    )
