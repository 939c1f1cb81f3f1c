"""A user's own calibration from jobs on AWS, kept as JSON in the Windtunnel home. Reports say when they use it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from windtunnel import settings
from windtunnel.atomic_file import locked, replace_whole
from windtunnel.errors import ConfigurationError
from windtunnel.priceperf import Correction, Corrections, Estimate, Evidence, PricePerfError
from windtunnel.priceperf.calibration.corrections import corrections, is_current

SCHEMA = "windtunnel.user_calibration/1"
FILE_NAME = "calibration.json"


@dataclass(frozen=True)
class UserCalibration:
    """Jobs that ran on AWS, and the corrections of the model that follow from them."""

    evidence: tuple[Evidence, ...] = ()

    @property
    def corrections(self) -> Corrections:
        """The corrections by instance family; empty without jobs."""
        return corrections(self.evidence)

    @property
    def outdated(self) -> tuple[Evidence, ...]:
        """Jobs that were compared with another version of the model: stored, but not used."""
        return tuple(item for item in self.evidence if not is_current(item))

    def notes(self, estimates: Iterable[Estimate]) -> tuple[str, ...]:
        """The lines that begin a report whose figures use the user's calibration; else none."""
        lines = [_note(correction) for correction in _used(estimates)]
        if self.outdated:
            names = ", ".join(item.job for item in self.outdated)
            lines.append(
                f"Not used of your calibration: {names}, held against another version of the model. "
                "Run windtunnel calibrate for them again."
            )
        return tuple(lines)

    def without(self, job: str) -> UserCalibration:
        """The calibration without one job, to predict that job: a prediction must not know its own result."""
        return UserCalibration(tuple(item for item in self.evidence if item.job != job))

    def with_job(self, evidence: Evidence) -> UserCalibration:
        """The calibration with one more job; a job of the same name is replaced."""
        return UserCalibration((*self.without(evidence.job).evidence, evidence))


class CalibrationStore:
    """The file with the user's calibration. Reading it needs no backend and creates no directory.

    Args:
        path: default: ``calibration.json`` in WINDTUNNEL_HOME, looked up when it is used.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path

    @property
    def path(self) -> Path:
        """Where the file is, or would be."""
        return self._path or settings.home() / FILE_NAME

    def load(self) -> UserCalibration:
        """The stored calibration; an empty one if there is no file.

        Raises:
            ConfigurationError: the file cannot be read, or is not ours.
        """
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return UserCalibration()
        except (OSError, UnicodeDecodeError) as error:
            raise self._unusable(str(error)) from error
        try:
            stored = json.loads(text)
            if stored["schema"] != SCHEMA:
                raise self._unusable(f"schema {stored['schema']!r}, this version reads {SCHEMA!r}")
            evidence = tuple(_evidence(entry) for entry in stored["jobs"])
            if len({item.job for item in evidence}) < len(evidence):
                raise self._unusable("it has one job several times")
            return UserCalibration(evidence)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, PricePerfError) as error:
            if isinstance(error, ConfigurationError):
                raise
            raise self._unusable(f"{type(error).__name__}: {error}") from error

    def save(self, calibration: UserCalibration) -> None:
        """Replace the file as a whole: a reader sees the old content or the new one.

        Raises:
            ConfigurationError: the home cannot be written.
        """
        document = {
            "schema": SCHEMA,
            "jobs": [{**asdict(item), "on": item.on.isoformat()} for item in calibration.evidence],
        }
        self._make_home()
        try:
            replace_whole(self.path, json.dumps(document, indent=2) + "\n")
        except OSError as error:
            raise self._unwritable(error) from error

    def add(self, evidence: Evidence) -> UserCalibration:
        """Store one more job, or replace the job of that name; returns all that is then stored."""
        with self._alone():
            calibration = self.load().with_job(evidence)
            self.save(calibration)
        return calibration

    def forget(self, job: str | None = None) -> tuple[str, ...]:
        """Leave out one job, or remove the file; returns the names of the jobs that were in it.

        Raises:
            ConfigurationError: the calibration has no such job.
        """
        if job is None:
            try:
                names = tuple(item.job for item in self.load().evidence)
            except ConfigurationError:
                names = ("(unreadable)",)  # removing the file repairs that
            self.path.unlink(missing_ok=True)
            return names
        with self._alone():
            stored = self.load()
            if job not in [item.job for item in stored.evidence]:
                known = ", ".join(item.job for item in stored.evidence) or "none"
                raise ConfigurationError(f"no job {job!r} in your calibration. It has: {known}.")
            self.save(stored.without(job))
        return (job,)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Let one process at a time change the file, so that no job is lost between reading and writing."""
        self._make_home()
        with locked(self.path.with_suffix(".lock")):
            yield

    def _make_home(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> ConfigurationError:
        return ConfigurationError(
            f"{self.path} cannot be written: {error.strerror}. Set WINDTUNNEL_HOME to a directory of your own."
        )

    def _unusable(self, why: str) -> ConfigurationError:
        return ConfigurationError(
            f"your calibration {self.path} cannot be used: {why}. Remove it with `windtunnel calibrate "
            "--forget`, or leave it out with --no-user-calibration (user_calibration=None)."
        )


STORED = CalibrationStore()
"""The user's own calibration, in the home that is set at the time of use."""


def loaded(store: CalibrationStore | None) -> UserCalibration:
    """The calibration in a store. Without a store: an empty one, which changes no figure of the model."""
    return UserCalibration() if store is None else store.load()


def _used(estimates: Iterable[Estimate]) -> list[Correction]:
    found = {item.correction.calibration.key: item.correction for item in estimates if item.correction}
    return list(found.values())


def _note(correction: Correction) -> str:
    count = len(correction.jobs)
    return (
        f"YOUR CALIBRATION: step times of {correction.calibration.key} are x {correction.factor:.2f}, from {count} "
        f"job{'s' if count > 1 else ''} on AWS ({', '.join(correction.jobs)}), and so are their intervals. "
        "Without it: --no-user-calibration."
    )


def _evidence(entry: dict[str, Any]) -> Evidence:
    found = Evidence(**{**entry, "on": date.fromisoformat(entry["on"])})
    for name in ("job", "instance_type", "workload", "model"):
        if not isinstance(getattr(found, name), str) or not getattr(found, name):
            raise ValueError(f"{name} must be a text, not {getattr(found, name)!r:.80}")
    seconds = ("instance_count", "modelled_s", "real_s", "real_low_s", "real_high_s")
    for name in seconds:
        value = getattr(found, name)
        # From a nanosecond to 30,000 years: with other values a factor may overflow.
        if not isinstance(value, int | float) or isinstance(value, bool) or not 1e-9 <= value <= 1e12:
            raise ValueError(f"{name} must be a number from 1e-9 to 1e12, not {value!r:.80}")
    found.calibration  # noqa: B018 - raises for an instance type without one
    return found
