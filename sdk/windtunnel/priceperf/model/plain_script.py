"""A training script as it is usually written, on a GPU: eager PyTorch, Hugging Face's Trainer.

Tuned software fuses its kernels. Here Python launches each by itself, those of the optimizer too, and a small step
takes as long as that. The figures are measured by the project on an H100 (tests/benchmarks/gpu_training.py;
docs/explanation/figures.md has where and when), with BERT, GPT-2, ViT and Llama.
"""

from __future__ import annotations

from collections.abc import Mapping

from .architectures import ModelFamily

SOFTWARE = frozenset({"PyTorch script", "PyTorch script with torch.compile", "Hugging Face Trainer"})
"""What rows and `software=` call it."""

LAUNCH_S = 38e-6
"""Seconds in which Python comes to the next kernel, in steps that take half as long again as their kernels. The medians
of four machines with one kind of processor are 30, 36, 43 and 49 us; this is between."""

_KERNELS: Mapping[ModelFamily, int] = {"encoder": 67, "decoder": 71, "vision": 62, "llama": 176}
"""Kernels of a step for each layer, forward, backward and AdamW, as PyTorch's profiler counted them in those steps.
transformers takes Llama's norms and rotary embeddings apart."""
_CASTS = 26
"""Kernels of a layer that autocast adds: 24 to 29."""

LAYER_LAUNCH_S: Mapping[tuple[ModelFamily, bool], float] = {
    (family, autocast): LAUNCH_S * (kernels + _CASTS * autocast)
    for family, kernels in _KERNELS.items()
    for autocast in (False, True)
}
"""Seconds in which the host launches a layer and its share of the rest: by family, and autocast or not."""

_OPTIMIZER_PASSES: Mapping[int, int] = {0: 3, 1: 8, 2: 20}
"""By moments, times an fp32 number of each weight is read or written by `torch.optim`'s SGD without and with momentum
and by AdamW, with their usual ("foreach") kernels, as their source has it. With next to no tokens, a step of 110 to
1,100 million weights took the H100 as long as 17 to 23 passes do, at the part of its bandwidth that a fused one is
assumed to reach."""

OPTIMIZER_BYTES: Mapping[int, int] = {moments: 4 * passes for moments, passes in _OPTIMIZER_PASSES.items()}
"""By moments, bytes that the optimizer moves for one weight."""

AUTOCAST_BYTES = 4
"""Bytes of an element that element-wise work reads or writes under autocast, as without it: what it saves in 16 bits it
spends on casts. Kernels beside products and copies took 0.9 to 1.2 times as long in bf16 autocast as in TF32, in 16
models (tests/benchmarks/other_models.py, and BERT, GPT-2 and ViT)."""

_OPERATION_S = 40e-6
"""Seconds in which Python comes to the next operation, of those that a rehearsal counts: one kernel or some."""
_TENSOR_S = 60e-6
"""Seconds that a trained tensor adds: its gradient, and its share of the optimizer, which steps many at once. Both as
they fit best to the runs of 24 models (`workload.rehearsed_scripts`); the same run took 0.6 to 1.2 times as long on
another machine with the same processor."""
LAUNCH_PER_TRACE = 0.45
"""Seconds of launching a step for each second of tracing it as lazy tensors, where operations were not counted: 0.42 to
0.76 in 9 models, half of them below 0.47."""


def launching_s(operations: float, tensors: float) -> float:
    """Seconds in which the host launches a step of so many operations, beside an optimizer of so many tensors."""
    return _OPERATION_S * operations + _TENSOR_S * tensors


_LOWER = frozenset(map(str.lower, SOFTWARE))


def is_plain(software: str | None) -> bool:
    """Whether the software of that name, in any case, is a plain script."""
    return software is not None and software.lower() in _LOWER
