"""What the launcher imports before it forks: only what no statement of the script could change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from neuron_sim.launcher import preload


def modules(tmp_path: Path, text: str) -> list[str]:
    script = tmp_path / "train.py"
    script.write_text(text)
    return [module for module, _ in preload.imports(script)]


def test_imports_at_the_top_are_found_also_inside_try(tmp_path: Path) -> None:
    """Definitions, constants, texts and log settings between them have no effect on imports."""
    text = (
        '"""Text."""\nimport os\nEPOCHS = 3\nimport torch\nlogging.basicConfig()\n'
        "try:\n    import evaluate\nexcept ImportError:\n    evaluate = None\n"
        "def main():\n    import late\nfrom transformers import Trainer\n"
    )
    assert modules(tmp_path, text) == ["os", "torch", "evaluate", "transformers"]


@pytest.mark.parametrize(
    "statement",
    [
        "os.environ['HF_HOME'] = tempfile.mkdtemp()",
        "sys.path.insert(0, 'lib')",
        "set_up()",
        "if True:\n    os.environ['A'] = 'b'",
        "os.environ.update(A='b')",
        "cache = make_cache()",
    ],
)
def test_nothing_behind_a_statement_with_effects_is_imported_early(tmp_path: Path, statement: str) -> None:
    """Libraries read their settings when they are imported: too early is another setting."""
    assert modules(tmp_path, f"import os\n{statement}\nimport transformers\n") == ["os"]


def test_plain_settings_are_made_before_the_imports_behind_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same literal that the script would set, except what belongs to torchrun or to the device."""
    for name in ("WT_CACHE", "WT_DEFAULT", "WT_KEPT", "MASTER_PORT", "NEURON_CC_FLAGS"):
        monkeypatch.setenv(name, "before")
    monkeypatch.delenv("WT_DEFAULT")
    text = (
        "import os\nos.environ['WT_CACHE'] = '/cache'\nos.environ.setdefault('WT_DEFAULT', '1')\n"
        "os.environ.setdefault('WT_KEPT', '2')\nos.environ['MASTER_PORT'] = '1'\n"
        "os.environ['NEURON_CC_FLAGS'] = os.environ.get('NEURON_CC_FLAGS', '') + ' -O1'\nimport datasets\n"
    )
    assert modules(tmp_path, text) == ["os", "datasets"]
    assert [os.environ[name] for name in ("WT_CACHE", "WT_DEFAULT", "WT_KEPT")] == ["/cache", "1", "before"]
    assert (os.environ["MASTER_PORT"], os.environ["NEURON_CC_FLAGS"]) == ("before", "before")
