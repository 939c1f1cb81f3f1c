"""`TrainingService` over boto3: the same calls to AWS and to the local backend."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import IO, Any

from windtunnel.errors import JobNotFound, ServiceCallFailed
from windtunnel.request.checks import JOB_NAME
from windtunnel.session.boto3_calls import BotoCalls
from windtunnel.session.training_service import LOG_GROUP, METRIC_NAMESPACE, LogLine, TrainingService

_MULTIPART_BYTES = 64 * 2**20
_BEING_MADE = ("BucketAlreadyOwnedByYou", "OperationAborted")
"""CreateBucket's error codes when another process creates the bucket at the same time. SDK v2 ignores them, too."""


class BotoService(BotoCalls, TrainingService):
    """`TrainingService` over boto3: the same calls to AWS and to the local backend."""

    def create_job(self, request: Mapping[str, Any]) -> None:
        self.call("sagemaker", "create_training_job", request, repeat=False)

    def describe_job(self, name: str) -> dict[str, Any]:
        try:
            return dict(self.call("sagemaker", "describe_training_job", {"TrainingJobName": name}))
        except ServiceCallFailed as error:
            named = JOB_NAME.fullmatch(name)
            if not named or "not found" in error.service_message.lower():
                why = "" if named else ": a name has up to 63 letters, digits and hyphens"
                raise JobNotFound(name, local=self.local, why=why) from error
            raise

    def stop_job(self, name: str) -> None:
        self.call("sagemaker", "stop_training_job", {"TrainingJobName": name})

    def delete_job(self, name: str) -> None:
        self.call("sagemaker", "delete_training_job", {"TrainingJobName": name}, repeat=False)

    def list_jobs(self, limit: int, status: str | None = None) -> list[dict[str, Any]]:
        newest = {"SortBy": "CreationTime", "SortOrder": "Descending", "MaxResults": min(limit, 100)}
        newest |= {"StatusEquals": status} if status else {}
        pages = self.pages("sagemaker", "list_training_jobs", newest, "NextToken")
        return list(islice((job for page in pages for job in page["TrainingJobSummaries"]), limit))

    def list_tags(self, arn: str) -> list[dict[str, str]]:
        return list(self.call("sagemaker", "list_tags", {"ResourceArn": arn})["Tags"])

    def log_streams(self, job: str) -> list[str]:
        return self.streams(LOG_GROUP, f"{job}/")

    def read_log(self, stream: str, token: str | None) -> tuple[Sequence[LogLine], str | None]:
        return self.events(LOG_GROUP, stream, token)

    def metric_statistics(
        self, job: str, metric: str, start: datetime, end: datetime, period_s: int
    ) -> list[dict[str, Any]]:
        """GetMetricStatistics, sorted by time: AWS returns the points in any order."""
        members = {
            "Namespace": METRIC_NAMESPACE,
            "MetricName": metric,
            "Dimensions": [{"Name": "TrainingJobName", "Value": job}],
            "StartTime": start,
            "EndTime": end,
            "Period": period_s,
            "Statistics": ["Average", "SampleCount"],
        }
        points = self.call("cloudwatch", "get_metric_statistics", members)["Datapoints"]
        return sorted(points, key=lambda point: point["Timestamp"])

    def put_file(self, bucket: str, key: str, data: IO[bytes], kms_key_id: str | None, encrypt: bool) -> None:
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
            self.call("s3", "upload_fileobj", members, repeat=False)
        else:
            self.call("s3", "put_object", {"Bucket": bucket, "Key": key, "Body": data, **extra})

    def get_object(self, bucket: str, key: str, out: IO[bytes]) -> bool:
        from botocore.exceptions import BotoCoreError

        try:
            body = self.call("s3", "get_object", {"Bucket": bucket, "Key": key})["Body"]
        except ServiceCallFailed as error:
            if error.code in ("NoSuchKey", "NoSuchBucket", "404"):
                return False
            raise
        try:
            with body:
                for chunk in body.iter_chunks(2**20):
                    out.write(chunk)
        except BotoCoreError as error:  # the connection broke off
            raise ServiceCallFailed("GetObject", type(error).__name__, str(error)) from error
        return True

    def list_objects(self, bucket: str, prefix: str) -> list[str]:
        members = {"Bucket": bucket, "Prefix": prefix}
        pages = self.pages("s3", "list_objects_v2", members, "NextContinuationToken", "ContinuationToken")
        return [entry["Key"] for page in pages for entry in page.get("Contents", ())]

    def ensure_bucket(self, bucket: str) -> None:
        """HeadBucket, then CreateBucket if the bucket is missing. Another process may create it at the same time."""
        try:
            self.call("s3", "head_bucket", {"Bucket": bucket})
        except ServiceCallFailed as error:
            if error.code not in ("404", "NoSuchBucket"):
                raise
            region = self.client("s3").meta.region_name
            # us-east-1 is S3's default, which S3 refuses as a LocationConstraint.
            members: dict[str, Any] = {"Bucket": bucket}
            if region != "us-east-1":
                members["CreateBucketConfiguration"] = {"LocationConstraint": region}
            try:
                self.call("s3", "create_bucket", members)
            except ServiceCallFailed as refusal:
                if refusal.code not in _BEING_MADE:
                    raise

    def account_id(self) -> str:
        return str(self.call("sts", "get_caller_identity", {})["Account"])

    def role_arn(self, name: str) -> str:
        return str(self.call("iam", "get_role", {"RoleName": name})["Role"]["Arn"])
