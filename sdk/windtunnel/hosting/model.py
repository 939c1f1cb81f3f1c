"""A model served by any image that answers /ping and /invocations. Names, positions and meanings: SDK v2's."""

from __future__ import annotations

import inspect
import logging
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from windtunnel.errors import BudgetWarning, ConfigurationError
from windtunnel.hosting import model_data as archives
from windtunnel.hosting.async_inference import AsyncInferenceConfig, AsyncPredictor
from windtunnel.hosting.cost import EndpointCost, endpoint_cost, lifetime_s, limit_words, running_line
from windtunnel.hosting.deserializers import AnyDeserializer
from windtunnel.hosting.endpoint import Endpoint
from windtunnel.hosting.predictor import Predictor
from windtunnel.hosting.serializers import AnySerializer
from windtunnel.hosting.transformer import Transformer
from windtunnel.request import checks
from windtunnel.request.argument_types import check_kind
from windtunnel.request.arguments import AnyPath, Tags, refuse_unknown, refuse_unsupported
from windtunnel.request.build import base_from_job_name, base_name_from_image, job_name_from_base
from windtunnel.request.endpoint_request import (
    CODE_IN_CONTAINER,
    Hosting,
    config_request,
    endpoint_request,
    model_request,
)
from windtunnel.request.inputs import split_s3
from windtunnel.session.resolve import resolve_session

_REFUSED = {
    "accelerator_type": "Elastic Inference has ended: choose an instance_type= with a chip of its own",
    "data_capture_config": "create the configuration with boto3",
    "serverless_inference_config": "name an instance_type=",
    "update_endpoint": "deploy to another name, or call update_endpoint with boto3",
    "explainer_config": "create the configuration with boto3",
    "git_config": "clone the repository and give source_dir= its path",
    "image_config": "create the model with boto3",
}


class Model:
    """A model that can be deployed. SDK v2's ``sagemaker.model.Model``. The constructor starts nothing.

    Args:
        image_uri: the image that serves the model.
        model_data: model.tar.gz: an ``s3://`` URI, or a path of this machine. With ``entry_point`` it is packed
            again, and refused if one of its members would be unpacked outside its folder.
        role: IAM role that the containers have, by name or ARN; locally none is needed.
        predictor_cls: called with endpoint name and session to make the result of `deploy`; default: `Predictor`.
        env: environment variables of the container.
        name: name of the model; default: made from the image's name and the time.
        vpc_config, enable_network_isolation: sent unchanged.
        sagemaker_session, session: where it runs; default: this machine.
        model_kms_key: encrypts the archive that is uploaded.
        entry_point: the script with model_fn, at the root of ``source_dir``; packed into ``code/`` of model.tar.gz.
        source_dir: the script's directory, or a tarball in S3; it replaces a ``code/`` that the archive has.
        dependencies: files and directories to put beside the script.
        code_location: ``s3://`` prefix for the new archive; default: the session's bucket.
        container_log_level: level of Python's logging.
    """

    _toolkit = False
    """Whether the image has SageMaker's inference toolkit, which reads SAGEMAKER_... also without a script."""

    def __init__(
        self,
        image_uri: str | None = None,
        model_data: str | None = None,
        role: str | None = None,
        predictor_cls: Callable[..., Any] | None = None,
        env: Mapping[str, str] | None = None,
        name: str | None = None,
        vpc_config: Mapping[str, Any] | None = None,
        sagemaker_session: Any = None,
        enable_network_isolation: bool | None = None,
        model_kms_key: str | None = None,
        image_config: Any = None,
        source_dir: AnyPath | None = None,
        code_location: str | None = None,
        entry_point: AnyPath | None = None,
        container_log_level: int = logging.INFO,
        dependencies: Sequence[AnyPath] | None = None,
        git_config: Any = None,
        *,
        session: Any = None,
    ) -> None:
        refuse_unsupported({"image_config": image_config, "git_config": git_config}, _REFUSED)
        for argument, value in (("image_uri", image_uri), ("model_data", model_data), ("name", name)):
            check_kind(argument, value, str | None)
        if name is not None:
            checks.check_job_name(name, "name")
        if code_location is not None:
            split_s3(code_location)
        self.image_uri = image_uri
        self.model_data = model_data
        self.role = role
        self.predictor_cls = predictor_cls
        self.env = dict(env or {})
        self.name = name
        self.vpc_config = vpc_config
        self.session = self.sagemaker_session = resolve_session(session, sagemaker_session)
        self.enable_network_isolation = enable_network_isolation
        self.model_kms_key = model_kms_key
        self.code_location = code_location
        self.container_log_level = container_log_level
        self.endpoint_name: str | None = None
        self._code = archives.serving_code(entry_point, source_dir, list(dependencies or ()))
        if self._code is not None and model_data is None:
            raise ConfigurationError("model_data= is missing: the script is packed into model.tar.gz.")
        self._created = False

    def serving_image_uri(self, instance_type: str | None) -> str:  # noqa: ARG002 - a subclass needs it
        """URI of the image that serves the model on this instance type."""
        if not self.image_uri:
            raise ConfigurationError("image_uri= is missing: name the image that serves the model.")
        return self.image_uri

    def create(self, instance_type: str | None = None, tags: Tags | None = None) -> None:
        """Store the model's archive with its code, then CreateModel. Only the first call does so. Blocks.

        If a model of that name exists, it is used as it is, as in SDK v2, and a message says so.

        Args:
            instance_type: the type it will run on, which chooses the image where none is given.
            tags: tags of the model.

        Raises:
            ConfigurationError: before anything is sent.
            ServiceCallFailed: S3 or SageMaker refused.
        """
        self._create(instance_type, tags)

    def _create(self, instance_type: str | None, tags: Tags | None) -> bool:
        """As `create`; returns whether this call made a model."""
        if self._created:
            return False
        image = self.serving_image_uri(instance_type)
        name = self.name or job_name_from_base(base_name_from_image(image))
        request = model_request(
            name,
            self.session.resolve_role(self.role),
            image,
            self._place(name),
            self._environment(),
            tags=tags,
            vpc_config=self.vpc_config,
            enable_network_isolation=self.enable_network_isolation,
        )
        if self.model_data is not None:
            bucket, key = self._target(name)
            archives.store(self.session, self.model_data, self._code, bucket, key, self.model_kms_key)
        is_new = self.session.endpoints.create_model(request)
        if not is_new:
            sys.stdout.write(
                f"Model {name} exists already and is used as it is: its image, data and code may be others. "
                "Leave out name=, or delete_model() first.\n"
            )
        self.name, self._created = name, True
        return is_new

    def deploy(
        self,
        initial_instance_count: int = 1,
        instance_type: str | None = None,
        serializer: AnySerializer | None = None,
        deserializer: AnyDeserializer | None = None,
        accelerator_type: str | None = None,
        endpoint_name: str | None = None,
        tags: Tags | None = None,
        kms_key: str | None = None,
        wait: bool = True,
        *,
        volume_size: int | None = None,
        model_data_download_timeout: int | None = None,
        container_startup_health_check_timeout: int | None = None,
        async_inference_config: AsyncInferenceConfig | None = None,
        max_cost: float | None = None,
        max_hours: float | None = None,
        **not_here: Any,
    ) -> Any:
        """Deploy to an endpoint: CreateModel, CreateEndpointConfig, CreateEndpoint; returns a `Predictor`.

        On AWS the endpoint is billed by the second, used or not, until `Predictor.delete_endpoint`. Its cost by the
        hour and by the day is printed first. If one of the three calls is refused, the results of the others are
        deleted.

        Args:
            initial_instance_count: number of instances.
            instance_type: SageMaker's name of it, e.g. ``ml.c5.xlarge``.
            serializer: replaces the predictor's default.
            deserializer: replaces the predictor's default.
            accelerator_type: refused.
            endpoint_name: default: made from the model's name and the time. The configuration gets the same name.
            tags: tags of model, configuration and endpoint.
            kms_key: encrypts the instances' storage.
            wait: block until the endpoint is InService.
            volume_size: GB of storage of an instance.
            model_data_download_timeout: seconds, 60 to 3,600.
            container_startup_health_check_timeout: seconds until /ping must answer, 60 to 3,600.
            async_inference_config: makes the endpoint asynchronous; an `AsyncPredictor` is returned then.
            max_cost: US dollars at AWS's price; when the endpoint has cost so much, it is deleted. Not in SDK v2; AWS
                has no such limit, so there it is only a warning.
            max_hours: such a limit in hours.
            not_here: arguments of SDK v2 that are not supported; they are refused by name.

        Raises:
            ConfigurationError: before anything is sent.
            ServiceCallFailed: S3 or SageMaker refused, e.g. a name that is taken.
            EndpointFailed: the endpoint did not come up (with ``wait``); has reason, log tail and next step.
        """
        named = inspect.signature(self.deploy).parameters.keys() - {"not_here"}
        refuse_unknown("deploy", not_here, _REFUSED, named)
        refuse_unsupported({"accelerator_type": accelerator_type, **not_here}, _REFUSED)
        startup = (model_data_download_timeout, container_startup_health_check_timeout)
        hosting = Hosting(instance_type, initial_instance_count, kms_key, volume_size, *startup)
        name = self._checked_name(endpoint_name, hosting)
        cost = self._announce(name, hosting)
        limit_s = self._limit(name, cost, max_cost, max_hours)
        if async_inference_config is not None:
            asked = async_inference_config.request(self.session, name)
            hosting = replace(hosting, async_inference=asked)
        self._start(name, hosting, tags, limit_s)
        predictor = self._predictor(name, serializer, deserializer, wait=wait)
        return predictor if async_inference_config is None else AsyncPredictor(predictor, self.name)

    def transformer(
        self,
        instance_count: int,
        instance_type: str,
        strategy: str | None = None,
        assemble_with: str | None = None,
        output_path: str | None = None,
        output_kms_key: str | None = None,
        accept: str | None = None,
        env: Mapping[str, str] | None = None,
        max_concurrent_transforms: int | None = None,
        max_payload: int | None = None,
        tags: Tags | None = None,
        volume_kms_key: str | None = None,
    ) -> Transformer:
        """CreateModel; returns a `Transformer`, which runs whole files through the model. Arguments: `Transformer`'s.

        Raises:
            ConfigurationError: before anything is sent.
            ServiceCallFailed: S3 or SageMaker refused.
        """
        self.serving_image_uri(instance_type)
        made = Transformer(
            self.name or "",
            instance_count,
            instance_type,
            strategy,
            assemble_with,
            output_path,
            output_kms_key,
            accept,
            max_concurrent_transforms,
            max_payload,
            tags,
            env,
            volume_kms_key=volume_kms_key,
            session=self.session,
        )
        self._create(instance_type, tags)
        made.model_name = made.base_transform_job_name = str(self.name)
        return made

    def _checked_name(self, given: str | None, hosting: Hosting) -> str:
        """The endpoint's name. Checks the name, the image and the instances first."""
        hosting.check()
        image = self.serving_image_uri(hosting.instance_type)
        base = base_from_job_name(self.name) if self.name else base_name_from_image(image)
        name = given or job_name_from_base(base)
        checks.check_job_name(name, "endpoint_name")
        return name

    def _predictor(
        self, name: str, serializer: AnySerializer | None, deserializer: AnyDeserializer | None, *, wait: bool
    ) -> Any:
        if wait:
            Endpoint(name, self.session).wait()
        predictor = (self.predictor_cls or self._default_predictor)(name, self.session)
        predictor.serializer = serializer or predictor.serializer
        predictor.deserializer = deserializer or predictor.deserializer
        return predictor

    def _announce(self, name: str, hosting: Hosting) -> EndpointCost:
        """The cost of the endpoint; prints it, before anything is sent."""
        fleet = [(str(hosting.instance_type), hosting.initial_instance_count)]
        cost = endpoint_cost(fleet, None if self.session.local else self.session.region)
        sys.stdout.write(f"{running_line(name, fleet, cost, local=self.session.local)}\n")
        sys.stdout.flush()
        return cost

    def _limit(
        self, name: str, cost: EndpointCost, max_cost: float | None, max_hours: float | None
    ) -> int | None:
        """The limit in seconds for the local backend; None without a limit, and on AWS, where it is only a warning."""
        seconds = lifetime_s(cost, max_cost, max_hours)
        if seconds is None:
            return None
        words = limit_words(name, seconds, local=self.session.local)
        if self.session.local:
            sys.stdout.write(f"{words}\n")
            return seconds
        warnings.warn(words, BudgetWarning, stacklevel=3)
        return None

    def _start(self, name: str, hosting: Hosting, tags: Tags | None, limit_s: int | None) -> None:
        """Make the three calls; if one is refused, delete the results of the others."""
        service = self.session.endpoints
        self.session.warm_up()
        with ExitStack() as undo:
            if self._create(hosting.instance_type, tags):
                undo.callback(self.delete_model)
            service.create_config(config_request(name, str(self.name), hosting, tags))
            undo.callback(service.delete_config, name)
            service.create(endpoint_request(name, name, tags, limit_s))
            undo.pop_all()
        self.endpoint_name = name

    def delete_model(self) -> None:
        """DeleteModel. The archive in S3 stays.

        Raises:
            ConfigurationError: no model was created yet.
        """
        if self.name is None:
            raise ConfigurationError("There is no model yet: create() or deploy() makes one.")
        self.session.endpoints.delete_model(self.name)
        self._created = False

    def _default_predictor(self, name: str, session: Any) -> Predictor:
        return Predictor(name, session)

    def _target(self, name: str) -> tuple[str, str]:
        """Bucket and key for the archive that is packed here."""
        bucket, prefix = (
            split_s3(self.code_location) if self.code_location else (self.session.default_bucket(), "")
        )
        return bucket, "/".join(part for part in (prefix.strip("/"), name, archives.ARCHIVE) if part)

    def _place(self, name: str) -> str | None:
        """The S3 URI of the archive that the container gets; `create` stores it there, if it must be packed."""
        if self.model_data is None or (self._code is None and self.model_data.startswith("s3://")):
            return self.model_data
        return "s3://{}/{}".format(*self._target(name))

    def _environment(self) -> dict[str, str]:
        found = dict(self.env)
        if self._code is not None:
            found |= {
                "SAGEMAKER_PROGRAM": self._code.script,
                "SAGEMAKER_SUBMIT_DIRECTORY": CODE_IN_CONTAINER,
            }
        if self._code is not None or self._toolkit:
            found |= {
                "SAGEMAKER_CONTAINER_LOG_LEVEL": str(self.container_log_level),
                "SAGEMAKER_REGION": self.session.region,
            }
        return found
