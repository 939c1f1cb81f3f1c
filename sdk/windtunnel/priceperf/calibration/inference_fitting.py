"""The fit of the constants of `inference_call` to published throughputs of inference, by `least_squares`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from ..model.inference_call import InferenceConstants, Served, call_time, served
from .inference_rows import InferenceRow
from .least_squares import Prior, fitted_values

_ALL = "all rows"
PRIORS: Mapping[str, Prior] = {
    "tensor": Prior(0.6, 0.3, "of what training reaches, with smaller products", _ALL),
    "vector": Prior(1.5, 0.5, "more than the memory's bandwidth: most stays on chip", _ALL),
    "weights": Prior(0.5, 0.3, "half of the reading is ahead of the products", "batches of one"),
    "answer": Prior(0.5, 0.5, "of PCIe 3.0 x16, with the copy in the host", "models that return hidden states"),
    "call_s": Prior(2e-4, 0.7, "order of magnitude of a call of the runtime", "the smallest models"),
    "inferentia2": Prior(1.0, 0.1, "the same NeuronCores in a chip of less power", "inf2 against trn1"),
    "early": Prior(1.0, 0.1, "versions differ by 7 %", "what ran on both sides of 2.10"),
    "late": Prior(1.0, 0.1, "versions differ by 7 %", "what ran on both sides of 2.22"),
}  # fmt: skip
_MOST = dict.fromkeys(("vector", "inferentia2", "early", "late"), math.inf)


def predicted(row: InferenceRow, constants: InferenceConstants) -> Served:
    """The prediction for a row, with its Neuron version and its number of calls at a time."""
    time = call_time(row.inference, row.instance, constants, row.neuron_version)
    return served(row.inference, time.total_s, row.instance.core_count, row.in_flight)


def fit(rows: Sequence[InferenceRow], start: InferenceConstants | None = None) -> InferenceConstants:
    """The constants that fit the throughputs of these rows best. ``start``: as in `fitting.fit`."""

    def log_errors(values: Mapping[str, float]) -> Iterator[float]:
        constants = InferenceConstants(**values)
        return (math.log(predicted(row, constants).throughput_per_s / row.throughput_per_s) for row in rows)

    return InferenceConstants(**fitted_values(PRIORS, log_errors, asdict(start) if start else {}, _MOST))
