"""What the launcher imports before it forks: only what no statement of the script could change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from neuron_sim.launcher import script_imports


def modules(tmp_path: Path, text: str) -> list[str]:
    script = tmp_path / "train.py"
    script.write_text(text)
    return [module for module, _ in script_imports.imports(script)]


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


def test_modules_beside_the_script_are_read_where_they_are_imported(tmp_path: Path) -> None:
    """What they import counts, in the interpreter's order; they themselves are not installed modules."""
    package = tmp_path / "nets"
    package.mkdir()
    (package / "__init__.py").write_text("import einops\n")
    (package / "bert.py").write_text("from .layers import Layer\nfrom transformers import BertModel\n")
    (package / "layers.py").write_text(
        "import numpy\nlogger = logging.getLogger(__name__)\nif TYPE_CHECKING:\n    import wandb\n"
        "if __name__ == '__main__':\n    main()\n"
    )
    (tmp_path / "data.py").write_text("import datasets\n")
    text = "import data\nfrom nets import bert\nfrom nets.bert import Net\nimport evaluate\n"
    assert modules(tmp_path, text) == ["datasets", "einops", "numpy", "transformers", "evaluate"]


def test_an_effect_in_a_module_beside_the_script_ends_it_for_the_script_too(tmp_path: Path) -> None:
    """It takes place before the imports behind it, and they may notice."""
    (tmp_path / "settings.py").write_text("import yaml\nset_up()\nimport requests\n")
    assert modules(tmp_path, "import os\nimport settings\nimport transformers\n") == ["os", "yaml"]


def test_modules_that_import_each_other_are_read_once(tmp_path: Path) -> None:
    """A circle is legal in Python."""
    (tmp_path / "a.py").write_text("import b\nimport numpy\n")
    (tmp_path / "b.py").write_text("import a\nimport scipy\n")
    assert modules(tmp_path, "import a\nimport torch\n") == ["scipy", "numpy", "torch"]


def test_a_local_module_that_does_not_parse_ends_the_search(tmp_path: Path) -> None:
    """The script will end there too."""
    (tmp_path / "broken.py").write_text("import (\n")
    assert modules(tmp_path, "import os\nimport broken\nimport torch\n") == ["os"]
