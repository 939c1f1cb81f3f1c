"""The Neuron compile cache across jobs: what the first one compiles, the second one does not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.docker.conftest import estimator
from windtunnel import LocalSession, TrainingJob

pytestmark = pytest.mark.docker

SCRIPTS = Path(__file__).parents[1] / "container" / "scripts"


def train(session: LocalSession, environment: dict[str, str], **arguments: Any) -> tuple[TrainingJob, str]:
    """A finished job that trains on two cores, and its log."""
    job = estimator(
        session,
        "counted.py",
        source_dir=str(SCRIPTS),
        distribution={"torch_distributed": {"enabled": True}},
        environment=environment,
        **arguments,
    ).fit(logs=False)
    return job, "\n".join(job.logs())


def compile_cost(job: TrainingJob) -> dict[str, Any]:
    """What the report models for compiling on trn1."""
    estimate = job.report().to_dict()["modelled"]["estimates"][0]
    return next(cost for cost in estimate["fixed_costs"] if cost["name"] == "compile")


def test_a_cache_in_s3_takes_the_compile_time_from_the_second_job(session: LocalSession) -> None:
    """All graphs are found, and the report models no compilation."""
    url = f"s3://{session.default_bucket()}/neuron-cache"
    first, log = train(session, {"NEURON_COMPILE_CACHE_URL": url})
    assert f"||NEURON_CACHE||: Compile cache path: {url}" in log
    assert "Compiler status PASS" in log
    counters = first.counters()
    assert counters is not None
    assert counters["graphs"]["cached"] < counters["graphs"]["count"]
    assert compile_cost(first)["seconds"] > 3

    second, log = train(session, {"NEURON_CC_FLAGS": f"--cache_dir={url}"})
    assert f"Using a cached neff at {url}/neuronxcc-" in log
    assert "Compiler status PASS" not in log
    counters = second.counters()
    assert counters is not None
    assert counters["graphs"]["cached"] == counters["graphs"]["count"] > 0
    cost = compile_cost(second)
    assert cost["seconds"] == 0
    on_trn1 = len(counters["graphs"]["uncut"])  # a collective cuts a graph in two here
    assert 0 < on_trn1 < counters["graphs"]["count"]
    assert f"{on_trn1} of {on_trn1} graphs cached" in cost["basis"]


def test_a_precompilation_job_fills_a_cache_among_the_checkpoints(session: LocalSession) -> None:
    """RUN_NEURON_PARALLEL_COMPILE=1 makes a job the trial run; the jobs after it get its cache with the checkpoints."""
    bucket = session.default_bucket()
    job, log = train(
        session,
        {
            "NEURON_COMPILE_CACHE_URL": "/opt/ml/checkpoints/neuron-cache",
            "RUN_NEURON_PARALLEL_COMPILE": "1",
        },
        checkpoint_s3_uri=f"s3://{bucket}/warm-checkpoints",
    )
    assert job.status() == "Completed"
    assert "Extracting graphs (/opt/ml/checkpoints/neuron-cache/" in log
    found = re.findall(r"NEURON_PARALLEL_COMPILE\|\|: Total ([a-z ]+): (\d+)", log)
    summary = {what: int(count) for what, count in found}
    assert summary["graphs"] == summary["successful compilations"] >= 1
    assert summary["failed compilations"] == 0
    s3 = session.service.client("s3")  # type: ignore[attr-defined]
    kept = s3.list_objects_v2(Bucket=bucket, Prefix="warm-checkpoints/neuron-cache/")["Contents"]
    assert sum(one["Key"].endswith("/model.done") for one in kept) == summary["graphs"]
