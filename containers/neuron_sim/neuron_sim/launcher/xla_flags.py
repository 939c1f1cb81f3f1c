"""Chooses the XLA_FLAGS of the workers, by how many workers share how many processors.

A flag that the user has set stays as it is. None of these changes the arithmetic:
fast-math stays off, and NaN, infinities and signed zeros mean what they mean to XLA.

Measured on 2 shared processors with torch_xla 2.9, CPU seconds of one process. "MLP" is the
one of tests/benchmarks/cores.py, "BERT" has 4 layers, hidden size 256, a batch of 8x128. The
ranges are of two runs; the machine had other work, so only large differences mean anything:

    flags                           MLP, whole run   BERT: compile   a step
    XLA's defaults                               -            13.4     0.49
    no fusion emitters, one part              1.27        9.5-10.2     0.37
    ... nor unrolling, nor SLP           1.05-1.16         7.3-9.0     0.36-0.49
    ... at optimisation level 1               0.97             9.3     0.43
    without fusion emitters, level 0          0.41             4.9     1.05

Level 0 is left out: what BERT's compilation gains is lost again within ten steps. A BERT of 6 layers with hidden size
768, in two workers: 31 s to compile and 9 to 13 s a step; at level 0 7 s and 11 to 25 s. So it is only advised
(`for_graphs.slow_compile`), for jobs of a few steps.
"""

from __future__ import annotations

# New emitters of fused loops compile through MLIR first: slower, and the loops were no faster.
# Unrolled loops and vectorised straight-line code are more code to compile, and were no faster either.
_ALWAYS = {
    "xla_cpu_use_fusion_emitters": "false",
    "xla_backend_extra_options": "xla_cpu_disable_loop_unrolling,xla_cpu_disable_slp_vectorizer",
}

# Splitting code into parts helps parallel compilation; each part has costs of its own.
_NO_IDLE_PROCESSOR = {
    "xla_cpu_multi_thread_eigen": "false",
    "xla_cpu_parallel_codegen_split_count": "1",
}

_CROWDED = {"xla_backend_optimization_level": "1"}


def choose(workers: int, processors: int) -> dict[str, str]:
    """The flags for this many workers on this many processors, without dashes.

    With a processor to spare, XLA keeps its threads. With at least as many workers as processors, a
    worker computes in one thread. With more, all wait for the slowest, so compilation is made cheaper.
    """
    chosen = dict(_ALWAYS)
    if workers >= processors:
        chosen |= _NO_IDLE_PROCESSOR
    if workers > processors:
        chosen |= _CROWDED
    return chosen


def added_to(given: str, chosen: dict[str, str]) -> str:
    """The value of XLA_FLAGS: what was given, and the chosen flags that it does not name."""
    named = {flag.lstrip("-").partition("=")[0] for flag in given.split()}
    added = [f"--{name}={value}" for name, value in chosen.items() if name not in named]
    return " ".join([*given.split(), *added])
