"""The table of all members of CreateTrainingJobRequest: honoured, kept or refused (see `members`)."""

from __future__ import annotations

from collections.abc import Mapping

from windtunnel_local.service.request.members import Members

_HONOURED = frozenset(
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

_NOT_ENCRYPTED = "nothing is encrypted here: files have the rights of their owner; a job's log says so"
_PROFILER = "system metrics of the instance; SDK v2 sends it by default"

_KEPT: Mapping[str, str] = {
    "RoleArn": "nothing here asks for permissions",
    "OutputDataConfig.KmsKeyId": _NOT_ENCRYPTED,
    "ResourceConfig.VolumeKmsKeyId": _NOT_ENCRYPTED,
    "ResourceConfig.VolumeSizeInGB": "the disk is this machine's",
    "AlgorithmSpecification.TrainingImageConfig.TrainingRepositoryAccessMode": "images are the engine's",
    "EnableInterContainerTrafficEncryption": "traffic never leaves this machine",
    "VpcConfig.SecurityGroupIds": "a job here has this machine's network; its log says so",
    "VpcConfig.Subnets": "a job here has this machine's network; its log says so",
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

_PLAN = "capacity is this machine's; leave it out to rehearse the job"
_SERVERLESS = "it belongs to serverless model customization; name an image and ResourceConfig instead"

_REFUSED: Mapping[str, str] = {
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

TRAINING_JOB = Members(_HONOURED, _KEPT, _REFUSED)
