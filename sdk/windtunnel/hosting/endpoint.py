"""An existing endpoint: its status, log, cost and deletion. Any process that knows its name can use it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, TextIO

from windtunnel.errors import EndpointFailed, EndpointNotFound, ServiceCallFailed, WaitTimeout
from windtunnel.hosting.cost import EndpointCost, endpoint_cost
from windtunnel.session.endpoint_service import LOG_GROUP
from windtunnel.session.log_streams import LogStreams, last_of
from windtunnel.session.resolve import resolve_session
from windtunnel.session.session import Session

CHANGING = frozenset({"Creating", "Updating", "SystemUpdating", "RollingBack"})
"""Statuses that change without a further request."""
SERVES = "InService"
_TAIL_LINES = 20
_MARK_EVERY_S = 5.0


class Endpoint:
    """One endpoint of a session. The constructor makes no call."""

    def __init__(self, name: str, session: Session | None = None) -> None:
        self.name = name
        self.session = resolve_session(session)

    def describe(self) -> dict[str, Any]:
        """DescribeEndpoint's answer.

        Raises:
            EndpointNotFound: there is no such endpoint.
        """
        return self.session.endpoints.describe(self.name)

    def config(self) -> dict[str, Any]:
        """DescribeEndpointConfig's answer; empty if the configuration is deleted already.

        Raises:
            EndpointNotFound: there is no such endpoint.
        """
        name = self.describe()["EndpointConfigName"]
        with _unless_missing():
            return self.session.endpoints.describe_config(name)
        return {}

    def wait(self, timeout: float | None = None, out: TextIO | None = None) -> None:
        """Block until the endpoint is InService, showing its status; polls each 0.5 s here, each 5 s on AWS.

        Args:
            timeout: seconds to wait at most.
            out: where to print; default ``sys.stdout``.

        Raises:
            EndpointFailed: with reason, log tail and next step.
            WaitTimeout: the time is over; the endpoint goes on.
        """
        stream = out or sys.stdout
        try:
            description = self._follow(timeout, stream)
        except KeyboardInterrupt:
            place = self.session.place
            raise KeyboardInterrupt(
                f"interrupted; endpoint {self.name} goes on, and is billed on AWS once it is InService. "
                f"`windtunnel endpoints{place}` shows it; once it is not Creating any more, "
                f"`windtunnel rm --endpoint {self.name}{place}` deletes it."
            ) from None
        if description["EndpointStatus"] != SERVES:
            raise self._failure(description)

    def _follow(self, timeout: float | None, out: TextIO) -> dict[str, Any]:
        """Poll until the status is none of `CHANGING`; returns the last description."""
        begun = marked = time.monotonic()
        shown = ""
        while True:
            description = self.describe()
            status, now = str(description["EndpointStatus"]), time.monotonic()
            if status != shown:
                out.write(f"{chr(10) if shown else ''}{status}")
                shown, marked = status, now
            elif now - marked >= _MARK_EVERY_S:
                out.write("-")
                marked = now
            out.flush()
            if status not in CHANGING:
                out.write(f" after {now - begun:.1f} s\n")
                return description
            if timeout is not None and now - begun > timeout:
                out.write("\n")
                raise WaitTimeout(
                    f"Endpoint {self.name} is still {status} after {timeout:g} s and goes on: wait() again; or "
                    f"delete it once it is not: windtunnel rm --endpoint {self.name}{self.session.place}"
                )
            time.sleep(self.session.describe_poll_s)

    def logs(
        self, follow: bool = False, poll: float | None = None, *, last: int | None = None
    ) -> Iterator[str]:
        """The log lines of its containers; with several containers each has its stream's name in brackets before it.

        Args:
            follow: go on until the endpoint is deleted or has failed; else end with the last line there is now.
            poll: seconds between two polls; default: the session's ``log_poll_s``.
            last: of the lines there are now, only the last ``last``.
        """
        log = self._log()
        yield from last_of(last, log.news())
        while follow:
            try:  # the status before the log, which is complete once it has ended
                over = self.describe()["EndpointStatus"] in ("Failed", "Deleting")
            except EndpointNotFound:
                over = True
            yield from log.news()
            if over:
                return
            time.sleep(self.session.log_poll_s if poll is None else poll)

    def _log(self, since: datetime | None = None) -> LogStreams:
        service, name = self.session.endpoints, self.name
        return LogStreams(
            lambda: service.log_streams(name),
            lambda stream, token: service.read_log(name, stream, token),
            since,
        )

    def instances_and_cost(self) -> tuple[list[tuple[str, int]], EndpointCost]:
        """Its instance types with the number that runs (or was asked for), and their cost on AWS."""
        running = {one["VariantName"]: one for one in self.describe().get("ProductionVariants", ())}
        fleet = [
            (
                variant["InstanceType"],
                running.get(variant["VariantName"], {}).get("CurrentInstanceCount")
                or variant.get("InitialInstanceCount", 1),
            )
            for variant in self.config().get("ProductionVariants", ())
            if "InstanceType" in variant
        ]
        return fleet, endpoint_cost(fleet, None if self.session.local else self.session.region)

    def delete(self, *, config: bool = True, models: bool = False) -> None:
        """Delete the endpoint, its configuration (``config``) and its models (``models``). Does not wait for the end.

        Raises:
            EndpointNotFound: there is no such endpoint.
            ServiceCallFailed: refused, e.g. while the endpoint is Creating or Updating; then nothing is deleted.
        """
        service = self.session.endpoints
        described = self.config()  # asked now: once the endpoint is deleted, nothing leads to it
        service.delete(self.name)
        if config and described:
            service.delete_config(described["EndpointConfigName"])
        for name in models_of(described) if models else ():
            with _unless_missing():
                service.delete_model(name)

    def _failure(self, description: dict[str, Any]) -> EndpointFailed:
        # The log group may still hold lines of an earlier endpoint of this name.
        log = self._log(description["CreationTime"])
        return EndpointFailed(
            self.name,
            description.get("FailureReason")
            or f"its status is {description['EndpointStatus']}; none was given",
            log_tail=list(last_of(_TAIL_LINES, log.news())),
            logs_location=self.session.place_of_log(
                f"windtunnel endpoint-logs {self.name}", f"{LOG_GROUP}/{self.name}"
            ),
            next_step="correct what the reason and the log name; `windtunnel rm --endpoint "
            f"{self.name}{self.session.place}` frees the name; deploy() again.",
        )


def models_of(config: Mapping[str, Any]) -> list[str]:
    """The models of an endpoint's configuration."""
    return [one["ModelName"] for one in config.get("ProductionVariants", ()) if "ModelName" in one]


def age_s(description: Mapping[str, Any]) -> float:
    """Seconds since an endpoint was created."""
    created: datetime = description["CreationTime"]
    return (datetime.now(timezone.utc) - created).total_seconds()


@contextmanager
def _unless_missing() -> Iterator[None]:
    """Ignore the error that the object does not exist (any more)."""
    try:
        yield
    except ServiceCallFailed as error:
        if "Could not find" not in error.service_message:
            raise
