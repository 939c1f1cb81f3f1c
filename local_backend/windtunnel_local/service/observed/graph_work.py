"""Sums up the work of the graphs that ran, by class of operation, for counters.json.

A graph's record has the work of one run (docs/reference/counters.md); records of older simulators have none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from windtunnel.priceperf.workload.counters import (
    Collectives,
    CountedProduct,
    Elementwise,
    Kernels,
    Parameters,
    ScaledDotProductAttention,
    Split,
    Work,
)
from windtunnel.priceperf.workload.strict_reader import MOST_COUNTED, Plain
from windtunnel_local.service.observed.counter_records import Record, count, is_figure, mapping, numbers

_BYTES = ("product_bytes", "gather_bytes", "scatter_bytes")
_EDGES = ("input_bytes", "output_bytes")
_KERNELS = ("fused_bytes", "unfused_bytes", "vector_elements", "scalar_elements")
_SCORES = ("scores", "causal_scores")


def total(runs: Mapping[str, int], graphs: Mapping[str, Record], sdpa: Record) -> Work | None:
    """The sums over graphs that ran so many times; None if none of their records has its work.

    ``sdpa``: the scores of scaled dot product attention that were counted meanwhile.
    """
    counted = [(graphs[name], times) for name, times in runs.items() if mapping(graphs.get(name, {}), "work")]
    if not counted:
        return None
    sums: Counter[str] = Counter()
    elementwise: dict[str, Counter[str]] = {"activations": Counter(), "state": Counter()}
    collectives: list[tuple[Record, int]] = []
    for record, run in counted:
        work = record["work"]
        _add(sums, work, _BYTES, run)
        _add(sums, record, _EDGES, run)
        for kind, kernels in elementwise.items():
            _add(kernels, mapping(mapping(work, "elementwise"), kind), _KERNELS, run)
        collectives.append((work, run))
    scores = {key: count(sdpa, key) for key in _SCORES}
    return Work(
        products=_merged(counted, "products"),
        convolutions=_merged(counted, "convolutions"),
        elementwise=Elementwise(**{kind: Kernels(**kernels) for kind, kernels in elementwise.items()}),
        collectives=collected(collectives),
        sdpa=ScaledDotProductAttention(**scores) if scores["scores"] else None,
        **sums,
    )


def _merged(counted: Iterable[tuple[Record, int]], kind: str) -> tuple[CountedProduct, ...]:
    """The matrix products (or convolutions) of all graphs, with equal ones added up."""
    found: Counter[tuple[Any, ...]] = Counter()
    for record, run in counted:
        for product, times in _products(record["work"].get(kind)):
            found[product] += times * run
    return tuple(CountedProduct._make((*product, times)) for product, times in sorted(found.items()))


def convolution_flops(graph: Record) -> float | None:
    """FLOPs of the convolutions in one run of a graph; None if its record has no work, as of an older simulator."""
    work = mapping(graph, "work")
    if not work:
        return None
    listed = _products(work.get("convolutions"))
    return float(min(MOST_COUNTED, sum(2 * math.prod(dims) * times for (*dims, _), times in listed)))


def collected(records: Iterable[tuple[Record, int]]) -> dict[str, Collectives]:
    """The sums of the collectives of records; each record counts so many times as the number beside it says."""
    sums: dict[str, Counter[str]] = {}
    for record, times in records:
        for name, use in mapping(record, "collectives").items():
            if isinstance(use, Mapping):
                _add(sums.setdefault(str(name), Counter()), use, ("count", "bytes"), times)
    return {name: Collectives(**found) for name, found in sorted(sums.items())}


def parameters(records: Sequence[Record]) -> Parameters | None:
    """The model's parameters, from the last of a rank's records of them; None if there is none."""
    if not records:
        return None
    last = records[-1]
    sizes = mapping(last, "dtypes")
    return Parameters(
        count=count(last, "count"),
        tensors=count(last, "tensors") or None,
        model=count(last, "model") if "model" in last else None,
        frozen=count(last, "frozen") if "frozen" in last else None,
        cores=max(1, count(last, "cores")),
        split=_split(mapping(last, "split")),
        sdpa_elsewhere=last.get("sdpa_elsewhere") is True,
        is_causal=last.get("is_causal") is True,
        dtypes={str(kind): numbers(sizes, kind) for kind in sizes if isinstance(sizes[kind], Mapping)},
        parameter_bytes=count(last, "parameter_bytes"),
        gradient_bytes=count(last, "gradient_bytes"),
        optimizer_bytes=count(last, "optimizer_bytes"),
    )


def _split(record: Record) -> Split | None:
    if not (count(record, "tensor_parallel") and count(record, "pipeline_parallel")):
        return None
    plain = {
        str(key): value
        for key, value in mapping(record, "config").items()
        if isinstance(value, Plain) and not (isinstance(value, float) and not math.isfinite(value))
    }
    return Split(
        tensor_parallel=count(record, "tensor_parallel"),
        pipeline_parallel=count(record, "pipeline_parallel"),
        zero1=record.get("zero1") is True,
        config=plain or None,
        lora_rank=count(record, "lora_rank") or None,
    )


def _add(sums: Counter[str], record: Record, keys: Iterable[str], times: int) -> None:
    for key in keys:
        sums[key] += count(record, key) * times


def _products(listed: Any) -> Iterable[tuple[tuple[Any, ...], int]]:
    for entry in listed if isinstance(listed, list) else ():
        if not isinstance(entry, list) or len(entry) != 6 or not isinstance(entry[4], str):
            continue
        *dims, dtype, times = entry
        if all(_is_count(value) for value in (*dims, times)):
            yield (*dims, dtype), times


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and is_figure(value) and value >= 0
