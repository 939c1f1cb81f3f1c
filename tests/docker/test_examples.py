"""The small examples, started as their READMEs say: each learns, and nothing is found in its script."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docker.conftest import PATIENCE_S
from windtunnel import LocalSession

pytestmark = pytest.mark.docker

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(session: LocalSession, example: str) -> str:
    """What `python run.py` prints, with the session's backend behind it."""
    environment = {**os.environ, "WINDTUNNEL_HOME": str(session.home)}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / example / "run.py")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    # How long input takes is a matter of what else this machine does.
    found = re.findall(r"^\[windtunnel\] +\d+\. .*", done.stdout, flags=re.MULTILINE)
    assert [finding for finding in found if "for its input" not in finding] == []
    return done.stdout


def numbers(name: str, text: str) -> list[float]:
    """All values that the text has as ``name=value``, in order."""
    return [float(value) for value in re.findall(rf"\b{name}=([-+.\deE]+)", text)]


def test_a_convolutional_network(session: LocalSession) -> None:
    """Names held-out pictures right, and two cores share the work."""
    said = run(session, "cnn_images")
    losses = numbers("loss", said)
    assert losses[-1] < 0.5 * losses[0], losses
    assert numbers("accuracy", said)[-1] > 0.9


def test_gpt_2_with_a_sharded_optimizer(session: LocalSession) -> None:
    """ZeRO-1, clipping, a schedule, bf16: the loss falls, each core holds half, checkpoints are read back."""
    said = run(session, "gpt2_zero1")
    losses = numbers("loss", said)
    assert len(losses) == 6 and losses[-1] < losses[0] - 1
    assert sorted(re.findall(r"rank .: optimizer state .*", said)) == [
        f"rank {rank}: optimizer state holds 1.00 values a parameter" for rank in (0, 1)
    ]


def test_the_trainer_of_transformers(session: LocalSession) -> None:
    """Trains, evaluates and saves; half of the data on each core; from a checkpoint it goes on as it would have."""
    said = run(session, "hf_trainer")
    assert numbers("steps", said) == [32]
    assert numbers("accuracy", said)[-1] > 0.9
    assert set(re.findall(r"rank . of 2 on .*", said)) == {"rank 0 of 2 on xla:0", "rank 1 of 2 on xla:0"}


def test_the_suite_of_the_page_on_ci(session: LocalSession, tmp_path: Path) -> None:
    """Its tests pass as they are printed."""
    page = (EXAMPLES.parent / "docs" / "how_to" / "ci.md").read_text()
    (suite,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    (tmp_path / "test_training.py").write_text(suite.replace("examples/", f"{EXAMPLES}/"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)],
        env={**os.environ, "WINDTUNNEL_HOME": str(session.home)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert "5 passed" in done.stdout, done.stdout[-4000:] + done.stderr[-4000:]
