"""What a rehearsal refuses: one process for all cores (SPMD), kernels for TPUs, and names of torch_neuronx.

PyTorch NeuronX "currently does not support GSPMD" (AWS's release notes, the last time in Neuron 2.27 for PyTorch 2.7 to
2.9). No later note says that it does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.finding import Finding
from windtunnel.porting.image_lacks import refused_names
from windtunnel.porting.nodes import constant, keyword
from windtunnel.porting.subject import Subject

_SPMD = ("use_spmd", "mark_sharding", "SpmdFullyShardedDataParallel")
_OF_SPMD = ("torch_xla.distributed.spmd.", "torch_xla.runtime.")
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


def of_names(subject: Subject) -> Iterator[Finding]:
    """A finding on the first call of a refused name, for each reason; those of SPMD and of kernels are told above."""
    told = set()
    spmd = any(one.script.calls_any(*_SPMD) for one in subject.program)
    for call, name in subject.script.calls:
        instead = refused_names().get(name, "")
        above = name.startswith(_KERNELS) or (spmd and name.startswith(_OF_SPMD))
        if not instead or instead in told or above or subject.script.is_tried(call):
            continue
        of_a_group = keyword(call, "group") or len(call.args) > 2
        if name.startswith("torch.") and (of_a_group or not _has_xla_alone(subject)):
            continue
        told.add(instead)
        text = f"{name} is refused: the job ends there. {instead}"
        yield Finding(call.lineno, text, sure=not subject.script.is_chosen(call))


def _has_xla_alone(subject: Subject) -> bool:
    """Whether the program joins the process group "xla", and names no gloo, which has what that lacks."""
    scripts = [one.script for one in subject.program]
    gloo = any("gloo" in str(constant(node)) for one in scripts for node in one.walk(ast.Constant))
    return not gloo and any(one.joins_group("xla") for one in scripts)
