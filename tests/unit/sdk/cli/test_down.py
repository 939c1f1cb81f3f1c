"""`windtunnel down`: what it says of what goes on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.conftest import Invoke
from tests.unit.sdk.fake_endpoints import FakeEndpoints
from tests.unit.sdk.fake_service import FakeService
from tests.unit.sdk.fake_transforms import FakeTransforms
from tests.unit.sdk.session import fake_backend
from windtunnel import Model
from windtunnel.session.local import LocalSession
from windtunnel.session.local_server import Backend

RUN = "run train.py --source-dir src --job-name j --no-wait"


@pytest.fixture
def backend(jobs: FakeService, local: LocalSession, tmp_path: Path) -> Iterator[Backend]:
    """That of the command line's session: it can be started and ended."""
    local.backend = Backend(tmp_path / "home", [sys.executable, fake_backend.__file__, "ok"])
    yield local.backend
    local.backend.stop()


def test_what_goes_on_is_named(
    backend: Backend,
    jobs: FakeService,
    endpoints: FakeEndpoints,
    transforms: FakeTransforms,
    local: LocalSession,
    invoke: Invoke,
) -> None:
    """With what does not happen to it now; not where no backend runs: to ask would start one."""
    jobs.script = (("Stopping", "Stopping", "", {}),)
    invoke(*RUN.split())
    model = Model("mine:1", name="m", session=local)
    model.deploy(1, "ml.c5.xlarge", endpoint_name="e")
    model.transformer(1, "ml.c5.xlarge").transform("s3://b/in", job_name="t", wait=False)
    assert invoke("down") == ("No local backend was running.\n", "")
    backend.ensure()
    captured = invoke("down")
    assert captured.out.endswith(" has ended.\n")
    named = "Not ended: job j (Stopping), transform job t (InProgress), endpoint e (InService). "
    assert captured.err.startswith(named) and "neither max_run nor the grace time" in captured.err


def test_nothing_is_named_if_all_has_ended(backend: Backend, jobs: FakeService, invoke: Invoke) -> None:
    """Or if the backend does not tell: it is ended all the same."""
    jobs.script = jobs.script[-1:]
    invoke(*RUN.split())
    backend.ensure()
    assert invoke("down").err == ""
