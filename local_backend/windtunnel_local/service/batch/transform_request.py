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
    by_line: bool
    """Whether each line is a record; otherwise a whole file is one."""
    gzipped: bool
    """Whether the input is compressed with gzip."""
    assembles_lines: bool
    """Whether each answer gets a newline at its end in the result."""
    headers: Mapping[str, str]
    """The HTTP headers of each request to a container."""
    timeout_s: float
    """How long a container may take for one answer."""
    retries: int
    """How often a failed request is sent again."""
    output: str
    """The URI below which all results are stored."""

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
        source = self.members["TransformInput"]["DataSource"]["S3DataSource"]
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


def accepted(request: Mapping[str, Any]) -> TransformRequest:
    """Check a request and return it as data. Raises ``ValidationFailed``."""
    TRANSFORM_JOB.check(request)
    given, output = request["TransformInput"], request["TransformOutput"]
    client = request.get("ModelClientConfig", {})
    source = given["DataSource"]["S3DataSource"]
    if source["S3DataType"] not in ("S3Prefix", "ManifestFile"):
        raise ValidationFailed(
            f"S3DataType {source['S3DataType']} is not supported for transform jobs. Use S3Prefix or ManifestFile."
        )
    member_s3("S3Uri", source["S3Uri"])
    member_s3("S3OutputPath", output["S3OutputPath"])
    split = given.get("SplitType", "None")
    if split not in ("None", "Line"):
        raise ValidationFailed(
            f"SplitType {split} is not supported here. Use Line or None, or send the request to AWS."
        )
    processing = data_processing(request)
    kinds = {"Content-Type": given.get("ContentType"), "Accept": output.get("Accept")}
    headers = {name: kind for name, kind in kinds.items() if kind}
    for value in headers.values():
        if not (value.isascii() and value.isprintable()):
            raise ValidationFailed(
                f"{value!r} cannot be sent to a container: ContentType and Accept are of printable ASCII characters."
            )
    found = TransformRequest(
        request,
        processing,
        by_line=split == "Line",
        gzipped=given.get("CompressionType") == "Gzip",
        assembles_lines=output.get("AssembleWith") == "Line",
        headers=headers,
        timeout_s=client.get("InvocationsTimeoutInSeconds", 600),
        retries=client.get("InvocationsMaxRetries", 3),
        output=output["S3OutputPath"],
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
