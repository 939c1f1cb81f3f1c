"""The CreateTrainingJob request that created a job, made from the job's description: to send again, or to show."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from windtunnel_local.service.answers import CHANNEL_DEFAULTS, OF_THE_REQUEST, OUTPUT_DEFAULTS

_NAME_VALUE = "sagemaker_job_name"  # the hyperparameter in which an SDK tells a job its name
_LONGEST_NAME = 63
_STAMP = re.compile(r"-\d{4}-\d{2}-\d{2}-\d{2}-\d{2}-\d{2}-\d{3}$")


def request_again(
    described: Mapping[str, Any], tags: Sequence[Mapping[str, str]], name: str
) -> dict[str, Any]:
    """The request of a job, from the answers of DescribeTrainingJob and ListTags, with another job name."""
    request = {
        member: described[member] for member in OF_THE_REQUEST if described.get(member) not in (None, False)
    }
    request["OutputDataConfig"] = _without(OUTPUT_DEFAULTS, request["OutputDataConfig"])
    channels = [_without(CHANNEL_DEFAULTS, channel) for channel in request.pop("InputDataConfig", ())]
    if channels:
        request["InputDataConfig"] = channels
    values = request.get("HyperParameters", {})
    if _NAME_VALUE in values:
        request["HyperParameters"] = {**values, _NAME_VALUE: json.dumps(name)}
    return {"TrainingJobName": name, **request, **({"Tags": list(tags)} if tags else {})}


def _without(defaults: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """The described members, without defaults that an answer has even if the request did not."""
    return {key: value for key, value in told.items() if key not in defaults or value != defaults[key]}


def next_name(name: str, now: datetime) -> str:
    """A name for another run of a job: its own name, with the time at its end, as the SDK writes it."""
    stamp = f"-{now:%Y-%m-%d-%H-%M-%S}-{now.microsecond // 1000:03}"
    return _STAMP.sub("", name)[: _LONGEST_NAME - len(stamp)].rstrip("-") + stamp
