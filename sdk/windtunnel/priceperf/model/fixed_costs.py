"""The time of a job besides its steps: start, download, set-up, preparation, compile, evaluation, upload.

None of these rates is published. Each is an assumption, or fitted to the one published job that
has such a part. Each has a low and a high value, and reports show it apart from the modelled steps.
It matters: AWS's own benchmark spent 61-65 % of its billable time outside of training steps.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from ..instances import InstanceType
from . import compile_time
from .compile_time import CompiledGraph


class FixedCost(NamedTuple):
    """One part of a job besides its steps: seconds, their low and high end, and in ``basis`` where they come from.

    ``billed`` False: AWS does not charge this time.
    """

    name: str
    seconds: float
    low_s: float
    high_s: float
    basis: str
    billed: bool = True


class Assumed(NamedTuple):
    """An assumed number with its low and high end."""

    value: float
    low: float
    high: float


START_S = Assumed(600, 120, 1200)
SETUP_S = Assumed(30, 15, 90)
TRANSFER_GIB_PER_S = Assumed(0.2, 0.1, 0.5)
_LEAST_GIB, _WHOLE_GIB = 0.001, 1000
COMPILE_LARGE_S = Assumed(120, 60, 600)
COMPILE_SMALL_S = Assumed(10, 5, 30)
TOKENISE_S = Assumed(0.93e-3, 0.5e-3, 2e-3)
"""Seconds in which one process tokenises and stores one text sample before training. Fitted to the time of AWS's two
BERT base jobs with 4,000,000 reviews that nothing else explains (`published.bert_jobs`): 0.89 ms on trn1
and 0.96 ms on p4d. The ends are half and twice that, rounded, for other tokenizers, texts and processors."""


START = FixedCost("start", *START_S, f"an assumed {START_S.value / 60:g} min, not billed", billed=False)
"""The time of provisioning, before billing begins."""
SETUP = FixedCost(
    "set-up",
    *SETUP_S,
    f"an assumed {SETUP_S.value:g} s ({SETUP_S.low:g}-{SETUP_S.high:g}) for container, imports, model",
)
"""The time to start the container, import modules and set up model and device, after billing has begun."""


@lru_cache(maxsize=1024)
def transfer(name: str, gib: float | None) -> FixedCost:
    """The time of each instance's download or upload of ``gib`` GiB; None: size not known, then 0 s."""
    if gib is None:
        return FixedCost(name, 0.0, 0.0, 0.0, "size not known: not counted")
    rate = TRANSFER_GIB_PER_S
    size = f"{gib:,.0f}" if round(gib) >= _WHOLE_GIB else f"{gib:.3g}"
    if gib < _LEAST_GIB:
        size = f"under {_LEAST_GIB}"
    return FixedCost(
        name,
        gib / rate.value,
        gib / rate.high,
        gib / rate.low,
        f"{size} GiB at an assumed {rate.value:g} GiB/s ({rate.low:g}-{rate.high:g})",
    )


@lru_cache(maxsize=1024)
def preparation(seconds: float, tokenised_samples: int) -> FixedCost:
    """The preparation that the user states in ``seconds``, plus the time to tokenise ``tokenised_samples``."""
    rate = TOKENISE_S
    stated = ["as you stated"] if seconds else []
    if tokenised_samples:
        stated.append(
            f"{tokenised_samples:,} samples tokenised in one process at {rate.value * 1e3:g} ms each "
            f"({rate.low * 1e3:g}-{rate.high * 1e3:g}), fitted to AWS's BERT base jobs"
        )
    value, low, high = (seconds + tokenised_samples * each for each in rate)
    return FixedCost("preparation", value, low, high, "; ".join(stated) or "not stated: not counted")


@lru_cache(maxsize=1024)
def compilation(
    instance: InstanceType,
    graphs: int,
    evaluates: bool,
    cached: bool,
    ledger: tuple[CompiledGraph, ...] | None = None,
) -> FixedCost:
    """The time of the Neuron compiler. A GPU with eager PyTorch compiles nothing.

    Args:
        instance: on which the job runs.
        graphs: number of graphs that the rehearsal counted.
        evaluates: whether the job evaluates.
        cached: the user states that all graphs come from a compile cache.
        ledger: every graph with its size and whether the compile cache had it; None: the counters do
            not list them (see `_assumed_compilation`).
    """
    if not instance.is_neuron:
        return FixedCost(
            "compile",
            0.0,
            0.0,
            0.0,
            "on GPUs eager PyTorch compiles nothing; torch.compile's own time is not counted",
        )
    if cached:
        return FixedCost("compile", 0.0, 0.0, 0.0, "all graphs from the compile cache, as you stated")
    if ledger is None:
        return _assumed_compilation(graphs, evaluates)
    hits = sum(graph.cached for graph in ledger)
    time = compile_time.of_graphs(ledger)
    basis = f"{hits} of {len(ledger)} graphs cached"
    if hits < len(ledger):
        basis += f"; each other at {compile_time.BASIS}"
    return FixedCost("compile", time.seconds, time.low_s, time.high_s, basis)


def _assumed_compilation(graphs: int, evaluates: bool) -> FixedCost:
    """The compile time if only the number of graphs is known.

    The training step is one large graph on trn1 (a rehearsal counts it as two), evaluation is another one; all
    further graphs are assumed to be small.
    """
    large = 2 if evaluates else 1
    small = max(0, graphs - large - 1)
    value, low, high = (
        large * each + small * other for each, other in zip(COMPILE_LARGE_S, COMPILE_SMALL_S, strict=True)
    )
    basis = (
        f"{large} large at an assumed {COMPILE_LARGE_S.value:g} s "
        f"({COMPILE_LARGE_S.low:g}-{COMPILE_LARGE_S.high:g}), "
        f"{small} small at {COMPILE_SMALL_S.value:g} s ({COMPILE_SMALL_S.low:g}-{COMPILE_SMALL_S.high:g})"
    )
    return FixedCost("compile", value, low, high, basis)


def evaluation(seconds: float, log_fast: float, log_slow: float, loading: Assumed | None) -> FixedCost:
    """The time of evaluation: forward steps, with the interval of training steps (``log_fast``, ``log_slow``).

    ``loading``: seconds in which the loaders prepare the samples, if known; evaluation cannot be shorter than that.
    """
    basis = "modelled like the steps, forward only" if seconds else "no evaluation"
    low_s, high_s = seconds * math.exp(-log_fast), seconds * math.exp(log_slow)
    if loading is not None:
        low_s, high_s = max(low_s, loading.low), max(high_s, loading.high)
        seconds = max(seconds, loading.value)
    return FixedCost("evaluation", seconds, low_s, high_s, basis)
