"""The port as a diff: it applies, keeps what it does not change, and a ported script gets none."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from neuron_sim import names
from windtunnel.errors import SourceError
from windtunnel.porting import patch
from windtunnel.porting.program import read
from windtunnel.porting.script import Script

ROOT = Path(__file__).resolve().parents[4]
SCRIPTS = ROOT / "tests/docker/scripts/from_cuda"
BOTH = ["single_gpu.py", "ddp_amp.py"]


def script(text: str, name: str = "train.py") -> Script:
    """A script of this text."""
    return Script(Path(name), text.encode())


def diff(of: Script, version: str = "2.9") -> str:
    """As `check --diff` prints it."""
    return patch.diff(of, read(of, version), version)


def changed(text: str) -> str:
    """The text as ported."""
    of = script(text)
    return patch.ported(of, read(of)).text.decode()


@pytest.mark.parametrize("name", BOTH)
def test_the_diff_applies_and_nothing_is_left(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`git apply` takes it; of what it makes there is no diff and no finding; comments and blank lines stay."""
    monkeypatch.chdir(tmp_path)
    source = (SCRIPTS / name).read_text()
    Path(name).write_text(source)
    subprocess.run(["git", "apply", "-"], input=diff(Script(Path(name))).encode(), check=True)
    after = Script(Path(name))
    assert (diff(after), [one for one in read(after) if one.sure]) == ("", [])
    assert "cuda" not in after.text.decode().replace("cudnn", "")
    comments = re.findall(r"#.*", source)
    assert [one for one in comments if one not in after.text.decode()] == []


@pytest.mark.parametrize("version", ["2.9", "2.7", "2.6", "1.13"])
@pytest.mark.parametrize("name", BOTH)
def test_the_names_are_those_of_the_framework_version(name: str, version: str) -> None:
    """Every name of torch_xla that the port brings exists in that version."""
    (major, minor) = version.split(".")
    known = {(one.module, one.name) for one in names.every() if one.in_version((int(major), int(minor)))}
    modules = {"torch_xla": "torch_xla", "xm": "torch_xla.core.xla_model", "xr": "torch_xla.runtime",
               "pl": "torch_xla.distributed.parallel_loader"}  # fmt: skip
    text = "".join(
        re.findall(r"^\+(?!import)(.*)", diff(Script(SCRIPTS / name), version), flags=re.MULTILINE)
    )
    used = {(modules[short], what) for short, what in re.findall(r"\b(torch_xla|xm|xr|pl)\.(\w+)\(", text)}
    assert used and used <= known


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = x.cuda(0, non_blocking=True)", "x = x.to(torch_xla.device(), non_blocking=True)"),
        ("device = 'cuda' if torch.cuda.is_available() else 'cpu'", 'device = "xla"'),
        ("use = not args.cpu and torch.cuda.is_available()", "use = not args.cpu"),
        ("x = torch.zeros(3, device='cuda')", "x = torch.zeros(3, device=torch_xla.device())"),
        ("if fast():\n    torch.cuda.empty_cache()  # room", "if fast():\n    pass  # room"),
        ("torch.load(f, map_location='cuda:0')", 'torch.load(f, map_location="cpu")'),
        ("torch.jit.load(f, map_location='cuda:0')", 'torch.jit.load(f, map_location="cpu")'),
        ("with torch.autocast('cuda', dtype=torch.float16, enabled=amp): pass",
         'with torch.autocast("xla", dtype=torch.bfloat16, enabled=amp): pass'),
        ("with torch.autocast(device_type='cpu', dtype=torch.float16): pass",
         "with torch.autocast(device_type='cpu', dtype=torch.float16): pass"),
        ("dist.init_process_group('nccl', device_id=torch.device('cuda:0'), timeout=t)",
         'dist.init_process_group("xla", timeout=t)'),
        ("dist.init_process_group(\n    device_id=torch.device('cuda', rank),\n)", "dist.init_process_group(\n    )"),
        ("dist.init_process_group(backend='gloo'); x.cuda()",
         'dist.init_process_group(backend="xla"); x.to(torch_xla.device())'),
        ("dist.init_process_group('gloo')",) * 2,
        ("dist.init_process_group(os.environ.get('BACKEND', 'nccl'), device_id=gpu)",
         'dist.init_process_group("xla")'),
        ("def setup(rank, backend='nccl', *, name='nccl'): dist.init_process_group(backend, rank=rank)",
         "def setup(rank, backend=\"xla\", *, name='nccl'): dist.init_process_group(backend, rank=rank)"),
        ("model = torch.nn.parallel.DistributedDataParallel(model, output_device=0, device_ids=[0])",
         "model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)"),
        ("parser.add_argument('--device', default='cuda', choices=['cuda', 'cpu'])",) * 2,
        ("torch.cuda.manual_seed_all(1)", "xm.set_rng_state(1)"),
        ("x.cuda(); logging.basicConfig(level=20)",
         "x.to(torch_xla.device()); logging.basicConfig(level=20, force=True)"),
        ("x.cuda(); logging.basicConfig()", "x.to(torch_xla.device()); logging.basicConfig(force=True)"),
        ("d = 'cuda' if torch.cuda.is_available() and not args.cpu else 'cpu'",
         "d = \"xla\" if not args.cpu else 'cpu'"),
        ("d = torch.device('cuda' if torch.cuda.is_available() and args.cuda else 'cpu')",
         "d = torch.device(\"xla\" if args.cuda else 'cpu')"),
        ("d = torch.device(f'cuda:{rank}' if torch.cuda.is_available() and args.cuda else 'cpu')",
         "d = torch.device(\"xla\" if args.cuda else 'cpu')"),
        ("class A:\n    d = torch.device('cuda')\n    def f(x): return x.cuda()",
         "class A:\n    d = torch_xla.device()\n    def f(x): return x.to(torch_xla.device())"),
        ("x = x.cuda()\nif fast:\n    d = torch.device('cuda')\ny = x.cuda()",
         "x = x.to(torch_xla.device())\nif fast:\n    d = torch_xla.device()\ny = x.to(torch_xla.device())"),
        ("s = torch.cuda.amp.GradScaler()\ns.scale(loss(x.cuda(), y.cuda())).backward()",
         "loss(x.to(torch_xla.device()), y.to(torch_xla.device())).backward()"),
        ("s = torch.cuda.amp.GradScaler()\ns.scale(\n    f(x)\n    .sum()\n).backward()",
         "(f(x)\n    .sum()).backward()"),
        ("c = torch.cuda.amp.autocast(enabled=(torch.cuda.is_available()), cache_enabled=False)",
         'c = torch.autocast("xla", dtype=torch.bfloat16, enabled=True, cache_enabled=False)'),
        ("c = torch.autocast('cuda', torch.float16, use)",
         'c = torch.autocast("xla", dtype=torch.bfloat16, enabled=use)'),
        ("m = torch.nn.parallel.DistributedDataParallel(m, device_ids=[0] if torch.cuda.is_available() else None)",
         "m = torch.nn.parallel.DistributedDataParallel(m, gradient_as_bucket_view=True)"),
        ("w = torch.load(f, map_location=lambda w, _: w.to('cuda'))", 'w = torch.load(f, map_location="cpu")'),
        ("d = torch.device('cuda') if torch.cuda.is_available() else torch.device('cpu')",
         "d = torch_xla.device()"),
        ("d = 'cuda:{}'.format(rank) if torch.cuda.is_available() else 'cpu'", 'd = "xla"'),
        ("d = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else 'cpu'",
         'd = "xla"'),
        ("d = torch.device(local_rank)", "d = torch_xla.device()"),
        ("d = torch.device(args.device)",) * 2,
        ("x = x.to(device=local_rank); y = torch.zeros(2, device=local_rank)",
         "x = x.to(device=torch_xla.device()); y = torch.zeros(2, device=torch_xla.device())"),
        ("w = torch.load(f, map_location=lambda w, _: w.cuda(rank))", 'w = torch.load(f, map_location="cpu")'),
        ("x = (a + b).pin_memory().cuda(); y = torch.empty(3, pin_memory=True)",
         "x = (a + b).to(torch_xla.device()); y = torch.empty(3, pin_memory=False)"),
    ],
)  # fmt: skip
def test_single_edits(before: str, after: str) -> None:
    """Each as a user would write it; what is not sure stays."""
    lines = changed(f"import torch\n{before}\n").splitlines()
    assert '"xla"' not in after or any(line.startswith("import torch_xla") for line in lines)
    assert [line for line in lines if not line.startswith("import ")] == after.splitlines()


_TWO_PASSES = """\
import torch
from torch.utils.data import DataLoader
from tqdm import tqdm
def train(model, loader, optimizer):
    for x, y in loader:
        loss = (model(x.cuda()) - y.cuda()).sum()
        loss.backward()
        optimizer.step()
def test(model, loader):
    for x, y in loader:
        found.append(model(x.cuda()).cpu().numpy())
        right.append(y[0].numpy())
first = DataLoader(a, batch_size=4, shuffle=True)
second = DataLoader(b, batch_size=4)
for epoch in range(3):
    train(model, first, optimizer)
    test(model, second)
"""


def test_the_sampler_goes_to_the_loader_that_trains() -> None:
    """Both functions call theirs `loader`: the one that evaluates has all its samples on each core, as it had. What it
    hands to numpy comes from the device now.
    """
    after = changed(_TWO_PASSES)
    assert "sampler = DistributedSampler(a," in after and "DistributedSampler(b" not in after
    assert "second = DataLoader(b, batch_size=4)\n" in after
    assert "right.append(y[0].cpu().numpy())" in after and ".cpu().cpu()" not in after


@pytest.mark.parametrize(
    "call", ["train(model, DataLoader(a), optimizer)", "train(model, loader=DataLoader(a))"]
)
def test_a_loader_that_is_made_where_it_is_handed_on(call: str) -> None:
    """No line before it is sure to be the place of a sampler: it is told, where it ended with a traceback."""
    text = _TWO_PASSES.replace("train(model, first, optimizer)", call)
    (found,) = [one for one in read(script(text)) if one.kind == "same_data"]
    assert not found.edits and "DistributedSampler(" not in changed(text)


def test_what_is_compared_on_the_host_stays_there() -> None:
    """From MpDeviceLoader `y` would come on the device, and the comparison raise."""
    host = _TWO_PASSES.replace("right.append(y[0].numpy())", "right += (model(x.cuda()).cpu() == y).sum()")
    after = changed(host)
    assert "def test(model, loader):\n    for x, y in loader:\n" in after
    assert "for x, y in pl.MpDeviceLoader(loader, torch_xla.device()):\n        loss" in after
    kept = changed(host.replace("== y", "== y.cuda()").replace(".cpu() ==", " =="))
    assert kept.count("pl.MpDeviceLoader(loader") == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("bar = tqdm(enumerate(loader), total=len(loader))",
         "bar = tqdm(enumerate(pl.MpDeviceLoader(loader, torch_xla.device())), total=len(loader))"),
        ("with tqdm(loader, unit='batch') as bar:",
         "with tqdm(pl.MpDeviceLoader(loader, torch_xla.device()), unit='batch') as bar:"),
    ],
)  # fmt: skip
def test_a_progress_bar_with_a_name(before: str, after: str) -> None:
    """The usual ways to have one: the loader in it is the one that the loop goes over. Its sampler is told the epoch
    before it draws an order, which enumerate() lets it do.
    """
    deep = "    " * before.startswith("with")
    loop = (
        f"import torch\nfrom tqdm import tqdm\nfrom torch.utils.data import DataLoader\n"
        f"loader = DataLoader(data, batch_size=4)\nfor epoch in range(3):\n    {before}\n    {deep}for x, y in bar:\n"
        f"        {deep}loss = (model(x.cuda()) - y.cuda()).sum()\n        {deep}loss.backward()\n"
    )
    assert f"    loader.sampler.set_epoch(epoch)\n    {after}\n" in changed(loop)


def test_a_scaler_that_is_handed_on_stays_and_does_nothing() -> None:
    """Its state may be in a checkpoint: switched off it is there, and the edits do not come again."""
    text = "import torch\ns = torch.cuda.amp.GradScaler()\ns.scale(a + b).backward()\nsave(s.state_dict())\n"
    after = changed(text)
    assert 's = torch.amp.GradScaler("cpu", enabled=False)\n(a + b).backward()\nsave(s.state_dict())' in after
    assert changed(after) == after
    assert "GradScaler" not in changed(text.replace("save(s.state_dict())\n", ""))


def test_the_step_of_a_scaler_by_another_name() -> None:
    """As a function's argument, or made under a condition: switched off, it steps on each core's own gradients, and
    `check` said nothing.
    """
    function = """\
def train(model, loader, opt, grad_scaler):
    for x in loader:
        grad_scaler.scale(model(x.cuda()).sum()).backward()
        grad_scaler.step(opt)
scaler = torch.amp.GradScaler("cuda")
train(model, DataLoader(data), torch.optim.SGD(model.parameters()), scaler)
"""
    after = changed(f"import torch\nfrom torch.utils.data import DataLoader\n{function}")
    assert "        xm.optimizer_step(opt)\n" in after and changed(after) == after


def test_the_process_group_stays_where_the_line_behind_it_goes() -> None:
    """Both are edits of the same place."""
    text = (SCRIPTS / "single_gpu.py").read_text()
    after = changed(text.replace("\n\nparser =", "\nassert torch.cuda.is_available()\n\nparser =", 1))
    assert after == changed(text)
    assert 'init_process_group("xla")' in after


@pytest.mark.parametrize(
    ("end", "joins"),
    [
        ('if __name__ == "__main__":\n    main(parser.parse_args())\n', "    torch.distributed.init"),
        ('if __name__ == "__main__": main(parser.parse_args())\n', "torch.distributed.init"),
        ("main(parser.parse_args())\n", "torch.distributed.init"),
        ('for _ in range(2):\n    main(parser.parse_args())\nif __name__ == "__main__":\n    print()\n',
         "torch.distributed.init"),
    ],
)  # fmt: skip
def test_who_imports_the_script_joins_no_group(end: str, joins: str) -> None:
    """To serve its model; where the script can be imported at all without training."""
    text = (SCRIPTS / "single_gpu.py").read_text()
    start = text.index("if __name__")
    after = changed(text[:start] + end)
    assert f"\n{joins}" in after
    ast.parse(after)


def test_names_that_a_script_has_for_something_else_are_not_taken() -> None:
    """`pl` is often another library."""
    loop = (
        (SCRIPTS / "single_gpu.py")
        .read_text()
        .replace("import torch\n", "import torch\nimport polars as pl\n", 1)
    )
    after = changed(loop)
    assert "import torch_xla.distributed.parallel_loader as xla_pl" in after
    assert "in xla_pl.MpDeviceLoader(loader, device)" in after


def test_what_is_not_sure_is_said_and_left() -> None:
    """Data without length."""
    streamed = (SCRIPTS / "single_gpu.py").read_text() + "more = load(streaming=True)\n"
    assert "shuffle=True" in changed(streamed)


def test_the_line_ends_of_a_script_stay() -> None:
    """Windows' are those of the lines that the edits add, too."""
    assert changed("import torch\r\n\r\nmodel.cuda()") == (
        "import torch\r\nimport torch_xla\r\n\r\nmodel.to(torch_xla.device())"
    )


def test_another_encoding_is_refused() -> None:
    """A diff in UTF-8 would not apply to it. Without an edit there is none, as of a file that the script imports."""
    text = "# -*- coding: latin-1 -*-\nimport torch\nx = 'é'.cuda()\n".encode("latin-1")
    with pytest.raises(SourceError, match="needs UTF-8"):
        diff(Script(Path("a.py"), text))
    assert diff(Script(Path("a.py"), text.replace(b".cuda()", b""))) == ""


def test_a_comment_that_is_no_utf8_is_told_as_python_tells_it() -> None:
    """`ast` reads over it; Python runs no such file."""
    with pytest.raises(SourceError, match=r"(0xe9|\\xe9).*cannot be imported"):
        Script(Path("a.py"), "import torch\nx = x.cuda()  # é\n".encode("latin-1"))


def test_the_guide_shows_what_the_command_prints() -> None:
    """Its first part's diffs, taken together, change the lines that `check --diff` changes, and no others."""
    page = (ROOT / "docs/how_to/port_a_script.md").read_text().partition("\n## ")[0]
    shown = "".join(re.findall(r"```diff\n(.*?)```", page, flags=re.DOTALL))
    printed = diff(Script(SCRIPTS / "single_gpu.py"))

    def lines(text: str) -> list[str]:
        return sorted(line for line in text.splitlines() if re.match(r"[+-](?![+-]{2} )", line))

    assert lines(shown) == lines(printed)


def test_what_is_said_twice_of_a_line_is_said_once() -> None:
    """Both places get their edits."""
    text = "import torch\nx, y = x.cuda(), y.cuda()\n"
    (found,) = read(script(text))
    assert found.line == 2 and "x, y = x.to(torch_xla.device()), y.to(torch_xla.device())\n" in changed(text)
