"""A rehearsal in any form that a caller has (job, counters, file, workload), and what the model predicts from it.

Used for jobs that have not run yet, and for jobs that ran on AWS.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from windtunnel.errors import ConfigurationError
from windtunnel.local_paths import absolute
from windtunnel.priceperf import (
    Corrections,
    Estimate,
    FullScale,
    PricePerfError,
    Workload,
    compare,
)
from windtunnel.rendering import format as fmt


class CountedJob(Protocol):
    """A training job that left counters: `TrainingJob` of a local session."""

    name: str

    def counters(self) -> Mapping[str, Any]:
        """The content of its ``counters.json``."""


Rehearsal = CountedJob | Mapping[str, Any] | str | os.PathLike[str] | Workload
"""A local job, its counters, the path of a ``counters.json``, or a workload."""


@dataclass(frozen=True)
class Rehearsed:
    """A workload and the name of the job that it was counted in. ``counters``: None if only a workload was given."""

    name: str
    workload: Workload
    counters: Mapping[str, Any] | None = None

    @property
    def source(self) -> str:
        """What the prediction is made from, in words for a message."""
        return "the workload given" if self.counters is None else f"rehearsal {self.name}"


def rehearsed(given: Rehearsal) -> Rehearsed:
    """Read a rehearsal in any of its forms. A job's counters are fetched from its session.

    Raises:
        ConfigurationError: no such file, no counters, or counters that cannot be modelled.
        JobNotFinished: the job has no counters (yet).
    """
    if isinstance(given, Workload):
        return Rehearsed("a workload", given)
    if isinstance(given, Mapping):
        counters: Mapping[str, Any] = given
    elif isinstance(given, str | os.PathLike):
        counters = read_counters(given)
    elif callable(getattr(given, "counters", None)):
        counters = given.counters()
    else:
        raise ConfigurationError(
            f"rehearsal={given!r:.80}: a job that ran here, its counters, the path of its counters.json, or a "
            "Workload is needed."
        )
    try:
        workload = Workload.from_counters(counters)
    except PricePerfError as error:
        raise ConfigurationError(f"rehearsal: {error}") from error
    return Rehearsed(fmt.name(counters.get("job") or getattr(given, "name", "counters")), workload, counters)


def read_counters(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    """The content of a ``counters.json``.

    Raises:
        ConfigurationError: it cannot be read, or holds no JSON object.
    """
    return read_object(path, "a job's counters.json")


def read_object(path: str | os.PathLike[str], what: str) -> dict[str, Any]:
    """The JSON object in a file; ``what`` says what was expected there.

    Raises:
        ConfigurationError: the file cannot be read, or holds something else.
    """
    file = absolute(path)
    try:
        found = json.loads(file.read_text(encoding="utf-8-sig"))  # Windows editors write a byte-order mark
    except OSError as error:
        raise ConfigurationError(f"cannot read {file}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{file} is not JSON: {error}. Expected is {what}.") from error
    if not isinstance(found, dict):
        raise ConfigurationError(f"{file} holds no JSON object. Expected is {what}.")
    return found


def predicted(
    workload: Workload,
    instance_type: str,
    instance_count: int,
    full_scale: FullScale | None,
    corrections: Corrections | None = None,
) -> Estimate:
    """The model's estimate for a workload on these instances. Without ``full_scale``: for exactly what was rehearsed.

    ``corrections``: from the user's own calibration; None: none.

    Raises:
        UnknownInstance: the instance type has no figures.
    """
    return compare(
        workload,
        [instance_type],
        full_scale,
        batch="rehearsed",
        instance_count=instance_count,
        corrections=corrections,
    ).estimates[0]
