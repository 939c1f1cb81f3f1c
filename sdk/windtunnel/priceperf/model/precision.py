"""In which dtype an instance runs the matrix products that a script wrote in fp32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..instances import InstanceType


@dataclass(frozen=True)
class Precision:
    """How an instance runs the matrix products that a script wrote in fp32. Tensors in memory keep their dtype.

    ``compiled``: a script on a GPU that uses torch.compile.
    """

    name: str
    fp32_matmul: str
    meaning: str
    compiled: bool = False

    def ran_as(self, dtype: str) -> str:
        """The dtype in which a product written in ``dtype`` runs."""
        return self.fp32_matmul if dtype == "fp32" else dtype


AUTO_CAST = Precision(
    "auto-cast bf16",
    "bf16",
    "--auto-cast=matmult (the Neuron compiler's default up to 2.26; later ones need the flag): fp32 matmuls run as "
    "bf16, storage stays fp32",
)
NO_CAST = Precision(
    "fp32",
    "fp32",
    "fp32 matmuls stay fp32, the Neuron compiler's default since 2.27; of that only steps of small models were "
    "published, so it is modelled by the specification's peak",
)
FP32 = Precision("fp32", "fp32", "matmuls in full fp32: what PyTorch does on an A100 by default since 1.12")
TF32 = Precision(
    "TF32", "tf32", "fp32 matmuls run as TF32: one line, torch.set_float32_matmul_precision('high')"
)
BF16_AUTOCAST = Precision(
    "bf16 autocast", "bf16", "torch.autocast in bf16: matmuls in bf16, and casts before and after them"
)

GPU_PRECISIONS = (TF32, FP32, BF16_AUTOCAST)
"""The first is the one that reports show; the others show how much the script's setting matters."""


def compiled(precision: Precision) -> Precision:
    """The same in a script with torch.compile."""
    return replace(
        precision,
        name=f"{precision.name}, compiled",
        meaning=f"{precision.meaning}; torch.compile, which fuses kernels",
        compiled=True,
    )


def of_script(precisions: Sequence[Precision]) -> tuple[Precision, ...]:
    """What a plain script on a GPU may be set to: these precisions, and the last one with torch.compile."""
    return (*precisions, compiled(precisions[-1]))


GPU_SCRIPTS: Mapping[str, Precision] = dict(
    zip(("tf32", "fp32", "bf16", "compiled"), of_script(GPU_PRECISIONS), strict=True)
)
"""What a user may say of a rehearsed script on GPUs, by its name on the command line and on the page."""


def auto_cast_to(dtype: str | None) -> Precision:
    """`AUTO_CAST` with the name of another ``--auto-cast-type``; NeuronCores have the same published peak for it."""
    if dtype not in ("fp16", "tf32", "fp8"):
        return AUTO_CAST
    meaning = f"--auto-cast with --auto-cast-type={dtype}: fp32 matmuls run as {dtype}, modelled as bf16's"
    return replace(AUTO_CAST, name=f"auto-cast {dtype}", meaning=f"{meaning}; storage stays fp32")


def on_neuron(own: Precision) -> tuple[Precision, ...]:
    """The job's own precision; if the compiler casts nothing, also auto-cast, which one flag would turn on."""
    return (own, AUTO_CAST) if own.name == NO_CAST.name else (own,)


def is_fp32_on_neuron(instance: InstanceType, precision: Precision) -> bool:
    """Whether NeuronCores multiply in fp32, for which only steps of small models were published."""
    return instance.is_neuron and precision.name == NO_CAST.name


def preferring(wanted: Precision | None, precisions: Sequence[Precision]) -> tuple[Precision, ...]:
    """The same precisions, with the wanted one first if it is among them. A compiled script whose products leave no
    precision open is wanted by ``compiled`` alone.
    """
    is_compiled = wanted is not None and wanted.compiled
    return tuple(sorted(precisions, key=lambda one: (one != wanted, one.compiled != is_compiled)))
