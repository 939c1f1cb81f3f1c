"""What can go wrong, as a user of the SDK sees it.

    WindtunnelError
    ├── ConfigurationError         an argument is wrong; nothing was started (also a ValueError)
    │   ├── UnsupportedArgument    a SageMaker argument that has no meaning here
    │   ├── SourceError            the entry point, source_dir or dependencies
    │   ├── InputError             a channel
    │   ├── BudgetExceeded         max_cost does not buy this job
    │   └── UnknownImage           no training image for these versions or this region
    ├── BackendError               the local backend does not start or does not answer
    ├── ServiceCallFailed          SageMaker, S3, CloudWatch Logs, STS or IAM refused a call
    │   ├── JobNotFound            no training job of that name
    │   └── EndpointNotFound       no endpoint of that name
    ├── PricesUnavailable          AWS's price list could not be asked
    ├── JobNotFinished             asked for a result that the job does not have (yet)
    ├── WaitTimeout                the time to wait is over before job or endpoint is ready (also a TimeoutError)
    └── RunFailed                  something ran and failed; carries reason, log tail, next step
        ├── TrainingJobFailed      a training job
        ├── EndpointFailed         an endpoint did not come up
        └── TransformJobFailed     a transform job

    KeyboardInterrupt
    └── Detached                   Ctrl-C while following a job: the job goes on

    UserWarning
    ├── BudgetWarning              max_cost may not be enough; the job starts
    └── SourceWarning              the code that is sent is large, or lacks a file; the job starts

Every message says what was given, what is valid and what to do next.
"""

from __future__ import annotations

from collections.abc import Sequence

from windtunnel.priceperf.errors import did_you_mean as did_you_mean

_LONGEST_LINE = 500
_WHERE = {True: ("on the local backend", ""), False: ("in this account and region", " --aws")}
"""Where a session looks, and the option that makes a command look there."""


class WindtunnelError(Exception):
    """Root of all errors of this SDK."""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the attributes too, for process pools: many classes here cannot be made from the message alone."""
        return _rebuild, (type(self), self.args, self.__dict__)


class ConfigurationError(WindtunnelError, ValueError):
    """An argument is wrong. Raised before anything is uploaded or started."""


class UnsupportedArgument(ConfigurationError):
    """An argument of the SageMaker SDK that has no meaning here; it is refused rather than dropped."""


class SourceError(ConfigurationError):
    """The entry point, ``source_dir`` or ``dependencies`` cannot be packed."""


class InputError(ConfigurationError):
    """A channel's data cannot be provided."""


class BudgetExceeded(ConfigurationError):
    """``max_cost`` does not buy a useful run, or the job is modelled to cost more. Nothing was started."""


class BudgetWarning(UserWarning):
    """``max_cost`` may not be enough for the job, or is so low that on AWS the job would not be started."""


class SourceWarning(UserWarning):
    """The code to upload is very large, or lacks a file that the script imports. The job starts all the same."""


class UnknownImage(ConfigurationError):
    """No training image is known for the versions or the region asked for."""


class BackendError(WindtunnelError):
    """The local backend does not start, or does not answer. The message ends with its log."""


class ServiceCallFailed(WindtunnelError):
    """AWS or the local backend refused a call. ``operation``: e.g. CreateTrainingJob; ``code``: AWS's error code."""

    def __init__(self, operation: str, code: str, message: str) -> None:
        self.operation = operation
        self.code = code
        self.service_message = message
        super().__init__(f"{operation} was refused ({code}): {message}")


class JobNotFound(ServiceCallFailed):
    """There is no training job of that name in this session."""

    def __init__(self, name: str, *, local: bool, why: str = "") -> None:
        super().__init__("DescribeTrainingJob", "ValidationException", "Requested resource not found.")
        self.name = name
        where, place = _WHERE[local]
        self.args = (
            f"No training job {name!r} {where}{why}. `windtunnel ps{place}` lists the jobs there are.",
        )


class EndpointNotFound(ServiceCallFailed):
    """There is no endpoint of that name in this session."""

    def __init__(self, operation: str, name: str, *, local: bool) -> None:
        super().__init__(operation, "ValidationException", f'Could not find endpoint "{name}".')
        self.name = name
        where, place = _WHERE[local]
        self.args = (f"No endpoint {name!r} {where}. `windtunnel endpoints{place}` lists those there are.",)


class PricesUnavailable(WindtunnelError):
    """AWS's price list could not be asked: no network, no credentials, no permission. Nothing was changed."""


class JobNotFinished(WindtunnelError):
    """The result asked for does not exist (yet)."""


class WaitTimeout(WindtunnelError, TimeoutError):
    """A job or endpoint needs longer than the time given to ``wait``, and goes on."""


class RunFailed(WindtunnelError):
    """A training job, a transform job or an endpoint has the status Failed.

    Attributes:
        name: name of the job or endpoint.
        reason: SageMaker's FailureReason.
        cause: why the script failed, in one line that names the script's line; empty where the log does not tell.
        log_tail: the last lines of the log, oldest first.
        logs_location: where the whole log is.
        next_step: what to do next.
    """

    _what = "Run"

    def __init__(
        self,
        name: str,
        reason: str,
        *,
        cause: str = "",
        log_tail: Sequence[str],
        logs_location: str,
        next_step: str,
    ) -> None:
        self.name = name
        self.reason = reason
        self.cause = cause
        self.log_tail = tuple(log_tail)
        self.logs_location = logs_location
        self.next_step = next_step
        tail = "\n".join(f"    {_clipped(line)}" for line in self.log_tail) or "    (it printed nothing)"
        # Behind "ErrorMessage", the reason repeats the log.
        shown = " ".join((reason.partition("ErrorMessage ")[0] if cause else reason).split())
        # A test runner's summary shows only the first line.
        why = f"{_clipped(cause)}\n  Reason: {shown}" if cause else shown
        super().__init__(
            f"{self._what} {name} failed: {why}\n"
            f"  Last lines of its log:\n{tail}\n"
            f"  Logs: {logs_location}\n"
            f"  Next: {next_step}"
        )


class TrainingJobFailed(RunFailed):
    """A training job ended as Failed."""

    _what = "Training job"


class EndpointFailed(RunFailed):
    """An endpoint did not come up: its container failed, or was not healthy in time."""

    _what = "Endpoint"


class TransformJobFailed(RunFailed):
    """A transform job ended as Failed: its container did not come up, or files of its input failed."""

    _what = "Transform job"


def _clipped(line: str) -> str:
    """Cut a log's line for a message: logs may have lines of a megabyte."""
    if len(line) <= _LONGEST_LINE:
        return line
    return f"{line[:_LONGEST_LINE]}... ({len(line)} characters)"


def _rebuild(
    kind: type[BaseException], args: tuple[object, ...], members: dict[str, object]
) -> BaseException:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(members)
    return error


class Detached(KeyboardInterrupt):
    """Ctrl-C while following a job. The job goes on; the message says how to come back or stop it.

    A KeyboardInterrupt, so that a script that is interrupted ends instead of going on as if training had
    finished. ``name`` is the job's name, ``place`` the option for commands about it: ``" --aws"`` or empty.
    """

    def __init__(self, name: str, place: str = "") -> None:
        self.name = name
        session = ", AwsSession()" if place else ""
        super().__init__(
            f"detached; training job {name} goes on. "
            f"Follow it again: windtunnel logs -f {name}{place}, or TrainingJob.attach({name!r}{session}).wait(). "
            f"Stop it: windtunnel stop {name}{place}."
        )

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as `WindtunnelError` does."""
        return _rebuild, (type(self), self.args, self.__dict__)
