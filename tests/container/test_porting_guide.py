"""What docs/how_to/port_a_script.md says that the log says, it says: the guide is followed edit by edit."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests/docker/scripts/from_cuda/single_gpu.py"
EVALUATED = ROOT / "tests/docker/scripts/evaluated.py"
EDITS, DECISIONS, *_ = (ROOT / "docs/how_to/port_a_script.md").read_text().split("\n## ")


def edited(text: str, block: str) -> str:
    """A diff of the page made in the script: its lines stand there once."""
    lines = block.splitlines(keepends=True)
    old = "".join(line[1:] or "\n" for line in lines if line[0] != "+")
    new = "".join(line[1:] or "\n" for line in lines if line[0] != "-")
    assert text.count(old) == 1, block
    return text.replace(old, new)


def blocks(page: str, kind: str) -> list[str]:
    """Its code of a kind."""
    return re.findall(rf"```{kind}\n(.*?)```", page, flags=re.DOTALL)


def words(text: str) -> str:
    """Without line breaks: the page wraps what the log writes in one line."""
    return " ".join(text.split())


def load(path: Path) -> str:
    """What a process without torch_xla, as this one, is told when it loads a saved model."""
    assert "torch_xla" not in sys.modules
    try:
        torch.load(path)
    except NotImplementedError as error:
        return f"NotImplementedError: {error}"
    return "loaded"


def test_each_edit_of_the_guide_ends_what_the_log_says_without_it(torchrun, tmp_path):
    """Before each edit the log has the page's quotation; after all of them no finding, and the model loads."""
    text, script = SCRIPT.read_text(), tmp_path / SCRIPT.name
    environment = {"SM_MODEL_DIR": str(tmp_path), "WINDTUNNEL_COUNTERS_DIR": str(tmp_path / "counters")}

    def log() -> str:
        script.write_text(text)
        # Eleven steps: enough to be told of the tenth, few enough for the one graph of steps that nothing ends.
        return torchrun(str(script), "--epochs", "1", "--batch-size", "93", **environment).output

    for kind, block in re.findall(r"```(text|diff)\n(.*?)```", EDITS, flags=re.DOTALL):
        if kind == "diff":
            text = edited(text, block)
        else:
            said = log()
            if not block.startswith("[windtunnel]"):
                said = load(tmp_path / "model.pt")
            assert words(block) in words(said), said
    assert "[windtunnel]" not in log()
    assert load(tmp_path / "model.pt") == "loaded"


@pytest.fixture
def launched(torchrun, tmp_path):
    """Runs a script's text and gives its log, and the accuracies that it printed."""

    def run(text: str, cores: int = 2) -> tuple[str, list[str]]:
        script = tmp_path / EVALUATED.name
        script.write_text(text)
        log = torchrun(str(script), workers=cores, WINDTUNNEL_COUNTERS_DIR=str(tmp_path / "counters")).output
        return log, re.findall(r"accuracy=([\d.]+)", log)

    return run


def decided(heading: str, *, without: str = "") -> str:
    """The script with the diffs under a heading, but those that add a text."""
    (section,) = (part for part in DECISIONS.split("\n### ") if part.startswith(heading))
    text = EVALUATED.read_text()
    for block in blocks(section, "diff"):
        if not without or without not in block:
            text = edited(text, block)
    return text


def test_each_decision_does_what_the_guide_says(launched):
    """Evaluation: all samples count once, with no graph for the last batch; without an edit, what the page says. The
    learning rate, which grows with the cores: the figures of one core, two cores, two cores with twice the rate.
    """
    log, whole = launched(EVALUATED.read_text())
    (ragged,) = blocks(DECISIONS, "text")
    assert words(ragged) in words(log) and len(whole) == 4  # two epochs on each of two cores

    log, shared = launched(decided("Evaluation on all cores"))
    assert sorted(shared) == sorted(whole) and "[windtunnel]" not in log
    _, apart = launched(decided("Evaluation on all cores", without="all_reduce"))
    assert len(set(apart)) > len(set(whole)) == 2
    log, short = launched(decided("Evaluation on all cores").replace("(args.batch_size - len(samples))", "0"))
    assert sorted(short) == sorted(whole) and "ends with a batch of" in log

    log, dropped = launched(decided("Evaluation without the last batch"))
    assert sorted(dropped) != sorted(whole) and "[windtunnel]" not in log
    _, alone = launched(decided("Evaluation on rank 0 alone"))
    assert sorted(alone) == sorted(set(whole))

    heading = "The learning rate of a larger batch"
    runs = [launched(EVALUATED.read_text(), 1)[1], whole, launched(decided(heading))[1]]
    reached = [float(accuracies[-1]) for accuracies in runs]
    said = re.findall(r"\b0\.\d\d\b", DECISIONS.partition(heading)[2])
    assert reached == [pytest.approx(float(figure), abs=0.03) for figure in said]
