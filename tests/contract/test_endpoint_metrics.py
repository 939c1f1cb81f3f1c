"""What CloudWatch says of endpoints."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import Any

from botocore.exceptions import ClientError

from tests.contract.conftest import Backend, wait_for
from tests.contract.test_async_endpoints import Asked
from tests.contract.test_endpoints import Deployed

DIMENSIONS = [{"Name": "EndpointName", "Value": "e"}, {"Name": "VariantName", "Value": "AllTraffic"}]
STATISTICS = ["Sum", "SampleCount", "Average", "Minimum", "Maximum"]


def point(backend: Backend, name: str, variant: str = "AllTraffic", **wanted: Any) -> dict[str, Any]:
    """The one datapoint that there is, once there is one. ``wanted``: other than the plain statistics."""
    cloudwatch, now = backend.client("cloudwatch"), datetime.now(timezone.utc)
    found: dict[str, Any] = wait_for(
        lambda: cloudwatch.get_metric_statistics(
            Namespace="AWS/SageMaker",
            MetricName=name,
            Dimensions=[DIMENSIONS[0], {"Name": "VariantName", "Value": variant}],
            StartTime=now - timedelta(hours=1),
            EndTime=now + timedelta(hours=1),
            Period=7200,
            **(wanted or {"Statistics": STATISTICS}),
        )["Datapoints"]
    )[0]
    return found


def test_requests_errors_and_times(backend: Backend) -> None:
    """Written when the minute is over, not with each request; kept when the endpoint is gone."""
    deployed = Deployed(backend)
    deployed.endpoint()
    store = backend.application.store
    for body in ("hello", "sleep 0.05", "status 400", "status 500"):
        with suppress(ClientError):
            deployed.ask(body)
    assert store.endpoint_metric_names() == []
    backend.clock.offset = timedelta(minutes=2)
    assert point(backend, "Invocations")["Sum"] == 4
    deployed.sagemaker.delete_endpoint(EndpointName="e")
    assert point(backend, "Invocation4XXErrors")["Sum"] == 1
    assert point(backend, "Invocation5XXErrors")["Average"] == 0.25
    latency = point(backend, "ModelLatency")
    assert (latency["Unit"], latency["SampleCount"]) == ("Microseconds", 4)
    assert 50_000 <= latency["Maximum"] < 5e6
    p99 = point(backend, "ModelLatency", Unit="Microseconds", ExtendedStatistics=["p99"])[
        "ExtendedStatistics"
    ]
    assert latency["Minimum"] <= p99["p99"] <= latency["Maximum"]
    assert 0 < point(backend, "OverheadLatency")["Average"] < 5e6
    cloudwatch = backend.client("cloudwatch")
    listed = cloudwatch.list_metrics(Namespace="AWS/SageMaker", Dimensions=DIMENSIONS[:1])["Metrics"]
    assert len(listed) == 5 and listed[0]["Dimensions"] == DIMENSIONS
    assert cloudwatch.list_metrics(Namespace="/aws/sagemaker/TrainingJobs")["Metrics"] == []
    query = {"Metric": {"Namespace": "AWS/SageMaker", "MetricName": "Invocations", "Dimensions": DIMENSIONS}}
    now = datetime.now(timezone.utc)
    (result,) = cloudwatch.get_metric_data(
        MetricDataQueries=[{"Id": "a", "MetricStat": {**query, "Period": 60, "Stat": "Sum"}}],
        StartTime=now - timedelta(hours=1),
        EndTime=now + timedelta(hours=1),
    )["MetricDataResults"]
    assert sum(result["Values"]) == 4


def test_of_the_last_minute_before_the_endpoint_was_deleted(backend: Backend) -> None:
    """They are there, though nothing is left that would write them."""
    deployed = Deployed(backend)
    deployed.endpoint()
    deployed.ask("hello")
    deployed.sagemaker.delete_endpoint(EndpointName="e")
    assert point(backend, "Invocations")["Sum"] == 1


def test_of_questions_that_waited(backend: Backend) -> None:
    """AWS publishes their model's time and errors, not that they were invoked."""
    asked = Asked(backend)
    asked.asynchronous()
    asked.question("hello")
    asked.question("status 500", "other")
    wait_for(lambda: asked.waiting() == 0)
    backend.application.endpoints.meter.flush(all_of_it=True)
    assert point(backend, "Invocation5XXErrors", "a")["Sum"] == 1
    assert point(backend, "ModelLatency", "a")["SampleCount"] == 2
    names = {name for _, _, name in backend.application.store.endpoint_metric_names()}
    assert names == {"ModelLatency", "Invocation4XXErrors", "Invocation5XXErrors"}
