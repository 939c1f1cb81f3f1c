"""An existing training job: wait for it, follow its log, stop it, download its results.

All of it goes through SageMaker's API, so any process that knows the job's name can do it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import date
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from windtunnel.errors import ConfigurationError, Detached, ServiceCallFailed, WaitTimeout
from windtunnel.job import downloads
from windtunnel.job.log import LogFollower, StatusPrinter, print_lines, wants_logs
from windtunnel.job.metric_series import final_metrics, metric_series
from windtunnel.job.outcome import failed, not_finished, print_end
from windtunnel.local_paths import absolute
from windtunnel.request.inputs import split_s3
from windtunnel.session.log_streams import last_of
from windtunnel.session.resolve import resolve_session
from windtunnel.session.session import Session
from windtunnel.session.training_service import LOG_GROUP, TERMINAL
from windtunnel.settings import REHEARSE_VARIABLE

if TYPE_CHECKING:
    from windtunnel.hosting.model import Model
    from windtunnel.hosting.transformer import Transformer
    from windtunnel.priceperf import FullScale
    from windtunnel.reports.diagnostics import Diagnostics
    from windtunnel.reports.job.report import PricePerformance
    from windtunnel.reports.metric_series import MetricSeries

_TAIL_LINES = 20
_BEFORE_THE_END = frozenset({"Starting", "Pending", "LaunchingMLInstances", "Downloading", "Training"})


class TrainingJob:
    """One training job of a session. The constructor makes no call; `attach` checks that the job exists."""

    def __init__(self, name: str, session: Session | None = None) -> None:
        self.name = name
        self.session = resolve_session(session)

    @classmethod
    def attach(cls, name: str, session: Any = None) -> TrainingJob:
        """The job of that name, whichever process started it.

        Raises:
            JobNotFound: there is no such job.
        """
        job = cls(name, resolve_session(session))
        job.describe()
        return job

    def __repr__(self) -> str:
        """The job's name, and where it runs. Makes no call."""
        return f"TrainingJob({self.name!r}, {'local' if self.session.local else 'AWS'})"

    @property
    def job_name(self) -> str:
        """The name, under SDK v2's second spelling."""
        return self.name

    def describe(self) -> dict[str, Any]:
        """DescribeTrainingJob's answer."""
        return self.session.service.describe_job(self.name)

    def status(self) -> str:
        """``InProgress``, ``Completed``, ``Failed``, ``Stopping`` or ``Stopped``."""
        return str(self.describe()["TrainingJobStatus"])

    def stop(self) -> None:
        """Ask the job to stop: SIGTERM, then SIGKILL after 120 s. Returns at once. Idempotent."""
        if self.status() in TERMINAL:
            return
        try:
            self.session.service.stop_job(self.name)
        except ServiceCallFailed:  # it may have ended meanwhile
            if self.status() not in TERMINAL:
                raise

    def wait(
        self,
        logs: bool | str | list[str] = True,
        poll: float | None = None,
        timeout: float | None = None,
        out: TextIO | None = None,
    ) -> TrainingJob:
        """Block until the job has ended, showing status and log on the way.

        A stopped job is no error: its status is printed and the job returned. Ctrl-C detaches: the job goes
        on, and `Detached`, a KeyboardInterrupt, says how to come back.

        Args:
            logs: True: follow the log, with the environment that AWS's toolkit prints folded to one line; "All":
                show all lines; False or "None": wait silently.
            poll: seconds between two polls of the log; default: the session's ``log_poll_s``.
            timeout: seconds to wait at most.
            out: where to print; default ``sys.stdout``.

        Raises:
            TrainingJobFailed: with reason, log tail and next step.
            WaitTimeout: the time is over; the job goes on.
            Detached: Ctrl-C.
        """
        shown = wants_logs(logs)
        stream = out or sys.stdout
        try:
            description = self._follow(shown, logs not in ("All", ["All"]), poll, timeout, stream)
        except KeyboardInterrupt:
            raise Detached(self.name, self.session.place) from None
        if shown:
            print_end(description, stream, local=self.session.local)
        if description["TrainingJobStatus"] == "Failed":
            short = REHEARSE_VARIABLE in description.get("Environment", {})
            where = self.session.place_of_log(f"windtunnel logs {self.name}", LOG_GROUP, f"{self.name}/")
            raise failed(
                self.name, description, self.logs(), where, _TAIL_LINES,
                rehearsed=short and bool((self._output_document(description, "counters.json") or {}).get("train")),
            )  # fmt: skip
        return self

    def logs(
        self,
        follow: bool = False,
        poll: float | None = None,
        *,
        last: int | None = None,
        fold: bool = False,
    ) -> Iterator[str]:
        """The log lines of all hosts, in order of reading; with several hosts each has a prefix ``[algo-1] ``.

        Args:
            follow: go on until the job has ended; else end with the last line there is now.
            poll: seconds between two polls; default: the session's ``log_poll_s``.
            last: of the lines there are now, only the last ``last``.
            fold: show as one line the environment that AWS's toolkit prints before it starts the script.
        """
        follower = self._follower(self.describe(), fold=fold)
        if not follow:
            yield from last_of(last, chain(follower.read(), follower.rest()))
            return
        pause = self.session.log_poll_s if poll is None else poll
        yield from last_of(last, follower.read())
        while self.status() not in TERMINAL:  # the status before the log, which is complete once it has ended
            yield from follower.read()
            time.sleep(pause)
        if self.session.settle_s:
            yield from follower.read()
            time.sleep(self.session.settle_s)
        yield from follower.read()
        yield from follower.rest()

    def _follower(self, description: dict[str, Any], *, fold: bool) -> LogFollower:
        command = f"windtunnel logs --all {self.name}{self.session.place}"
        hint = f'the toolkit\'s environment; `{command}` or fit(logs="All") shows it'
        return LogFollower(self.session.service, self.name, description, hint if fold else None)

    def log_tail(self, lines: int = _TAIL_LINES) -> list[str]:
        """The last lines of the log, oldest first."""
        return list(self.logs(last=lines))

    @property
    def model_data(self) -> str:
        """``s3://`` URI of model.tar.gz (of the prefix, if the output is not compressed).

        Raises:
            JobNotFinished: the job has not uploaded a model.
        """
        description = self.describe()
        uri = description.get("ModelArtifacts", {}).get("S3ModelArtifacts")
        if not uri:
            raise not_finished(self.name, "model", description, self.session.place)
        return str(uri)

    def download_model(self, path: str | Path = ".", extract: bool = True) -> Path:
        """Download the model into the directory ``path`` (created if missing); blocks.

        Returns the directory with the model's files or, with ``extract=False``, the path of model.tar.gz.

        Raises:
            JobNotFinished: the job has not uploaded a model.
        """
        uri = self.model_data
        folder = absolute(path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(
                f"download_model: {folder} cannot be a directory: {error.strerror}. Give another path."
            ) from error
        bucket, key = split_s3(uri)
        if not key.endswith(".tar.gz"):
            prefix = key.rstrip("/") + "/"
            downloads.fetch(self.session.service, bucket, self._places(bucket, prefix, folder))
            return folder
        # The archive is removed after unpacking, so its name must not be that of a user's file.
        archive = folder / (f"{self.name}.model.tar.gz" if extract else "model.tar.gz")
        downloads.fetch(self.session.service, bucket, {key: archive})
        if not extract:
            return archive
        downloads.unpack(archive, folder)
        return folder

    def download(
        self, path: str | Path = ".", *, extract: bool = False, overwrite: bool = False
    ) -> tuple[Path, ...]:
        """Download all of the job's output into the directory ``path`` (created if missing): model.tar.gz and
        output.tar.gz, or the files of an output that is not compressed; blocks.

        Args:
            path: the directory.
            extract: unpack the archives into ``model`` and ``output`` below the directory, and remove them.
            overwrite: replace existing files; else one existing file is enough to download nothing.

        Returns the downloaded files, or the folders with their unpacked content.

        Raises:
            JobNotFinished: the job has not stored anything (yet), or an archive cannot be unpacked.
            ConfigurationError: a file exists already.
        """
        description, folder = self.describe(), absolute(path)
        bucket, below = self._stored(description, "output/")
        targets = self._places(bucket, below, folder)
        if not targets:
            raise not_finished(self.name, "output", description, self.session.place)
        into = {file: file.with_name(file.name.removesuffix(".tar.gz")) for file in targets.values()}
        into = {file: place for file, place in into.items() if extract and place != file}
        if not overwrite:
            downloads.refuse_what_exists(*targets.values(), *into.values())
        downloads.fetch(self.session.service, bucket, targets)
        for archive, place in into.items():
            downloads.unpack(archive, place)
        return tuple(into.get(file, file) for file in targets.values())

    def delete(self) -> None:
        """Delete the job's record, tags, metrics and, locally, its log. Its files in S3 stay.

        Raises:
            ServiceCallFailed: the job has not ended, or keeps a warm pool.
        """
        self.session.service.delete_job(self.name)

    def metric_series(self) -> MetricSeries:
        """A report with learning curves: CloudWatch's values over time of each metric of ``metric_definitions``.

        Raises:
            ConfigurationError: the job has no ``metric_definitions``.
        """
        return metric_series(self.session.service, self.describe(), local=self.session.local)

    def metrics(self) -> dict[str, float]:
        """Last value of each metric named in ``metric_definitions``."""
        return final_metrics(self.describe())

    def counters(self) -> dict[str, Any]:
        """The counts of the simulated NeuronCores: ``windtunnel/counters.json`` of the job's output.

        Raises:
            JobNotFinished: the job has not ended, or did not run in a simulator.
        """
        description = self.describe()
        counters = self._output_document(description, "counters.json")
        if counters is None:
            raise not_finished(self.name, "counters", description, self.session.place)
        return counters

    def usage(self) -> dict[str, Any] | None:
        """What the simulated NeuronCores do now: ``windtunnel/usage.json`` of the job's output, refreshed each second.

        None if the job does not train (any more), or its script has not used a core yet.
        """
        return self._output_document(self.describe(), "usage.json")

    def download_tensorboard(self, path: str | Path = ".") -> Path:
        """Download TensorBoard's event files into the directory ``path``, for ``tensorboard --logdir``; blocks.

        The script wrote them with a SummaryWriter to /opt/ml/output/tensorboard; the simulator adds the Neuron
        counters. Returns the directory.

        Raises:
            JobNotFinished: there are no event files (yet): they are uploaded when the training has ended.
        """
        description = self.describe()
        bucket, below = self._stored(description, "tensorboard-output/", "TensorBoardOutputConfig")
        folder = absolute(path)
        targets = self._places(bucket, below, folder)
        if not targets:
            raise not_finished(self.name, "event files", description, self.session.place)
        downloads.fetch(self.session.service, bucket, targets)
        return folder

    def diagnostics(self) -> Diagnostics:
        """What to change in the script before Trainium, worst first, each with its line.

        Raises:
            JobNotFinished: as `counters`.
        """
        from windtunnel.reports.diagnostics import diagnostics_of

        return diagnostics_of(self.counters(), self.describe().get("FailureReason", ""))

    def report(
        self, full_scale: FullScale | None = None, *, prices_on: date | None = None, **more: Any
    ) -> PricePerformance:
        """A report of the job's time and cost: modelled for Trainium and p4d at the size ``full_scale`` (None: as it
        ran) and the prices of the day ``prices_on`` (None: of each day they changed); of a job on AWS, the real ones.
        ``more``: see `reports.for_job.report_for_job`.
        """
        from windtunnel.reports.for_job import report_for_job

        return report_for_job(self, full_scale=full_scale, prices_on=prices_on, **more)

    def create_model(self, **arguments: Any) -> Model:
        """A `Model` that serves the job's result; sends nothing. Arguments: those of `hosting.trained.model_of`.

        Raises:
            JobNotFinished: the job has stored no model.tar.gz.
            ConfigurationError: `Model` or `PyTorchModel` refuses an argument.
        """
        from windtunnel.hosting.trained import model_of

        return model_of(self.describe(), self.session, **arguments)

    def deploy(
        self, initial_instance_count: int = 1, instance_type: str | None = None, **arguments: Any
    ) -> Any:
        """Deploy the job's model; returns a `Predictor`. Arguments: those of `create_model` and `Model.deploy`."""
        from windtunnel.hosting.trained import deploy

        return deploy(self.create_model, self.name, initial_instance_count, instance_type, arguments)

    def transformer(self, instance_count: int, instance_type: str, **arguments: Any) -> Transformer:
        """CreateModel with the job's model; returns a `Transformer`, which runs whole files through it.

        Arguments: those of `create_model` and `Model.transformer`; ``env`` is the transform job's.
        """
        from windtunnel.hosting.trained import transformer

        return transformer(self.create_model, self.name, instance_count, instance_type, arguments)

    def _output_document(self, description: dict[str, Any], name: str) -> dict[str, Any] | None:
        """One of the JSON documents that Windtunnel stores beside the job's output; None if it is missing."""
        return downloads.document(self.session.service, *self._stored(description, f"windtunnel/{name}"))

    def _stored(
        self, description: dict[str, Any], name: str, config: str = "OutputDataConfig"
    ) -> tuple[str, str]:
        """Bucket and key of what the job stores under ``name``. ``config``: the request's member with the S3 prefix."""
        place = description.get(config) or description["OutputDataConfig"]
        bucket, prefix = split_s3(str(place["S3OutputPath"]))
        return bucket, "/".join(part for part in (prefix.rstrip("/"), self.name, name) if part)

    def _places(self, bucket: str, prefix: str, folder: Path) -> dict[str, Path]:
        return downloads.places(self.session.service, bucket, prefix, folder)

    def _follow(
        self, shown: bool, fold: bool, poll: float | None, timeout: float | None, out: TextIO
    ) -> dict[str, Any]:
        """Poll log and status in turn until the job has ended; returns its last description."""
        begun = time.monotonic()
        deadline = None if timeout is None else begun + timeout
        description, described_at = self.describe(), time.monotonic()
        printer = StatusPrinter(out) if shown else None
        follower = self._follower(description, fold=fold) if shown else None
        while True:
            if printer is not None and follower is not None:
                # While the job runs, status before log. From its end on, the log's last lines before the status.
                if description.get("SecondaryStatus") in _BEFORE_THE_END:
                    printer.show(description)
                    print_lines(follower.read(), out)
                else:
                    print_lines(follower.read(), out)
                    printer.show(description)
            if description["TrainingJobStatus"] in TERMINAL:
                break
            if deadline is not None and time.monotonic() > deadline:
                raise WaitTimeout(
                    f"Training job {self.name} still runs after {timeout:g} s and goes on: wait() or stop()."
                )
            pause = self.session.pause_s(time.monotonic() - begun) if poll is None else poll
            time.sleep(pause)
            waited = time.monotonic() - described_at
            if pause < self.session.log_poll_s or waited >= self.session.describe_poll_s:
                description, described_at = self.describe(), time.monotonic()
        if follower is not None:
            if self.session.settle_s:
                time.sleep(self.session.settle_s)
                print_lines(follower.read(), out)
            print_lines(follower.rest(), out)
        return description
