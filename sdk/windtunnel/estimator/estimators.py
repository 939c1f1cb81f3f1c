"""The estimators that users call. Names, positions and meanings of their arguments are SageMaker SDK v2's.

    Estimator      any training image
    PyTorch        a script in AWS's PyTorch image for Trainium
    HuggingFace    a script in AWS's Hugging Face image for Trainium

A notebook written for ``sagemaker.pytorch.PyTorch`` needs only its import changed. Windtunnel adds ``session=``,
``local_cores=``, ``max_cost=``, ``fit(dry_run=True)`` and ``request()``, and its ``fit`` returns the job.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

from windtunnel.errors import ConfigurationError, SourceError, UnknownImage
from windtunnel.estimator.base import EstimatorBase, show_arguments
from windtunnel.estimator.from_job import code_arguments
from windtunnel.request import checks, training_images
from windtunnel.request.argument_types import check_kind
from windtunnel.request.arguments import AnyPath, JobArguments, Tags, refuse_unsupported
from windtunnel.request.build import encode_hyperparameters
from windtunnel.request.instance_groups import group_names
from windtunnel.session.session import Session


class Estimator(EstimatorBase):
    """Trains with any image. SDK v2's ``sagemaker.estimator.Estimator``.

    ``image_uri`` is one of AWS's training images, in whose place Windtunnel's image runs here, or an image that the
    local Docker engine has. ``help(windtunnel.request.arguments.JobArguments)`` lists the further keyword arguments.
    """

    _extra_arguments = ("image_uri",)

    def __init__(
        self,
        image_uri: str,
        role: str | None = None,
        instance_count: int | None = None,
        instance_type: str | None = None,
        keep_alive_period_in_seconds: int | None = None,
        volume_size: int = JobArguments.volume_size,
        volume_kms_key: str | None = None,
        max_run: int = JobArguments.max_run,
        input_mode: str = "File",
        output_path: str | None = None,
        output_kms_key: str | None = None,
        base_job_name: str | None = None,
        sagemaker_session: Any = None,
        hyperparameters: Mapping[str, Any] | None = None,
        tags: Tags | None = None,
        subnets: list[str] | None = None,
        security_group_ids: list[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            hyperparameters,
            role=role,
            instance_count=instance_count,
            instance_type=instance_type,
            keep_alive_period_in_seconds=keep_alive_period_in_seconds,
            volume_size=volume_size,
            volume_kms_key=volume_kms_key,
            max_run=max_run,
            input_mode=input_mode,
            output_path=output_path,
            output_kms_key=output_kms_key,
            base_job_name=base_job_name,
            sagemaker_session=sagemaker_session,
            tags=tags,
            subnets=subnets,
            security_group_ids=security_group_ids,
            **kwargs,
        )
        self.image_uri = image_uri

    def training_image_uri(self) -> str:
        """The image URI that was given."""
        return self.image_uri

    def hyperparameters(self) -> dict[str, Any]:
        """The hyperparameters as given; JSON-encoded if there is a ``source_dir``, as in SDK v2."""
        if self.source_dir:
            return dict(encode_hyperparameters(self._hyperparameters))
        return dict(self._hyperparameters)


class Framework(EstimatorBase):
    """A script run by AWS's training toolkit. Base of `PyTorch` and `HuggingFace`."""

    def __init__(
        self,
        entry_point: AnyPath | None,
        source_dir: AnyPath | None,
        hyperparameters: Mapping[str, Any] | None,
        image_uri: str | None,
        distribution: Mapping[str, Any] | None,
        container_log_level: int = logging.INFO,
        **kwargs: Any,
    ) -> None:
        if not entry_point:
            raise SourceError("entry_point is missing. Name the script that trains, e.g. 'train.py'.")
        check_kind("entry_point", entry_point, AnyPath)
        check_kind("source_dir", source_dir, AnyPath | None)
        check_kind("distribution", distribution, Mapping | None)
        check_kind("image_uri", image_uri, str | None)
        super().__init__(
            hyperparameters,
            entry_point=os.fspath(entry_point),
            source_dir=None if source_dir is None else os.fspath(source_dir),
            container_log_level=container_log_level,
            **kwargs,
        )
        self.image_uri = image_uri
        self.distribution = dict(distribution or {})
        self._check_own()

    def hyperparameters(self) -> dict[str, Any]:
        """The hyperparameters, JSON-encoded, with those that ``distribution`` adds."""
        values = encode_hyperparameters(self._hyperparameters)
        if self.distribution.get("torch_distributed", {}).get("enabled"):
            own: dict[str, Any] = {"sagemaker_torch_distributed_enabled": True}
            if self.instance_type is not None:
                own["sagemaker_instance_type"] = self.instance_type
            if self.distribution.get("instance_groups"):
                own["sagemaker_distribution_instance_groups"] = group_names(
                    self.distribution["instance_groups"]
                )
            values.update(encode_hyperparameters(own))
        return dict(values)

    def _check_own(self) -> None:
        checks.check_distribution(
            self.distribution, self.instance_type, self.entry_point, self.instance_groups
        )

    @classmethod
    def _from_image(cls, image_uri: str, session: Session, arguments: dict[str, Any]) -> EstimatorBase:
        return cls(
            image_uri=image_uri,
            session=session,
            **{**arguments, **code_arguments(arguments.pop("hyperparameters", {}))},
        )

    def training_image_uri(self) -> str:
        """``image_uri``, or AWS's image of the versions in the session's region."""
        if self.image_uri:
            return self.image_uri
        kind = checks.instance_types(self)[0]
        if not checks.is_trainium(kind):
            raise UnknownImage(
                f"instance_type={kind!r}: the images known by version are those for Trainium. To rehearse the job, "
                'write instance_type="ml.trn1.32xlarge" (or "ml.trn1.2xlarge"): its report models p4d (A100) beside '
                "trn1, and `windtunnel check SCRIPT --diff` shows the way of a CUDA script there. To train on this "
                "instance on AWS, name its image with image_uri=, and session=AwsSession()."
            )
        return self._image_by_version()

    def _image_by_version(self) -> str:
        raise NotImplementedError


class PyTorch(Framework):
    """Trains a PyTorch script. SDK v2's ``sagemaker.pytorch.PyTorch``.

        estimator = PyTorch("train.py", source_dir="scripts", framework_version="2.9", instance_count=1,
                            instance_type="ml.trn1.2xlarge",
                            distribution={"torch_distributed": {"enabled": True}},
                            hyperparameters={"epochs": 2})
        job = estimator.fit({"train": "data/train"})

    Give ``framework_version`` ("2.9" or "2.9.0") or ``image_uri``; ``py_version`` is optional, since each version
    has one image. ``distribution`` starts a worker for each NeuronCore with torchrun; without it the script runs
    once. ``help(windtunnel.request.arguments.JobArguments)`` explains the further keyword arguments; three are not SDK
    v2's: ``session`` (where the job runs), ``local_cores`` (rehearse with fewer cores) and ``max_cost`` (a limit
    in US dollars).
    """

    _debugger_excludes_checkpoints = True

    def __init__(
        self,
        entry_point: AnyPath | None = None,
        framework_version: str | None = None,
        py_version: str | None = None,
        source_dir: AnyPath | None = None,
        hyperparameters: Mapping[str, Any] | None = None,
        image_uri: str | None = None,
        distribution: Mapping[str, Any] | None = None,
        compiler_config: Any = None,
        training_recipe: str | None = None,
        recipe_overrides: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        refuse_unsupported(
            {
                "compiler_config": compiler_config,
                "training_recipe": training_recipe,
                "recipe_overrides": recipe_overrides,
            }
        )
        if framework_version is None and image_uri is None:
            raise ConfigurationError("framework_version= is missing, e.g. '2.9'. Or give image_uri=.")
        if framework_version is not None:
            kwargs.setdefault("enable_sagemaker_metrics", True)
        super().__init__(entry_point, source_dir, hyperparameters, image_uri, distribution, **kwargs)
        self.framework_version = framework_version
        self.py_version = py_version
        self.training_image_uri()  # refuses versions that have no image

    def _image_by_version(self) -> str:
        return training_images.pytorch_image(
            str(self.framework_version), self.py_version, self.session.region
        )


class HuggingFace(Framework):
    """Trains a script with Hugging Face libraries. SDK v2's ``sagemaker.huggingface.HuggingFace``.

    Give ``transformers_version`` and ``pytorch_version``, which choose the image that the request names, or
    ``image_uri``. ``help(windtunnel.request.arguments.JobArguments)`` explains the further keyword arguments.
    """

    def __init__(
        self,
        py_version: str | None = None,
        entry_point: AnyPath | None = None,
        transformers_version: str | None = None,
        tensorflow_version: str | None = None,
        pytorch_version: str | None = None,
        source_dir: AnyPath | None = None,
        hyperparameters: Mapping[str, Any] | None = None,
        image_uri: str | None = None,
        distribution: Mapping[str, Any] | None = None,
        compiler_config: Any = None,
        **kwargs: Any,
    ) -> None:
        refuse_unsupported({"compiler_config": compiler_config, "tensorflow_version": tensorflow_version})
        if image_uri is None and (transformers_version is None or pytorch_version is None):
            raise ConfigurationError(
                f"transformers_version={transformers_version!r}, pytorch_version={pytorch_version!r}: "
                "give both, e.g. '4.51.0' and '2.7.0'. Or name an image with image_uri=."
            )
        kwargs.setdefault("enable_sagemaker_metrics", True)
        super().__init__(entry_point, source_dir, hyperparameters, image_uri, distribution, **kwargs)
        self.framework_version = transformers_version
        self.pytorch_version = pytorch_version
        self.py_version = py_version
        self.training_image_uri()  # refuses versions that have no image

    def _image_by_version(self) -> str:
        return training_images.hugging_face_image(
            str(self.framework_version), str(self.pytorch_version), self.py_version, self.session.region
        )


for _estimator in (Estimator, PyTorch, HuggingFace):
    show_arguments(_estimator)
