"""AWS's own clients deploy a model here and ask it, also in batch, unmodified. Its handlers: code/inference.py."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tests.clients.environments import environment
from tests.clients.places import Place, Run

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1800)]

OF_V2 = {
    "serving_with_sagemaker_v2.py": r"{'sum': \[6, 14\]}\n{'sum': \[22\]}\n",
    "serving_with_sagemaker_v2_in_batch.py": r'{"inputs":\[\[1,2]],"SageMakerOutput":{"sum":\[6]}}\n'
    r'{"inputs":\[\[3,4],\[5,6]],"SageMakerOutput":{"sum":\[14,22]}}\n',
    "serving_with_async_of_sagemaker_v2.py": r"{'sum': \[6, 14\]}\n{'sum': \[22\]}\n",
}
ANSWERS = {
    **OF_V2,
    "serving_with_sagemaker_v3.py": r"{'sum': \[6, 14\]}\n",
    "serving_with_boto3.py": r"AllTraffic {'sum': \[6, 14\]}\n",
    "serving_with_aws_cli.sh": r'{"sum": \[6, 14\]}\n',
}

LEFT = """
import boto3, time
sagemaker = boto3.client("sagemaker")
until = time.monotonic() + 300
while (left := sagemaker.list_endpoints()["Endpoints"]) and time.monotonic() < until:
    time.sleep(0.1)
print(left)
"""


@pytest.fixture(scope="module")
def here(place: Callable[..., Place]) -> Place:
    """One home for all clients, with the model."""
    here = place("boto3", calls_containers=True)
    here.run("python", "make_model.py")
    return here


@pytest.fixture(scope="module")
def runs(here: Place) -> Iterator[dict[str, Run]]:
    """All clients at once: the SDKs look at an endpoint every 30 s."""

    def client(name: str) -> Place:
        return replace(here, client=environment(name))

    started = client("sagemaker_v2").started_together("sagemaker", *OF_V2) | {
        "serving_with_sagemaker_v3.py": client("sagemaker_v3").started(
            "python", "serving_with_sagemaker_v3.py"
        ),
        "serving_with_boto3.py": client("boto3").started("python", "serving_with_boto3.py"),
        "serving_with_aws_cli.sh": client("awscli").started("sh", "serving_with_aws_cli.sh"),
    }
    yield started
    for run in started.values():
        run.killed()


@pytest.mark.parametrize("script", ANSWERS)
def test_a_model_is_deployed_asked_and_removed(runs: dict[str, Run], script: str) -> None:
    """The answers are the handlers'."""
    code, output = runs[script].ended()
    assert code == 0, output[-3000:]
    assert re.search(ANSWERS[script], output), output[-3000:]


def test_nothing_is_left(here: Place, runs: dict[str, Run]) -> None:
    """All clients have removed their endpoints."""
    for run in runs.values():
        run.ended()
    assert here.run(sys.executable, "-c", LEFT) == "[]\n"
