"""`TrainingService` over boto3: the same calls to AWS and to the local backend."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import IO, Any

from windtunnel.errors import BackendError, JobNotFound, ServiceCallFailed
from windtunnel.session.training_service import LOG_GROUP, METRIC_NAMESPACE, LogLine

_MULTIPART_BYTES = 64 * 2**20
_FAILURE_KEPT_S = 0.5


class BotoService:
    """`TrainingService` over boto3 clients, each made once, when first needed or by `warm_up`.

    Args:
        connect: gives the keyword arguments of every client (endpoint_url, config, ...) and the boto3
            session. Called again after the connection was lost.
        local: the other side is the local backend.
    """

    def __init__(self, connect: Callable[[], tuple[Any, Mapping[str, Any]]], *, local: bool) -> None:
        self._connect = connect
        self._local = local
        self._lock = threading.RLock()
        self._clients: dict[str, Any] = {}
        self._connection: tuple[Any, Mapping[str, Any]] | None = None
        self._failed: tuple[float, Exception] | None = None

    def client(self, service: str) -> Any:
        """The boto3 client of a service. Takes 0.02 to 0.2 s the first time; thread-safe."""
        with self._lock:
            if service not in self._clients:
                if self._connection is None:
                    self._connection = self._connected()
                session, keywords = self._connection
                self._clients[service] = session.client(service, **keywords)
            return self._clients[service]

    def _connected(self) -> tuple[Any, Mapping[str, Any]]:
        # Who waited for the warm-up thread gets its error, instead of waiting for the same failure again.
        if self._failed is not None and time.monotonic() - self._failed[0] < _FAILURE_KEPT_S:
            raise self._failed[1]
        try:
            return self._connect()
        except BackendError as error:
            self._failed = (time.monotonic(), error)
            raise

    def forget_connection(self) -> None:
        """Make new clients for the next call: the other side has moved."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()
            self._connection = None

    close = forget_connection

    def create_job(self, request: Mapping[str, Any]) -> None:
        """CreateTrainingJob."""
        self._call("sagemaker", "create_training_job", request, repeat=False)

    def describe_job(self, name: str) -> dict[str, Any]:
        """DescribeTrainingJob; raises `JobNotFound`."""
        try:
            return dict(self._call("sagemaker", "describe_training_job", {"TrainingJobName": name}))
        except ServiceCallFailed as error:
            if "not found" in error.service_message.lower():
                where = "on the local backend" if self._local else "in this account and region"
                raise JobNotFound(name, where=where) from error
            raise

    def stop_job(self, name: str) -> None:
        """StopTrainingJob."""
        self._call("sagemaker", "stop_training_job", {"TrainingJobName": name})

    def delete_job(self, name: str) -> None:
        """DeleteTrainingJob."""
        self._call("sagemaker", "delete_training_job", {"TrainingJobName": name}, repeat=False)

    def list_jobs(self, limit: int) -> list[dict[str, Any]]:
        """ListTrainingJobs, newest first, over as many pages as needed."""
        found: list[dict[str, Any]] = []
        more: dict[str, str] = {}
        while len(found) < limit:
            newest = {"SortBy": "CreationTime", "SortOrder": "Descending"}
            members = {**newest, **more, "MaxResults": min(limit - len(found), 100)}
            page = self._call("sagemaker", "list_training_jobs", members)
            found.extend(page["TrainingJobSummaries"])
            if not page.get("NextToken"):
                break
            more = {"NextToken": page["NextToken"]}
        return found

    def list_tags(self, arn: str) -> list[dict[str, str]]:
        """ListTags."""
        return list(self._call("sagemaker", "list_tags", {"ResourceArn": arn})["Tags"])

    def log_streams(self, job: str) -> list[str]:
        """DescribeLogStreams with the job's prefix."""
        names: list[str] = []
        more: dict[str, str] = {}
        while True:
            try:
                members = {"logGroupName": LOG_GROUP, "logStreamNamePrefix": f"{job}/", **more}
                page = self._call("logs", "describe_log_streams", members)
            except ServiceCallFailed as error:
                if error.code == "ResourceNotFoundException":  # the group appears with the first job
                    return []
                raise
            names.extend(stream["logStreamName"] for stream in page["logStreams"])
            if not page.get("nextToken"):
                return sorted(names)
            more = {"nextToken": page["nextToken"]}

    def read_log(self, stream: str, token: str | None) -> tuple[Sequence[LogLine], str | None]:
        """GetLogEvents from the head, one page."""
        members = {"logGroupName": LOG_GROUP, "logStreamName": stream, "startFromHead": True}
        if token is not None:
            members["nextToken"] = token
        page = self._call("logs", "get_log_events", members)
        lines = [LogLine(event["timestamp"], event["message"]) for event in page["events"]]
        return lines, page.get("nextForwardToken", token)

    def metric_statistics(
        self, job: str, metric: str, start: datetime, end: datetime, period_s: int
    ) -> list[dict[str, Any]]:
        """GetMetricStatistics, by time: AWS gives them in no order."""
        members = {
            "Namespace": METRIC_NAMESPACE,
            "MetricName": metric,
            "Dimensions": [{"Name": "TrainingJobName", "Value": job}],
            "StartTime": start,
            "EndTime": end,
            "Period": period_s,
            "Statistics": ["Average", "SampleCount"],
        }
        points = self._call("cloudwatch", "get_metric_statistics", members)["Datapoints"]
        return sorted(points, key=lambda point: point["Timestamp"])

    def put_file(self, bucket: str, key: str, data: IO[bytes], kms_key_id: str | None, encrypt: bool) -> None:
        """PutObject, or a multipart upload above 64 MiB."""
        extra: dict[str, str] = {}
        if encrypt:
            extra = {"ServerSideEncryption": "aws:kms"}
            if kms_key_id:
                extra["SSEKMSKeyId"] = kms_key_id
        start = data.tell()
        size = data.seek(0, os.SEEK_END) - start
        data.seek(start)
        if size > _MULTIPART_BYTES:
            members = {"Bucket": bucket, "Key": key, "Fileobj": data, "ExtraArgs": extra}
            self._call("s3", "upload_fileobj", members, repeat=False)
        else:
            self._call("s3", "put_object", {"Bucket": bucket, "Key": key, "Body": data, **extra})

    def get_object(self, bucket: str, key: str, out: IO[bytes]) -> bool:
        """GetObject, streamed."""
        try:
            body = self._call("s3", "get_object", {"Bucket": bucket, "Key": key})["Body"]
        except ServiceCallFailed as error:
            if error.code in ("NoSuchKey", "NoSuchBucket", "404"):
                return False
            raise
        with body:
            for chunk in body.iter_chunks(2**20):
                out.write(chunk)
        return True

    def list_objects(self, bucket: str, prefix: str) -> list[str]:
        """ListObjectsV2, all pages."""
        keys: list[str] = []
        more: dict[str, str] = {}
        while True:
            page = self._call("s3", "list_objects_v2", {"Bucket": bucket, "Prefix": prefix, **more})
            keys.extend(entry["Key"] for entry in page.get("Contents", []))
            if not page.get("IsTruncated"):
                return keys
            more = {"ContinuationToken": page["NextContinuationToken"]}

    def ensure_bucket(self, bucket: str) -> None:
        """HeadBucket, then CreateBucket if it is missing."""
        try:
            self._call("s3", "head_bucket", {"Bucket": bucket})
        except ServiceCallFailed as error:
            if error.code not in ("404", "NoSuchBucket"):
                raise
            region = self.client("s3").meta.region_name
            # us-east-1 is S3's default and may not be named as a constraint.
            members: dict[str, Any] = {"Bucket": bucket}
            if region != "us-east-1":
                members["CreateBucketConfiguration"] = {"LocationConstraint": region}
            self._call("s3", "create_bucket", members)

    def account_id(self) -> str:
        """GetCallerIdentity."""
        return str(self._call("sts", "get_caller_identity", {})["Account"])

    def role_arn(self, name: str) -> str:
        """GetRole."""
        return str(self._call("iam", "get_role", {"RoleName": name})["Role"]["Arn"])

    def warm_up(self, services: Sequence[str] = ("sagemaker", "s3", "logs")) -> None:
        """Make clients ahead of their first use."""
        for service in services:
            self.client(service)

    def _call(self, service: str, method: str, members: Mapping[str, Any], *, repeat: bool = True) -> Any:
        """One call. A local backend that went away is started again and asked once more.

        ``repeat=False``: the call changes something, so it is repeated only if it surely never arrived.
        """
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            ConnectionClosedError,
            EndpointConnectionError,
            ReadTimeoutError,
        )

        def attempt() -> Any:
            return getattr(self.client(service), method)(**members)

        lost: tuple[type[Exception], ...] = (EndpointConnectionError,)
        if repeat:
            lost = (EndpointConnectionError, ConnectionClosedError, ReadTimeoutError)
        try:
            try:
                return attempt()
            except lost:
                if not self._local:
                    raise
                self.forget_connection()
                _rewind(members)
                return attempt()
        except ClientError as error:
            said = error.response.get("Error", {})
            raise ServiceCallFailed(
                error.operation_name, str(said.get("Code", "Unknown")), str(said.get("Message", error))
            ) from error
        except BotoCoreError as error:
            if self._local and isinstance(error, (EndpointConnectionError, ConnectionClosedError)):
                raise BackendError(f"The local backend does not answer: {error}") from error
            raise ServiceCallFailed(method, type(error).__name__, str(error)) from error


def _rewind(members: Mapping[str, Any]) -> None:
    body = members.get("Body")
    if body is not None and hasattr(body, "seek"):
        body.seek(0)
