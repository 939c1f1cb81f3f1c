"""counters.json as a rehearsal of AWS's BERT-Large script would make it, from the model's dimensions: no run of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from windtunnel.priceperf.model.described_as_counted import step_work
from windtunnel.priceperf.model.training_settings import OPTIMIZER_BYTES
from windtunnel.priceperf.published.bert_scaling import PUBLISHED


def bert_large_counters(
    passes: int = 8, nodes: int = 4, updates: int = 3, cores: int = 2, *, samples: int = 16
) -> dict[str, Any]:
    """Of ``updates`` optimizer steps of so many passes, in bf16, sequence 128, on ``cores`` cores of each node."""
    training = PUBLISHED[0].row.training
    one = replace(training, microbatch=samples, global_batch=samples * training.data_parallel)
    work = step_work(one)
    steps, world = passes * updates, nodes * cores
    reduced = {"all_reduce": {"count": updates * 27, "bytes": updates * one.parameters * 2}}
    products = [
        [
            *((samples * 16, item.rows, item.inner, item.columns) if item.batched else (1, *item[:3])),
            "bf16",
            item.times * steps / (samples * 16 if item.batched else 1),
        ]
        for item in work.products["bf16"]
    ]
    updating = None
    if passes > 1:
        updating = {"steps": updates, "collectives": reduced, "least_trace_seconds": 0.3}
    return {
        "schema": "windtunnel.counters/1",
        "job": "post/3",
        "instance_type": "ml.trn1.32xlarge",
        "instance_count": nodes,
        "instance_cores": 32,
        "cores_used": cores,
        "local_cores": cores,
        "world_size": world,
        "framework_version": "2.9",
        "parameters": {"count": one.parameters, "parameter_bytes": one.parameters * 2},
        "train": {
            "steps": steps,
            "samples": samples * steps * world,
            "samples_per_step_per_core": samples,
            "flops": {"bf16": work.flops["bf16"] * steps},
            "bytes_accessed": (work.bytes_moved - one.parameters * OPTIMIZER_BYTES * (1 - 1 / passes))
            * steps,
            "collectives": reduced,
            "seconds": steps * 60.0,
            "median_step_seconds": 60.0,
            "collective_seconds": 20.0,
            "input_wait_seconds": 0.5,
            "work": {
                "products": products,
                "elementwise": {"activations": {"fused_bytes": (work.fused_bytes or 0.0) * steps}},
                "gather_bytes": 0,
                "scatter_bytes": 0,
            },
            "updates": updating,
        },
        "other": None,
        "graphs": {"count": 3, "compile_seconds": 20.0, "cached": 3, "ledger": None},
        "seconds": {"training_total": 400.0},
    }
