"""AWS's training images for Trainium, found by framework versions.

Read on 2026-11-20 from

* the README of github.com/aws-neuron/deep-learning-containers and its history up to 2be9ed1 (2026-08-17):
  the tags of ``pytorch-training-neuronx``, of which this table keeps the last Neuron SDK of each version;
* sagemaker-python-sdk 2.257.7, ``image_uri_config/pytorch-neuron.json`` (PyTorch 1.11.0) and
  ``huggingface-neuronx.json`` (Hugging Face up to transformers 4.51.0, and the registry of each region);
* ``available_images.md`` of github.com/aws/deep-learning-containers (transformers 4.55.4 with PyTorch 2.8.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from windtunnel.errors import UnknownImage


@dataclass(frozen=True)
class TrainingImage:
    """One image: the versions that select it, and its repository and tag."""

    pytorch: str
    transformers: str | None
    python: str
    repository: str
    tag: str


def _pytorch(version: str, python: str, neuron_sdk: str, ubuntu: str) -> TrainingImage:
    tag = f"{version}-neuronx-{python}-sdk{neuron_sdk}-ubuntu{ubuntu}"
    return TrainingImage(version, None, python, "pytorch-training-neuronx", tag)


def _hugging_face(
    transformers: str, pytorch: str, python: str, neuron_sdk: str, ubuntu: str
) -> TrainingImage:
    tag = f"{pytorch}-transformers{transformers}-neuronx-{python}-sdk{neuron_sdk}-ubuntu{ubuntu}"
    return TrainingImage(pytorch, transformers, python, "huggingface-pytorch-training-neuronx", tag)


PYTORCH = (
    TrainingImage(
        "1.11.0", None, "py38", "pytorch-training-neuron", "1.11.0-neuron-py38-sdk2.4.0-ubuntu20.04"
    ),
    _pytorch("1.13.1", "py310", "2.20.2", "20.04"),
    _pytorch("2.1.2", "py310", "2.20.2", "20.04"),
    _pytorch("2.5.1", "py310", "2.22.0", "22.04"),
    _pytorch("2.6.0", "py310", "2.23.0", "22.04"),
    _pytorch("2.7.0", "py310", "2.25.0", "22.04"),
    _pytorch("2.8.0", "py311", "2.26.1", "22.04"),
    _pytorch("2.9.0", "py312", "2.30.0", "24.04"),
)

HUGGING_FACE = (
    _hugging_face("4.28.1", "1.13.0", "py38", "2.9.1", "20.04"),
    _hugging_face("4.34.1", "1.13.1", "py310", "2.15.0", "20.04"),
    _hugging_face("4.36.2", "1.13.1", "py310", "2.18.0", "20.04"),
    _hugging_face("4.43.2", "2.1.2", "py310", "2.20.0", "20.04"),
    _hugging_face("4.48.1", "2.1.2", "py310", "2.20.0", "20.04"),
    _hugging_face("4.51.0", "2.7.0", "py310", "2.24.1", "22.04"),
    _hugging_face("4.55.4", "2.8.0", "py310", "2.26.0", "22.04"),
)

MAIN_REGISTRY = "763104351884"
REGISTRIES = {
    **dict.fromkeys(
        (
            "ap-northeast-1",
            "ap-south-1",
            "ap-southeast-1",
            "ap-southeast-2",
            "eu-central-1",
            "eu-west-1",
            "eu-west-3",
            "sa-east-1",
            "us-east-1",
            "us-east-2",
            "us-west-2",
        ),
        MAIN_REGISTRY,
    ),
    "ap-south-2": "772153158452",
    "ap-southeast-4": "457447274322",
    "ap-southeast-5": "550225433462",
    "ap-southeast-7": "590183813437",
    "ca-west-1": "204538143572",
    "cn-north-1": "727897471807",
    "cn-northwest-1": "727897471807",
    "eu-central-2": "380420809688",
    "eu-south-2": "503227376785",
    "il-central-1": "780543022126",
    "mx-central-1": "637423239942",
    "us-gov-east-1": "446045086412",
    "us-gov-west-1": "442386744353",
}
"""AWS's registry of Neuron images in each region that has one."""


def pytorch_image(framework_version: str, py_version: str | None, region: str) -> str:
    """The URI of the image for a PyTorch version, ``"2.9"`` or ``"2.9.0"``.

    Raises:
        UnknownImage: lists the versions, Python versions or regions there are.
    """
    found = [image for image in PYTORCH if matches(image.pytorch, framework_version)]
    if not found:
        known = ", ".join(image.pytorch for image in PYTORCH)
        raise UnknownImage(
            f"framework_version={framework_version!r} has no PyTorch training image for Trainium. "
            f"Known: {known}. Another image: image_uri=."
        )
    image = found[-1]
    check_python(py_version, image.python, f"PyTorch {image.pytorch}")
    return _uri(image, region)


def hugging_face_image(
    transformers_version: str, pytorch_version: str, py_version: str | None, region: str
) -> str:
    """The URI of the image for a pair of transformers and PyTorch versions.

    Raises:
        UnknownImage: lists the pairs, Python versions or regions there are.
    """
    found = [
        image
        for image in HUGGING_FACE
        if matches(str(image.transformers), transformers_version) and matches(image.pytorch, pytorch_version)
    ]
    if not found:
        known = ", ".join(f"{image.transformers} with {image.pytorch}" for image in HUGGING_FACE)
        raise UnknownImage(
            f"transformers_version={transformers_version!r} with pytorch_version={pytorch_version!r} has no "
            f"Hugging Face training image for Trainium. Known: {known}. Another image: image_uri=."
        )
    image = found[-1]
    check_python(py_version, image.python, f"transformers {image.transformers}")
    return _uri(image, region)


def matches(version: str, asked: str) -> bool:
    """Whether a version is the one asked for, by its full number or by major.minor."""
    return asked in (version, version.rpartition(".")[0])


def check_python(asked: str | None, there: str, what: str) -> None:
    """Raise `UnknownImage` unless the image of ``what`` has the Python asked for."""
    # "py3" is not a certain version; SDK v2 accepts it where an image exists for one Python only.
    if asked not in (None, "py3", there):
        raise UnknownImage(f"py_version={asked!r}: {what} has {there}. Use that or leave it out.")


def _uri(image: TrainingImage, region: str) -> str:
    return registry_uri(image.repository, image.tag, region, "Neuron training images", REGISTRIES)


def registry_uri(repository: str, tag: str, region: str, what: str, registries: Mapping[str, str]) -> str:
    """The URI of one of AWS's images in a region. ``what``: the images' name in the error.

    Raises:
        UnknownImage: lists the regions there are.
    """
    registry = registries.get(region)
    if registry is None:
        known = ", ".join(sorted(registries))
        raise UnknownImage(
            f"AWS publishes no {what} in region {region!r}. Regions that have them: {known}. "
            "Another image: image_uri=."
        )
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"{registry}.dkr.ecr.{region}.{suffix}/{repository}:{tag}"
