"""What docs/how_to/port_a_script.md says that the log says, it says: the guide is followed edit by edit."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests/docker/scripts/from_cuda/single_gpu.py"
PAGE = ROOT / "docs/how_to/port_a_script.md"


def edited(text: str, block: str) -> str:
    """A diff of the page made in the script: its lines stand there once."""
    lines = block.splitlines(keepends=True)
    old = "".join(line[1:] or "\n" for line in lines if line[0] != "+")
    new = "".join(line[1:] or "\n" for line in lines if line[0] != "-")
    assert text.count(old) == 1, block
    return text.replace(old, new)


def words(text: str) -> str:
    """Without line breaks: the page wraps what the log writes in one line."""
    return " ".join(text.split())


def load(path: Path) -> str:
    """What a process without torch_xla says when it loads a saved model."""
    program = "import sys, torch; torch.load(sys.argv[1]); print('loaded')"
    done = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, timeout=100, check=False
    )
    return done.stdout + done.stderr


def test_each_edit_of_the_guide_ends_what_the_log_says_without_it(torchrun, tmp_path):
    """Before each edit the log has the page's quotation; after all of them no finding, and the model loads."""
    text, script = SCRIPT.read_text(), tmp_path / SCRIPT.name
    environment = {"SM_MODEL_DIR": str(tmp_path), "WINDTUNNEL_COUNTERS_DIR": str(tmp_path / "counters")}

    def log() -> str:
        script.write_text(text)
        # Twelve steps: enough to be told of the tenth, few enough for the one graph of steps that nothing ends.
        return torchrun(str(script), "--epochs", "1", "--batch-size", "85", **environment).output

    for kind, block in re.findall(r"```(text|diff)\n(.*?)```", PAGE.read_text(), flags=re.DOTALL):
        if kind == "diff":
            text = edited(text, block)
        else:
            said = log()
            if not block.startswith("[windtunnel]"):
                said = load(tmp_path / "model.pt")
            assert words(block) in words(said), said
    assert "[windtunnel]" not in log()
    assert load(tmp_path / "model.pt") == "loaded\n"
