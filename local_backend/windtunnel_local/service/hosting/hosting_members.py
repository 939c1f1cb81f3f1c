"""The tables of all request members for models and endpoints: honoured, kept or refused (see `request.members`)."""

from __future__ import annotations

from windtunnel_local.service.request.members import Members

_CONTAINERS = ("PrimaryContainer", "Containers")
_VARIANT = "ProductionVariants"
_CAPACITY = "capacity is this machine's"
_NETWORK = dict.fromkeys(
    ("VpcConfig.SecurityGroupIds", "VpcConfig.Subnets"), "containers here are reached from this machine"
)


def _of_containers(*members: str) -> tuple[str, ...]:
    return tuple(f"{container}.{member}" for container in _CONTAINERS for member in members)


def _of_variants(*members: str) -> tuple[str, ...]:
    return tuple(f"{_VARIANT}.{member}" for member in members)


MODEL = Members(
    frozenset(
        {
            "ModelName",
            "Tags.Key",
            "Tags.Value",
            *_of_containers(
                "Image",
                "Mode",
                "ModelDataUrl",
                "Environment",
                "ModelDataSource.S3DataSource.S3Uri",
                "ModelDataSource.S3DataSource.S3DataType",
                "ModelDataSource.S3DataSource.CompressionType",
            ),
        }
    ),
    {
        "ExecutionRoleArn": "nothing here asks for permissions",
        **_NETWORK,
        **dict.fromkeys(
            _of_containers(
                "ImageConfig.RepositoryAccessMode",
                "ImageConfig.RepositoryAuthConfig.RepositoryCredentialsProviderArn",
            ),
            "images are the engine's",
        ),
        **dict.fromkeys(
            _of_containers("ContainerHostname"),
            "it tells apart containers of one pipeline; here there is one",
        ),
    },
    {
        **dict.fromkeys(
            _of_containers("ModelPackageName", "InferenceSpecificationName"),
            "there is no model registry here; name an Image and ModelDataUrl",
        ),
        **dict.fromkeys(
            _of_containers("MultiModelConfig"),
            "endpoints of several models are not served; make one for each",
        ),
        **dict.fromkeys(
            _of_containers("AdditionalModelDataSources"), "put all that the model needs into one archive"
        ),
        **dict.fromkeys(
            _of_containers(
                "ModelDataSource.S3DataSource.ModelAccessConfig",
                "ModelDataSource.S3DataSource.HubAccessConfig",
                "ModelDataSource.S3DataSource.ManifestS3Uri",
                "ModelDataSource.S3DataSource.ETag",
                "ModelDataSource.S3DataSource.ManifestEtag",
            ),
            "JumpStart models are not here; upload the model to S3",
        ),
        **dict.fromkeys(
            _of_containers("ContainerMetricsConfig"),
            "metrics of the container's own are not collected; leave it out",
        ),
        "InferenceExecutionConfig": "inference pipelines are not served; put the steps into one container",
        "EnableNetworkIsolation": "a container that is cut off could not be called from here; leave it out",
    },
)

ENDPOINT_CONFIG = Members(
    frozenset(
        {
            "EndpointConfigName",
            "Tags.Key",
            "Tags.Value",
            *_of_variants(
                "VariantName",
                "ModelName",
                "InitialInstanceCount",
                "InstanceType",
                "InitialVariantWeight",
                "ContainerStartupHealthCheckTimeoutInSeconds",
            ),
            "AsyncInferenceConfig.ClientConfig.MaxConcurrentInvocationsPerInstance",
            "AsyncInferenceConfig.OutputConfig.S3OutputPath",
            "AsyncInferenceConfig.OutputConfig.S3FailurePath",
        }
    ),
    {
        "AsyncInferenceConfig.OutputConfig.KmsKeyId": "nothing is encrypted here",
        "KmsKeyId": "nothing is encrypted here: files have the rights of their owner",
        "ExecutionRoleArn": "nothing here asks for permissions",
        **_NETWORK,
        f"{_VARIANT}.VolumeSizeInGB": "the disk is this machine's",
        f"{_VARIANT}.VariantInstanceProvisionTimeoutInSeconds": _CAPACITY,
        f"{_VARIANT}.ModelDataDownloadTimeoutInSeconds": "the model comes from this machine's disk",
        f"{_VARIANT}.InferenceAmiVersion": "the machine is this one",
        f"{_VARIANT}.EnableSSMAccess": "the local engine's own command (`docker exec -it`) enters a container",
        f"{_VARIANT}.RoutingConfig.RoutingStrategy": "the instance with the least to do is asked in any case",
        **dict.fromkeys(
            (
                "DataCaptureConfig.InitialSamplingPercentage",
                "DataCaptureConfig.DestinationS3Uri",
                "DataCaptureConfig.KmsKeyId",
                "DataCaptureConfig.CaptureOptions.CaptureMode",
                "DataCaptureConfig.CaptureContentTypeHeader.CsvContentTypes",
                "DataCaptureConfig.CaptureContentTypeHeader.JsonContentTypes",
            ),
            "without EnableCapture nothing is captured",
        ),
        "MetricsConfig.EnableEnhancedMetrics": "metrics come by the minute, and no others",
        "MetricsConfig.EnableDetailedObservability": "metrics come by the minute, and no others",
        "MetricsConfig.MetricPublishFrequencyInSeconds": "metrics come by the minute, and no others",
    },
    {
        "DataCaptureConfig.EnableCapture": "requests are not captured here; set it to false",
        "AsyncInferenceConfig.OutputConfig.NotificationConfig": (
            "there is no SNS here; leave it out, and look for the answer at its OutputLocation"
        ),
        "ShadowProductionVariants": "shadow variants are not served; use ProductionVariants alone",
        "ExplainerConfig": "explanations are not served; leave it out",
        "EnableNetworkIsolation": "a container that is cut off could not be called from here; leave it out",
        "CrossRegionTrafficConfig": "there is one region here; leave it out",
        f"{_VARIANT}.ServerlessConfig": "name an InstanceType and an InitialInstanceCount",
        f"{_VARIANT}.InstancePools": "name one InstanceType",
        f"{_VARIANT}.AcceleratorType": "AWS has ended Elastic Inference; leave it out",
        f"{_VARIANT}.CoreDumpConfig": "no cores are dumped here; leave it out",
        f"{_VARIANT}.ManagedInstanceScaling": f"{_CAPACITY}; set InitialInstanceCount",
        f"{_VARIANT}.RoutingConfig.PrefixAwareRoutingConfig": "requests are not looked into; leave it out",
        f"{_VARIANT}.CapacityReservationConfig": f"{_CAPACITY}; leave it out",
        f"{_VARIANT}.AcceleratorPartitionLayouts": f"{_CAPACITY}; leave it out",
    },
)

_ALL_AT_ONCE = "the new instances take over all at once, when all of them are ready; leave it out"

ENDPOINT = Members(
    frozenset({"EndpointName", "EndpointConfigName", "Tags.Key", "Tags.Value", "RetainAllVariantProperties"}),
    {},
    {
        "DeploymentConfig": _ALL_AT_ONCE,
        "RetainDeploymentConfig": _ALL_AT_ONCE,
        "ExcludeRetainedVariantProperties": "retain all properties of the variants, or none",
    },
)
"""The members of CreateEndpoint and UpdateEndpoint."""
