"""What torch_xla has but a rehearsal refuses: one process for all cores (SPMD), and kernels for TPUs.

PyTorch NeuronX "currently does not support GSPMD" (AWS's release notes, the last time in Neuron 2.27 for PyTorch 2.7 to
2.9). No later note says that it does.
"""

from __future__ import annotations

from collections.abc import Iterator

from windtunnel.porting.finding import Finding
from windtunnel.porting.subject import Subject

_SPMD = ("use_spmd", "mark_sharding", "SpmdFullyShardedDataParallel")
_KERNELS = ("torch_xla.experimental.custom_kernel.", "torch_xla.experimental.splash_attention.")


def of_spmd(subject: Subject) -> Iterator[Finding]:
    """A finding on the first call of SPMD. Where it is sure, one process drives all cores of an instance."""
    script = subject.script
    for call, name in script.calls:
        last = name.rpartition(".")[2]
        if last in _SPMD and name.startswith("torch_xla."):
            yield Finding(
                call.lineno,
                f"SPMD ({last}) is not simulated, nor supported by AWS on Neuron: the job ends there. Use one process "
                "a core, as torchrun starts them: xm.optimizer_step exchanges gradients, torch_xla.distributed.fsdp's "
                "XlaFullyShardedDataParallel splits the weights.",
                sure=not script.is_chosen(call),
            )
            return


def of_kernels(subject: Subject) -> Iterator[Finding]:
    """A finding on the first call of a kernel for TPUs."""
    for call, name in subject.script.calls:
        if name.startswith(_KERNELS):
            yield Finding(
                call.lineno,
                f"{name.rpartition('.')[2]} is a Pallas kernel, which is for TPUs: the job ends there. Call PyTorch's "
                "own operations, such as torch.nn.functional.scaled_dot_product_attention.",
            )
            return
