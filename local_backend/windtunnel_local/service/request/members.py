"""Every member of CreateTrainingJobRequest: honoured, kept, or refused, and why.

The one place where that is decided. A member that is in none of the tables, because a later version
of AWS's model has brought it, is refused by name; a test walks the model and finds it.

A path names a member and where it is, lists without an index. What is honoured or kept is listed
to the last member; what is refused covers all that lies below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from windtunnel_local.service.ground.errors import ValidationFailed

HONOURED = frozenset(
    {
        "TrainingJobName",
        "HyperParameters",
        "AlgorithmSpecification.TrainingImage",
        "AlgorithmSpecification.TrainingInputMode",
        "AlgorithmSpecification.MetricDefinitions.Name",
        "AlgorithmSpecification.MetricDefinitions.Regex",
        "AlgorithmSpecification.EnableSageMakerMetricsTimeSeries",
        "AlgorithmSpecification.ContainerEntrypoint",
        "AlgorithmSpecification.ContainerArguments",
        "InputDataConfig.ChannelName",
        "InputDataConfig.DataSource.S3DataSource.S3DataType",
        "InputDataConfig.DataSource.S3DataSource.S3Uri",
        "InputDataConfig.DataSource.S3DataSource.S3DataDistributionType",
        "InputDataConfig.DataSource.S3DataSource.InstanceGroupNames",
        "InputDataConfig.ContentType",
        "InputDataConfig.CompressionType",
        "InputDataConfig.RecordWrapperType",
        "InputDataConfig.InputMode",
        "InputDataConfig.ShuffleConfig.Seed",
        "OutputDataConfig.S3OutputPath",
        "OutputDataConfig.CompressionType",
        "ResourceConfig.InstanceType",
        "ResourceConfig.InstanceCount",
        "ResourceConfig.KeepAlivePeriodInSeconds",
        "ResourceConfig.InstanceGroups.InstanceType",
        "ResourceConfig.InstanceGroups.InstanceCount",
        "ResourceConfig.InstanceGroups.InstanceGroupName",
        "StoppingCondition.MaxRuntimeInSeconds",
        "StoppingCondition.MaxWaitTimeInSeconds",
        "StoppingCondition.MaxPendingTimeInSeconds",
        "EnableManagedSpotTraining",
        "RetryStrategy.MaximumRetryAttempts",
        "Tags.Key",
        "Tags.Value",
        "EnableNetworkIsolation",
        "CheckpointConfig.S3Uri",
        "CheckpointConfig.LocalPath",
        "TensorBoardOutputConfig.S3OutputPath",
        "TensorBoardOutputConfig.LocalPath",
        "Environment",
    }
)
"""It does here what it does on AWS, or its value is refused with the reason."""

_PROFILER = "system metrics of the instance; SDK v2 sends it by default"

KEPT: Mapping[str, str] = {
    "RoleArn": "nothing here asks for permissions",
    "OutputDataConfig.KmsKeyId": "nothing is encrypted here: files have the rights of their owner",
    "ResourceConfig.VolumeKmsKeyId": "nothing is encrypted here: files have the rights of their owner",
    "ResourceConfig.VolumeSizeInGB": "the disk is this machine's",
    "AlgorithmSpecification.TrainingImageConfig.TrainingRepositoryAccessMode": "images are the engine's",
    "EnableInterContainerTrafficEncryption": "traffic never leaves this machine",
    "ExperimentConfig.ExperimentName": "bookkeeping",
    "ExperimentConfig.TrialName": "bookkeeping",
    "ExperimentConfig.TrialComponentDisplayName": "bookkeeping",
    "ExperimentConfig.RunName": "bookkeeping",
    "InfraCheckConfig.EnableInfraCheck": "health checks of AWS's machines",
    "ProfilerConfig.S3OutputPath": _PROFILER,
    "ProfilerConfig.ProfilingIntervalInMilliseconds": _PROFILER,
    "ProfilerConfig.ProfilingParameters": _PROFILER,
    "ProfilerConfig.DisableProfiler": _PROFILER,
    "DebugHookConfig.S3OutputPath": "without collections nothing is written there; SDK v2 sends it by default",
    "DebugHookConfig.LocalPath": "without collections nothing is written there",
}
"""Remembered and shown by Describe, and why nothing else has to follow from it here."""

_PLAN = "capacity is this machine's; leave it out to rehearse the job"
_SERVERLESS = "it belongs to serverless model customization; name an image and ResourceConfig instead"
_NOT_HERE = "this backend does not simulate it; leave it out, or send the request to AWS"

REFUSED: Mapping[str, str] = {
    "AlgorithmSpecification.AlgorithmName": (
        "algorithms of AWS Marketplace are not here; name a TrainingImage instead"
    ),
    "AlgorithmSpecification.TrainingImageConfig.TrainingRepositoryAuthConfig": (
        "images are taken from the local container engine; pull the image there first"
    ),
    "InputDataConfig.DataSource.S3DataSource.AttributeNames": (
        "it goes with S3DataType AugmentedManifestFile, which is not simulated"
    ),
    "InputDataConfig.DataSource.S3DataSource.ModelAccessConfig": (
        "JumpStart models are not here; upload the model to S3 and name it as a channel"
    ),
    "InputDataConfig.DataSource.S3DataSource.HubAccessConfig": (
        "JumpStart hubs are not here; upload the model to S3 and name it as a channel"
    ),
    "InputDataConfig.DataSource.FileSystemDataSource": (
        "there is no EFS or FSx here; give the directory as S3Uri file:///path of an S3DataSource"
    ),
    "InputDataConfig.DataSource.DatasetSource": _SERVERLESS,
    "ResourceConfig.TrainingPlanArn": _PLAN,
    "ResourceConfig.InstancePlacementConfig": "there are no UltraServers here; leave it out",
    "ResourceConfig.InstancePreferences": (
        "each instance type is available here; name the one to rehearse as InstanceType"
    ),
    "ResourceConfig.SelectedInstanceType": "it is read-only: DescribeTrainingJob returns it",
    "ResourceConfig.SelectedInstanceCount": "it is read-only: DescribeTrainingJob returns it",
    "VpcConfig": "a local job is in no VPC; EnableNetworkIsolation rehearses a job without network",
    "DebugHookConfig.HookParameters": "the debugger is not simulated; remove it to rehearse the job",
    "DebugHookConfig.CollectionConfigurations": (
        "the debugger is not simulated; leave the list empty to rehearse the job"
    ),
    "DebugRuleConfigurations": "debugger rules are not simulated; remove them to rehearse the job",
    "ProfilerRuleConfigurations": "profiler rules are not simulated; remove them to rehearse the job",
    "RemoteDebugConfig": (
        "it opens AWS Systems Manager sessions; the local engine's own command (`docker exec -it`) enters a job here"
    ),
    "SessionChainingConfig": "there are no IAM sessions here whose tags could be chained; leave it out",
    "ServerlessJobConfig": _SERVERLESS,
    "MlflowConfig": (
        "there is no MLflow server of SageMaker here; set MLFLOW_TRACKING_URI in Environment instead"
    ),
    "ModelPackageConfig": "there is no model registry here; register the model of a job that ran on AWS",
}
"""What is not served, and what to do instead."""


def check_members(request: Mapping[str, Any]) -> None:
    """Refuse the first member that asks for something that is neither honoured nor kept.

    Raises:
        ValidationFailed: names the member and the reason.
    """
    for path, shown in _unserved(request, (), ()):
        known = refused(".".join(path))
        depth = len(known.split(".")) if known else _first_unknown(path)
        raise ValidationFailed(
            f"{'.'.join(shown[:depth])} is not supported: {REFUSED.get(known, _NOT_HERE)}."
        )


def refused(path: str) -> str:
    """The entry of `REFUSED` that covers a path; empty if none does."""
    return next((known for known in REFUSED if path == known or path.startswith(f"{known}.")), "")


Path = tuple[str, ...]


def _first_unknown(path: Path) -> int:
    """How many parts of a path name the highest member that no table has anything of."""
    known = {tuple(entry.split(".")) for entry in (*HONOURED, *KEPT, *REFUSED)}
    return next(
        (end for end in range(1, len(path)) if not any(entry[:end] == path[:end] for entry in known)),
        len(path),
    )


def _unserved(value: Any, path: Path, shown: Path) -> Iterator[tuple[Path, Path]]:
    """Paths of the values that ask for what is not served, each also as a message shows it.

    `false`, 0 and what is empty, and structures of such, ask for nothing.
    """
    name = ".".join(path)
    if name in HONOURED or name in KEPT:
        return
    if isinstance(value, Mapping):
        for member, item in value.items():
            yield from _unserved(item, (*path, member), (*shown, member))
    elif isinstance(value, list):
        for item in value:
            label = item.get("ChannelName") if isinstance(item, Mapping) else None
            yield from _unserved(item, path, (*shown[:-1], f"{shown[-1]}[{label}]") if label else shown)
    elif value:
        yield path, shown
