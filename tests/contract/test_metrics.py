"""What a job's MetricDefinitions find, as CloudWatch tells it, in each protocol that clients speak to it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import botocore.session
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from botocore.parsers import create_parser
from botocore.serialize import create_serializer

from tests.contract.conftest import Backend
from tests.fakes.wire import IMAGE
from windtunnel.errors import JobNotFound
from windtunnel.job.metric_series import metric_series
from windtunnel.session.boto3_training import BotoService

NAMESPACE = "/aws/sagemaker/TrainingJobs"
JOB = [{"Name": "TrainingJobName", "Value": "job"}]
PROTOCOLS = ("smithy-rpc-v2-cbor", "json", "query")


@pytest.fixture(scope="module")
def trained(shared_backend: Backend) -> Backend:
    """A job that printed ``line 0`` to ``line 4`` and has ended."""
    return with_metrics(shared_backend)


def with_metrics(backend: Backend) -> Backend:
    """The server, once that job has ended there."""
    backend.client("s3").create_bucket(Bucket="out")
    definitions = [
        {"Name": "number", "Regex": r"line ([0-9]+)"},
        {"Name": "never", "Regex": r"never=([0-9]+)"},
    ]
    algorithm = {"TrainingImage": IMAGE, "TrainingInputMode": "File", "MetricDefinitions": definitions}
    backend.run(AlgorithmSpecification=algorithm, Environment={"LINES": "5"})
    return backend


def test_the_sdk_sees_the_series_and_deletes_the_job(backend: Backend) -> None:
    """All that CloudWatch has of it, in order; a deleted job is gone, and takes its metrics along."""
    trained = with_metrics(backend)

    class Ours:
        def client(self, name: str) -> Any:
            return trained.client(name)

    service = BotoService(lambda: (Ours(), {}), local=True)
    points = metric_series(service, service.describe_job("job"), local=True).points
    assert points["never"] == ()
    assert sum(point.samples for point in points["number"]) == 5
    assert sum(point.samples * point.average for point in points["number"]) == 0 + 1 + 2 + 3 + 4
    assert [point.time for point in points["number"]] == sorted(point.time for point in points["number"])
    service.delete_job("job")
    with pytest.raises(JobNotFound):
        service.describe_job("job")
    assert trained.client("cloudwatch").list_metrics()["Metrics"] == []


def call(backend: Backend, protocol: str, operation: str, **parameters: Any) -> Any:
    """One call in a protocol of our choice, written, signed and read by botocore."""
    session = botocore.session.get_session()
    model = session.get_service_model("cloudwatch").operation_model(operation)
    written = create_serializer(protocol).serialize_to_request(parameters, model)
    signed = AWSRequest("POST", backend.endpoint + written["url_path"], written["headers"], written["body"])
    keys = Credentials(backend.credentials.access_key_id, backend.credentials.secret_access_key)
    SigV4Auth(keys, "monitoring", "us-east-1").add_auth(signed)
    ready = signed.prepare()
    body = ready.body.encode() if isinstance(ready.body, str) else ready.body
    request = Request(ready.url, body, dict(ready.headers), method="POST")  # noqa: S310  our own server
    try:
        with urlopen(request) as answer:  # noqa: S310
            status, headers, content = answer.status, answer.headers, answer.read()
    except HTTPError as error:
        with error:
            status, headers, content = error.code, error.headers, error.read()
    received = {"status_code": status, "headers": dict(headers.items()), "body": content}
    received["headers"] = {name.lower(): value for name, value in received["headers"].items()}
    return create_parser(protocol).parse(received, model.output_shape)


def hour() -> dict[str, datetime]:
    now = datetime.now(timezone.utc)
    return {"StartTime": now - timedelta(minutes=30), "EndTime": now + timedelta(minutes=30)}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol(trained: Backend, protocol: str) -> None:
    """New SDKs speak CBOR, others JSON, the AWS CLI v1 the query protocol: statistics, data, names and errors."""
    metric = {"Namespace": NAMESPACE, "MetricName": "number", "Dimensions": JOB}
    statistics = ["SampleCount", "Average", "Maximum"]
    asked = {**metric, "Period": 3600, "Statistics": statistics, **hour()}
    points = call(trained, protocol, "GetMetricStatistics", **asked)["Datapoints"]
    assert sum(point["SampleCount"] for point in points) == 5
    assert max(point["Maximum"] for point in points) == 4
    assert all(point["Timestamp"].tzinfo is not None for point in points)

    queries = [{"Id": "n", "MetricStat": {"Metric": metric, "Period": 3600, "Stat": "Sum"}}]
    (result,) = call(trained, protocol, "GetMetricData", MetricDataQueries=queries, **hour())[
        "MetricDataResults"
    ]
    assert (result["Id"], result["StatusCode"], sum(result["Values"])) == ("n", "Complete", 10)
    listed = call(trained, protocol, "ListMetrics", Namespace=NAMESPACE)["Metrics"]
    assert listed == [metric]

    wrong = call(trained, protocol, "GetMetricStatistics", **{**asked, "Period": 61})["Error"]
    assert (wrong["Code"], "multiple of 60" in wrong["Message"]) == ("InvalidParameterValue", True)
    missing = call(trained, protocol, "PutMetricData", Namespace="mine", MetricData=[])
    assert missing["Error"]["Code"] == "UnsupportedOperation"


def test_boto3_as_it_is(trained: Backend) -> None:
    """With whatever protocol it prefers; FinalMetricDataList agrees; what never came is not listed."""
    cloudwatch = trained.client("cloudwatch")
    asked = {"Namespace": NAMESPACE, "MetricName": "number", "Dimensions": JOB, "Period": 3600, **hour()}
    points = cloudwatch.get_metric_statistics(Statistics=["Average"], **asked)["Datapoints"]
    assert {point["Average"] for point in points} <= {0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4}
    final = trained.client("sagemaker").describe_training_job(TrainingJobName="job")["FinalMetricDataList"]
    assert [(metric["MetricName"], metric["Value"]) for metric in final] == [("number", 4.0)]
    with pytest.raises(ClientError, match="Statistics and ExtendedStatistics"):
        cloudwatch.get_metric_statistics(**asked)


def test_a_unit_chooses_the_values_that_are_in_it(trained: Backend) -> None:
    """A job's metrics have none: another unit has no points, as on AWS."""
    cloudwatch = trained.client("cloudwatch")
    metric = {"Namespace": NAMESPACE, "MetricName": "number", "Dimensions": JOB}
    for unit, there_are in (("None", True), ("Seconds", False)):
        asked = {**metric, "Period": 3600, "Statistics": ["Sum"], "Unit": unit, **hour()}
        assert bool(cloudwatch.get_metric_statistics(**asked)["Datapoints"]) == there_are
        stat = {"Metric": metric, "Period": 3600, "Stat": "Sum", "Unit": unit}
        found = cloudwatch.get_metric_data(MetricDataQueries=[{"Id": "n", "MetricStat": stat}], **hour())
        assert bool(found["MetricDataResults"][0]["Values"]) == there_are


def test_what_cloudwatch_does_not_take_together_or_by_that_name(trained: Backend) -> None:
    """By its own codes."""
    cloudwatch = trained.client("cloudwatch")
    metric = {"Namespace": NAMESPACE, "MetricName": "number", "Dimensions": JOB}
    both = {"Statistics": ["Sum"], "ExtendedStatistics": ["p50"]}
    with pytest.raises(ClientError, match="mutually exclusive") as error:
        cloudwatch.get_metric_statistics(**metric, Period=3600, **both, **hour())
    assert error.value.response["Error"]["Code"] == "InvalidParameterCombination"
    for identity in ("A", "1a", "a-b", "_a", "ä"):
        query = {"Id": identity, "MetricStat": {"Metric": metric, "Period": 3600, "Stat": "Sum"}}
        with pytest.raises(ClientError, match=r"MetricDataQueries\.member\.1\.Id is not matching") as error:
            cloudwatch.get_metric_data(MetricDataQueries=[query], **hour())
        assert error.value.response["Error"]["Code"] == "ValidationError"
