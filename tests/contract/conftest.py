"""A real server on loopback, with real boto3 in front and a fake container engine behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests import waiting
from tests.fakes.model_server import serve
from tests.fakes.runner import FakeContainer, FakeRunner, Image, Script
from tests.fakes.wire import create_request
from windtunnel_local import app
from windtunnel_local.credentials import Credentials, load_or_create
from windtunnel_local.server import Server, listen
from windtunnel_local.service.ground.job import JobQuery
from windtunnel_local.settings import Settings

LOCAL_IMAGE = "windtunnel-training"
_PATIENCE_S = 60.0


class ShiftedClock(app.SystemClock):
    """The machine's clocks, ahead by what a test lets pass."""

    def __init__(self) -> None:
        self.offset = timedelta(0)

    def now(self) -> datetime:
        """The shifted time."""
        return super().now() + self.offset

    def monotonic(self) -> float:
        """As many seconds further."""
        return super().monotonic() + self.offset.total_seconds()


@dataclass
class Backend:
    """A running server and clients of it."""

    home: Path
    endpoint: str
    credentials: Credentials
    application: app.Application
    runner: FakeRunner
    clock: ShiftedClock
    _clients: dict[Any, Any] = field(default_factory=dict)

    def client(self, service: str, **overrides: Any) -> Any:
        """A boto3 client that asks once; the same for the same arguments, as to make one takes longer than to ask."""
        key = (service, *overrides.items())
        if key in self._clients:
            return self._clients[key]
        arguments = {
            "endpoint_url": self.endpoint,
            "aws_access_key_id": self.credentials.access_key_id,
            "aws_secret_access_key": self.credentials.secret_access_key,
            "region_name": "us-east-1",
            "config": Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
        }
        self._clients[key] = boto3.client(service, **{**arguments, **overrides})
        return self._clients[key]

    def run(self, name: str = "job", **members: Any) -> dict[str, Any]:
        """A training job from its request to its end; its description then."""
        self.client("sagemaker").create_training_job(**create_request(name, **members))
        return self.ended(name)

    def ended(self, name: str = "job") -> dict[str, Any]:
        """A training job's description once it has ended."""
        sagemaker = self.client("sagemaker")

        def over() -> Any:
            job = sagemaker.describe_training_job(TrainingJobName=name)
            return job if job["TrainingJobStatus"] in ("Completed", "Failed", "Stopped") else None

        job: dict[str, Any] = wait_for(over)
        return job

    def close_clients(self) -> None:
        """Close their connections."""
        for client in self._clients.values():
            client.close()


def train(container: FakeContainer) -> int:
    """What jobs run: prints, waits for an end where it is told to, and leaves a model. An endpoint's serves."""
    if container.plan.command == ("serve",):
        return serve(container)
    values = container.plan.environment
    for number in range(int(values.get("LINES", "3"))):
        container.print(f"line {number}")
    if values.get("WAIT"):
        container.sleep_until(container.terminated)
        return 143
    container.write("/opt/ml/model/model.txt", "weights")
    return int(values.get("EXIT", "0"))


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Backend]:
    """A server for one test."""
    with serving(tmp_path / "home") as running:
        yield running


@pytest.fixture(scope="module")
def shared_backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    """One server for those tests of a file that only ask, or that need the same jobs."""
    with serving(tmp_path_factory.mktemp("shared") / "home") as running:
        yield running


@pytest.fixture
def cleared_backend(shared_backend: Backend) -> Iterator[Backend]:
    """The one server of a file, from which a test's buckets go with its jobs, which have ended."""
    yield shared_backend
    shared_backend.clock.offset, shared_backend.runner.script = timedelta(0), train
    jobs, objects = shared_backend.application.jobs, shared_backend.application.objects
    for job in jobs.list(JobQuery(limit=1000))["TrainingJobSummaries"]:
        jobs.delete(job["TrainingJobName"])
    stays = app.default_bucket(shared_backend.credentials)
    for bucket in {found.name for found in objects.buckets()} - {stays}:
        for found in objects.list(bucket, "", limit=100_000):
            objects.delete(bucket, found.key)
        objects.delete_bucket(bucket)


@contextmanager
def serving(home: Path, script: Script = train) -> Iterator[Backend]:
    """A server of a home, whose jobs all run the script."""
    settings = Settings(home=home, image=LOCAL_IMAGE, stop_grace_s=5)
    settings.home.mkdir(exist_ok=True)
    credentials = load_or_create(settings.home / "credentials.json")
    clock = ShiftedClock()
    runner = FakeRunner(clock, script, **{LOCAL_IMAGE: Image()})
    with closing(listen(0)) as socket:
        port = socket.getsockname()[1]
        application = app.build(settings, credentials, port, runner=runner, clock=clock)
        accepting = threading.Event()
        server = Server(
            application.api,
            is_idle=lambda: False,
            accepting=accepting.set,
            leaving=application.page.end,
            ended=application.api.services.runtime.close,
            is_crowded=application.api.is_crowded,
        )
        application.resume()
        thread = threading.Thread(target=server.run, args=([socket],))
        thread.start()
        assert accepting.wait(_PATIENCE_S)
        running = Backend(home, f"http://127.0.0.1:{port}", credentials, application, runner, clock)
        try:
            yield running
        finally:
            running.close_clients()
            server.should_exit = True
            thread.join(_PATIENCE_S)
            application.close()
            runner.close()
    assert not thread.is_alive()


def refused(call: Any, **arguments: Any) -> tuple[str, str]:
    """The code and the message with which a client's call is refused."""
    with pytest.raises(ClientError) as error:
        call(**arguments)
    details = error.value.response["Error"]
    return details["Code"], details["Message"]


wait_for = partial(waiting.wait_for, pause_s=0.05)  # most ask the server


@pytest.fixture
def s3(backend: Backend) -> Any:
    """A client, and a bucket `bucket`."""
    client = backend.client("s3")
    client.create_bucket(Bucket="bucket")
    return client


@pytest.fixture
def sagemaker(backend: Backend) -> Any:
    """A client, and a bucket `out` for what jobs leave."""
    backend.client("s3").create_bucket(Bucket="out")
    return backend.client("sagemaker")
