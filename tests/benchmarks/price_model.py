"""How long the price model takes: the full matrix of instances, workloads and nodes, and one comparison.

    python tests/benchmarks/price_model.py

Prints one JSON object. ``matrix_s``: seconds to model every cell once, from nothing kept; ``matrix_cpu_s``: processor
seconds of that, which other work on the machine stretches less; ``cell_us``: microseconds of a cell, which do not grow
with the catalog. ``compare_ms``: median of `windtunnel.compare` of one rehearsed job on trn1 and p4d with everything
its report shows (decisions, break-even, sensitivity), ``compare_described_ms`` of a described one. The offerings are
the calibrated instance types as SageMaker training, and two of them as EC2.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator

import windtunnel
from windtunnel.priceperf import (
    ARCHITECTURES,
    CATALOG,
    CountedWorkload,
    FullScale,
    InvalidInput,
    PriceBook,
    Run,
    StepWork,
    Workload,
    estimate,
)
from windtunnel.priceperf.model.collectives import Collective
from windtunnel.priceperf.model.precision import AUTO_CAST
from windtunnel.priceperf.money.comparison import chosen_clusters
from windtunnel.priceperf.money.estimate import cost_on

CALIBRATED = [name for name, instance in CATALOG.items() if instance.calibration]
OFFERINGS = (*CALIBRATED, "trn1.32xlarge", "p4d.24xlarge")
NODES = (1, 2, 4, 8, 16, 32, 64, 128, 512, 1000)
SIZE = FullScale(10_000_000, evaluation_samples=10_000)
ROUNDS = 30


def workloads() -> Iterator[Workload]:
    """Every known architecture as it fits, and one rehearsal."""
    for name, model in ARCHITECTURES.items():
        split = 1 if model.parameters < 2e9 else 4 if model.attention_heads % 8 else 8
        length = 128 if model.family in ("encoder", "vision") else 2048
        yield Workload.transformer(
            name, microbatch=4, sequence_length=length, tensor_parallel=split, zero="optimizer"
        )
    yield rehearsal()


def rehearsal() -> CountedWorkload:
    """A step about as large as BERT base's."""
    step = StepWork(8, {"fp32": 6e11}, 1e10, (Collective("all_reduce", 1, 4.4e8),))
    return CountedWorkload("ml.trn1.32xlarge", 1, step, 1600, None, 0, 1.1e8, 4)


def matrix() -> tuple[int, int]:
    """Time and cost of every cell. Returns how many were modelled, and how many cannot run."""
    book, modelled, impossible = PriceBook(), 0, 0
    for workload in workloads():
        for count in NODES:
            for name, cluster in chosen_clusters(OFFERINGS, count):
                try:
                    batch = workload.batch(cluster, "rehearsed", cluster.count)
                    precision = workload.precisions(cluster.instance, AUTO_CAST)[0]
                    item = estimate(workload, Run(cluster, batch, precision), SIZE, name)
                except InvalidInput:
                    impossible += 1
                    continue
                cost_on(item, book, None)
                modelled += 1
    return modelled, impossible


def median_ms(call: Callable[[], object]) -> float:
    """Of `ROUNDS` calls."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return round(statistics.median(times) * 1e3, 2)


def compared(job: Workload) -> object:
    """A comparison with all that its report shows."""
    report = windtunnel.compare(job, ["ml.trn1.32xlarge", "ml.p4d.24xlarge"], SIZE)
    return report.decisions, report.sensitivity


def main() -> None:
    """Measure, and print."""
    start, cpu = time.perf_counter(), time.process_time()
    modelled, impossible = matrix()
    matrix_s, matrix_cpu_s = time.perf_counter() - start, time.process_time() - cpu
    described = Workload.transformer("Llama2-7B", microbatch=1, sequence_length=4096, tensor_parallel=8)
    figures = {
        "matrix_s": round(matrix_s, 3),
        "matrix_cpu_s": round(matrix_cpu_s, 3),
        "cells": modelled + impossible,
        "cell_us": round(1e6 * matrix_s / (modelled + impossible)),
        "impossible_cells": impossible,
        "compare_ms": median_ms(lambda: compared(rehearsal())),
        "compare_described_ms": median_ms(lambda: compared(described)),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
