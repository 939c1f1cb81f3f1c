"""The tutorial notebook runs from top to bottom, and is stored without outputs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="pip install windtunnel[notebook]")
pytest.importorskip("nbclient", reason="pip install windtunnel[notebook]")

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "notebooks" / "bert_amazon_polarity.ipynb"


def code_cells(path: Path) -> list[Any]:
    """The cells that hold code."""
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def test_notebook_is_stored_without_outputs() -> None:
    """What readers see is what their own machine computes; diffs show text only."""
    for cell in code_cells(NOTEBOOK):
        assert cell.outputs == []
        assert cell.execution_count is None


@pytest.mark.notebook
def test_notebook_runs_from_top_to_bottom(tmp_path: Path) -> None:
    """Data, request, job, log, metrics, model and report, in one go, with a few steps of training."""
    if os.environ.get("WINDTUNNEL_RUNNER", "docker") == "docker" and shutil.which("docker") is None:
        pytest.skip("needs Docker")
    executed = tmp_path / "executed.ipynb"
    small = {
        "EXAMPLE_TRAIN_REVIEWS": "640",
        "EXAMPLE_EPOCHS": "1",
        "EXAMPLE_DATA": str(tmp_path / "data"),
        "WINDTUNNEL_HOME": str(tmp_path / "home"),
        "WINDTUNNEL_IDLE_SECONDS": "60",
        "JUPYTER_PLATFORM_DIRS": "1",
    }
    # A process of its own: the kernel's event loop and sockets are none of ours to close.
    run = subprocess.run(
        [sys.executable, "-c", _EXECUTE, str(NOTEBOOK), str(executed)],
        env=os.environ | small,
        capture_output=True,
        text=True,
        timeout=1400,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    outputs = {cell.source.splitlines()[0]: cell.outputs for cell in code_cells(executed)}
    assert "validation:accuracy" in outputs["job.metrics()"][0].data["text/plain"]
    assert "config.json" in outputs["import tempfile"][0].text
    assert "value='1" in outputs["import re"][0].data["text/html"]  # the bar, at its end
    for chart in ("series = job.metric_series()", 'report.plot("cost")', 'report.plot("breakdown")'):
        assert "image/png" in outputs[chart][0].data
    assert "THE ANSWER" in outputs["print(report)  # print(report.to_text(full=True)): all of it"][0].text
    report = outputs["report = job.report("][0].data["text/html"]
    assert "modelled" in report
    assert "measured" in report


_EXECUTE = """
import sys
from pathlib import Path

import nbclient
import nbformat

source, target = map(Path, sys.argv[1:])
notebook = nbformat.read(source, as_version=4)
client = nbclient.NotebookClient(notebook, timeout=1200, resources={"metadata": {"path": str(source.parent)}})
client.execute()
nbformat.write(notebook, target)
"""
