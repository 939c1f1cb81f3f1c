"""Scripts written for GPUs, ported by `windtunnel check --diff` alone, as whole jobs on two simulated cores."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docker.conftest import SCRIPTS, estimator
from windtunnel import LocalSession

pytestmark = pytest.mark.docker


@pytest.mark.parametrize(
    ("name", "notes"), [("single_gpu.py", []), ("ddp_amp.py", ["ragged_batch", "no_exchange"])]
)
def test_a_ported_script_trains_and_nothing_is_found_to_change(
    session: LocalSession, tmp_path: Path, name: str, notes: list[str]
) -> None:
    """`check --diff | patch -p1`, then the job: the loss falls, the model is saved, no diagnostic is left.

    ``notes``: what the script's text does not tell (does the batch divide the samples? does DDP exchange on trn1?).
    """
    shutil.copy(SCRIPTS / "from_cuda" / name, tmp_path)
    check = [sys.executable, "-m", "windtunnel.cli.main", "check", name, "--diff"]
    done = subprocess.run(check, cwd=tmp_path, capture_output=True, check=True, text=True)
    assert re.findall(r"note: (\w+)", done.stderr) == notes and done.stderr.count("\n") == len(notes)
    subprocess.run(["patch", "-p1"], cwd=tmp_path, input=done.stdout, check=True, text=True)
    job = estimator(
        session, name, source_dir=str(tmp_path), distribution={"torch_distributed": {"enabled": True}}
    ).fit(logs=False)
    losses = [float(value) for value in re.findall(r"loss=([\d.]+)", "\n".join(job.logs()))]
    assert losses[-1] < losses[0]
    # How long input takes is a matter of what else this machine does.
    assert [str(one) for one in job.diagnostics() if one.is_to_change and one.kind != "input_bound"] == []
    assert job.counters()["world_size"] == 2
    assert (job.download_model(tmp_path / "model") / "model.pt").stat().st_size > 0
