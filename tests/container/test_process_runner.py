"""The `process` runner: the same toolkit and simulator without Docker, where there is none (as in here)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from conftest import SCRIPTS

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """A session whose backend runs jobs as processes of this machine."""
    # Not installed here: the server and its jobs find both packages in the checkout.
    paths = [str(CHECKOUT / "sdk"), str(CHECKOUT / "local_backend"), os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINDTUNNEL_RUNNER", "process")
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        patch.syspath_prepend(paths[0])
        import windtunnel

        session = windtunnel.LocalSession(home=tmp_path_factory.mktemp("home"))
        session.endpoint()
        yield session
        os.kill(session.backend.running().pid, signal.SIGTERM)


def test_a_job_trains_on_two_cores_without_docker(session):
    """The real toolkit, torchrun and simulator; the log says that nothing isolates the job."""
    import windtunnel

    estimator = windtunnel.PyTorch(
        "counted.py",
        source_dir=str(SCRIPTS),
        framework_version="2.9",
        instance_type="ml.trn1.2xlarge",
        instance_count=1,
        distribution={"torch_distributed": {"enabled": True}},
        session=session,
    )
    job = estimator.fit(wait=False)
    try:
        job.wait(logs=False, timeout=200)
    except windtunnel.WindtunnelError as error:
        pytest.fail(f"{error}\n" + "\n".join(job.logs()))
    lines = list(job.logs())
    assert any("isolation" in line for line in lines[:3]), lines[:5]
    assert any("2 of the 2 NeuronCores of ml.trn1.2xlarge, simulated" in line for line in lines)
    counters = job.counters()
    assert (counters["world_size"], counters["train"]["steps"], counters["train"]["samples"]) == (2, 5, 80)
    assert "process" in session.backend.running().runner


def test_a_job_that_misses_a_package_ends_with_what_it_is(session, tmp_path):
    """In its log and in FailureReason."""
    import windtunnel

    (tmp_path / "train.py").write_text("import neuronx_distributed\n")
    estimator = windtunnel.PyTorch(
        "train.py",
        source_dir=str(tmp_path),
        framework_version="2.9",
        instance_type="ml.trn1.2xlarge",
        instance_count=1,
        session=session,
    )
    with pytest.raises(windtunnel.TrainingJobFailed, match="neuronx_distributed is not in the image"):
        estimator.fit(logs=False)


def test_several_hosts_are_refused_with_the_runner_that_can(session):
    """One machine without containers is one host."""
    import windtunnel

    estimator = windtunnel.PyTorch(
        "counted.py",
        source_dir=str(SCRIPTS),
        framework_version="2.9",
        instance_type="ml.trn1.2xlarge",
        instance_count=2,
        distribution={"torch_distributed": {"enabled": True}},
        session=session,
    )
    with pytest.raises(windtunnel.TrainingJobFailed, match="docker"):
        estimator.fit(logs=False)
