"""NxD Core's training finds what it imports; scripts that miss a package of the Neuron world are told what it is."""

from __future__ import annotations

import importlib

import pytest
from conftest import SCRIPTS

from neuron_sim.launcher import missing

LIBRARIES = {
    "neuronx_distributed/__init__.py": (
        "from . import groups, pipeline, trace\nfrom .trace.builder import ModelBuilder\n"
    ),
    "neuronx_distributed/groups.py": (
        "from torch_neuronx.utils import get_platform_target\n"
        "from neuronxcc.nki.kernels.attention import FlashConfig\n"
        "from neuronxcc.nki.kernels import flash_attn_bwd, flash_fwd\n"
        "from neuronxcc.nki._pre_prod_kernels.collectives import CollectivesConfig\n"
        "import neuronxcc.nki.language as nl\n"
        "def make(groups): return CollectivesConfig(replica_groups=groups).rank_src_tgt_pairs[0]\n"
        "from neuronxcc import nki\n"
        "from torch_neuronx.xla_impl.ops import Argmax, nki_jit\n"
        "def attend(x, config: FlashConfig = None): return nl.add(x, x)\n"
        "def flash(x):\n"
        "    config = FlashConfig(should_transpose_v=True)\n"
        "    out, lse = flash_fwd[1, nl.nc(2) * 1](x, x, x, None, use_causal_mask=True, mixed_precision=True,"
        " dropout_p=0.0, softmax_scale=None, config=config)\n"
        "    return [list(out.shape), list(lse.shape)]\n"
        "def tiled(x): return x\n"
        "tiled = nki_jit(experimental_flags='early-inline')(tiled)\n"
        "@nki.jit\n"
        "def jitted(x): return x\n"
    ),
    "neuronx_distributed/pipeline.py": "from transformers.utils.fx import HFTracer\nclass Tracer(HFTracer): pass\n",
    "neuronx_distributed/trace/__init__.py": "import torch\ntorch.classes.neuron.SPMDModel\n",
    "neuronx_distributed/modules/__init__.py": "",
    "neuronx_distributed/modules/moe/__init__.py": (
        "from neuronxcc.nki._pre_prod_kernels.blockwise_mm import SkipMode\nskip = SkipMode(False, False)\n"
    ),
    "optimum/neuron.py": (
        "import neuronxcc\n"
        "from neuronxcc.nki.language import nc\n"
        "from neuronx_distributed.modules.moe import ExpertMLPsV2\n"
        "from torch_neuronx.xla_impl.base import xla_hlo_call\n"
        "from torch_neuronx.xla_impl.custom_call_targets import AwsNeuronModuleMarkerStartForward\n"
        "class Experts(ExpertMLPsV2): pass\n"
        "@xla_hlo_call\n"
        "def fill(x): return x\n"
        "def compiler(): return neuronxcc.__version__\n"
    ),
}
"""Parts of neuronx_distributed 2.26 and 2.29, optimum-neuron 0.1 and 0.4.5 that name what is not here, as they do."""


def test_nxd_core_is_imported_and_refuses_what_needs_the_compiler(torchrun, tmp_path):
    """What its groups need works; kernels, inference and tracing say where to run them; a script finds no NKI.

    So it is for optimum-neuron, whose trainers import its inference.
    """
    for name, text in LIBRARIES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    script = tmp_path / "train.py"
    script.write_text(
        f"import importlib.util, sys\nsys.path.append({str(SCRIPTS)!r})\n"
        "import torch, torch_xla\nfrom saying import say\n"
        "missing = importlib.util.find_spec('nki') is None and importlib.util.find_spec('neuronxcc') is None\n"
        "import neuronx_distributed as nxd\nimport optimum.neuron as on\n"
        "def refusal(function, *given):\n"
        "    try: function(*given)\n"
        "    except RuntimeError as error: return f'{type(error).__name__}: {error}'\n"
        "say(missing=missing, pairs=nxd.groups.make([[0]]), kernel=refusal(nxd.groups.attend, 1),"
        " builder=refusal(nxd.ModelBuilder),"
        " tiled=refusal(nxd.groups.tiled[2], 1), jitted=refusal(nxd.groups.jitted, 1),"
        " experts=refusal(on.Experts), fill=refusal(on.fill, 1), compiler=on.compiler(),"
        " flash=nxd.groups.flash(torch.ones(1, 2, 8, 256)))\n"
    )
    (said,) = torchrun(str(script), workers=1).said
    assert (said["missing"], said["pairs"]) == (True, None)
    assert "NotSimulatedError: neuronxcc.nki.language.add" in said["kernel"] and "NKI" in said["kernel"]
    assert "run it on trn1 or inf2" in said["builder"]
    assert said["compiler"].endswith("+simulated")
    assert said["flash"] == [[1, 2, 256, 8], [1, 2, 128, 2]]
    assert "NotSimulatedError: The NKI kernel tiled" in said["tiled"]
    assert "NotSimulatedError: The NKI kernel jitted" in said["jitted"]
    assert "NotSimulatedError: neuronx_distributed.modules.moe.ExpertMLPsV2" in said["experts"]
    assert "NotSimulatedError: xla_hlo_call of fill" in said["fill"]


def test_flash_attention_is_attention(torchrun):
    """Results and gradients of plain PyTorch, causal or not, in parts or whole, with heads that share keys, any two of
    these together; in bf16 to its rounding; queries behind the last key see all keys. Dropout is refused, and what the
    kernel does not take.
    """
    (said,) = torchrun("flash.py", workers=1).said
    assert len(said["worst"]) == 4
    assert max(said["worst"].values()) < 1e-5
    assert said["bf16"] < 0.05
    assert "Flash attention with dropout" in said["dropout"]
    assert "100 tokens" in said["odd"]
    assert said["longer"] == [0.0, 255.5, 255.5]
    assert said["told"] == 1


@pytest.mark.parametrize(
    ("module", "told"),
    [
        ("neuronx_distributed.parallel_layers", "--extra-index-url https://pip.repos.neuron.amazonaws.com"),
        ("optimum.neuron", "optimum-neuron[training]==0.4.5"),
        ("neuronxcc.nki", "NKI kernels need the real compiler"),
        ("nki.language", "run the job on trn1"),
        ("neuronx_distributed_training", "pass it as image_uri"),
        ("transformers_neuronx", "run it on trn1 or inf2"),
    ],
)
def test_what_a_package_is_and_what_to_do(module, told):
    with pytest.raises(ModuleNotFoundError) as missed:
        importlib.import_module(module)
    (line,) = missing.advice(str(missed.value))
    assert told in line
    assert not list(missing.advice("No module named 'no_such_module'"))
