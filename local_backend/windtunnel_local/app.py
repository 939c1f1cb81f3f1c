"""The composition root: builds the backend's objects and connects them. No other file imports all packages."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from windtunnel._version import __version__
from windtunnel_local.api import Api, Services, batch, cloudwatch, hosting, iam, logs, sagemaker, sts
from windtunnel_local.api.dispatch import local_hosts
from windtunnel_local.api.invocations import Runtime
from windtunnel_local.api.rpc import Operations
from windtunnel_local.api.s3 import S3
from windtunnel_local.api.sigv4 import Verifier
from windtunnel_local.api_socket import api_socket
from windtunnel_local.credentials import Credentials
from windtunnel_local.objects import FileObjects
from windtunnel_local.runner import runner_kind
from windtunnel_local.runner.runner_kind import RunnerKind
from windtunnel_local.runner.sources import containers_folder, image_contents
from windtunnel_local.service.batch.transform_jobs import TransformJobService
from windtunnel_local.service.ground import machine_memory
from windtunnel_local.service.ground.config import ServiceConfig
from windtunnel_local.service.ground.containers import Forward
from windtunnel_local.service.ground.ports import Clock, Ports, Runner
from windtunnel_local.service.hosting.hosting import HostingService
from windtunnel_local.service.hosting.records import Records
from windtunnel_local.service.observed.cloudwatch_metrics import MetricsService
from windtunnel_local.service.observed.logs import LogsService
from windtunnel_local.service.service import Service
from windtunnel_local.service.training_jobs import TrainingJobService
from windtunnel_local.settings import Settings
from windtunnel_local.store.opening import FILE
from windtunnel_local.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from windtunnel_local.ui.app import Ui

# Simulated cores are processes that wait for each other much of the time, so several share a processor: even
# on two processors, four jobs of ml.trn1.2xlarge run at once. A job with more cores than the limit runs alone.
_CORES_A_PROCESSOR = 4
_LEAST_CORES = 8


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        """The current time in UTC."""
        return datetime.now(timezone.utc)

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back, to measure durations."""
        return monotonic()


class Page:
    """The page of `windtunnel ui`. Its modules are imported, and its application built, at the first request for it."""

    def __init__(self, service: Service, credentials: Credentials, port: int, home: Path) -> None:
        """Keep the arguments; the first call builds the application."""
        self._arguments = (service, credentials, port, __version__, service.clock.now().timestamp(), home)
        self._lock = threading.Lock()
        self._made: Ui | None = None

    def __call__(self) -> Ui:
        """The ASGI application for the paths below /ui, built by the first call. Thread-safe."""
        with self._lock:
            if self._made is None:
                from windtunnel_local.ui.app import Ui

                self._made = Ui(*self._arguments)
            return self._made

    def busy(self) -> bool:
        """Whether a process that the page has started (TensorBoard) runs."""
        return self._made is not None and self._made.busy()

    def end(self) -> None:
        """End the event streams of open pages, and the processes that the page has started. Does not block."""
        if self._made is not None:
            self._made.end()


@dataclass
class Application:
    """A backend whose parts are connected. `build` makes it, `close` ends it."""

    api: Api
    page: Page
    jobs: TrainingJobService
    endpoints: HostingService
    transforms: TransformJobService
    store: SqliteStore
    objects: FileObjects
    runner: Runner

    def resume(self) -> None:
        """Take over the jobs and endpoints that an earlier server left. Call once, before serving."""
        self.jobs.resume()
        self.endpoints.resume()
        self.transforms.resume()

    def busy(self) -> bool:
        """Whether a job, an endpoint or a process that the page has started runs."""
        return self.jobs.busy() or self.endpoints.busy() or self.transforms.busy() or self.page.busy()

    def close(self) -> None:
        """Stop following jobs and endpoints, and close all files. Containers run on: the next server adopts them."""
        self.jobs.shutdown()
        self.endpoints.shutdown()
        self.transforms.shutdown()
        self.objects.close()
        self.store.close()


def build(
    settings: Settings,
    credentials: Credentials,
    port: int,
    *,
    runner: Runner | None = None,
    clock: Clock | None = None,
) -> Application:
    """Build a backend for a server that listens on ``port``. Nothing runs before `Application.resume`.

    ``runner`` and ``clock`` replace the real ones in tests.
    """
    clock = clock or SystemClock()
    kind = runner_kind(settings.runner)
    runner = runner or kind.make(settings)
    store = SqliteStore(settings.home / FILE)
    objects = FileObjects(settings.home / "objects")
    # The SageMaker SDK v2 creates its default bucket, but code that uses boto3 alone expects it to exist.
    objects.create_bucket(default_bucket(credentials))
    config = _config(settings, credentials, kind, port)
    secret = credentials.secret_access_key
    ports = Ports(store, runner, objects, clock, config, sts.keys_of_jobs(secret))
    records = Records(store, clock, config)
    service = Service(
        TrainingJobService(ports),
        HostingService(ports, records),
        TransformJobService(ports, records),
        LogsService(store, config),
        MetricsService(store),
        objects,
        clock,
    )
    account = (credentials.account_id, credentials.region)
    services = Services(
        rpc=_operations(service, credentials),
        s3=S3(objects, *account),
        runtime=Runtime(service.endpoints, *account),
    )
    verifier = Verifier(credentials.access_key_id, secret, clock.now, service.jobs.goes_on)
    health = {"version": __version__, "pid": os.getpid()}
    page = Page(service, credentials, port, settings.home)
    api = Api(services, verifier, local_hosts(port), health, page)
    return Application(api, page, service.jobs, service.endpoints, service.transforms, store, objects, runner)


def _operations(service: Service, credentials: Credentials) -> dict[str, Operations]:
    """The operations that are served of each AWS service, by the service's signing name."""
    account_id = credentials.account_id
    keys = (credentials.access_key_id, credentials.secret_access_key)
    return {
        "sagemaker": {
            **sagemaker.operations(service.jobs, service.endpoints),
            **hosting.operations(service.endpoints),
            **batch.operations(service.transforms),
        },
        "logs": logs.operations(service.logs),
        "monitoring": cloudwatch.operations(service.metrics),
        "sts": sts.operations(account_id, *keys, service.clock.now),
        "iam": iam.operations(account_id),
    }


def _config(settings: Settings, credentials: Credentials, kind: RunnerKind, port: int) -> ServiceConfig:
    """The service's configuration: from the settings, with limits of cores and memory from this machine."""
    spare_bytes = None if kind.elsewhere else machine_memory.spare_bytes()
    most_cores = max(_LEAST_CORES, _CORES_A_PROCESSOR * (os.cpu_count() or 1))
    return ServiceConfig(
        home=settings.home,
        account_id=credentials.account_id,
        region=credentials.region,
        image=settings.image,
        image_contents=image_contents(containers_folder()) if kind.image else None,
        user=f"{os.getuid()}:{os.getgid()}",
        memory_cap_bytes=_bytes(settings.memory_gib) or spare_bytes,
        stop_grace_s=settings.stop_grace_s,
        api=Forward(port, str(api_socket(settings.home))),
        aws_in_jobs=settings.aws_in_jobs,
        strict_requirements=settings.strict_requirements,
        forward_sigterm=settings.forward_sigterm,
        max_cores=settings.max_cores or (sys.maxsize if kind.elsewhere else most_cores),
        max_memory_bytes=_bytes(settings.max_memory_gib) or spare_bytes or sys.maxsize,
        spot=settings.spot,
    )


def _bytes(gib: float | None) -> int:
    return int((gib or 0) * 2**30)


def default_bucket(credentials: Credentials) -> str:
    """The bucket that the SDK's local session uses unless another is named."""
    return f"windtunnel-{credentials.region}-{credentials.account_id}"
