"""Read a job that ran on AWS, from DescribeTrainingJob's answer or from a file with it, as a `Flight`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date, datetime, timezone
from typing import Any

from windtunnel.errors import ConfigurationError, JobNotFinished
from windtunnel.priceperf import Flight
from windtunnel.rehearsal import read_object
from windtunnel.reports.job.measured import ran_here
from windtunnel.request import instance_groups
from windtunnel.session.training_service import TERMINAL

_TIMES = ("CreationTime", "TrainingStartTime", "TrainingEndTime", "LastModifiedTime")
_AGAIN = ("Interrupted", "Restarting")
_MOST_SECONDS = 1e9
"""About thirty years: no training job runs that long."""
_MOST_INSTANCES = 1_000_000


class DescribedJob:
    """A job known by its description alone: ``aws sagemaker describe-training-job`` saved to a file."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        """``description``: DescribeTrainingJob's answer; dates as datetime, ISO text or Unix seconds.

        Raises:
            ConfigurationError: it lacks the fields of such an answer, or has impossible ones.
        """
        if not (description.get("TrainingJobStatus") and description.get("ResourceConfig")):
            raise ConfigurationError(
                "the description has no TrainingJobStatus or no ResourceConfig. Expected is the answer of "
                "`aws sagemaker describe-training-job --training-job-name NAME`."
            )
        self._description = with_times(description)
        self.name = str(description.get("TrainingJobName", "a job"))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> DescribedJob:
        """Read the description from a JSON file.

        Raises:
            ConfigurationError: the file cannot be read, or holds no such answer.
        """
        return cls(read_object(path, "the answer of `aws sagemaker describe-training-job`"))

    def describe(self) -> dict[str, Any]:
        """The description, its dates as datetimes."""
        return self._description

    def counters(self) -> None:
        """None: a job on AWS has no counters."""
        return


def with_times(description: Mapping[str, Any]) -> dict[str, Any]:
    """The description with ISO text and Unix seconds turned into datetimes, as boto3 gives them.

    Raises:
        ConfigurationError: a time is none of these, or a field has a value that AWS would not answer with.
    """
    _check(description)
    found = dict(description)
    for name in _TIMES:
        if found.get(name) is not None:
            found[name] = _time(name, found[name])
    found["SecondaryStatusTransitions"] = [
        {
            **step,
            **{
                name: _time(f"SecondaryStatusTransitions.{name}", step[name])
                for name in ("StartTime", "EndTime")
                if step.get(name) is not None
            },
        }
        for step in description.get("SecondaryStatusTransitions") or []
    ]
    return found


def _check(description: Mapping[str, Any]) -> None:
    """Raise for a field that AWS would not answer with, and name it: a saved description may have been edited."""
    for name in ("TrainingJobName", "TrainingJobStatus", "TrainingJobArn"):
        _expect(name, description.get(name), "a text", str)
    for name in ("TrainingTimeInSeconds", "BillableTimeInSeconds"):
        _expect_seconds(name, description.get(name))
    for name in ("ResourceConfig", "WarmPoolStatus", "Environment"):
        _expect(name, description.get(name), "an object", Mapping)
    pool = description.get("WarmPoolStatus") or {}
    _expect_seconds(
        "WarmPoolStatus.ResourceRetainedBillableTimeInSeconds",
        pool.get("ResourceRetainedBillableTimeInSeconds"),
    )
    resources = description.get("ResourceConfig") or {}
    _expect("ResourceConfig.InstanceGroups", resources.get("InstanceGroups"), "a list", list)
    for group in resources.get("InstanceGroups") or [resources]:
        _expect("ResourceConfig.InstanceGroups", group, "a list of objects", Mapping)
        _expect("ResourceConfig.InstanceType", group.get("InstanceType", 0), "a text", str)
        count = group.get("InstanceCount")
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= _MOST_INSTANCES:
            raise _unexpected(
                "ResourceConfig.InstanceCount", count, f"a whole number from 1 to {_MOST_INSTANCES:,}"
            )
    steps = description.get("SecondaryStatusTransitions")
    _expect("SecondaryStatusTransitions", steps, "a list", list)
    for step in steps or ():
        if not isinstance(step, Mapping):
            raise _unexpected("SecondaryStatusTransitions", step, "a list of objects")


def _expect(name: str, value: object, what: str, kind: type) -> None:
    if value is not None and not isinstance(value, kind):
        raise _unexpected(name, value, what)


def _expect_seconds(name: str, value: object) -> None:
    if value is None:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and 0 <= float(str(value)) <= _MOST_SECONDS):
        raise _unexpected(name, value, "seconds of 0 or more")


def _unexpected(name: str, value: object, what: str) -> ConfigurationError:
    return ConfigurationError(
        f"the description's {name} is {value!r:.80}; expected is {what}, as `aws sagemaker "
        "describe-training-job` answers."
    )


def flight_of(description: Mapping[str, Any]) -> Flight:
    """What the price model needs of a job that ran on AWS.

    Raises:
        JobNotFinished: the job still runs.
        ConfigurationError: it ran on the local backend, on instances of several types, or was not billed.
    """
    found = with_times(description)
    name, status = str(found.get("TrainingJobName", "a job")), str(found["TrainingJobStatus"])
    if ran_here(found):
        raise ConfigurationError(
            f"{name} ran on the local backend: its seconds say nothing of Trainium. Give a job that ran on AWS."
        )
    if status not in TERMINAL:
        raise JobNotFinished(
            f"Training job {name} still runs ({status}): what it takes is known when it has ended."
        )
    resources = found["ResourceConfig"]
    kind, count = _instances(name, resources)
    billable, training = found.get("BillableTimeInSeconds"), found.get("TrainingTimeInSeconds")
    if billable is None or found.get("TrainingStartTime") is None:
        raise ConfigurationError(
            f"{name} ended as {status} and its description has no BillableTimeInSeconds or no "
            "TrainingStartTime: it never ran on an instance. Give a job that did."
        )
    return Flight(
        job=name,
        status=status,
        instance_type=kind,
        instance_count=count,
        started=_day(found["TrainingStartTime"]),
        training_s=float(billable if training is None else training),
        billable_s=float(billable),
        phases=_phases(found),
        spot=bool(found.get("EnableManagedSpotTraining")),
        interrupted=any(step.get("Status") in _AGAIN for step in found["SecondaryStatusTransitions"]),
        may_start_warm=bool(found.get("WarmPoolStatus")) or bool(resources.get("KeepAlivePeriodInSeconds")),
    )


def _instances(name: str, resources: Mapping[str, Any]) -> tuple[str, int]:
    kinds = {group.instance_type for group in instance_groups.from_request(dict(resources))}
    if len(kinds) > 1:
        raise ConfigurationError(
            f"{name} ran on instance groups of several types ({', '.join(sorted(kinds))}), and only one type "
            "is modelled. Its bill: windtunnel report, without rehearsal."
        )
    kind = kinds.pop() if kinds else str(resources.get("InstanceType"))
    return kind, instance_groups.host_count(dict(resources))


def _phases(description: Mapping[str, Any]) -> dict[str, float]:
    """Seconds spent in each secondary status; a status without an end lasted until the next one, or the job's end."""
    steps = description["SecondaryStatusTransitions"]
    found: dict[str, float] = {}
    for index, step in enumerate(steps):
        begun = step.get("StartTime")
        later = steps[index + 1].get("StartTime") if index + 1 < len(steps) else None
        ended = step.get("EndTime") or later or description.get("TrainingEndTime")
        if begun is not None and ended is not None and step.get("Status") not in TERMINAL:
            name = str(step.get("Status"))
            found[name] = found.get(name, 0.0) + max(0.0, (ended - begun).total_seconds())
    return found


def _day(moment: datetime) -> date:
    return moment.astimezone(timezone.utc).date()


def _time(name: str, value: object) -> datetime:
    """Read a time: boto3 gives datetimes, the AWS CLI ISO text (v2) or Unix seconds (v1)."""
    try:
        if isinstance(value, datetime):
            moment = value
        elif isinstance(value, int | float) and not isinstance(value, bool):
            moment = datetime.fromtimestamp(value, timezone.utc)
        else:
            moment = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except (ValueError, OverflowError, OSError) as error:
        raise ConfigurationError(
            f"{name}={value!r}: a date as ISO text or Unix seconds is needed, as the AWS CLI prints it."
        ) from error
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
    if not 2000 <= moment.year <= 9000:  # near the calendar's ends, its day in UTC may not exist
        raise ConfigurationError(f"{name}={value!r}: no day on which a training job ran.")
    return moment
