"""A training script on a GPU as most users write it: eager PyTorch, or Hugging Face's Trainer.

Tuned software fuses its kernels. In a plain script Python launches each kernel by itself, also those of the optimizer,
and a small step takes as long as these launches. The project measured the figures on an H100
(tests/benchmarks/gpu_training.py; docs/explanation/figures.md says where and when), with BERT, GPT-2, ViT and Llama.
"""

from __future__ import annotations

from collections.abc import Mapping

from .architectures import ModelFamily

COMPILED = "PyTorch script with torch.compile"
SOFTWARE = frozenset({"PyTorch script", COMPILED, "Hugging Face Trainer"})
"""The names of plain scripts in published rows and in the argument ``software``."""

LAUNCH_S = 38e-6
"""Seconds from one kernel launch to the next, in steps that take 1.5 times as long as their kernels. The
medians of four machines with one kind of processor are 30, 36, 43 and 49 us; this value lies between them."""

_KERNELS: Mapping[ModelFamily, int] = {"encoder": 67, "decoder": 71, "vision": 62, "llama": 176}
"""Kernels of a step for each layer, forward, backward and AdamW, as PyTorch's profiler counted them in those steps.
Llama has more, because transformers runs its norms and rotary embeddings as many small kernels."""
_CASTS = 26
"""Kernels that autocast adds to each layer: 24 to 29 were counted."""

LAYER_LAUNCH_S: Mapping[tuple[ModelFamily, bool], float] = {
    (family, autocast): LAUNCH_S * (kernels + _CASTS * autocast)
    for family, kernels in _KERNELS.items()
    for autocast in (False, True)
}
"""Seconds in which the host launches a layer and its share of the other kernels: by family and use of autocast."""

_OPTIMIZER_PASSES: Mapping[int, int] = {0: 3, 1: 8, 2: 20}
"""By moments, how often the optimizer reads or writes an fp32 number for each weight: `torch.optim`'s SGD without and
with momentum, and AdamW, with their default ("foreach") kernels, according to their source. Measured on an H100 for
AdamW: with almost no tokens, steps of 110 to 1,100 million weights took as long as 17 to 23 passes, at the part of the
bandwidth that a fused optimizer is assumed to reach."""

OPTIMIZER_BYTES: Mapping[int, int] = {moments: 4 * passes for moments, passes in _OPTIMIZER_PASSES.items()}
"""By moments, the bytes that the optimizer moves for each weight."""

AUTOCAST_BYTES = 4
"""Bytes of an element in element-wise work under autocast, the same as without: casts cost what 16 bits save.
Kernels other than products and copies took 0.9 to 1.2 times as long in bf16 autocast as in TF32, in 16
models (tests/benchmarks/other_models.py, and BERT, GPT-2 and ViT)."""

_OPERATION_S = 40e-6
"""Seconds in which Python launches one operation that a rehearsal counts; it may be several kernels."""
_TENSOR_S = 60e-6
"""Seconds that each trained tensor adds: for its gradient, and its share of the optimizer, which updates many tensors
at once. This value and `_OPERATION_S` were fitted to the runs of 24 models (`workload.rehearsed_scripts`); the same
run took 0.6 to 1.2 times as long on another machine with the same processor."""
LAUNCH_PER_TRACE = 0.45
"""Seconds of launching a step for each second of tracing it as lazy tensors, if operations were not counted: 0.42 to
0.76 in 9 models, half of them below 0.47."""


def launching_s(operations: float, tensors: float) -> float:
    """Seconds in which the host of a GPU launches a step: its operations, and the optimizer of its trained tensors."""
    return _OPERATION_S * operations + _TENSOR_S * tensors


_LOWER = frozenset(map(str.lower, SOFTWARE))


def is_plain(software: str | None) -> bool:
    """Whether that name (in upper or lower case) is one of a plain script."""
    return software is not None and software.lower() in _LOWER


def is_compiled(software: str | None) -> bool:
    """Whether that name (in upper or lower case) is the one of a plain script with torch.compile."""
    return software is not None and software.lower() == COMPILED.lower()
