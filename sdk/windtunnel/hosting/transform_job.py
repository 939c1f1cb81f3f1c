"""An existing transform job: its status, log and end. Any process that knows its name can use it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any, TextIO

from windtunnel.errors import TransformJobFailed, WaitTimeout
from windtunnel.session.log_streams import LogStreams, last_of
from windtunnel.session.resolve import resolve_session
from windtunnel.session.session import Session
from windtunnel.session.training_service import TERMINAL
from windtunnel.session.transform_service import TRANSFORM_LOG_GROUP

_TAIL_LINES = 20


class TransformJob:
    """One transform job of a session. The constructor makes no call."""

    def __init__(self, name: str, session: Session | None = None) -> None:
        self.name = self.job_name = name
        self.session = resolve_session(session)

    def __repr__(self) -> str:
        """The job's name, and where it runs. Makes no call."""
        return f"TransformJob({self.name!r}, {'local' if self.session.local else 'AWS'})"

    def describe(self) -> dict[str, Any]:
        """DescribeTransformJob's answer.

        Raises:
            ServiceCallFailed: there is no such job.
        """
        return self.session.transforms.describe(self.name)

    @property
    def output_path(self) -> str:
        """``s3://`` prefix of the results, each ``<name of the input>.out``."""
        return str(self.describe()["TransformOutput"]["S3OutputPath"])

    def stop(self) -> None:
        """Ask the job to stop; does not wait for its end. No result of a stopped job stays in S3.

        Raises:
            ServiceCallFailed: refused, e.g. because the job has ended.
        """
        self.session.transforms.stop(self.name)

    def logs(self) -> Iterator[str]:
        """The log lines there are now: those of the containers and SageMaker's own (stream ``/data-log``)."""
        return self._log().news()

    def wait(self, logs: bool = True, timeout: float | None = None, out: TextIO | None = None) -> None:
        """Block until the job has ended, showing its log; a stopped job is no error.

        Args:
            logs: whether to show the log.
            timeout: seconds to wait at most.
            out: where to print; default ``sys.stdout``.

        Raises:
            TransformJobFailed: with reason, log tail and next step.
            WaitTimeout: the time is over; the job goes on.
        """
        stream = out or sys.stdout
        try:
            description = self._follow(logs, timeout, stream)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"interrupted; transform job {self.name} goes on. TransformJob({self.name!r}).wait() follows it again, "
                ".stop() ends it."
            ) from None
        if description["TransformJobStatus"] == "Failed":
            raise TransformJobFailed(
                self.name,
                description.get("FailureReason") or "none was given",
                log_tail=list(last_of(_TAIL_LINES, self.logs())),
                logs_location=self.session.place_of_log(
                    f"TransformJob({self.name!r}).logs()", TRANSFORM_LOG_GROUP, f"{self.name}/"
                ),
                next_step="correct what the reason and the log name; transform() again. What came through is below "
                f"{description['TransformOutput']['S3OutputPath']}.",
            )

    def _follow(self, logs: bool, timeout: float | None, out: TextIO) -> dict[str, Any]:
        """Poll until the job has ended; returns the last description."""
        begun, log = time.monotonic(), self._log()
        while True:
            description = self.describe()  # the status before the log, which is complete once it has ended
            has_ended = description["TransformJobStatus"] in TERMINAL
            if has_ended:
                time.sleep(self.session.settle_s)
            for line in log.news() if logs else ():
                out.write(f"{line}\n")
            passed = time.monotonic() - begun
            if has_ended:
                out.write(
                    f"Transform job {self.name}: {description['TransformJobStatus']} after {passed:.1f} s\n"
                )
            out.flush()
            if has_ended:
                return description
            if timeout is not None and passed > timeout:
                raise WaitTimeout(
                    f"Transform job {self.name} is still {description['TransformJobStatus']} after {timeout:g} s and "
                    "goes on: wait() again, or stop() it."
                )
            time.sleep(self.session.describe_poll_s)

    def _log(self) -> LogStreams:
        service = self.session.transforms
        return LogStreams(lambda: service.log_streams(self.name), service.read_log)
