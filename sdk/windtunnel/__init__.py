"""Rehearse SageMaker training jobs for AWS Trainium on this machine, and see the bill before paying it.

    from windtunnel import PyTorch

    estimator = PyTorch("train.py", framework_version="2.9", instance_type="ml.trn1.2xlarge",
                        instance_count=1, distribution={"torch_distributed": {"enabled": True}})
    job = estimator.fit({"train": "data/train"})
    job.report()

Names load when they are first used, so that importing this package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from windtunnel._version import __version__

if TYPE_CHECKING:
    from windtunnel.errors import (
        BackendError,
        BudgetExceeded,
        BudgetWarning,
        ConfigurationError,
        Detached,
        InputError,
        JobNotFinished,
        JobNotFound,
        PricesUnavailable,
        ServiceCallFailed,
        SourceError,
        TrainingJobFailed,
        UnknownImage,
        UnsupportedArgument,
        WaitTimeout,
        WindtunnelError,
    )
    from windtunnel.estimator.estimators import Estimator, HuggingFace, PyTorch
    from windtunnel.job.training_job import TrainingJob
    from windtunnel.priceperf import Architecture, FullScale, Workload
    from windtunnel.reports.comparison.report import ComparisonReport, compare
    from windtunnel.reports.comparison.scaling import ScalingReport, scaling
    from windtunnel.reports.diagnostics import Diagnostic, Diagnostics
    from windtunnel.reports.job.report import PricePerformance
    from windtunnel.request.inputs import FileSystemInput, ShuffleConfig, TrainingInput
    from windtunnel.request.instance_groups import InstanceGroup
    from windtunnel.request.training_request import TrainingRequest
    from windtunnel.session.aws import AwsSession
    from windtunnel.session.local import LocalSession
    from windtunnel.session.resolve import get_execution_role

_HOME_OF = {
    "Architecture": "priceperf",
    "AwsSession": "session.aws",
    "BackendError": "errors",
    "BudgetExceeded": "errors",
    "BudgetWarning": "errors",
    "ComparisonReport": "reports.comparison.report",
    "ConfigurationError": "errors",
    "Detached": "errors",
    "Diagnostic": "reports.diagnostics",
    "Diagnostics": "reports.diagnostics",
    "Estimator": "estimator.estimators",
    "FileSystemInput": "request.inputs",
    "FullScale": "priceperf",
    "HuggingFace": "estimator.estimators",
    "InputError": "errors",
    "InstanceGroup": "request.instance_groups",
    "JobNotFinished": "errors",
    "PricesUnavailable": "errors",
    "JobNotFound": "errors",
    "LocalSession": "session.local",
    "PricePerformance": "reports.job.report",
    "PyTorch": "estimator.estimators",
    "ScalingReport": "reports.comparison.scaling",
    "ServiceCallFailed": "errors",
    "ShuffleConfig": "request.inputs",
    "SourceError": "errors",
    "TrainingInput": "request.inputs",
    "TrainingJob": "job.training_job",
    "TrainingJobFailed": "errors",
    "TrainingRequest": "request.training_request",
    "UnknownImage": "errors",
    "UnsupportedArgument": "errors",
    "WaitTimeout": "errors",
    "WindtunnelError": "errors",
    "Workload": "priceperf",
    "compare": "reports.comparison.report",
    "get_execution_role": "session.resolve",
    "scaling": "reports.comparison.scaling",
}

__all__ = [
    "Architecture",
    "AwsSession",
    "BackendError",
    "BudgetExceeded",
    "BudgetWarning",
    "ComparisonReport",
    "ConfigurationError",
    "Detached",
    "Diagnostic",
    "Diagnostics",
    "Estimator",
    "FileSystemInput",
    "FullScale",
    "HuggingFace",
    "InputError",
    "InstanceGroup",
    "JobNotFinished",
    "JobNotFound",
    "LocalSession",
    "PricePerformance",
    "PricesUnavailable",
    "PyTorch",
    "ScalingReport",
    "ServiceCallFailed",
    "ShuffleConfig",
    "SourceError",
    "TrainingInput",
    "TrainingJob",
    "TrainingJobFailed",
    "TrainingRequest",
    "UnknownImage",
    "UnsupportedArgument",
    "WaitTimeout",
    "WindtunnelError",
    "Workload",
    "__version__",
    "compare",
    "get_execution_role",
    "scaling",
]


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it (PEP 562)."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'windtunnel' has no attribute {name!r}")
    value = getattr(import_module(f"windtunnel.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names, whether loaded or not."""
    return sorted({*globals(), *__all__})
