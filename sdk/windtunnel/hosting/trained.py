"""Make the model that serves a training job's result, from the job's description."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from windtunnel.errors import JobNotFinished, SourceError, UnknownImage
from windtunnel.hosting.model import Model
from windtunnel.hosting.pytorch_model import PyTorchModel
from windtunnel.hosting.transformer import Transformer
from windtunnel.request.arguments import AnyPath
from windtunnel.request.build import base_from_job_name, decoded_hyperparameter, job_name_from_base
from windtunnel.session.session import Session

_VERSION = re.compile(
    r"(?:^|/)(?P<kind>pytorch|huggingface-pytorch)-training[\w-]*:(?P<version>\d+\.\d+(?:\.\d+)?)-"
)


def model_of(
    description: Mapping[str, Any],
    session: Session,
    *,
    entry_point: AnyPath | None = None,
    source_dir: AnyPath | None = None,
    framework_version: str | None = None,
    image_uri: str | None = None,
    role: str | None = None,
    **arguments: Any,
) -> Model:
    """A `PyTorchModel` for a job that ran a script, else a `Model` with the job's own image.

    Args:
        description: DescribeTrainingJob's answer.
        session: the session of the job.
        entry_point: the script with model_fn; default: the job's own script.
        source_dir: the script's directory; default, without ``entry_point``: the job's code.
        framework_version: version of PyTorch; default: that of the job's image.
        image_uri: the serving image; default: AWS's for that version, or the job's image if it is the user's own.
        role: IAM role; default: the job's.
        arguments: further arguments of `PyTorchModel` or `Model`.

    Raises:
        JobNotFinished: the job has stored no model.tar.gz.
        UnknownImage: neither job nor arguments say which image serves the model.
    """
    data, name = _archive(description), description["TrainingJobName"]
    image = description["AlgorithmSpecification"].get("TrainingImage", "")
    found = _VERSION.search(image)
    given = {"role": role or description["RoleArn"], "session": session, **arguments}
    script = description.get("HyperParameters", {})
    if found is None and not (image_uri or framework_version) and "sagemaker_program" not in script:
        return Model(image, data, entry_point=entry_point, source_dir=source_dir, **given)
    if entry_point is None:
        entry_point, source_dir = _own_code(script, name)
    if not (image_uri or framework_version) and (found is None or found["kind"] != "pytorch"):
        raise UnknownImage(
            f"Training job {name} ran {image!r}: name the image that serves its model with image_uri=, or with "
            "framework_version= AWS's of that PyTorch."
        )
    return PyTorchModel(
        data,
        entry_point=entry_point,
        source_dir=source_dir,
        framework_version=framework_version or (found["version"] if found else None),
        image_uri=image_uri,
        older_image=framework_version is None,
        **given,
    )


def deploy(
    create_model: Callable[..., Model],
    job: str,
    count: int,
    instance_type: str | None,
    arguments: Mapping[str, Any],
) -> Any:
    """Call ``create_model``, then `Model.deploy`, each with its own part of the arguments.

    Model and endpoint are named after the job, as in SDK v2; the argument ``model_name`` names the model otherwise.
    """
    model, name, to_deploy = _named(create_model, job, arguments, Model.deploy)
    return model.deploy(count, instance_type, **{"endpoint_name": name, **to_deploy})


def transformer(
    create_model: Callable[..., Model], job: str, count: int, instance_type: str, arguments: Mapping[str, Any]
) -> Transformer:
    """Call ``create_model``, then `Model.transformer`, each with its own part of the arguments."""
    model, _, to_transform = _named(create_model, job, arguments, Model.transformer)
    return model.transformer(count, instance_type, **to_transform)


def _named(
    create_model: Callable[..., Model], job: str, arguments: Mapping[str, Any], method: Callable[..., Any]
) -> tuple[Model, str, dict[str, Any]]:
    """The model, a name made from the job's, and the arguments of ``method``; the others make the model."""
    others = inspect.signature(method).parameters
    name = job_name_from_base(base_from_job_name(job))
    of_model = {key: value for key, value in arguments.items() if key not in others}
    of_model.setdefault("name", of_model.pop("model_name", None) or name)
    return create_model(**of_model), name, {k: v for k, v in arguments.items() if k in others}


def _archive(description: Mapping[str, Any]) -> str:
    data = str(description.get("ModelArtifacts", {}).get("S3ModelArtifacts", ""))
    if not data.endswith(".tar.gz"):
        raise JobNotFinished(
            f"Training job {description['TrainingJobName']} has no model.tar.gz ({description['TrainingJobStatus']}): "
            "a model is deployed from one. Wait for the job to complete; disable_output_compression=True makes none."
        )
    return data


def _own_code(hyperparameters: Mapping[str, str], job: str) -> tuple[str, str]:
    """Script and code tarball of a job, which SDK v2 uses too where no script is given."""
    script = decoded_hyperparameter(hyperparameters.get("sagemaker_program", ""))
    tarball = decoded_hyperparameter(hyperparameters.get("sagemaker_submit_directory", ""))
    if not script or not str(tarball).startswith("s3://"):
        raise SourceError(
            f"entry_point is missing, and training job {job} has no code in S3 to take it from: name the script with "
            "model_fn, e.g. entry_point='inference.py', source_dir='code'."
        )
    return str(script), str(tarball)
