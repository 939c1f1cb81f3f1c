"""Search's part of the record: conditions, orders, pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.fakes.clock import START
from tests.unit.store.samples import named, plan
from windtunnel_local.api.search import query_of
from windtunnel_local.service.ground import lifecycle as events
from windtunnel_local.service.ground.errors import StoreUnavailable, ValidationFailed
from windtunnel_local.service.ground.job import WarmPool
from windtunnel_local.service.ground.lifecycle import advance
from windtunnel_local.store import SqliteStore, database, searching

CHANNELS = [
    {
        "ChannelName": name,
        "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{bucket}/x"}},
    }
    for name, bucket in (("train", "mine"), ("test", "yours"))
]


STEPS: tuple[events.Event, ...] = (
    events.DownloadStarted(),
    events.TrainingStarted(),
    events.UploadStarted(),
    events.Succeeded(),
)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    """Four jobs, only read: a fresh one, a failed one, one with metrics, one with a warm pool."""
    tmp_path = tmp_path_factory.mktemp("jobs")
    store = SqliteStore(tmp_path / "state.sqlite")
    for i, name in enumerate("abcd"):
        job = named(
            tmp_path,
            name,
            seconds=10 * i,
            HyperParameters={"lr": f"0.{i}5", "epochs": str(i), "model": f'"{name}"', "dotted.key": "1"},
            InputDataConfig=CHANNELS[: i + 1] if i < 2 else [],
            EnableNetworkIsolation=name == "b",
        )
        store.insert_job(job, {"team": "x" if i % 2 else "y"})
        if name == "b":
            failed = advance(
                job.lifecycle, events.Failed("AlgorithmError: no"), START + timedelta(seconds=99)
            )
            job = replace(job, lifecycle=failed)
        if name == "c":
            metric = {"MetricName": "acc uracy", "Value": 0.5, "Timestamp": START}
            job = replace(job, final_metrics=(metric,), model_artifact="s3://m/c")
        if name == "d":
            life = job.lifecycle
            for second, event in enumerate(STEPS):
                life = advance(life, event, START + timedelta(seconds=100 + 10 * second))
            kept = {"ResourceConfig": {"KeepAlivePeriodInSeconds": 600}}
            job = replace(job, lifecycle=life, warm_pool=WarmPool("Reused", 5, "e"), updates=kept)
        store.update_job(job)
    yield store
    store.close()


def names(store: SqliteStore, expression: dict[str, Any] | None = None, **members: Any) -> str:
    """Which jobs are found, in order."""
    request = {"Resource": "TrainingJob", "SortBy": "TrainingJobName", "SortOrder": "Ascending", **members}
    if expression is not None:
        request["SearchExpression"] = expression
    return "".join(job.name for job, _ in store.search_jobs(query_of(request))[0])


def one(name: str, operator: str | None = None, value: str | None = None) -> dict[str, Any]:
    given = {"Name": name, "Operator": operator, "Value": value}
    return {"Filters": [{key: text for key, text in given.items() if text is not None}]}


def nested(name: str, inner: str) -> dict[str, Any]:
    return {"NestedFilters": [{"NestedPropertyName": name, "Filters": [{"Name": inner, "Value": "a"}]}]}


@pytest.mark.parametrize(
    ("name", "operator", "value", "found"),
    [
        ("TrainingJobName", None, "b", "b"),
        ("TrainingJobName", "NotEquals", "b", "acd"),
        ("TrainingJobName", "In", "a, c,z", "ac"),
        ("TrainingJobName", "Contains", "d", "d"),
        ("TrainingJobStatus", "Equals", "Failed", "b"),
        ("TrainingJobStatus", "Exists", None, "abcd"),
        ("SecondaryStatus", "Equals", "Completed", "d"),
        ("CreationTime", "GreaterThan", (START + timedelta(seconds=10)).strftime("%Y-%m-%dT%H:%M:%S"), "cd"),
        ("CreationTime", "LessThanOrEqualTo", (START + timedelta(seconds=10)).isoformat(), "ab"),
        ("TrainingEndTime", "Exists", None, "d"),
        ("TrainingStartTime", "NotExists", None, "abc"),
        ("TrainingTimeInSeconds", "GreaterThanOrEqualTo", "30", "d"),
        ("BillableTimeInSeconds", "LessThan", "30.0", ""),
        ("FailureReason", "Contains", "AlgorithmError", "b"),
        ("HyperParameters.lr", "LessThan", "0.2", "ab"),
        ("HyperParameters.lr", "LessThan", "1", "abcd"),
        ("HyperParameters.lr", "Equals", "0", "abcd"),
        ("HyperParameters.lr", "Equals", "0.150", "b"),
        ("HyperParameters.epochs", "GreaterThanOrEqualTo", "2", "cd"),
        ("HyperParameters.model", "Equals", '"c"', "c"),
        ("HyperParameters.model", "GreaterThan", "2", ""),
        ("HyperParameters.dotted.key", "Equals", "1", "abcd"),
        ("HyperParameters.absent", "Exists", None, ""),
        ("HyperParameters.absent", "NotEquals", "1", "abcd"),
        ("Metrics.acc uracy", "GreaterThan", "0.4", "c"),
        ("Metrics.acc uracy", "NotExists", None, "abd"),
        ("Tags.team", "Equals", "x", "bd"),
        ("Tags.Value", "Equals", "x", "bd"),
        ("ResourceConfig.InstanceCount", "Equals", "1", "abcd"),
        ("ResourceConfig.InstanceType", "Contains", "trn1", "abcd"),
        ("ResourceConfig.KeepAlivePeriodInSeconds", "GreaterThan", "500", "d"),
        ("EnableNetworkIsolation", "Equals", "true", "b"),
        ("EnableNetworkIsolation", "NotEquals", "True", "acd"),
        ("InputDataConfig.ChannelName", "Equals", "test", "b"),
        ("InputDataConfig.ChannelName", "NotEquals", "test", "acd"),
        ("InputDataConfig.DataSource.S3DataSource.S3Uri", "Contains", "yours", "b"),
        ("InputDataConfig.ChannelName", "NotExists", None, "cd"),
        ("ResourceConfig.InstanceGroups.InstanceType", "Exists", None, ""),
        ("FinalMetricDataList.Value", "LessThan", "1", "c"),
        ("SecondaryStatusTransitions.Status", "Equals", "Uploading", "d"),
        ("ModelArtifacts.S3ModelArtifacts", "Exists", None, "c"),
        ("WarmPoolStatus.Status", "Equals", "Reused", "d"),
        ("WarmPoolStatus.ReusedByJob", "Equals", "e", "d"),
        ("StoppingCondition.MaxRuntimeInSeconds", "GreaterThan", "1", "abcd"),
    ],
)
def test_a_filter(jobs: SqliteStore, name: str, operator: str | None, value: str | None, found: str) -> None:
    """Every operator, over columns, the request, the record, tags and metrics."""
    assert names(jobs, one(name, operator, value)) == found


def test_expressions_are_joined(jobs: SqliteStore) -> None:
    """And is the default; Or takes any; expressions nest; one element satisfies a nested filter whole."""
    status, team = one("TrainingJobStatus", "Equals", "Failed"), one("Tags.team", "Equals", "x")
    both = {"Filters": status["Filters"] + team["Filters"]}
    assert names(jobs, both) == "b"
    assert names(jobs, {**both, "Operator": "Or"}) == "bd"
    assert (
        names(
            jobs, {"SubExpressions": [{**both, "Operator": "Or"}, one("TrainingJobName", "NotEquals", "b")]}
        )
        == "d"
    )

    def channel(name: str, bucket: str) -> dict[str, Any]:
        filters = one("InputDataConfig.ChannelName", "Equals", name)["Filters"]
        filters += one("DataSource.S3DataSource.S3Uri", "Contains", bucket)["Filters"]
        return {"NestedFilters": [{"NestedPropertyName": "InputDataConfig", "Filters": filters}]}

    assert names(jobs, channel("test", "yours")) == "b"
    assert names(jobs, channel("train", "yours")) == ""
    assert names(jobs) == "abcd"


@pytest.mark.parametrize(
    "sort_by", ["CreationTime", "LastModifiedTime", "TrainingJobName", "TrainingJobStatus"]
)
@pytest.mark.parametrize("order", ["Ascending", "Descending"])
def test_the_common_orders_sort_nothing(jobs: SqliteStore, sort_by: str, order: str) -> None:
    """They walk an index, whatever is asked, and stop when the page is full."""
    request = {"Resource": "TrainingJob", "SortBy": sort_by, "SortOrder": order, "MaxResults": 1}
    request["SearchExpression"] = one("HyperParameters.lr", "LessThan", "1")
    query = query_of(request)
    for token in (None, jobs.search_jobs(query)[1]):
        wanted = searching.statement(replace(query, token=token))
        assert "TEMP B-TREE" not in plan(jobs, wanted.text.replace("number(", "abs("), wanted.values)


@pytest.mark.parametrize(
    ("sort_by", "ascending"),
    [
        ("CreationTime", "abcd"),
        ("LastModifiedTime", "acbd"),
        ("TrainingJobName", "abcd"),
        ("TrainingJobStatus", "dbac"),
        ("HyperParameters.epochs", "abcd"),
        ("HyperParameters.model", "abcd"),
        ("HyperParameters.absent", "abcd"),
        ("Metrics.acc uracy", "abdc"),
        ("Tags.team", "bdac"),
        ("TrainingTimeInSeconds", "abcd"),
        ("EnableNetworkIsolation", "acdb"),
        ("TrainingEndTime", "abcd"),
    ],
)
@pytest.mark.parametrize("limit", [1, 3])
def test_pages_of_any_order_cover_all_once(
    jobs: SqliteStore, sort_by: str, ascending: str, limit: int
) -> None:
    """By any property; a job without it comes first; equal ones are in order of their names."""
    for order, wanted in (("Ascending", ascending), ("Descending", ascending[::-1])):
        request = {"Resource": "TrainingJob", "SortBy": sort_by, "SortOrder": order, "MaxResults": limit}
        assert "".join(name for page in pages(jobs, request) for name in page) == wanted


def pages(store: SqliteStore, request: dict[str, Any]) -> Iterator[list[str]]:
    token: str | None = None
    while True:
        more: dict[str, Any] = {} if token is None else {"NextToken": token}
        found, token = store.search_jobs(query_of({**request, **more}))
        yield [job.name for job, _ in found]
        if token is None:
            return


def test_jobs_come_with_their_tags(jobs: SqliteStore) -> None:
    """As Search shows them."""
    request = {"Resource": "TrainingJob", "SearchExpression": one("TrainingJobName", "Equals", "a")}
    ((job, tags),) = jobs.search_jobs(query_of(request))[0]
    assert (job.name, tags) == ("a", {"team": "y"})


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"Resource": "Endpoint"}, "no resources of type Endpoint.*TrainingJob"),
        ({"CrossAccountFilterOption": "CrossAccount"}, "one account"),
        ({"VisibilityConditions": [{"Key": "k"}]}, "does not serve VisibilityConditions"),
        ({"SearchExpression": {}}, "at least one of Filters"),
        ({"SearchExpression": {"SubExpressions": [{"Operator": "Or"}]}}, "must not be empty"),
        ({"SearchExpression": one("Nonsense", "Equals", "1")}, "Unknown property name: Nonsense"),
        ({"SearchExpression": one("ResourceConfig", "Exists")}, "Name one of its members: .*InstanceType"),
        ({"SearchExpression": one("ResourceConfig.Kind", "Exists")}, "'Kind' is not one of .*InstanceType"),
        ({"SearchExpression": one("InputDataConfig", "Exists")}, "Name one of its members: ChannelName"),
        ({"SearchExpression": one("TrainingJobName.x", "Exists")}, "Unknown property name"),
        ({"SearchExpression": one('Tags.a"b', "Exists")}, "not a property's name"),
        ({"SearchExpression": one("Tags.a\0b", "Exists")}, "not a property's name"),
        ({"SearchExpression": one("TrainingJobName", "Equals")}, "needs a Value"),
        ({"SearchExpression": one("TrainingJobName", "Exists", "1")}, "takes no Value"),
        ({"SearchExpression": one("TrainingJobName", "LessThan", "1")}, "not supported for text"),
        ({"SearchExpression": one("CreationTime", "Contains", "2026")}, "only supported for text"),
        ({"SearchExpression": one("CreationTime", "LessThan", "soon")}, "YYYY-mm-ddTHH:MM:SS"),
        ({"SearchExpression": one("Metrics.a", "LessThan", "nan")}, "decimal number"),
        ({"SearchExpression": one("HyperParameters.a", "LessThan", "x")}, "needs a number"),
        ({"SearchExpression": one("EnableNetworkIsolation", "Equals", "1")}, "true or false"),
        ({"SortBy": "InputDataConfig.ChannelName"}, "no order by it"),
        ({"NextToken": "x"}, "NextToken"),
        ({"SearchExpression": nested("Tags", "X")}, "'X' is not of its elements"),
        ({"SearchExpression": nested("ResourceConfig", "InstanceType")}, "no list of TrainingJob's"),
        (
            {"SearchExpression": {"SubExpressions": [one("TrainingJobName", "Equals", "a")] * 26}},
            "at most are 50",
        ),
    ],
)
def test_what_cannot_be_searched_is_refused(jobs: SqliteStore, members: dict[str, Any], words: str) -> None:
    """With the name of what is wrong, and what is valid."""
    request = {"Resource": "TrainingJob", **members}
    with pytest.raises(ValidationFailed, match=words):
        jobs.search_jobs(query_of(request))


def test_a_search_that_takes_too_long_ends(jobs: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """No reader may keep the log from being folded in; the next search is not disturbed."""
    monkeypatch.setattr(database, "STEPS_BETWEEN_LOOKS", 1)
    monkeypatch.setattr(database, "LONGEST_SEARCH_S", -1.0)
    with pytest.raises(StoreUnavailable, match="Narrow it"):
        names(jobs)
    monkeypatch.undo()
    assert names(jobs) == "abcd"
