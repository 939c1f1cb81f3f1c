"""What a program brings along is not absent, though the image lacks it."""

from __future__ import annotations

from pathlib import Path

import pytest

from windtunnel.porting.image_lacks import absent, packages
from windtunnel.porting.script import Script

_CORE = {"neuronx_distributed"}
_OPTIMUM = {"optimum.neuron"} | _CORE


@pytest.mark.parametrize(
    ("files", "brought"),
    [
        ({"requirements.txt": "--extra-index-url x\nNeuronx_Distributed[a]==0.15.* ; python_version > '3'"}, _CORE),
        ({"requirements.txt": "./wheels/neuronx_distributed-0.15-py3-none-any.whl"}, _CORE),
        ({"requirements.txt": "optimum-neuron[training]==0.4.5"}, _OPTIMUM),
        ({"requirements.txt": "-r more.txt", "more.txt": "-r requirements.txt\noptimum-neuron"}, _OPTIMUM),
        ({"requirements.txt": "-e .[train]", "setup.py": "setup(install_requires=['neuronx-distributed'])"}, _CORE),
        ({"train.py": "os.system('pip install -r more.txt')", "more.txt": "optimum-neuron"}, _OPTIMUM),
        ({"requirements.txt": "torch-neuronx\nneuronx-cc==2.*\n# neuronx-distributed"}, set()),
        ({"train.py": "run(['pip', 'install', 'neuronx-distributed'])"}, _CORE),
        ({"train.py": "'pip install neuronx-distributed first'"}, set()),
        ({"neuronx_distributed/__init__.py": ""}, _CORE),
        ({"nki.py": ""}, {"nki"}),
        ({"train.py": "import sys, os\nsys.path.append(os.path.join(os.path.dirname(__file__), 'x'))", "x/nki.py": ""},
         {"nki"}),
    ],
)  # fmt: skip
def test_what_a_program_brings(files: dict[str, str], brought: set[str], tmp_path: Path) -> None:
    for name, text in {"train.py": "", **files}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    lacking = absent([Script(tmp_path / "train.py")], [tmp_path], tmp_path / "requirements.txt")
    assert packages().keys() - lacking.keys() == brought
