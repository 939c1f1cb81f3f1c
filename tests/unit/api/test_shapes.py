"""Answers are written as AWS's model has them, and what the model has not is a bug that shows."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from windtunnel_local.api import codec


def shape(operation: str) -> Any:
    return codec.operation("sagemaker", operation).output_shape  # type: ignore[union-attr]


def written(operation: str, value: dict[str, Any]) -> Any:
    return json.loads(codec.encoded(shape(operation), value))


def test_every_kind_of_value() -> None:
    """Structures, lists, maps, timestamps as Unix seconds to the millisecond; absent members are left out."""
    moment = datetime(2026, 1, 2, 3, 4, 5, 678_901, timezone.utc)
    answer = {
        "TrainingJobName": "jöb",
        "HyperParameters": {"a": "1"},
        "CreationTime": moment.astimezone(timezone(timedelta(hours=5))),
        "FailureReason": None,
        "EnableNetworkIsolation": False,
        "FinalMetricDataList": [{"MetricName": "m", "Value": 1, "Timestamp": moment}, {"Value": 0.5}],
        "ResourceConfig": {"InstanceCount": 2},
    }
    assert written("DescribeTrainingJob", answer) == {
        "TrainingJobName": "jöb",
        "HyperParameters": {"a": "1"},
        "CreationTime": 1767323045.679,
        "EnableNetworkIsolation": False,
        "FinalMetricDataList": [{"MetricName": "m", "Value": 1, "Timestamp": 1767323045.679}, {"Value": 0.5}],
        "ResourceConfig": {"InstanceCount": 2},
    }
    assert written("StopTrainingJob", {}) == {}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"Nonsense": 1}, "has no member Nonsense"),
        ({"Nonsense": None}, "has no member Nonsense"),
        ({"ResourceConfig": {"Nonsense": 1}}, "ResourceConfig has no member Nonsense"),
        ({"TrainingJobName": 1}, "of type string; the service gave int"),
        ({"EnableNetworkIsolation": 1}, "of type boolean; the service gave int"),
        ({"TrainingTimeInSeconds": True}, "of type integer; the service gave bool"),
        ({"TrainingTimeInSeconds": 1.5}, "of type integer; the service gave float"),
        ({"FinalMetricDataList": [{"Value": "1"}]}, "of type float; the service gave str"),
    ],
)
@pytest.mark.parametrize("times", [1, 2])
def test_what_the_model_has_not(answer: dict[str, Any], words: str, times: int) -> None:
    """Is refused, the first time and with the writer that is kept."""
    for _ in range(times):
        with pytest.raises(TypeError, match=words):
            written("DescribeTrainingJob", answer)
