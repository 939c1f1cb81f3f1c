"""A backend with few open files: what a job made waits until there are some again."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest

from tests.unit.service.conftest import World
from tests.unit.service.samples import request
from windtunnel_local.service.data import outputs
from windtunnel_local.service.data.untrusted_files import open_regular


def test_the_model_is_stored_later(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The training is over and paid for: it is not lost for want of a descriptor."""
    real, refused = open_regular, [1, 2]

    def sometimes(*arguments: Any) -> Any:
        if refused:
            refused.pop()
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(arguments[0]))
        return real(*arguments)

    monkeypatch.setattr(outputs, "open_regular", sometimes)
    job = world.run(request())
    assert job.lifecycle.status == "Completed"
    assert job.model_artifact == "s3://out/models/job/output/model.tar.gz"
    assert not refused
