"""A plausible counters.json: BERT base on two simulated cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.published_work import benchmark_work

Counters = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def counters() -> Counters:
    """Builds counters; keyword arguments replace top-level fields."""

    def build(samples: int = 8, steps: int = 100, **replaced: Any) -> dict[str, Any]:
        work = benchmark_work(samples)
        payload = work.collectives[0].payload_bytes
        part = {
            "steps": steps,
            "samples": steps * samples * 2,
            "samples_per_step_per_core": samples,
            "flops": {"fp32": work.flops["fp32"] * steps},
            "bytes_accessed": work.bytes_moved * steps,
            "collectives": {"all_reduce": {"count": steps, "bytes": payload * steps}},
            "seconds": steps * 3.0,
            "median_step_seconds": 3.0,
            "collective_seconds": 20.0,
            "input_wait_seconds": 0.5,
        }
        return {
            "schema": "windtunnel.counters/1",
            "job": "bert",
            "instance_type": "ml.trn1.32xlarge",
            "instance_count": 1,
            "instance_cores": 32,
            "cores_used": 2,
            "local_cores": 2,
            "world_size": 2,
            "framework_version": "2.9",
            "train": part,
            "other": {**part, "steps": 10, "samples": 160, "collectives": {}},
            "graphs": {"count": 4, "compile_seconds": 20.0, "largest": {"flops": 1.0}},
            "device_memory_peak_bytes": 3_000_000_000,
            "seconds": {"training_total": 400.0, "container": 390.0, "first_step_after": 30.0},
            **replaced,
        }

    return build
