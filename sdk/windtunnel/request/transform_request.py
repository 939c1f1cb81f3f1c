"""The request that transforms data in batch: CreateTransformJob. Pure.

Members and defaults are those that SageMaker SDK v2 sends; limits are those of AWS's API reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windtunnel.errors import ConfigurationError
from windtunnel.request import checks
from windtunnel.request.arguments import Tags, tag_list
from windtunnel.request.inputs import split_s3
from windtunnel.request.members import only_given

MAX_ENVIRONMENT = 16
MAX_ENVIRONMENT_TEXT = 10240
MAX_PAYLOAD_MB = 100
DEFAULT_PAYLOAD_MB = 6


@dataclass(frozen=True)
class Transforming:
    """Where a transform job runs, and how its answers are stored. Names are `Transformer`'s; None: AWS's default."""

    instance_count: int
    instance_type: str
    strategy: str | None = None
    assemble_with: str | None = None
    output_kms_key: str | None = None
    accept: str | None = None
    max_concurrent_transforms: int | None = None
    max_payload: int | None = None
    tags: Tags | None = None
    env: Mapping[str, str] | None = None
    volume_kms_key: str | None = None

    def check(self) -> None:
        """Check the values before AWS would refuse them.

        Raises:
            ConfigurationError: names the argument, the value and the limit.
        """
        checks.check_serving_instance(self.instance_type)
        checks.check_range("instance_count", self.instance_count, 1, None, "")
        _check_choice("strategy", self.strategy, "MultiRecord", "SingleRecord")
        _check_choice("assemble_with", self.assemble_with, "Line", "None")
        if self.max_concurrent_transforms is not None:
            checks.check_range("max_concurrent_transforms", self.max_concurrent_transforms, 0, None, "")
        if self.max_payload is not None:
            checks.check_range("max_payload", self.max_payload, 0, MAX_PAYLOAD_MB, "MB")
        at_once = (self.max_concurrent_transforms or 0) * (
            DEFAULT_PAYLOAD_MB if self.max_payload is None else self.max_payload
        )
        if at_once > MAX_PAYLOAD_MB:
            raise ConfigurationError(
                f"max_concurrent_transforms * max_payload is {at_once} MB, at most {MAX_PAYLOAD_MB}. Lower one of"
                f" them; max_payload is {DEFAULT_PAYLOAD_MB} where none is given."
            )
        checks.check_environment(self.env or {}, MAX_ENVIRONMENT_TEXT)
        if len(self.env or {}) > MAX_ENVIRONMENT:
            raise ConfigurationError(f"env: {len(self.env or {})} variables, at most {MAX_ENVIRONMENT}.")
        checks.check_tags(self.tags or [])


def transform_request(
    name: str,
    model: str,
    output_path: str,
    transforming: Transforming,
    *,
    data: str,
    data_type: str,
    content_type: str | None,
    compression_type: str | None,
    split_type: str | None,
    input_filter: str | None,
    output_filter: str | None,
    join_source: str | None,
    experiment_config: Mapping[str, str] | None,
    model_client_config: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """CreateTransformJob's members. Names from ``data`` on are `Transformer.transform`'s.

    Raises:
        ConfigurationError: what AWS would refuse; names the argument, the value and what is valid.
    """
    checks.check_job_name(name)
    split_s3(output_path)
    transforming.check()
    split_s3(data)
    _check_choice("data_type", data_type, "S3Prefix", "ManifestFile")
    _check_choice("compression_type", compression_type, "Gzip", "None")
    _check_choice("split_type", split_type, "None", "Line", "RecordIO", "TFRecord")
    _check_choice("join_source", join_source, "Input", "None")
    source = {"S3DataType": data_type, "S3Uri": data}
    processing = only_given(InputFilter=input_filter, OutputFilter=output_filter, JoinSource=join_source)
    return {
        "TransformJobName": name,
        "ModelName": model,
        "TransformInput": {
            "DataSource": {"S3DataSource": source},
            **only_given(
                CompressionType=compression_type,
                ContentType=content_type,
                SplitType=split_type,
            ),
        },
        "TransformOutput": {
            "S3OutputPath": output_path,
            **only_given(
                AssembleWith=transforming.assemble_with,
                Accept=transforming.accept,
                KmsKeyId=transforming.output_kms_key,
            ),
        },
        "TransformResources": {
            "InstanceCount": transforming.instance_count,
            "InstanceType": transforming.instance_type,
            **only_given(VolumeKmsKeyId=transforming.volume_kms_key),
        },
        **only_given(
            BatchStrategy=transforming.strategy,
            MaxConcurrentTransforms=transforming.max_concurrent_transforms,
            MaxPayloadInMB=transforming.max_payload,
            Environment=dict(transforming.env) if transforming.env else None,
            Tags=tag_list(transforming.tags) or None,
            DataProcessing=processing or None,
            ExperimentConfig=dict(experiment_config) if experiment_config else None,
            ModelClientConfig=dict(model_client_config) if model_client_config else None,
        ),
    }


def _check_choice(name: str, value: str | None, *valid: str) -> None:
    if value is not None and value not in valid:
        raise ConfigurationError(f"{name}={value!r} is not valid: {' or '.join(map(repr, valid))}.")
