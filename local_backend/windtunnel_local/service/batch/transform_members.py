"""The table of all members of CreateTransformJob's request: honoured, kept or refused (see `request.members`)."""

from __future__ import annotations

from windtunnel_local.service.request.members import Members

_NOT_ENCRYPTED = "nothing is encrypted here: files have the rights of their owner"
_SOURCE = "TransformInput.DataSource.S3DataSource"

TRANSFORM_JOB = Members(
    frozenset(
        {
            "TransformJobName",
            "ModelName",
            "MaxConcurrentTransforms",
            "ModelClientConfig.InvocationsTimeoutInSeconds",
            "ModelClientConfig.InvocationsMaxRetries",
            "MaxPayloadInMB",
            "BatchStrategy",
            "Environment",
            f"{_SOURCE}.S3DataType",
            f"{_SOURCE}.S3Uri",
            "TransformInput.ContentType",
            "TransformInput.CompressionType",
            "TransformInput.SplitType",
            "TransformOutput.S3OutputPath",
            "TransformOutput.Accept",
            "TransformOutput.AssembleWith",
            "TransformResources.InstanceType",
            "TransformResources.InstanceCount",
            "DataProcessing.InputFilter",
            "DataProcessing.OutputFilter",
            "DataProcessing.JoinSource",
            "Tags.Key",
            "Tags.Value",
        }
    ),
    {
        "TransformOutput.KmsKeyId": _NOT_ENCRYPTED,
        "TransformResources.VolumeKmsKeyId": _NOT_ENCRYPTED,
        "TransformResources.TransformAmiVersion": "the machine is this one",
        **dict.fromkeys(
            (
                "ExperimentConfig.ExperimentName",
                "ExperimentConfig.TrialName",
                "ExperimentConfig.TrialComponentDisplayName",
                "ExperimentConfig.RunName",
            ),
            "there are no experiments here; Describe shows which one it belongs to",
        ),
    },
    {"DataCaptureConfig": "requests are not captured here; leave it out"},
)
