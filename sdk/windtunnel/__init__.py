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

from windtunnel._version import __version__ as __version__

TYPE_CHECKING = False  # without an import of typing, which would take longer than all else here
if TYPE_CHECKING:
    from typing import Any

    from windtunnel.errors import BackendError as BackendError
    from windtunnel.errors import BudgetExceeded as BudgetExceeded
    from windtunnel.errors import BudgetWarning as BudgetWarning
    from windtunnel.errors import ConfigurationError as ConfigurationError
    from windtunnel.errors import Detached as Detached
    from windtunnel.errors import EndpointFailed as EndpointFailed
    from windtunnel.errors import EndpointNotFound as EndpointNotFound
    from windtunnel.errors import InputError as InputError
    from windtunnel.errors import JobNotFinished as JobNotFinished
    from windtunnel.errors import JobNotFound as JobNotFound
    from windtunnel.errors import PricesUnavailable as PricesUnavailable
    from windtunnel.errors import RunFailed as RunFailed
    from windtunnel.errors import ServiceCallFailed as ServiceCallFailed
    from windtunnel.errors import SourceError as SourceError
    from windtunnel.errors import SourceWarning as SourceWarning
    from windtunnel.errors import TrainingJobFailed as TrainingJobFailed
    from windtunnel.errors import TransformJobFailed as TransformJobFailed
    from windtunnel.errors import UnknownImage as UnknownImage
    from windtunnel.errors import UnsupportedArgument as UnsupportedArgument
    from windtunnel.errors import WaitTimeout as WaitTimeout
    from windtunnel.errors import WindtunnelError as WindtunnelError
    from windtunnel.estimator.estimators import Estimator as Estimator
    from windtunnel.estimator.estimators import HuggingFace as HuggingFace
    from windtunnel.estimator.estimators import PyTorch as PyTorch
    from windtunnel.hosting.async_inference import AsyncInferenceConfig as AsyncInferenceConfig
    from windtunnel.hosting.async_inference import AsyncInferenceResponse as AsyncInferenceResponse
    from windtunnel.hosting.async_inference import AsyncPredictor as AsyncPredictor
    from windtunnel.hosting.async_inference import WaiterConfig as WaiterConfig
    from windtunnel.hosting.deserializers import BytesDeserializer as BytesDeserializer
    from windtunnel.hosting.deserializers import CSVDeserializer as CSVDeserializer
    from windtunnel.hosting.deserializers import JSONDeserializer as JSONDeserializer
    from windtunnel.hosting.deserializers import NumpyDeserializer as NumpyDeserializer
    from windtunnel.hosting.deserializers import StringDeserializer as StringDeserializer
    from windtunnel.hosting.model import Model as Model
    from windtunnel.hosting.predictor import Predictor as Predictor
    from windtunnel.hosting.pytorch_model import PyTorchModel as PyTorchModel
    from windtunnel.hosting.serializers import CSVSerializer as CSVSerializer
    from windtunnel.hosting.serializers import IdentitySerializer as IdentitySerializer
    from windtunnel.hosting.serializers import JSONSerializer as JSONSerializer
    from windtunnel.hosting.serializers import NumpySerializer as NumpySerializer
    from windtunnel.hosting.transform_job import TransformJob as TransformJob
    from windtunnel.hosting.transformer import Transformer as Transformer
    from windtunnel.job.training_job import TrainingJob as TrainingJob
    from windtunnel.priceperf import Architecture as Architecture
    from windtunnel.priceperf import FullScale as FullScale
    from windtunnel.priceperf import PerDevice as PerDevice
    from windtunnel.priceperf import Workload as Workload
    from windtunnel.reports.comparison.report import ComparisonReport as ComparisonReport
    from windtunnel.reports.comparison.report import compare as compare
    from windtunnel.reports.comparison.scaling import ScalingReport as ScalingReport
    from windtunnel.reports.comparison.scaling import scaling as scaling
    from windtunnel.reports.diagnostics import Diagnostic as Diagnostic
    from windtunnel.reports.diagnostics import Diagnostics as Diagnostics
    from windtunnel.reports.job.report import PricePerformance as PricePerformance
    from windtunnel.reports.plan.report import PlanReport as PlanReport
    from windtunnel.reports.plan.report import plan as plan
    from windtunnel.request.inputs import FileSystemInput as FileSystemInput
    from windtunnel.request.inputs import ShuffleConfig as ShuffleConfig
    from windtunnel.request.inputs import TrainingInput as TrainingInput
    from windtunnel.request.instance_groups import InstanceGroup as InstanceGroup
    from windtunnel.request.training_request import TrainingRequest as TrainingRequest
    from windtunnel.session.aws import AwsSession as AwsSession
    from windtunnel.session.local import LocalSession as LocalSession
    from windtunnel.session.local import Session as Session
    from windtunnel.session.resolve import get_execution_role as get_execution_role

_NAMES = {
    "errors": (
        "BackendError BudgetExceeded BudgetWarning ConfigurationError Detached EndpointFailed "
        "EndpointNotFound InputError JobNotFinished JobNotFound PricesUnavailable RunFailed "
        "ServiceCallFailed SourceError SourceWarning TrainingJobFailed TransformJobFailed UnknownImage "
        "UnsupportedArgument WaitTimeout WindtunnelError"
    ),
    "estimator.estimators": "Estimator HuggingFace PyTorch",
    "hosting.async_inference": "AsyncInferenceConfig AsyncInferenceResponse AsyncPredictor WaiterConfig",
    "hosting.deserializers": (
        "BytesDeserializer CSVDeserializer JSONDeserializer NumpyDeserializer StringDeserializer"
    ),
    "hosting.model": "Model",
    "hosting.predictor": "Predictor",
    "hosting.pytorch_model": "PyTorchModel",
    "hosting.serializers": "CSVSerializer IdentitySerializer JSONSerializer NumpySerializer",
    "hosting.transform_job": "TransformJob",
    "hosting.transformer": "Transformer",
    "job.training_job": "TrainingJob",
    "priceperf": "Architecture FullScale PerDevice Workload",
    "reports.comparison.report": "ComparisonReport compare",
    "reports.comparison.scaling": "ScalingReport scaling",
    "reports.diagnostics": "Diagnostic Diagnostics",
    "reports.job.report": "PricePerformance",
    "reports.plan.report": "PlanReport plan",
    "request.inputs": "FileSystemInput ShuffleConfig TrainingInput",
    "request.instance_groups": "InstanceGroup",
    "request.training_request": "TrainingRequest",
    "session.aws": "AwsSession",
    "session.local": "LocalSession Session",
    "session.resolve": "get_execution_role",
}
"""Modules of the API, each with the public names that it defines."""
_HOME_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted([*_HOME_OF, "__version__"])


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it (PEP 562)."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'windtunnel' has no attribute {name!r}")
    value = getattr(import_module(f"windtunnel.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List all public names, also those not loaded yet."""
    return sorted({*globals(), *__all__})
