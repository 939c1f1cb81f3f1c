"""A Slurm job as the backend tells it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

START = datetime(2026, 11, 23, 2, 30, tzinfo=timezone.utc)


def at(seconds: float) -> str:
    """A moment so many seconds after the cluster came."""
    return (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def slurm_job(
    counters: dict[str, Any] | None = None,
    nodes: int = 4,
    state: str = "COMPLETED",
    capacity_type: str = "ONDEMAND",
    **job: Any,
) -> dict[str, Any]:
    """Job 3 on the first nodes of its queue, from second 60 to 360; they came at 50 and left at 460.

    One more node is static, runs from the start and had job 2 for 100 seconds.
    """
    ended = None if state == "RUNNING" else at(360)
    names = [f"compute1-dy-queue1-i1-{number}" for number in range(1, nodes + 1)]
    run = {"job": 3, "nodes": names, "started": at(60), "ended": ended}
    other = {"job": 2, "nodes": ["compute1-st-queue1-i1-1"], "started": at(10), "ended": at(110)}

    def node(name: str, up: list[list[str | None]], jobs: list[dict[str, Any]]) -> dict[str, Any]:
        static = "-st-" in name
        return {"node": name, "instance_type": "trn1.32xlarge", "capacity_type": capacity_type, "static": static,
                "up": up, "jobs": jobs}  # fmt: skip

    gone = None if state == "RUNNING" else at(460)
    return {
        "schema": "windtunnel.slurm_job/1",
        "now": at(500),
        "cluster": {
            "name": "post",
            "region": "us-west-2",
            "head_instance_type": "c5.4xlarge",
            "scaledown_idletime_s": 600,
        },
        "job": {
            "id": 3,
            "name": "wrap",
            "state": state,
            "queue": "compute1",
            "submitted": at(45),
            "started": at(60),
            "ended": ended,
            **job,
        },
        "runs": [run],
        "nodes": [
            node("compute1-st-queue1-i1-1", [[at(0), None]], [other]),
            *[node(name, [[at(50), gone]], [run]) for name in names],
        ],
        "counted": [
            {
                "node": name,
                "cores": 2,
                "training_steps": 24,
                "median_step_seconds": 60.0,
                "collective_seconds": 20.0,
                "input_wait_seconds": 0.5,
                "failed": False,
            }
            for name in names
        ]
        if counters
        else [],
        "counters": counters,
    }
