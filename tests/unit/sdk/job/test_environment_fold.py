"""The toolkit's environment in a shown log is one line, and nothing else ever is."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

import pytest

from tests.unit.sdk.fake_service import FakeService, Step
from windtunnel.job.environment_fold import EnvironmentFold
from windtunnel.job.training_job import TrainingJob
from windtunnel.session.local import LocalSession

BEGIN = "2026-11-22 12:43:13,021 sagemaker-training-toolkit INFO     Invoking user script"
COMMAND = "Invoking script with the following command:"
ENVIRONMENT = [
    "", "Training Env:", "", *json.dumps({"hosts": ["algo-1"], "job_name": "j"}, indent=4).splitlines(), "",
    "Environment variables:", "", 'SM_HOSTS=["algo-1"]', "SM_HP_LR=0.1", "",
]  # fmt: skip
SCRIPT = ["", "python train.py", "step 1", BEGIN, *ENVIRONMENT, COMMAND, "step 2"]
LOG = ["pip says", BEGIN, *ENVIRONMENT, COMMAND, *SCRIPT]
NOTE = f"[{len(ENVIRONMENT)} lines folded: how]"


def shown(lines: Sequence[str]) -> list[str]:
    """What is shown of a log that ends there."""
    fold = EnvironmentFold("how")
    return [text for line in lines for text in fold.feed(line)] + list(fold.rest())


def test_one_line_for_all_of_it() -> None:
    """The first time; when a script prints the very same, that is the script's. Empty lines come as blanks from a
    backend of this machine, and not at all from AWS.
    """
    assert shown(LOG) == ["pip says", BEGIN, NOTE, COMMAND, *SCRIPT]
    assert shown([line or " " for line in LOG])[:4] == ["pip says", BEGIN, NOTE, COMMAND]
    assert shown([line for line in LOG if line])[2:4] == [
        f"[{len(list(filter(None, ENVIRONMENT)))} lines folded: how]",
        COMMAND,
    ]


@pytest.mark.parametrize("index", range(1, 2 + len(ENVIRONMENT)))
def test_what_is_not_surely_the_toolkits_is_shown(index: int) -> None:
    """A log that ends within the message, or has a line in it that is not the toolkit's, is shown as it is."""
    log = LOG[: 4 + len(ENVIRONMENT)]
    assert shown(log[:index]) == log[:index]
    for other in ("a script", '"a": "script",', '"a": ' + "[" * 100_000):
        changed = [*log[:index], other, *log[index + 1 :]]
        assert shown(changed) == changed


def test_a_message_without_an_end_holds_nothing_back_for_long() -> None:
    """Some thousand lines, then they are shown: also of a script that imitates the beginning."""
    fold = EnvironmentFold("how")
    lines = [BEGIN, "Training Env:", "{", *(f"step {number}" for number in range(6_000))]
    assert [text for line in lines for text in fold.feed(line)] == lines


def test_fit_folds_what_it_shows_and_the_log_stays_whole(local: LocalSession) -> None:
    """By default; the line says how to see all of it. Several hosts have one each."""
    steps: tuple[Step, ...] = (
        ("InProgress", "Training", "", {"algo-1": LOG[:6], "algo-2": LOG}),
        ("Completed", "Completed", "", {"algo-1": LOG[6:]}),
    )
    texts = []
    for logs in (True, "All"):
        local.service = FakeService(*steps)
        local.service.create_job(
            {
                "TrainingJobName": "j",
                "ResourceConfig": {"InstanceCount": 2},
                "OutputDataConfig": {"S3OutputPath": "s3://b/out"},
            }
        )
        out = io.StringIO()
        job = TrainingJob("j", local)
        job.wait(logs=logs, out=out)
        texts.append([line for line in out.getvalue().splitlines() if line.startswith("[algo-1]")])
        assert [line.removeprefix("[algo-1] ") for line in job.logs() if "[algo-1]" in line] == LOG
    folded, whole = texts
    assert [line.removeprefix("[algo-1] ") for line in whole] == LOG
    assert len(whole) - len(folded) == len(ENVIRONMENT) - 1
    assert '`windtunnel logs --all j` or fit(logs="All") shows it' in folded[2]
