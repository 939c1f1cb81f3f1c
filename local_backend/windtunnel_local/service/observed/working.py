"""The work of the graphs that ran, by class of operation, for counters.json.

A graph's record has the work of one run; see docs/reference/counters.md. A record of an older simulator has none,
and one that a script has tampered with may hold anything: what is no number counts as nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

Record = Mapping[str, Any]
Product = tuple[int, int, int, int, str]

_BYTES = ("product_bytes", "gather_bytes", "scatter_bytes")
_EDGES = ("input_bytes", "output_bytes")
_KERNELS = ("fused_bytes", "unfused_bytes", "vector_elements", "scalar_elements")


def total(steps: Iterable[Record], graphs: Mapping[str, Record]) -> dict[str, Any] | None:
    """The sums over steps; None when no graph that ran tells its work."""
    runs: Counter[str] = Counter()
    for step in steps:
        runs.update(step.get("graphs", {}))
    told = [(graphs[name], count) for name, count in runs.items() if _mapping(graphs.get(name), "work")]
    if not told:
        return None
    products: Counter[Product] = Counter()
    sums: Counter[str] = Counter()
    elementwise: dict[str, Counter[str]] = {"activations": Counter(), "state": Counter()}
    collectives: dict[str, Counter[str]] = {}
    for record, count in told:
        work = record["work"]
        for product, times in _products(work.get("products")):
            products[product] += times * count
        for key in _BYTES:
            sums[key] += _number(work, key) * count
        for key in _EDGES:
            sums[key] += _number(record, key) * count
        for kind, kernels in elementwise.items():
            found = _mapping(_mapping(work, "elementwise"), kind)
            for key in _KERNELS:
                kernels[key] += _number(found, key) * count
        for name, use in _mapping(work, "collectives").items():
            mine = collectives.setdefault(str(name), Counter())
            for key in ("count", "bytes"):
                mine[key] += _number(use, key) * count
    return {
        "products": [[*product, times] for product, times in sorted(products.items())],
        "elementwise": {kind: dict(kernels) for kind, kernels in elementwise.items()},
        **sums,
        "collectives": {name: dict(use) for name, use in sorted(collectives.items())},
    }


def parameters(records: Iterable[Record]) -> dict[str, Any] | None:
    """What the last of a rank's records of its parameters says; None when there is none."""
    found: dict[str, Any] | None = None
    for record in records:
        keys = ("count", "parameter_bytes", "gradient_bytes", "optimizer_bytes")
        found = {key: _number(record, key) for key in keys}
        found["dtypes"] = {
            kind: {str(dtype): _number(sizes, dtype) for dtype in sizes}
            for kind, sizes in _mapping(record, "dtypes").items()
            if isinstance(sizes, Mapping)
        }
    return found


def _products(listed: Any) -> Iterable[tuple[Product, int]]:
    for entry in listed if isinstance(listed, list) else ():
        if not isinstance(entry, list) or len(entry) != 6 or not isinstance(entry[4], str):
            continue
        *dims, dtype, times = entry
        if all(_is_count(value) for value in (*dims, times)):
            batch, rows, inner, columns = dims
            yield (batch, rows, inner, columns, dtype), times


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _mapping(record: Any, key: str) -> Mapping[str, Any]:
    value = record.get(key) if isinstance(record, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _number(record: Any, key: str) -> int:
    value = record.get(key) if isinstance(record, Mapping) else None
    valid = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return int(value) if valid and value is not None else 0
