"""AWS's PyTorch inference images, found by framework version and instance type.

Read on 2026-11-22 from

* sagemaker-python-sdk 2.257.7, ``image_uri_config/pytorch.json`` (CPU and GPU: versions, Python, registries);
* the README of github.com/aws-neuron/deep-learning-containers and its history up to 2be9ed1 (2026-08-17): the
  tags of ``pytorch-inference-neuron`` and ``-neuronx``, of which this table keeps the last Neuron SDK of each version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from windtunnel.errors import UnknownImage
from windtunnel.request.training_images import MAIN_REGISTRY, REGISTRIES, check_python, matches, registry_uri


class InferenceImage(NamedTuple):
    """One image: its PyTorch version, its Python version, and the end of its tag."""

    pytorch: str
    python: str
    rest: str = ""


CPU_AND_GPU = (
    InferenceImage("1.8.1", "py36"),
    InferenceImage("1.9.0", "py38"),
    InferenceImage("1.9.1", "py38"),
    InferenceImage("1.10.0", "py38"),
    InferenceImage("1.10.2", "py38"),
    InferenceImage("1.11.0", "py38"),
    InferenceImage("1.12.0", "py38"),
    InferenceImage("1.12.1", "py38"),
    InferenceImage("1.13.1", "py39"),
    InferenceImage("2.0.0", "py310"),
    InferenceImage("2.0.1", "py310"),
    InferenceImage("2.1.0", "py310"),
    InferenceImage("2.2.0", "py310"),
    InferenceImage("2.3.0", "py311"),
    InferenceImage("2.4.0", "py311"),
    InferenceImage("2.5.1", "py311"),
    InferenceImage("2.6.0", "py312"),
)
NEURON = (InferenceImage("1.13.1", "py310", "sdk2.20.2-ubuntu20.04"),)
NEURONX = (
    InferenceImage("1.13.1", "py310", "sdk2.20.2-ubuntu20.04"),
    InferenceImage("2.1.2", "py310", "sdk2.20.2-ubuntu20.04"),
    InferenceImage("2.5.1", "py310", "sdk2.22.0-ubuntu22.04"),
    InferenceImage("2.6.0", "py310", "sdk2.23.0-ubuntu22.04"),
    InferenceImage("2.7.0", "py310", "sdk2.25.0-ubuntu22.04"),
    InferenceImage("2.8.0", "py311", "sdk2.26.1-ubuntu22.04"),
    InferenceImage("2.9.0", "py312", "sdk2.31.1-ubuntu24.04"),
)

_ALL_REGISTRIES: Mapping[str, str] = {
    **REGISTRIES,
    **dict.fromkeys(
        ("ap-northeast-2", "ca-central-1", "eu-north-1", "eu-west-2", "us-west-1"), MAIN_REGISTRY
    ),
    "af-south-1": "626614931356",
    "ap-east-1": "871362719292",
    "ap-east-2": "975050140332",
    "ap-northeast-3": "364406365360",
    "ap-southeast-3": "907027046896",
    "ap-southeast-6": "633930458069",
    "eu-south-1": "692866216735",
    "me-central-1": "914824155844",
    "me-south-1": "217643126080",
}
_GPU = re.compile(r"ml\.(p|g)\d")
_NEURONX = re.compile(r"ml\.(trn\d|inf2)")
_NEURON = re.compile(r"ml\.inf1\.")
_GRAVITON = re.compile(r"ml\.[a-z]+\dg[a-z]*\.")


def pytorch_image(framework_version: str, py_version: str | None, region: str, instance_type: str) -> str:
    """The URI of the image for a PyTorch version, ``"2.6"`` or ``"2.6.0"``, on an instance type.

    Raises:
        UnknownImage: lists the versions, Python versions or regions there are.
    """
    found = [image for image in _images(instance_type) if matches(image.pytorch, framework_version)]
    if not found:
        known = ", ".join(image.pytorch for image in _images(instance_type))
        raise UnknownImage(
            f"framework_version={framework_version!r} has no PyTorch inference image for {instance_type}. Known: "
            f"{known}. The weights of a newer version mostly load in an older one. Another image: image_uri=."
        )
    image = found[-1]
    check_python(py_version, image.python, f"PyTorch {image.pytorch}")
    if _NEURONX.match(instance_type) or _NEURON.match(instance_type):
        kind = "neuronx" if _NEURONX.match(instance_type) else "neuron"
        tag = f"{image.pytorch}-{kind}-{image.python}-{image.rest}"
        return registry_uri(f"pytorch-inference-{kind}", tag, region, "Neuron inference images", REGISTRIES)
    processor = "gpu" if _GPU.match(instance_type) else "cpu"
    # As in SDK v2: "2.6" gives the tag 2.6-cpu-py312, which AWS moves to each patch release.
    tag = f"{framework_version}-{processor}-{image.python}"
    return registry_uri("pytorch-inference", tag, region, "PyTorch inference images", _ALL_REGISTRIES)


def known_or_older(framework_version: str, instance_type: str) -> str:
    """The given version, if it has an image for the instance type; else the newest older version that has one.

    Raises:
        UnknownImage: all images are newer.
    """
    images = _images(instance_type)
    if any(matches(image.pytorch, framework_version) for image in images):
        return framework_version
    asked = _numbers(framework_version)
    older = [image for image in images if _numbers(image.pytorch) <= asked]
    if not older:
        raise UnknownImage(
            f"PyTorch {framework_version} is older than AWS's inference images for {instance_type} "
            f"({images[0].pytorch} is the first). Another image: image_uri=."
        )
    return older[-1].pytorch


def _images(instance_type: str) -> tuple[InferenceImage, ...]:
    if _GRAVITON.match(instance_type):
        raise UnknownImage(
            f"instance_type={instance_type!r} is a Graviton: the images known by version are those for x86-64, "
            "e.g. for ml.c5.xlarge. Another image: image_uri=."
        )
    if _NEURONX.match(instance_type):
        return NEURONX
    return NEURON if _NEURON.match(instance_type) else CPU_AND_GPU


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
