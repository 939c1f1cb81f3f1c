"""The networks of homes: which of them are removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.engine import DOCKER, runner_of
from tests.fakes.plans import container_plan
from windtunnel_local.runner.docker import create_arguments
from windtunnel_local.service.ground.containers import JobPlan
from windtunnel_local.service.ground.errors import RunnerError


@pytest.mark.parametrize(("folder", "removed"), [("gone", True), (".", False), ("x" * 300, False)])
def test_networks_of_homes_that_are_gone_are_removed(tmp_path: Path, folder: str, removed: bool) -> None:
    """Not those of a home that cannot be looked at, such as another user's: it may be in use."""
    network: dict[str, Any] = {
        "Id": "1",
        "Name": "windtunnel-of-another_jobs",
        "Labels": {create_arguments.HOME_LABEL: str(tmp_path / folder)},
        "Containers": {},
    }
    answers = {
        "GET /containers/json": (200, []),
        "GET /networks": (200, [network]),
        "GET /networks/1": (200, network),
        "DELETE /networks/1": (204, None),
        "POST /networks/create": (201, {"Id": "2"}),
    }
    with runner_of(tmp_path, DOCKER | answers) as (runner, asked):
        with pytest.raises(RunnerError, match="create algo-1"):
            runner.start(JobPlan("job", (container_plan(),)))
        assert ("DELETE /networks/1" in asked) is removed
