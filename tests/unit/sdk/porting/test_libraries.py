"""Libraries that need a GPU, and shapes that change: told once, and not where the script can do without."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.unit.sdk.porting.test_patch import changed, script
from tests.unit.sdk.porting.test_program import HEAD, LOOP, said
from windtunnel.porting.program import modules_of, of_its_imports, read, read_program
from windtunnel.porting.script import Script


@pytest.mark.parametrize(
    ("used", "words"),
    [
        ("import bitsandbytes as bnb", "bitsandbytes has kernels for CUDA only"),
        ("import transformers\nconfig = transformers.BitsAndBytesConfig()", "load the model in bf16"),
        ("model = Net.from_pretrained(name, load_in_4bit=True)", "load the model in bf16"),
        ("model = nets[0].from_pretrained(name, device_map='auto')", "device_map places a model"),
        ("from neuronx_distributed.parallel_layers import parallel_state", "two lines into requirements.txt"),
        ("from optimum.neuron import NeuronSFTConfig", "optimum.neuron is not in the image. It is Hugging"),
        ("from optimum import neuron", "optimum.neuron is not in the image. It is Hugging"),
        ("import neuronxcc.nki as nki", "neuronxcc is not in the image. It is the Neuron compiler"),
        ("from flash_attn import flash_attn_func", 'attn_implementation="sdpa"'),
        ("import deepspeed.comm", "DeepSpeed knows no NeuronCore"),
        ("args = TrainingArguments(optim=o, deepspeed='zero.json')", "DeepSpeed knows no NeuronCore"),
        ("from apex import amp", "apex needs CUDA"),
        ("import xformers.ops", "xformers has kernels for CUDA"),
        ("import horovod.torch as hvd", "horovod knows no NeuronCore"),
        ("from mpi4py import MPI", "mpi4py gives each process rank 0 of 1"),
        (
            "from torch.nn.attention.flex_attention import create_block_mask",
            "flex_attention raises on XLA's device",
        ),
        ("from nvidia.dali.pipeline import Pipeline", "DALI decodes on a GPU"),
        ("import triton", "triton compiles for GPUs"),
        ("from torch.utils.cpp_extension import load", "CUDA's C++ is for GPUs"),
        (
            "try:\n    import apex\nexcept ImportError:\n    raise ImportError('Install apex')",
            "apex needs CUDA",
        ),
    ],
)
def test_a_library_that_needs_a_gpu(used: str, words: str) -> None:
    """At its first use alone."""
    (found,) = said(f"{used}\n{used}\n")
    assert words in found and "note: " not in found


@pytest.mark.parametrize(
    "used",
    [
        "try:\n    import apex\nexcept ImportError:\n    apex = None",
        "try:\n    import nki\nexcept ImportError:\n    nki = None",
        "import contextlib\nwith contextlib.suppress(ImportError):\n    import nki",
        "if importlib.util.find_spec('neuronx_distributed'):\n    import neuronx_distributed",
        "import optimum, torch_neuronx, transformers",
        "if is_flash_attn_available():\n    import flash_attn",
        "if TYPE_CHECKING:\n    import triton",
        "model = Net.from_pretrained(name, load_in_8bit=False, device_map=None)",
        "model = Net.from_pretrained(name, device_map='cpu')",
        "choices = ['flash_attention_2', 'sdpa']",
        "if attention == 'flash_attention_2': pass",
        "import re\nwords = re.compile('a')\nwords.compile()",
    ],
)
def test_a_library_that_a_script_can_do_without(used: str) -> None:
    """Or an argument that asks for none."""
    assert said(used + "\n") == []


def test_a_library_under_a_condition_is_a_note() -> None:
    """Whether the job comes there, the text does not tell."""
    for used in ("if args.adam:\n    import bitsandbytes\n", "def f():\n    import bitsandbytes\n"):
        (found,) = said(used)
        assert "note: bitsandbytes" in found


def test_a_library_is_told_once_a_program(tmp_path: Path) -> None:
    """In the file that comes first."""
    (tmp_path / "more.py").write_text("import apex\n")
    script = Script(tmp_path / "train.py", b"import apex\nimport more\n")
    found = read_program([script, *modules_of(script)[0]])
    assert [len(remarks) for remarks in found.values()] == [1, 0]
    again = said("a = N.from_pretrained(n, device_map='auto')\nb = N.from_pretrained(n, device_map='auto')\n")
    assert len(again) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("m = N.from_pretrained(n, attn_implementation='flash_attention_2')",
         'm = N.from_pretrained(n, attn_implementation="sdpa")'),
        ("m = N.from_pretrained(n, device_map='auto')\nn = N.from_pretrained(n, device_map={'': 0}, x=1)",
         "m = N.from_pretrained(n)\nn = N.from_pretrained(n, x=1)"),
        ("args = TrainingArguments(optim='paged_adamw_32bit')", 'args = TrainingArguments(optim="adamw_torch")'),
        ("args = TrainingArguments()", 'args = TrainingArguments(optim="adamw_torch")'),
        ("@torch.compile\ndef f(x): return x", "def f(x): return x"),
        ("class A:\n    @torch.compile(dynamic=False,\n        fullgraph=True)\n    def f(x): return x",
         "class A:\n    def f(x): return x"),
        ("model = AutoModel.from_config(c)\nmodel.compile(mode='max-autotune')\nprint()",
         "model = AutoModel.from_config(c)\nprint()"),
    ],
)  # fmt: skip
def test_edits(before: str, after: str) -> None:
    """What is sure of them."""
    assert changed(f"import torch\n{before}\n").endswith(f"\n{after}\n")


@pytest.mark.parametrize(
    ("used", "told"),
    [
        ("collator = transformers.DataCollatorForSeq2Seq(tokenizer)", True),
        ("collator = transformers.DataCollatorWithPadding(tokenizer)", True),
        ("args = TrainingArguments(optim=o, group_by_length=True)", True),
        ("def collate(rows):\n    return tokenizer(rows, padding=True)", True),
        ("def prompt(rows):\n    return tokenizer(rows, padding=True)", False),
        ("def collate(rows):\n    return torch.nn.utils.rnn.pad_sequence(rows)", True),
        ("def prompt(rows):\n    return torch.nn.utils.rnn.pad_sequence(rows)", False),
        ("def rows(them):\n    return torch.nn.utils.rnn.pad_sequence(them)\nload(data, collate_fn=rows)", True),
        ("def rows(them):\n    return tokenizer(them, padding=True)\nload(data, collate_fn=lambda x: rows(x))", True),
        ("def collate(rows):\n    longest = max(len(one) for one in rows)", True),
        ("def collate(rows):\n    longest = len(max(rows, key=len))", True),
        ("def collate(rows):\n    lengths = [len(one) for one in rows]\n    x = torch.zeros(9, max(lengths))", True),
        ("class Collate:\n    def __call__(self, rows):\n        n = max([one[1].size(1) for one in rows])", True),
        ("def collate(rows):\n    n = numpy.max([one.shape[0] for one in rows])", True),
        ("def collate(rows):\n    best = max(one.score for one in rows)", False),
        ("def collate(rows):\n    n = max(len(rows), 8)", False),
        ("def prompt(rows):\n    longest = max(map(len, rows))", False),
        ("class A:\n    def rows(self, them):\n        return torch.nn.utils.rnn.pad_sequence(them)\n"
         "load(data, collate_fn=functools.partial(a.rows, 3))", True),
        ("collator = transformers.DataCollatorWithPadding(tokenizer, padding='max_length')", False),
        ("collator = transformers.DataCollatorForSeq2Seq(tokenizer, pad_to_multiple_of=64)", False),
        (
            "rows = tokenizer(rows, padding='max_length')\ncollator = transformers.DataCollatorWithPadding(t)",
            False,
        ),
    ],
)  # fmt: skip
def test_lengths_that_change(used: str, told: bool) -> None:
    """A note, as all samples may be of one length."""
    found = said(
        f"import transformers\nfrom transformers import TrainingArguments, Trainer\n{used}\nTrainer(m, args)\n"
    )
    assert ["note: pads each batch to its longest sample" in one for one in found] == [True] * told


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (
            "torch.nn.utils.rnn.pack_padded_sequence(batch, lengths)",
            "torch.nn.utils.rnn.pack_padded_sequence: torch's RNN",
        ),
        ("torch.nn.utils.rnn.pack_sequence(batch)", "torch.nn.utils.rnn.pack_sequence: torch's RNN"),
        (
            "torch.nn.utils.rnn.pack_padded_sequence(rows, lengths).to(device)",
            "note: packs each batch by its lengths: each length is a graph to compile",
        ),
    ],
)
def test_a_batch_that_is_packed(made: str, told: str) -> None:
    """For a recurrent network: it raises, whatever the lengths, on what was packed on the device."""
    (found,) = said(HEAD + LOOP.replace("model(batch)", f"model({made})"))
    assert found.startswith(f"10: {told}")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "table = torch.nn.Embedding(9, 4, sparse=True)",
            "7: sparse=True: XLA's device has no sparse gradients",
        ),
        (
            "o = torch.optim.SparseAdam(bags.parameters())",
            "7: SparseAdam raises, as gradients are dense on XLA's device",
        ),
        ("bags = torch.nn.EmbeddingBag(9, 4, sparse=True)", None),
        ("table = torch.nn.Embedding(9, 4, sparse=False)", None),
    ],
)
def test_sparse_gradients(line: str, told: str | None) -> None:
    """An embedding that asks for them and the optimizer that asks for nothing else raise; a bag makes dense ones."""
    found = [one for one in said(f"{HEAD}{line}\n{LOOP}") if "cpu_fallback" not in one]
    assert len(found) == bool(told)
    assert not told or found[0].startswith(told)


def test_what_is_packed_raises_whatever_else_pads_to_one_length() -> None:
    """A tokenizer's padding, which makes the lengths of a batch one, keeps no RNN from raising."""
    text = LOOP.replace("model(batch)", "model(torch.nn.utils.rnn.pack_padded_sequence(batch, lengths))")
    assert len(said(f"{HEAD}rows = tokenizer(texts, padding='max_length')\n{text}")) == 1


def test_a_line_that_pads_twice_is_told_once() -> None:
    """Source and target of a collate function, which the same note is for."""
    pad = "torch.nn.utils.rnn.pad_sequence"
    found = said(f"{HEAD}def collate(rows):\n    return {pad}(rows[0]), {pad}(rows[1])\n{LOOP}")
    assert len(found) == 1


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("x = batch[torch.nonzero(batch)]", True),
        ("x = torch.where(batch > 0)", True),
        ("x = torch.where(batch > 0, batch, 0)", False),
        ("x = numpy.unique(names)", False),
    ],
)
def test_shapes_that_depend_on_values(line: str, told: bool) -> None:
    """In each step, a note; outside of the loop it is one graph more."""
    found = said(HEAD + LOOP.replace("    loss.b", f"    {line}\n    loss.b"))
    assert ["as many elements as it finds" in one for one in found] == [True] * told
    assert said(HEAD + line + "\n" + LOOP) == []


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("rows = [ids[i : i + block_size] for i in range(0, total, block_size)]", False),
        ("for ids in rows:\n    if len(ids) == max_length: kept.append(ids)", False),
        ("for length, ids in rows:\n    if length == context_length: kept.append(ids)", False),
        ("rows = transformers.TextDataset(tokenizer, path, block_size=128)", False),
        ("rows = transformers.LineByLineTextDataset(tokenizer, path, block_size=128)", True),
        ("rows = [ids[i : i + batch_size] for i in range(0, total, batch_size)]", True),
    ],
)
def test_texts_of_one_length(made: str, told: bool) -> None:
    """A collator that masks words has nothing to pad there; another one's texts may be others."""
    head = "import torch, transformers\nfrom transformers import Trainer\n"
    collator = "collator = transformers.DataCollator{}(tokenizer)\nTrainer(m, args)\n"
    masks, labels = (
        said(f"{head}{made}\n{collator.format(kind)}", "pads each batch")
        for kind in ("ForLanguageModeling", "WithPadding")
    )
    assert bool(masks) is told and labels


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "from torch_geometric.loader import NeighborLoader as L\nfor b in L(data, [9]): pass",
            "nodes and edges",
        ),
        ("import dgl\nparts = dgl.dataloading.DataLoader(g, ids, sampler)", "nodes and edges"),
        ("from torchvision.models.detection import fasterrcnn_resnet50_fpn as f\nnet = f()", "boxes"),
        ("import torchvision\nnet = torchvision.models.detection.maskrcnn_resnet50_fpn()", "boxes"),
        (
            "from torch_geometric.loader import NeighborLoader as L\nL(data, [9], transform=transforms.Pad(9, 9))",
            "",
        ),
        ("from torch_geometric.nn import SAGEConv\nconv = SAGEConv(3, 4)", ""),
        ("import torchvision\nnet = torchvision.models.resnet18()", ""),
    ],
)
def test_a_library_whose_shapes_change(line: str, words: str) -> None:
    """From batch to batch, whatever the script does: noted once."""
    found = said(f"{HEAD}{line}\n{LOOP}{line}\n", "a graph to compile")
    assert len(found) == bool(words) and all(": note: " in one and words in one for one in found)


_CHANCE = """\
class Net(torch.nn.Module):
    def forward(self, x, y):
        for step in range(9):
            x = y[step] if random.random() < 0.5 else self.cell(x)
        return x
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("", "", True),
        ("random.random() <", "self.training and np.random.rand() <", True),
        ("0.5 else", "ratio else", True),
        ("x = y[step] if random.random() < 0.5 else self.cell(x)",
         "if np.random.uniform() < 0.5: continue\n            x = self.cell(x)", True),
        ("forward", "__getitem__", False),
        ("random.random() < 0.5", "step < 5", False),
        ("for step in range(9):", "if True:", False),
        ("random.random() <", "torch.rand(1) <", True),
    ],
)  # fmt: skip
def test_ways_that_chance_takes(old: str, new: str, told: bool) -> None:
    """In a loop of the forward pass each row of outcomes is another graph; one choice of two is two."""
    text = _CHANCE.replace(old, new) if old else _CHANCE
    found = said(f"import random\nimport numpy as np\n{HEAD}{text}{LOOP}", "by chance")
    assert [one.partition(": ")[0] for one in found] == ["12"] * told and all(
        ": note: " in one for one in found
    )


@pytest.mark.parametrize(
    ("trained", "told"),
    [
        ("SentenceTransformerTrainer(model, args)", True),
        ("model.fit(train_objectives=[(loader, loss)])", True),
        ("model.encode(texts)", False),
        (
            "model[0].tokenize = functools.partial(model[0].tokenize, padding='max_length')\nmodel.fit([])",
            False,
        ),
    ],
)
def test_sentences_are_padded_to_the_longest(trained: str, told: bool) -> None:
    """By the library itself, which takes no argument for it."""
    head = "import torch_xla\nfrom sentence_transformers import SentenceTransformer, SentenceTransformerTrainer\n"
    found = said(f"{head}model = SentenceTransformer('name')\n{trained}\n")
    assert [one.startswith("3: note: ") and "model[0].tokenize = " in one for one in found] == [True] * told


@pytest.mark.parametrize(
    ("made", "taken", "told"),
    [
        ("timm.data.Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=9)", "mix(batch, labels)", True),
        ("timm.data.Mixup(**options) if active else None", "mix(batch, labels)", True),
        ("torchvision.transforms.v2.CutMix(num_classes=9)", "mix(batch, labels)", True),
        ("timm.data.Mixup(mixup_alpha=0.8)", "mix(batch, labels)", False),
        ("timm.data.Mixup(cutmix_alpha=1.0)", "batch, labels", False),
    ],
)
def test_pieces_that_are_cut_on_the_device(made: str, taken: str, told: bool) -> None:
    """Each batch's piece has another size, and so another graph; not where a collate function cuts it."""
    loop = LOOP.replace("    loss =", f"    batch, labels = {taken}\n    loss =", 1)
    found = said(f"import timm.data, torchvision.transforms.v2\n{HEAD}mix = {made}\n{loop}")
    assert [one.startswith("12: note: ") and "collate" in one for one in found] == [True] * told


def test_ignites_idist_exchanges_gradients_on_the_device() -> None:
    """auto_optim's optimizer does in its step, and idist.device() is torch_xla's where the backend is "xla-tpu"."""
    step = "import torch\nimport ignite.distributed as idist\ndevice = idist.device()\nmodel = Net().to(device)\n"
    step += "optimizer = {}(torch.optim.SGD(model.parameters(), lr=1.0))\nfor batch in loader:\n"
    step += "    loss = model(batch.to(device))\n    loss.backward()\n    optimizer.step()\n"
    step += "if 'cuda' in device.type:\n    print(torch.cuda.get_device_name(0))\n"
    for wraps, told in (("idist.auto_optim", []), ("print", ["no_exchange"])):
        found = said(step.format(wraps))
        assert ["no_exchange" for one in found if "no_exchange" in one] == told
        assert [one for one in found if "get_device_name" in one] == []
    assert of_its_imports(script(step)) == []


@pytest.mark.parametrize(
    "imported", ["import ignite.distributed as idist", "from ignite.metrics import Accuracy, Loss"]
)
def test_ignite_asks_for_names_that_torch_xla_had(imported: str) -> None:
    """Unless the script gives it these, or the framework has them still."""
    text = f"{HEAD}{imported}\n{imported}\n{LOOP}"
    (found,) = said(text)
    assert found.startswith("7: ") and "xm.xrt_world_size, " in found
    names = "xm.xrt_world_size, xm.get_ordinal, xm.get_local_ordinal = "
    given = f"import torch_xla.runtime as xr\n{names}xr.world_size, xr.global_ordinal, xr.local_ordinal\n"
    assert names in found
    assert said(text.replace(imported, given + imported, 1)) == []
    assert not [one for one in read(script(text), "2.6") if "xrt_world_size" in str(one)]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("x = x.to_sparse().to(device)\n", ["7"]),
        ("x = torch.sparse_coo_tensor(i, v, (2, 2))\nx = x.to(device)\n", ["8"]),
        ("x = torch.sparse_coo_tensor(i, v, (2, 2)).to_dense().to(device)\n", []),
        ("x = torch.sparse_coo_tensor(i, v, (2, 2))\nx = x.to_dense()\nx = x.to(device)\n", []),
        ("def f(x):\n    x = x.to(device)\n", []),
    ],
)
def test_sparse_tensors(lines: str, told: list[str]) -> None:
    """The move raises; what is made dense before, or by what is not known, may go."""
    assert [one.partition(":")[0] for one in said(HEAD + lines + LOOP) if "no sparse tensors" in one] == told


@pytest.mark.parametrize(
    ("call", "remark"),
    [
        (
            "bag = torch.nn.EmbeddingBag(9, 4, mode='sum')",
            "cpu_fallback: torch.nn.EmbeddingBag has no XLA form",
        ),
        (
            "x = torch.nn.functional.embedding_bag(x, w)",
            "cpu_fallback: torch.nn.functional.embedding_bag has no XLA",
        ),
        (
            "torch.distributed.all_to_all_single(out, x, sizes, own)",
            "note: the process group xla takes no sizes of",
        ),
        (
            "torch.distributed.all_to_all_single(out, x, input_split_sizes=own)",
            "note: the process group xla takes",
        ),
        ("torch.distributed.all_to_all_single(out, x, None, None)", ""),
        (
            "c = torch.nn.utils.weight_norm(c)\nd = torch.nn.utils.weight_norm(d)",
            "cpu_fallback: weight_norm has no",
        ),
        ("c = torch.nn.utils.parametrizations.weight_norm(c)", "cpu_fallback: weight_norm has no XLA form"),
    ],
)
def test_what_dlrm_and_melgan_ask_of_the_device(call: str, remark: str) -> None:
    """The CPU computes their embeddings and weights; an exchange of unequal parts ends the job, on trn1 too."""
    found = [one.partition(": ")[2] for one in said(f"{HEAD}{call}\n")]
    assert [one[: len(remark)] for one in found] == ([remark] if remark else [])


def test_a_long_chain_of_tests_is_looked_at_in_proportion_to_its_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not all tests above each call: a chain of 960 branches took a minute."""
    counts, unparse = [], ast.unparse
    written: list[ast.AST] = []

    def counted(node: ast.AST) -> str:
        written.append(node)
        return unparse(node)

    monkeypatch.setattr(ast, "unparse", counted)
    for branches in (20, 40):
        chain = "".join(f"elif a.name == 'n{n}':\n    model = Net({n}).to(device)\n" for n in range(branches))
        written.clear()
        assert said(f"{HEAD}if a.name == 'n':\n    model = Net().to(device)\n{chain}") == []
        counts.append(len(written))
    assert counts[1] < 2.1 * counts[0]
