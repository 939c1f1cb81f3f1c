"""The `process` runner: the same toolkit and simulator without Docker, where there is none (as in here)."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import SCRIPTS

TORCHRUN = {"torch_distributed": {"enabled": True}}
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
        os.kill(session.backend.ensure().pid, signal.SIGTERM)


@pytest.fixture
def estimator(session):
    """Makes an estimator of a script of this suite's, on both cores of an instance if nothing else is said."""
    import windtunnel

    def make(script: str, source_dir: Path = SCRIPTS, **options: Any) -> windtunnel.PyTorch:
        usual = {"instance_type": "ml.trn1.2xlarge", "instance_count": 1, "distribution": TORCHRUN}
        job = {"framework_version": "2.9", "session": session, **usual, **options}
        return windtunnel.PyTorch(script, source_dir=str(source_dir), **job)

    return make


def test_a_job_trains_on_two_cores_without_docker(session, estimator):
    """The real toolkit, torchrun and simulator; the log says that nothing isolates the job."""
    import windtunnel

    job = estimator("counted.py").fit(wait=False)
    try:
        job.wait(logs=False, timeout=600)
    except windtunnel.WindtunnelError as error:
        pytest.fail(f"{error}\n" + "\n".join(job.logs()))
    lines = list(job.logs())
    assert any("isolation" in line for line in lines[:3]), lines[:5]
    assert any("2 of the 2 NeuronCores of ml.trn1.2xlarge, simulated" in line for line in lines)
    counters = job.counters()
    assert (counters["world_size"], counters["train"]["steps"], counters["train"]["samples"]) == (2, 5, 80)
    assert "process" in session.backend.ensure().runner


@pytest.mark.parametrize(("forward", "distribution", "times"), [("0", None, 0), ("1", TORCHRUN, 2)])
def test_a_stop_reaches_the_script_if_it_is_to(estimator, forward, distribution, times):
    """SIGTERM ends AWS's toolkit and the script is not told; the setting hands it on, to torchrun's workers too."""
    import windtunnel

    environment = {"WINDTUNNEL_FORWARD_SIGTERM": forward}
    job = estimator("terminated.py", distribution=distribution, environment=environment).fit(wait=False)
    deadline = time.monotonic() + 300
    # Of each of the processes, or the signal ends one that does not listen yet.
    processes = 2 if distribution else 1
    while sum(line.count("waiting to be told") for line in job.logs()) < processes:
        assert time.monotonic() < deadline, list(job.logs())
        time.sleep(0.5)
    job.stop()
    with contextlib.suppress(windtunnel.WindtunnelError):
        job.wait(logs=False, timeout=300)
    assert job.status() == "Stopped"
    told = [line for line in job.logs() if "saved at signal 15" in line]
    assert len(told) == times, list(job.logs())


def test_a_job_that_misses_a_package_ends_with_what_it_is(estimator, tmp_path):
    """In its log, behind the traceback, and first in FailureReason's words."""
    import windtunnel

    (tmp_path / "train.py").write_text("import neuronx_distributed\n")
    job = estimator("train.py", tmp_path, distribution=None).fit(wait=False)
    with pytest.raises(windtunnel.TrainingJobFailed):
        job.wait(logs=False, timeout=300)
    told = "Windtunnel: neuronx_distributed is not in the image"
    assert f'ErrorMessage "{told}' in job.describe()["FailureReason"]
    assert any(line.startswith(told) for line in job.logs())


def test_several_hosts_are_refused_with_the_runner_that_can(estimator):
    """One machine without containers is one host."""
    import windtunnel

    with pytest.raises(windtunnel.TrainingJobFailed, match="docker"):
        estimator("counted.py", instance_count=2).fit(logs=False)
