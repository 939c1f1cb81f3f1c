"""Which image serves: AWS's own, by version, instance and region. The URIs here are what SDK v2.257 gives."""

from __future__ import annotations

import pytest

from windtunnel.errors import UnknownImage
from windtunnel.request.inference_images import known_or_older, pytorch_image

DLC = "763104351884.dkr.ecr.us-east-1.amazonaws.com"


@pytest.mark.parametrize(
    ("version", "python", "region", "kind", "uri"),
    [
        ("1.12.0", "py38", "us-east-1", "ml.c5.xlarge", f"{DLC}/pytorch-inference:1.12.0-cpu-py38"),
        ("2.6", None, "us-east-1", "ml.m5.large", f"{DLC}/pytorch-inference:2.6-cpu-py312"),
        ("2.5.1", "py3", "us-east-1", "ml.g5.xlarge", f"{DLC}/pytorch-inference:2.5.1-gpu-py311"),
        (
            "2.0",
            None,
            "cn-north-1",
            "ml.p3.2xlarge",
            "727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/pytorch-inference:2.0-gpu-py310",
        ),
        (
            "2.9",
            None,
            "us-east-1",
            "ml.inf2.xlarge",
            f"{DLC}/pytorch-inference-neuronx:2.9.0-neuronx-py312-sdk2.31.1-ubuntu24.04",
        ),
    ],
)
def test_awss_images(version: str, python: str | None, region: str, kind: str, uri: str) -> None:
    """CPU, GPU and Neuron, in AWS's registry of the region."""
    assert pytorch_image(version, python, region, kind) == uri


@pytest.mark.parametrize(
    ("version", "python", "region", "kind", "said"),
    [
        ("2.9", None, "us-east-1", "ml.c5.xlarge", "Known: .*2.6.0"),
        ("2.6", "py38", "us-east-1", "ml.c5.xlarge", "has py312"),
        ("2.6", None, "mars-1", "ml.c5.xlarge", "Regions that have them"),
        ("2.6", None, "us-east-1", "ml.c7g.xlarge", "Graviton"),
        ("2.6", None, "us-east-1", "ml.inf1.xlarge", "Known: 1.13.1"),
    ],
)
def test_unknown(version: str, python: str | None, region: str, kind: str, said: str) -> None:
    """What there is is named."""
    with pytest.raises(UnknownImage, match=said):
        pytorch_image(version, python, region, kind)


def test_an_older_image_for_what_was_trained_with_a_newer_version() -> None:
    """The version itself where it has an image; else the newest that is older."""
    assert known_or_older("2.9.0", "ml.c5.xlarge") == "2.6.0"
    assert known_or_older("2.9.0", "ml.inf2.xlarge") == "2.9.0"
    assert known_or_older("2.1.2", "ml.c5.xlarge") == "2.1.0"
    assert known_or_older("2.5", "ml.c5.xlarge") == "2.5"
    with pytest.raises(UnknownImage, match="is older than"):
        known_or_older("1.4", "ml.c5.xlarge")
