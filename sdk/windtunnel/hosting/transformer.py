"""Batch transform. Names, positions and meanings are SageMaker SDK v2's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windtunnel.errors import ConfigurationError, UnsupportedArgument
from windtunnel.hosting.transform_job import TransformJob
from windtunnel.request.arguments import Tags
from windtunnel.request.build import base_from_job_name, job_name_from_base
from windtunnel.request.inputs import split_s3
from windtunnel.request.transform_request import Transforming, transform_request
from windtunnel.session.resolve import resolve_session


class Transformer:
    """Runs whole files through an existing model. SDK v2's ``sagemaker.transformer.Transformer``.

    The constructor makes no call; `transform` starts a job. `job.transformer()` and `Model.transformer()` make a
    transformer with their model.

    Args:
        model_name: name of an existing model.
        instance_count: number of instances, which share the files.
        instance_type: SageMaker's name of it, e.g. ``ml.c5.xlarge``.
        strategy: "MultiRecord": as many records as fit in each request; "SingleRecord": one.
        assemble_with: "Line": a newline ends each answer; "None": answers are joined without one.
        output_path: ``s3://`` prefix of results; default: the session's bucket and the job's name.
        output_kms_key: encrypts the output.
        accept: MIME type that the model is asked to answer with.
        max_concurrent_transforms: requests at once to each instance; default: the container's choice, or 1.
        max_payload: MB of a request, 0 to 100; default: the container's choice, or 6.
        tags: tags of the job.
        env: environment variables of the container, 16 at most.
        base_transform_job_name: start of job names; default: the model's name.
        sagemaker_session, session: where it runs; default: this machine.
        volume_kms_key: encrypts the instances' storage.

    Raises:
        ConfigurationError: AWS would refuse a value.
    """

    def __init__(
        self,
        model_name: str,
        instance_count: int,
        instance_type: str,
        strategy: str | None = None,
        assemble_with: str | None = None,
        output_path: str | None = None,
        output_kms_key: str | None = None,
        accept: str | None = None,
        max_concurrent_transforms: int | None = None,
        max_payload: int | None = None,
        tags: Tags | None = None,
        env: Mapping[str, str] | None = None,
        base_transform_job_name: str | None = None,
        sagemaker_session: Any = None,
        volume_kms_key: str | None = None,
        *,
        session: Any = None,
    ) -> None:
        self._transforming = Transforming(
            instance_count,
            instance_type,
            strategy,
            assemble_with,
            output_kms_key,
            accept,
            max_concurrent_transforms,
            max_payload,
            tags,
            env,
            volume_kms_key,
        )
        self._transforming.check()
        self.model_name = model_name
        self.output_path = output_path
        """``s3://`` prefix of the latest job's output; before the first job, the one given."""
        self.base_transform_job_name = base_transform_job_name or model_name
        self.session = self.sagemaker_session = resolve_session(session, sagemaker_session)
        self.latest_transform_job: TransformJob | None = None
        self._output_path = output_path

    def transform(
        self,
        data: str,
        data_type: str = "S3Prefix",
        content_type: str | None = None,
        compression_type: str | None = None,
        split_type: str | None = None,
        job_name: str | None = None,
        input_filter: str | None = None,
        output_filter: str | None = None,
        join_source: str | None = None,
        experiment_config: Mapping[str, str] | None = None,
        model_client_config: Mapping[str, Any] | None = None,
        batch_data_capture_config: Any = None,
        wait: bool = True,
        logs: bool = True,
    ) -> None:
        """Start a job and, with ``wait``, wait for its end.

        Args:
            data: ``s3://`` prefix or object. The result of each object is ``<output_path>/<name>.out``.
            data_type: "S3Prefix", or "ManifestFile": ``data`` is a manifest.
            content_type: MIME type of the data.
            compression_type: "Gzip", or None.
            split_type: "Line": each line is a record; None: each file is one. AWS has "RecordIO" and "TFRecord" too.
            job_name: default: made from the model's name and the time.
            input_filter: JSONPath of the part of a record to send, e.g. ``$[1:]``.
            output_filter: JSONPath of the part to store.
            join_source: "Input": join each answer with its record.
            experiment_config: names of experiment and trial.
            model_client_config: InvocationsTimeoutInSeconds (1 to 3,600) and InvocationsMaxRetries (0 to 3).
            batch_data_capture_config: refused.
            wait: block until the job has ended.
            logs: show the job's log while waiting.

        Raises:
            ConfigurationError: before anything is sent.
            ServiceCallFailed: SageMaker refused, e.g. because the model does not exist.
            TransformJobFailed: with reason, log tail and next step (with ``wait``).
        """
        if batch_data_capture_config is not None:
            raise UnsupportedArgument(
                "batch_data_capture_config= is not supported: create the job with boto3, on AWS."
            )
        name = job_name or job_name_from_base(base_from_job_name(self.base_transform_job_name))
        output = self._output_path or f"s3://{self.session.default_bucket()}/{name}"
        request = transform_request(
            name,
            self.model_name,
            output,
            self._transforming,
            data=data,
            data_type=data_type,
            content_type=content_type,
            compression_type=compression_type,
            split_type=split_type,
            input_filter=input_filter,
            output_filter=output_filter,
            join_source=join_source,
            experiment_config=experiment_config,
            model_client_config=model_client_config,
        )
        self.session.ensure_buckets(frozenset({split_s3(output)[0]}))
        self.session.transforms.create(request)
        self.output_path, self.latest_transform_job = output, TransformJob(name, self.session)
        if wait:
            self.wait(logs=logs)

    def wait(self, logs: bool = True) -> None:
        """Block until the latest job has ended. See `TransformJob.wait`."""
        self._latest().wait(logs=logs)

    def stop_transform_job(self, wait: bool = True) -> None:
        """Stop the latest job; with ``wait``, block until it has ended."""
        self._latest().stop()
        if wait:
            self.wait(logs=False)

    def delete_model(self) -> None:
        """DeleteModel. The archive in S3 stays."""
        self.session.endpoints.delete_model(self.model_name)

    @classmethod
    def attach(cls, transform_job_name: str, sagemaker_session: Any = None) -> Transformer:
        """A transformer with the arguments of an existing job, made by any client.

        Raises:
            ServiceCallFailed: there is no such job.
        """
        job = TransformJob(transform_job_name, resolve_session(None, sagemaker_session))
        described = job.describe()
        output, resources = described["TransformOutput"], described["TransformResources"]
        made = cls(
            described["ModelName"],
            resources["InstanceCount"],
            resources["InstanceType"],
            described.get("BatchStrategy"),
            output.get("AssembleWith"),
            output["S3OutputPath"],
            output.get("KmsKeyId"),
            output.get("Accept"),
            described.get("MaxConcurrentTransforms"),
            described.get("MaxPayloadInMB"),
            env=described.get("Environment"),
            base_transform_job_name=base_from_job_name(transform_job_name),
            volume_kms_key=resources.get("VolumeKmsKeyId"),
            session=job.session,
        )
        made.latest_transform_job = job
        return made

    def _latest(self) -> TransformJob:
        if self.latest_transform_job is None:
            raise ConfigurationError("There is no transform job yet: transform() starts one.")
        return self.latest_transform_job
