"""The composition root: the only file that sees everything."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from time import monotonic

from windtunnel_local.api import Api, Services, batch, cloudwatch, hosting, iam, logs, sagemaker, sts
from windtunnel_local.api.dispatch import local_hosts
from windtunnel_local.api.invocations import Runtime
from windtunnel_local.api.s3 import S3
from windtunnel_local.api.sigv4 import Verifier
from windtunnel_local.api_socket import api_socket
from windtunnel_local.credentials import Credentials
from windtunnel_local.objects import FileObjects
from windtunnel_local.runner import runner_kind
from windtunnel_local.runner.kind import RunnerKind
from windtunnel_local.runner.sources import containers_folder, image_contents
from windtunnel_local.service.batch.transform_jobs import TransformJobService
from windtunnel_local.service.ground.config import ServiceConfig
from windtunnel_local.service.ground.containers import Forward
from windtunnel_local.service.ground.ports import Clock, Ports, Runner
from windtunnel_local.service.hosting.hosting import HostingService
from windtunnel_local.service.observed.cloudwatch_metrics import MetricsService
from windtunnel_local.service.observed.logs import LogsService
from windtunnel_local.service.training_jobs import TrainingJobService
from windtunnel_local.settings import Settings, version
from windtunnel_local.store.opening import FILE
from windtunnel_local.store.sqlite import SqliteStore

# Simulated cores are processes that wait for each other much of the time, so several share a processor:
# four jobs of ml.trn1.2xlarge run at once even on two. A larger job runs alone, whatever it needs.
_CORES_A_PROCESSOR = 4
_LEAST_CORES = 8


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        """The current time in UTC."""
        return datetime.now(timezone.utc)

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        return monotonic()


@dataclass
class Application:
    """A wired backend. Made by `build`, ended by `close`."""

    api: Api
    jobs: TrainingJobService
    endpoints: HostingService
    transforms: TransformJobService
    store: SqliteStore
    objects: FileObjects
    runner: Runner

    def resume(self) -> None:
        """Adopt what an earlier server left. Call once, before serving."""
        self.jobs.resume()
        self.endpoints.resume()
        self.transforms.resume()

    def busy(self) -> bool:
        """Whether any job or endpoint runs."""
        return self.jobs.busy() or self.endpoints.busy() or self.transforms.busy()

    def close(self) -> None:
        """Let go of running jobs and endpoints (the next server adopts their containers), close all files."""
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
    """Wire a backend that will be reached at ``port``; nothing runs before `Application.resume`.

    ``runner`` and ``clock`` take the place of the real ones.
    """
    clock = clock or SystemClock()
    kind = runner_kind(settings.runner)
    runner = runner or kind.make(settings)
    store = SqliteStore(settings.home / FILE)
    objects = FileObjects(settings.home / "objects")
    # SDK v2's default_bucket() makes it, and whoever uses boto3 alone expects it: it is simply there.
    objects.create_bucket(default_bucket(credentials))
    memory_cap_bytes, max_cores, max_memory_bytes = _limits(settings, kind)
    config = ServiceConfig(
        home=settings.home,
        account_id=credentials.account_id,
        region=credentials.region,
        image=settings.image,
        image_contents=image_contents(containers_folder()) if kind.image else None,
        user=f"{os.getuid()}:{os.getgid()}",
        memory_cap_bytes=memory_cap_bytes,
        stop_grace_s=settings.stop_grace_s,
        api=Forward(port, str(api_socket(settings.home))),
        aws_in_jobs=settings.aws_in_jobs,
        strict_requirements=settings.strict_requirements,
        forward_sigterm=settings.forward_sigterm,
        max_cores=max_cores,
        max_memory_bytes=max_memory_bytes,
        spot_interruptions=settings.spot.interruptions,
        spot_seed=settings.spot.seed,
        spot_mean_s=settings.spot.mean_s,
        spot_after=settings.spot.after,
        spot_discount=settings.spot.discount,
    )
    secret = credentials.secret_access_key
    ports = Ports(store, runner, objects, clock, config, sts.keys_of_jobs(secret))
    jobs = TrainingJobService(ports)
    endpoints, transforms = HostingService(ports), TransformJobService(ports)
    services = Services(
        rpc={
            "sagemaker": {
                **sagemaker.operations(jobs, endpoints),
                **hosting.operations(endpoints),
                **batch.operations(transforms),
            },
            "logs": logs.operations(LogsService(store, config)),
            "monitoring": cloudwatch.operations(MetricsService(store)),
            "sts": sts.operations(credentials.account_id, credentials.access_key_id, secret, clock.now),
            "iam": iam.operations(credentials.account_id),
        },
        s3=S3(objects, credentials.account_id, credentials.region),
        runtime=Runtime(endpoints, credentials.account_id, credentials.region),
    )
    verifier = Verifier(credentials.access_key_id, secret, clock.now, jobs.goes_on)
    health = {"version": version(), "pid": os.getpid()}
    return Application(
        Api(services, verifier, local_hosts(port), health),
        jobs,
        endpoints,
        transforms,
        store,
        objects,
        runner,
    )


def _limits(settings: Settings, kind: RunnerKind) -> tuple[int | None, int, int]:
    """Most memory of a container (None: the instance's), most cores and memory of all jobs together."""
    spare_bytes = None if kind.elsewhere else _spare_memory_bytes()
    most_cores = max(_LEAST_CORES, _CORES_A_PROCESSOR * (os.cpu_count() or 1))
    return (
        int(settings.memory_gib * 2**30) if settings.memory_gib else spare_bytes,
        settings.max_cores or (sys.maxsize if kind.elsewhere else most_cores),
        int(settings.max_memory_gib * 2**30) if settings.max_memory_gib else spare_bytes or sys.maxsize,
    )


def _spare_memory_bytes() -> int:
    """90 % of this machine's memory, so that a job that takes too much ends alone, not with the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 9 // 10


def default_bucket(credentials: Credentials) -> str:
    """The bucket that the SDK's local session uses unless another is named."""
    return f"windtunnel-{credentials.region}-{credentials.account_id}"
