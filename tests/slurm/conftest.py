"""The cluster, and a backend that runs its jobs there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.backend import Backend
from tests.slurm.cluster import Cluster
from tests.slurm.jobs import BUCKET, make_interpreter


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Four nodes, for all tests here: each leaves it as it was."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="package")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of the jobs; beside it lies train.py."""
    return make_interpreter(tmp_path_factory.mktemp("python"))


@pytest.fixture
def train(python: Path) -> Path:
    """The script of the jobs."""
    return python.with_name("train.py")


@pytest.fixture
def backend(cluster: Cluster, python: Path, tmp_path: Path) -> Iterator[Backend]:
    """A server of the test's own; ends with all its jobs, and leaves an idle cluster."""
    with own_backend(cluster, python, tmp_path) as backend:
        yield backend


@contextmanager
def own_backend(cluster: Cluster, python: Path, folder: Path, **variables: str) -> Iterator[Backend]:
    """A server with more ``variables``."""
    given = {
        "SLURM_CONF": str(cluster.configuration),
        "WINDTUNNEL_RUNNER": "slurm",
        "WINDTUNNEL_SIM_PYTHON": str(python),
        "WINDTUNNEL_MAX_CORES": "400",
        "WINDTUNNEL_STOP_GRACE_SECONDS": "60",
    }
    backend = Backend(folder / "home", None, **{**given, **variables})
    backend.start()
    try:
        backend.call("s3", "create_bucket", Bucket=BUCKET)
        yield backend
    finally:
        backend.stop()
        cluster.call("scancel", "--me")
        cluster.wait_until_idle()
