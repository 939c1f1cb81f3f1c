"""CreateTransformJob's request as data, and its checks beyond those of botocore's model and the table of members.

Defaults and limits: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateTransformJob.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from windtunnel_local.service.batch.data_processing import DataProcessing, data_processing
from windtunnel_local.service.batch.transform_members import TRANSFORM_JOB
from windtunnel_local.service.data.listing import Item, prefix_items
from windtunnel_local.service.data.manifests import manifest_items
from windtunnel_local.service.ground.errors import InputError, NoSuchBucket, ValidationFailed
from windtunnel_local.service.ground.hosting import STARTUP_S, Variant
from windtunnel_local.service.ground.ports import ObjectStore
from windtunnel_local.service.ground.uris import member_s3, parse_s3

MAX_MB = 100
_DEFAULT_MB = 6
_MULTI = "MULTI_RECORD"
_STRATEGIES = {"MultiRecord": _MULTI, "SingleRecord": "SINGLE_RECORD"}
"""BatchStrategy of requests, and how containers' variables and answers spell it."""


@dataclass(frozen=True)
class Limits:
    """Limits of requests to one instance: how many at once, MiB of each (0: any), whether with several records."""

    concurrent: int
    most_mb: int
    several: bool

    def __str__(self) -> str:
        """The limits as AWS writes them into the job's log."""
        strategy = _MULTI if self.several else "SINGLE_RECORD"
        return f"MaxConcurrentTransforms={self.concurrent}, MaxPayloadInMB={self.most_mb}, BatchStrategy={strategy}"


@dataclass(frozen=True)
class TransformRequest:
    """A valid CreateTransformJob request. ``members``: its members."""

    members: Mapping[str, Any]
    processing: DataProcessing | None

    @property
    def by_line(self) -> bool:
        """Whether each line is a record; otherwise a whole file is one."""
        return bool(self._input.get("SplitType", "None") == "Line")

    @property
    def gzipped(self) -> bool:
        """Whether the input is compressed with gzip."""
        return bool(self._input.get("CompressionType", "None") == "Gzip")

    @property
    def assembles_lines(self) -> bool:
        """Whether each answer gets a newline at its end in the result."""
        return bool(self._output.get("AssembleWith", "None") == "Line")

    @property
    def headers(self) -> dict[str, str]:
        """The HTTP headers of each request to a container."""
        pairs = (("Content-Type", self._input.get("ContentType")), ("Accept", self._output.get("Accept")))
        return {name: value for name, value in pairs if value}

    @property
    def timeout_s(self) -> float:
        """How long a container may take for one answer."""
        return float(self._client.get("InvocationsTimeoutInSeconds", 600))

    @property
    def retries(self) -> int:
        """How often a failed request is sent again."""
        return int(self._client.get("InvocationsMaxRetries", 3))

    def limits(self, wanted: Mapping[str, Any]) -> Limits:
        """The limits: from the request, else those that the container wants, else the defaults."""
        asked = self.members
        concurrent = asked.get("MaxConcurrentTransforms") or wanted.get("MaxConcurrentTransforms") or 1
        most_mb = asked.get("MaxPayloadInMB", wanted.get("MaxPayloadInMB", _DEFAULT_MB))
        if "MaxPayloadInMB" not in asked and (self.by_line or self.processing) and not most_mb:
            most_mb = _DEFAULT_MB  # a file that is split or filtered cannot be streamed
        strategy = _STRATEGIES.get(asked.get("BatchStrategy", ""), wanted.get("BatchStrategy", _MULTI))
        # The container may want more than AWS allows a request to ask for.
        return Limits(min(concurrent, MAX_MB // (most_mb or 1)), most_mb, strategy == _MULTI)

    def files(self, objects: ObjectStore) -> Iterator[Item]:
        """The input files, in order.

        Raises:
            InputError: there is none, or a manifest is not valid; the message says what to do.
        """
        source = self._input["DataSource"]["S3DataSource"]
        uri = source["S3Uri"]
        if source["S3DataType"] == "ManifestFile":
            yield from manifest_items(objects, uri)
            return
        found = False
        try:
            for item in prefix_items(objects, *parse_s3(uri)):
                if not item.uri.endswith("/"):  # skip the empty objects by which S3 consoles show folders
                    found = True
                    yield item
        except NoSuchBucket:
            raise InputError(
                f"ClientError: the bucket of {uri} does not exist. Create it, or correct S3Uri."
            ) from None
        if not found:
            raise InputError(
                f'ClientError: No S3 objects found under S3 URL "{uri}" given in input data source. Upload the data, or'
                " correct S3Uri."
            )

    @property
    def output(self) -> str:
        """The URI below which all results are stored."""
        return str(self._output["S3OutputPath"])

    def target(self, place: str) -> tuple[str, str]:
        """Bucket and key of a file's result."""
        bucket, prefix = parse_s3(self.output)
        return bucket, "/".join(part for part in (prefix.rstrip("/"), f"{place}.out") if part)

    def variant(self, container: Mapping[str, Any]) -> Variant:
        """The job's instances, as a variant of an endpoint: the model's container with the job's variables."""
        asked, resources = self.members, self.members["TransformResources"]
        told = {
            "SAGEMAKER_BATCH": "true",
            "SAGEMAKER_MAX_PAYLOAD_IN_MB": asked.get("MaxPayloadInMB"),
            "SAGEMAKER_BATCH_STRATEGY": _STRATEGIES.get(asked.get("BatchStrategy", "")),
            "SAGEMAKER_MAX_CONCURRENT_TRANSFORMS": asked.get("MaxConcurrentTransforms") or None,
        }
        environment = {
            **container.get("Environment", {}),
            **asked.get("Environment", {}),
            **{name: str(value) for name, value in told.items() if value is not None},
        }
        return Variant(
            asked["TransformJobName"],
            asked["ModelName"],
            {**container, "Environment": environment},
            resources["InstanceType"],
            int(resources["InstanceCount"]),
            1.0,
            STARTUP_S,
        )

    @property
    def _input(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.members["TransformInput"]
        return found

    @property
    def _output(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.members["TransformOutput"]
        return found

    @property
    def _client(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.members.get("ModelClientConfig", {})
        return found


def accepted(request: Mapping[str, Any]) -> TransformRequest:
    """Check a request and return it as data. Raises ``ValidationFailed``."""
    TRANSFORM_JOB.check(request)
    source = request["TransformInput"]["DataSource"]["S3DataSource"]
    if source["S3DataType"] not in ("S3Prefix", "ManifestFile"):
        raise ValidationFailed(
            f"S3DataType {source['S3DataType']} is not supported for transform jobs. Use S3Prefix or ManifestFile."
        )
    member_s3("S3Uri", source["S3Uri"])
    member_s3("S3OutputPath", request["TransformOutput"]["S3OutputPath"])
    split = request["TransformInput"].get("SplitType", "None")
    if split not in ("None", "Line"):
        raise ValidationFailed(
            f"SplitType {split} is not supported here. Use Line or None, or send the request to AWS."
        )
    found = TransformRequest(request, data_processing(request))
    for value in found.headers.values():
        if not (value.isascii() and value.isprintable()):
            raise ValidationFailed(
                f"{value!r} cannot be sent to a container: ContentType and Accept are of printable ASCII characters."
            )
    _check_payload(request, found)
    return found


def _check_payload(request: Mapping[str, Any], found: TransformRequest) -> None:
    most_mb, concurrent = (
        request.get("MaxPayloadInMB", _DEFAULT_MB),
        request.get("MaxConcurrentTransforms", 0),
    )
    if most_mb > MAX_MB:
        raise ValidationFailed(f"MaxPayloadInMB is {most_mb}; at most {MAX_MB} are valid.")
    if (most_mb or 1) * concurrent > MAX_MB:
        raise ValidationFailed(
            f"MaxConcurrentTransforms * MaxPayloadInMB is {concurrent} * {most_mb}; together at most {MAX_MB} MB,"
            f" and at most {MAX_MB} requests, are valid. Lower one of them."
        )
    if request.get("MaxPayloadInMB") == 0 and (found.by_line or found.processing):
        raise ValidationFailed(
            "MaxPayloadInMB 0 streams whole files, which are then neither split nor filtered: leave out SplitType and"
            " DataProcessing, or set MaxPayloadInMB."
        )
