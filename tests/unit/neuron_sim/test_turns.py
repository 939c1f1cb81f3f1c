"""What the loop around the passes says of them, read from the script."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from neuron_sim.rehearsal import turns

PASS = """
    for batch in 1, 2:
        step(batch)
"""


def around(script: Path) -> turns.Turns | None:
    """What a script's `step` finds. This file goes on below the script, as what starts one does."""
    found: list[turns.Turns | None] = []
    names = {"step": lambda _: found.append(turns.around(sys._getframe(1))), "use": len}
    runpy.run_path(str(script), names, "__main__")
    assert len(set(found)) == 1
    return found[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"for _ in range(20):{PASS}", "is_last"),
        (f"for n in iter(range(20)):{PASS}    print(n, f'of {{n}}', '%d' % n)", "is_last"),
        (f"for n in range(20):{PASS}    use([n])", "hands_on is_last"),
        (f"for n in range(20):{PASS}    n % 5 == 4 and use('')", "decides is_last"),
        (f"for n in range(20):{PASS}    last = n == 19", "decides is_last"),
        (f"for n in range(20):{PASS}use('the end')", ""),
        (f"for n in range(20):{PASS}else:\n    use('the end')", ""),
        (f"with open('/dev/null'):\n  for n in range(20):{PASS}", "is_last"),
        (f"for fold in range(4):\n  for n in range(5):{PASS}", "decides"),
        # The script may count by itself.
        (f"k = 0\nfor _ in range(20):{PASS}    k += 1", "decides is_last"),
        (f"for _ in range(20):{PASS}    if len('') % 5 == 0: use('')", "decides is_last"),
        (f"k = 0\nfor _ in range(20):{PASS}        k += 1", "is_last"),
        # In a function it is the last where its call is.
        (f"def train(m):\n  for n in range(m):{PASS}  return n\nif True:\n  train(int('20'))", "is_last"),
        (f"def train():\n  for n in range(20):{PASS}  return n\nm = train()", "is_last"),
        (f"def train():\n  for n in range(20):{PASS}train()\nuse('the end')", ""),
        (f"def train():\n  for n in range(20):{PASS}use([train()])", ""),
    ],
)
def test_the_loop_around_the_passes(tmp_path: Path, text: str, said: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(text)
    found = around(script)
    assert found is not None and found.number == 20
    assert " ".join(name for name in ("decides", "hands_on", "is_last") if getattr(found, name)) == said


@pytest.mark.parametrize(
    "text",
    [
        f"for fold in 1, 2:\n  for n in range(20):{PASS}",
        f"def train():\n  for n in range(20):{PASS}for seed in [1, 2]:\n  train()",
        f"while True:\n  for n in range(20):{PASS}  break",
        f"for _ in iter([1]):{PASS}",
    ],
)
def test_how_often_all_passes_are_repeated_is_not_guessed(tmp_path: Path, text: str) -> None:
    """Folds, seeds, attempts: a rehearsal that took the passes of the first for all would be wrong without a word."""
    script = tmp_path / "train.py"
    script.write_text(text)
    assert around(script) is None
