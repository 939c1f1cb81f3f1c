"""The counters of a rehearsal of AWS's published BERT base job: the keys of counters.json that the model reads.

Made by ``tests/benchmarks/rehearsal.py --counters FILE`` on 2026-11-21: the example's script with BERT base's
dimensions and a table of 30,522 tokens, batch 8, sequence 128, AdamW, on 2 simulated cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HOST_CPU = "AMD EPYC"
"""The name that the processor of the rehearsal reports. Two of its cores ran the simulation and were timed."""

COUNTERS: Mapping[str, Any] = {
    "schema": "windtunnel.counters/1",
    "instance_type": "ml.trn1.32xlarge",
    "instance_count": 1,
    "cores_used": 2,
    "world_size": 2,
    "train": {
        "steps": 16,
        "samples": 256,
        "samples_per_step_per_core": 8,
        "flops": {"fp32": 8581798821888.0},
        "bytes_accessed": 146725619276.0,
        "collectives": {"all_reduce": {"count": 128, "bytes": 6988087424}},
        "work": {
            "products": [
                [1, 1024, 3072, 768, "fp32", 384],
                [1, 1024, 768, 3072, "fp32", 384],
                [1, 1024, 768, 768, "fp32", 1536],
                [1, 3072, 1024, 768, "fp32", 192],
                [1, 768, 1024, 3072, "fp32", 192],
                [1, 768, 1024, 768, "fp32", 768],
                [1, 768, 8, 2, "fp32", 16],
                [1, 768, 8, 768, "fp32", 16],
                [1, 8, 2, 768, "fp32", 16],
                [1, 8, 768, 2, "fp32", 16],
                [1, 8, 768, 768, "fp32", 32],
                [96, 128, 128, 64, "fp32", 576],
                [96, 128, 64, 128, "fp32", 384],
                [96, 64, 128, 128, "fp32", 192],
            ],
            "elementwise": {"activations": {"fused_bytes": 58193940416}},
            "gather_bytes": 214048768,
            "scatter_bytes": 321142784,
        },
        "least_trace_seconds": 0.142912,
        "launches": 939,
        "steps_with_host_reads": 0,
    },
    "other": {
        "steps": 12,
        "samples": 64,
        "samples_per_step_per_core": 0,
        "flops": {"fp32": 715149901824.0},
        "bytes_accessed": 7041719382.0,
        "collectives": {"all_reduce": {"count": 6, "bytes": 3218}},
        "work": {
            "products": [
                [1, 1024, 3072, 768, "fp32", 48],
                [1, 1024, 768, 3072, "fp32", 48],
                [1, 1024, 768, 768, "fp32", 192],
                [1, 8, 768, 2, "fp32", 4],
                [1, 8, 768, 768, "fp32", 4],
                [96, 128, 128, 64, "fp32", 48],
                [96, 128, 64, 128, "fp32", 48],
            ],
            "elementwise": {"activations": {"fused_bytes": 5218283425}},
            "gather_bytes": 53512192,
            "scatter_bytes": 0,
        },
        "steps_with_host_reads": 1,
    },
    "parameters": {"count": 109483778, "tensors": 201},
    "graphs": {
        "count": 20,
        "cached": 0,
        "ledger": [
            {"flops": {"fp32": 536362426368.0}, "cached": False},
            {"flops": {"fp32": 178787475456.0}, "cached": False},
        ],
    },
}
