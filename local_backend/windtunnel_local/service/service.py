"""The whole service as one object, which the API's operations and the page call."""

from __future__ import annotations

from dataclasses import dataclass

from windtunnel_local.service.batch.transform_jobs import TransformJobService
from windtunnel_local.service.ground.ports import Clock, ObjectStore
from windtunnel_local.service.hosting.hosting import HostingService
from windtunnel_local.service.observed.cloudwatch_metrics import MetricsService
from windtunnel_local.service.observed.logs import LogsService
from windtunnel_local.service.training_jobs import TrainingJobService


@dataclass(frozen=True)
class Service:
    """The parts of the service. Each is thread-safe."""

    jobs: TrainingJobService
    endpoints: HostingService
    transforms: TransformJobService
    logs: LogsService
    metrics: MetricsService
    objects: ObjectStore
    clock: Clock
