"""Names of images in requests: AWS's images, for which a local one runs, and any others."""

from __future__ import annotations

import re

from windtunnel_local.service.ground.errors import ValidationFailed

# AWS's registries of Neuron images: ECR of any account (AWS has one for each region; others may mirror it),
# and the public gallery. A name without a registry is an image of the local engine.
_REGISTRY = r"(?:\d{12}\.dkr\.ecr(?:-fips)?\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?/|public\.ecr\.aws/neuron/)"
_NEURON_IMAGE = re.compile(
    _REGISTRY
    + r"(?:[a-z0-9._/-]+/)?(?:huggingface-)?pytorch-training-neuronx?"
    + r"(?::(?:(?P<pytorch>\d+\.\d+)[^/@]*|[^/@]+))?(?:@sha256:[0-9a-f]{64})?"
)
_INFERENCE_IMAGE = re.compile(
    _REGISTRY.replace("neuron/", "(?:neuron|deep-learning-containers)/")
    + r"(?:[a-z0-9._/-]+/)?(?:huggingface-)?pytorch-inference(?:-neuronx?)?(?::[^/@]+)?(?:@sha256:[0-9a-f]{64})?"
)
# The names that Docker accepts: https://pkg.go.dev/github.com/distribution/reference
_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_PART = "[a-z0-9]+(?:(?:[.]|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:(?:{_LABEL}(?:[.]{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?{_PART}(?:/{_PART})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
    r"(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?"
)


def is_neuron_image(image: str) -> bool:
    """Whether this is the name of one of AWS's Neuron training images."""
    return _NEURON_IMAGE.fullmatch(image) is not None


def framework_version(training_image: str) -> str | None:
    """PyTorch's major.minor version from the tag of an AWS Neuron image.

    None for other images, for tags like ``latest``, and without a tag.
    """
    named = _NEURON_IMAGE.fullmatch(training_image)
    return named["pytorch"] if named else None


def check_reference(where: str, image: str) -> None:
    """Check that a text can be the name of an image.

    Raises:
        ValidationFailed: it cannot; names the member ``where``, and what is valid.
    """
    if not _REFERENCE.fullmatch(image):
        raise ValidationFailed(
            f"{where} {image!r} is no image's name. Valid: [REGISTRY/]NAME[:TAG][@DIGEST], the NAME of lower case"
            " letters and digits, its parts joined by one of . _ - /; `docker images` lists those that there are."
        )


def is_inference_image(image: str) -> bool:
    """Whether this is the name of one of AWS's PyTorch or Hugging Face inference images, for CPU, GPU or Neuron."""
    return _INFERENCE_IMAGE.fullmatch(image) is not None


def substitution(training_image: str, local_image: str, contents: str | None) -> list[str]:
    """The first lines of a job's log, if the local image runs instead of AWS's; otherwise empty.

    Args:
        training_image: the image that the request names.
        local_image: the image that runs.
        contents: the versions in it, as text; None if they are not known.
    """
    if not is_neuron_image(training_image):
        return []
    version = framework_version(training_image)
    lines = [
        f"Windtunnel: the request names the image {training_image}.",
        f"Windtunnel: {local_image} runs in its place" + (f": {contents}." if contents else "."),
    ]
    if version is None:
        lines.append("Windtunnel: its tag names no PyTorch version; torch_xla offers the names of its own.")
    else:
        lines.append(f"Windtunnel: torch_xla offers the names that scripts for PyTorch {version} find.")
    return lines
