"""What torch_xla has but a rehearsal refuses: one process for all cores (SPMD), and kernels for TPUs."""

from __future__ import annotations

from collections.abc import Iterator

from windtunnel.porting.finding import Finding
from windtunnel.porting.subject import Subject

_SPMD = ("use_spmd", "mark_sharding", "SpmdFullyShardedDataParallel")
_KERNELS = ("torch_xla.experimental.custom_kernel.", "torch_xla.experimental.splash_attention.")


def of_torch_xla(subject: Subject) -> Iterator[Finding]:
    """A finding on the first call of each."""
    told: set[str] = set()
    for call, name in subject.script.calls:
        last = name.rpartition(".")[2]
        if last in _SPMD and name.startswith("torch_xla.") and "spmd" not in told:
            told.add("spmd")
            yield Finding(
                call.lineno,
                f"SPMD ({last}) is not simulated: the job ends there. Rehearse with one process a core, as torchrun "
                "starts them: xm.optimizer_step exchanges gradients, torch_xla.distributed.fsdp's "
                "XlaFullyShardedDataParallel splits the weights.",
                sure=False,
            )
        elif name.startswith(_KERNELS) and "kernel" not in told:
            told.add("kernel")
            yield Finding(
                call.lineno,
                f"{last} is a Pallas kernel, which is for TPUs: the job ends there. Call PyTorch's own operations, "
                "such as torch.nn.functional.scaled_dot_product_attention.",
            )
