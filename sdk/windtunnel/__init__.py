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
    from windtunnel.comparing import ComparisonReport, ScalingReport, compare, scaling
    from windtunnel.diagnostics import Diagnostic, Diagnostics
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
    from windtunnel.estimator import Estimator, HuggingFace, PyTorch
    from windtunnel.inputs import FileSystemInput, ShuffleConfig, TrainingInput
    from windtunnel.instance_groups import InstanceGroup
    from windtunnel.job import TrainingJob
    from windtunnel.priceperf import Architecture, FullScale, Workload
    from windtunnel.report import PricePerformance
    from windtunnel.request import TrainingRequest
    from windtunnel.session import AwsSession, LocalSession, get_execution_role

_HOME_OF = {
    "Architecture": "priceperf",
    "AwsSession": "session",
    "BackendError": "errors",
    "BudgetExceeded": "errors",
    "BudgetWarning": "errors",
    "ComparisonReport": "comparing",
    "ConfigurationError": "errors",
    "Detached": "errors",
    "Diagnostic": "diagnostics",
    "Diagnostics": "diagnostics",
    "Estimator": "estimator",
    "FileSystemInput": "inputs",
    "FullScale": "priceperf",
    "HuggingFace": "estimator",
    "InputError": "errors",
    "InstanceGroup": "instance_groups",
    "JobNotFinished": "errors",
    "PricesUnavailable": "errors",
    "JobNotFound": "errors",
    "LocalSession": "session",
    "PricePerformance": "report",
    "PyTorch": "estimator",
    "ScalingReport": "comparing",
    "ServiceCallFailed": "errors",
    "ShuffleConfig": "inputs",
    "SourceError": "errors",
    "TrainingInput": "inputs",
    "TrainingJob": "job",
    "TrainingJobFailed": "errors",
    "TrainingRequest": "request",
    "UnknownImage": "errors",
    "UnsupportedArgument": "errors",
    "WaitTimeout": "errors",
    "WindtunnelError": "errors",
    "Workload": "priceperf",
    "compare": "comparing",
    "get_execution_role": "session",
    "scaling": "comparing",
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
