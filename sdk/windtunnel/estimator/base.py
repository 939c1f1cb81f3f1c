"""The base class of all estimators: it checks arguments, makes the request of them, and starts the job."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, Literal, overload

from windtunnel import settings
from windtunnel.errors import ConfigurationError, SourceError, UnsupportedArgument
from windtunnel.estimator.for_place import for_place
from windtunnel.estimator.from_job import arguments_of
from windtunnel.job.log import wants_logs
from windtunnel.job.training_job import TrainingJob
from windtunnel.request import checks
from windtunnel.request.argument_types import check_kind
from windtunnel.request.arguments import (
    ARGUMENT_NAMES,
    JobArguments,
    refuse_aws_only,
    refuse_unknown,
    refuse_unsupported,
)
from windtunnel.request.build import Code, base_name_from_image, build_request, job_name_from_base
from windtunnel.request.inputs import Channel, FileSystemInput, Inputs, TrainingInput, channels, split_s3
from windtunnel.request.source_archive import check_entry_point_name, source_tree
from windtunnel.request.training_request import TrainingRequest
from windtunnel.session.resolve import resolve_session
from windtunnel.session.session import Session

if TYPE_CHECKING:
    from windtunnel.hosting.model import Model
    from windtunnel.hosting.transformer import Transformer
    from windtunnel.priceperf import FullScale, PriceBook
    from windtunnel.rehearsal import Rehearsal

_MODEL_CONTENT_TYPE = "application/x-sagemaker-model"


class EstimatorBase(JobArguments):
    """Base class of all estimators. The arguments of `JobArguments` are its attributes, as in SDK v2."""

    _extra_arguments: tuple[str, ...] = ()
    """Arguments of a subclass that are not in `JobArguments`."""
    _debugger_excludes_checkpoints = False

    def __init__(self, hyperparameters: Mapping[str, Any] | None = None, **arguments: Any) -> None:
        given = {name: value for name, value in arguments.items() if value is not None}
        named = inspect.signature(type(self)).parameters
        refuse_unknown(type(self).__name__, arguments, (*ARGUMENT_NAMES, *self._extra_arguments), named)
        refuse_unsupported(given)
        check_kind("hyperparameters", hyperparameters, Mapping | None)
        super().__init__(**{name: value for name, value in arguments.items() if name in ARGUMENT_NAMES})
        checks.check_arguments(self)
        self.dependencies = list(self.dependencies or [])
        self.session: Session = resolve_session(self.session, self.sagemaker_session)
        self.sagemaker_session = self.session
        self._hyperparameters: dict[str, Any] = dict(hyperparameters or {})
        self.latest_training_job: TrainingJob | None = None
        self.jobs: list[TrainingJob] = []
        self._check_place()

    def training_image_uri(self) -> str:
        """URI of the image that the job runs: as given, or found by the framework's version."""
        raise NotImplementedError

    def hyperparameters(self) -> dict[str, Any]:
        """The hyperparameters as they are sent, without SageMaker's own, which name the code and the job."""
        raise NotImplementedError

    def set_hyperparameters(self, **hyperparameters: Any) -> None:
        """Add or replace hyperparameters."""
        self._hyperparameters.update(hyperparameters)

    def request(
        self,
        inputs: Inputs = None,
        job_name: str | None = None,
        experiment_config: Mapping[str, str] | None = None,
        *,
        max_cost: float | None = None,
        full_scale: FullScale | None = None,
        rehearsal: Rehearsal | None = None,
        prices: PriceBook | None = None,
        rehearse: int | bool | None = None,
    ) -> TrainingRequest:
        """The checked request that ``fit`` would send. Uploads and starts nothing. Arguments: as `fit`'s.

        Raises:
            ConfigurationError: AWS, or the container, would refuse the job.
            BudgetExceeded: on AWS, ``max_cost`` does not buy this job.
        """
        checks.check_arguments(self)
        self._check_own()
        self._check_place()
        limit = _limit(max_cost, self.max_cost, (full_scale, rehearsal, prices))
        image_uri = self.training_image_uri()
        check_kind("image_uri", image_uri, str)
        check_kind("experiment_config", experiment_config, Mapping | None)
        name = job_name or job_name_from_base(self.base_job_name or base_name_from_image(image_uri))
        data = channels(inputs)
        request = build_request(
            for_place(self, self.session, rehearse),
            target=self.session.target(self.role),
            job_name=name,
            image_uri=image_uri,
            hyperparameters=self._sent_hyperparameters(),
            channels=self._with_model(data),
            code=self._code(),
            input_mode=inputs.input_mode if isinstance(inputs, TrainingInput) else None,
            experiment_config=experiment_config,
            checkpoints_exclude_debugger=self._debugger_excludes_checkpoints,
        )
        if limit is None:
            return request
        from windtunnel.estimator.max_cost import limited  # loads the price model, for a limit only

        return limited(
            request,
            limit,
            self.session,
            self.latest_training_job,
            full_scale=full_scale,
            rehearsal=rehearsal,
            prices=prices,
        )

    @overload
    def fit(
        self,
        inputs: Inputs = None,
        wait: bool = True,
        logs: bool | str | list[str] = True,
        job_name: str | None = None,
        experiment_config: Mapping[str, str] | None = None,
        *,
        dry_run: Literal[False] = False,
        max_cost: float | None = None,
        full_scale: FullScale | None = None,
        rehearsal: Rehearsal | None = None,
        prices: PriceBook | None = None,
        rehearse: int | bool | None = None,
    ) -> TrainingJob: ...

    @overload
    def fit(
        self,
        inputs: Inputs = None,
        wait: bool = True,
        logs: bool | str | list[str] = True,
        job_name: str | None = None,
        experiment_config: Mapping[str, str] | None = None,
        *,
        dry_run: Literal[True],
        max_cost: float | None = None,
        full_scale: FullScale | None = None,
        rehearsal: Rehearsal | None = None,
        prices: PriceBook | None = None,
        rehearse: int | bool | None = None,
    ) -> TrainingRequest: ...

    def fit(
        self,
        inputs: Inputs = None,
        wait: bool = True,
        logs: bool | str | list[str] = True,
        job_name: str | None = None,
        experiment_config: Mapping[str, str] | None = None,
        *,
        dry_run: bool = False,
        max_cost: float | None = None,
        full_scale: FullScale | None = None,
        rehearsal: Rehearsal | None = None,
        prices: PriceBook | None = None,
        rehearse: int | bool | None = None,
    ) -> TrainingJob | TrainingRequest:
        """Start a training job; with ``wait``, follow it to its end.

        Ctrl-C while following detaches: the job goes on, `Detached` (a KeyboardInterrupt) says how to come
        back, and ``latest_training_job`` is the job.

        Args:
            inputs: a path, ``file://``, ``s3://``, `TrainingInput`, `FileSystemInput`, or a dict of channels.
            wait: block until the job has ended.
            logs: True to follow the log, "All" to see in it the environment that AWS's toolkit prints, False or
                "None" to wait silently.
            job_name: default: ``base_job_name`` and the time.
            experiment_config: sent as ExperimentConfig.
            dry_run: check that the code can be packed, return the `TrainingRequest`, and start nothing.
            max_cost: US dollars that the instances may cost; replaces the estimator's ``max_cost``. On AWS
                ``max_run`` is lowered so that AWS itself stops the job in time; price, bound and modelled cost are
                printed.
            full_scale: the size of this job, to model its cost from a rehearsal of a sample.
            rehearsal: what to model from: a job that ran here, its counters, the path of its counters.json,
                or a Workload. Default: this estimator's latest job, if it ran here.
            prices: the price book to use. Default: the built-in one with what `windtunnel prices refresh` has fetched.
            rehearse: a short rehearsal, local sessions only: the first pass over each loader ends after so many
                batches (True: 7), each later pass after one. The report is still of the whole job, whose size is read
                from the loaders. Two NeuronCores take part, unless ``local_cores`` says otherwise.

        Raises:
            ConfigurationError: before anything is uploaded or started.
            BudgetExceeded: on AWS, before anything is uploaded: ``max_cost`` does not buy a useful run, or all
                of the modelled cost's interval lies above it. Locally, and when only a part of the interval lies
                above: a `BudgetWarning` instead.
            BackendError: the local backend does not start.
            ServiceCallFailed: the job was refused.
            TrainingJobFailed: the job failed (with ``wait``).
        """
        wants_logs(logs)  # refuses a wrong value before a job runs
        request = self.request(
            inputs,
            job_name,
            experiment_config,
            max_cost=max_cost,
            full_scale=full_scale,
            rehearsal=rehearsal,
            prices=prices,
            rehearse=rehearse,
        )
        if dry_run:
            request.try_packing()
            return request
        self._say_cost(request, prices)
        self.session.warm_up()  # in the background, while submit() packs the code
        if job_name is not None:
            self.session.refuse_taken(job_name)
        try:
            self.session.submit(request)
        except KeyboardInterrupt:
            place = self.session.place
            raise KeyboardInterrupt(
                f"interrupted while training job {request.name} was being sent; it may have started all the same: "
                f"`windtunnel ps{place}` shows it, `windtunnel stop {request.name}{place}` stops it."
            ) from None
        job = TrainingJob(request.name, self.session)
        self.latest_training_job = job
        self.jobs.append(job)
        return job.wait(logs=logs) if wait else job

    @property
    def model_data(self) -> str:
        """``s3://`` URI of the latest job's model.tar.gz."""
        return self._latest().model_data

    def create_model(self, role: str | None = None, **arguments: Any) -> Model:
        """A `Model` that serves the latest job's result; sends nothing. Arguments: as `TrainingJob.create_model`'s."""
        return self._latest().create_model(role=role or self.role, **arguments)

    def deploy(
        self, initial_instance_count: int = 1, instance_type: str | None = None, **arguments: Any
    ) -> Any:
        """Deploy the latest job's model; returns a `Predictor`. Arguments: as `TrainingJob.deploy`'s."""
        return self._latest().deploy(
            initial_instance_count, instance_type, **{"role": self.role, **arguments}
        )

    def transformer(self, instance_count: int, instance_type: str, **arguments: Any) -> Transformer:
        """A `Transformer` with the latest job's model. Arguments: as `TrainingJob.transformer`'s."""
        return self._latest().transformer(instance_count, instance_type, **{"role": self.role, **arguments})

    def logs(self) -> None:
        """Follow the latest job's log to its end."""
        self._latest().wait(logs=True)

    @classmethod
    def attach(
        cls, training_job_name: str, sagemaker_session: Any = None, model_channel_name: str = "model"
    ) -> EstimatorBase:
        """Wait for the end of an existing job, and return an estimator with its arguments and the job.

        Raises:
            JobNotFound: there is no such job.
            TrainingJobFailed: the job failed.
        """
        session = resolve_session(sagemaker_session)
        job = TrainingJob.attach(training_job_name, session)
        described = job.describe()
        arguments = arguments_of(described, model_channel_name)
        arguments["tags"] = session.service.list_tags(described["TrainingJobArn"]) or None
        estimator = cls._from_image(described["AlgorithmSpecification"]["TrainingImage"], session, arguments)
        estimator.latest_training_job = job
        estimator.jobs.append(job)
        job.wait(logs=False)
        return estimator

    @classmethod
    def _from_image(cls, image_uri: str, session: Session, arguments: dict[str, Any]) -> EstimatorBase:
        return cls(image_uri=image_uri, session=session, **arguments)

    def _say_cost(self, request: TrainingRequest, prices: PriceBook | None) -> None:
        """Print the budget or, on AWS without a budget, what the job may cost at most. Call before the uploads."""
        lines: tuple[str | None, ...] = () if request.budget is None else request.budget.lines()
        if request.budget is None and not self.session.local:
            from windtunnel.estimator.max_cost import exposure

            lines = (exposure(request, self.session, prices),)
        sys.stdout.write("".join(f"{line}\n" for line in lines if line))

    def _check_own(self) -> None:
        """Check a subclass's own arguments, which may have been changed since the estimator was made."""

    def _latest(self) -> TrainingJob:
        if self.latest_training_job is None:
            raise ConfigurationError("This estimator has no training job yet. Call fit() first.")
        return self.latest_training_job

    def _check_place(self) -> None:
        """Refuse arguments that the local backend, or AWS, could only ignore."""
        if not self.session.local:
            for kind in checks.instance_types(self):
                checks.check_offered(kind)
            return
        refuse_aws_only(self)
        if self.input_mode == "Pipe":
            raise UnsupportedArgument("input_mode='Pipe' is not rehearsed here. Use 'FastFile' or 'File'.")

    def _with_model(self, data: dict[str, Channel]) -> dict[str, Channel]:
        """The channels, with ``model_uri`` as one more. A local session refuses kinds that it cannot read."""
        found = dict(data)
        if self.model_uri:
            if self.model_channel_name in found:
                raise ConfigurationError(f"channel {self.model_channel_name!r} is model_uri's. Rename one.")
            location = channels({self.model_channel_name: self.model_uri})[self.model_channel_name]
            if isinstance(location, TrainingInput):
                found[self.model_channel_name] = TrainingInput(
                    location.s3_data, content_type=_MODEL_CONTENT_TYPE, input_mode="File"
                )
        if self.session.local:
            for name, channel in found.items():
                if isinstance(channel, FileSystemInput):
                    raise UnsupportedArgument(
                        f"channel {name!r}: FileSystemInput has no meaning on the local backend. "
                        "Give the directory's path."
                    )
                if channel.input_mode == "Pipe":
                    raise UnsupportedArgument(
                        f"channel {name!r}: input_mode='Pipe' is not rehearsed here. Use 'FastFile' or 'File'."
                    )
        return found

    def _code(self) -> Code | None:
        """The code to run, or None: the image has its own."""
        if not (self.source_dir or self.entry_point or self.dependencies):
            return None
        if self.source_dir and str(self.source_dir).lower().startswith("s3://"):
            if not self.entry_point:
                raise SourceError("entry_point is missing: name the script inside the tarball of source_dir.")
            if self.dependencies:
                raise SourceError("dependencies= cannot be added to a tarball in S3. Put them into it.")
            check_entry_point_name(str(self.entry_point))
            bucket, key = split_s3(f"s3{str(self.source_dir)[2:]}")
            if not key:
                raise SourceError(
                    f"source_dir={str(self.source_dir)!r}: name the tarball, s3://<bucket>/<key>."
                )
            return Code(str(self.entry_point), tarball_uri=f"s3://{bucket}/{key}")
        tree = source_tree(self.entry_point, self.source_dir, self.dependencies or [])
        return Code(tree.script, tree=tree)

    def _sent_hyperparameters(self) -> dict[str, str]:
        return {str(key): str(value) for key, value in self.hyperparameters().items()}


def _limit(given: float | None, own: float | None, modelling: tuple[object, ...]) -> float | None:
    """The budget in force, US dollars: the call's, else the estimator's, else the environment's."""
    checks.check_max_cost("max_cost", given)
    limit = own if given is None else given
    if limit is None:
        limit = settings.max_cost()
        checks.check_max_cost(settings.MAX_COST_VARIABLE, limit)
    if limit is None and any(value is not None for value in modelling):
        raise ConfigurationError(
            "full_scale=, rehearsal= and prices= say what a job will cost, to hold it against max_cost=. Give "
            "max_cost= too, or see the cost alone with job.report(full_scale=...) of a rehearsal. To "
            "rehearse in short: rehearse=True, or rehearse=N steps."
        )
    return limit


def show_arguments(estimator: type[EstimatorBase]) -> None:
    """Make ``help()`` and completion show the shared arguments instead of ``**kwargs``."""
    own = list(inspect.signature(estimator.__init__).parameters.values())[1:-1]
    named = {parameter.name for parameter in own}
    shared = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None if field.default is MISSING else field.default,
            annotation=field.type,
        )
        for field in fields(JobArguments)
        if field.name not in named
    ]
    estimator.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
