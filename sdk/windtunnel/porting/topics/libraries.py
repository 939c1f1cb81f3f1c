"""Libraries and arguments that need a GPU, and packages that the image lacks: each is told once, at its first use."""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from windtunnel.porting.finding import Edit, Finding, replaced, without_argument
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject
from windtunnel.porting.trainers import is_arguments

_QUANTIZED = "bitsandbytes quantizes with CUDA's kernels: load the model in bf16 (dtype=torch.bfloat16)"
_OPTIMIZER = 'bitsandbytes\' optimizers need CUDA: pass optim="adamw_torch"'
_FLASH = 'flash-attn needs CUDA: use attn_implementation="sdpa", or torch.nn.functional.scaled_dot_product_attention'
_DEEPSPEED = (
    "DeepSpeed knows no NeuronCore: leave it out. torch_xla's ZeroRedundancyOptimizer divides the optimizer's "
    "state over the cores, and XlaFullyShardedDataParallel the whole model"
)
_PLACED = "device_map places a model on GPUs or the host: leave it out, and move the model to the device"
_IMPORTED = {
    "bitsandbytes": "bitsandbytes has kernels for CUDA only: load the model in bf16, and use torch's optimizers",
    "flash_attn": _FLASH,
    "deepspeed": _DEEPSPEED,
    "apex": "apex needs CUDA: use torch's own autocast in bf16, DistributedDataParallel and LayerNorm",
    "xformers": "xformers has kernels for CUDA: use torch.nn.functional.scaled_dot_product_attention",
    "nvidia.dali": "DALI decodes on a GPU: read with a DataLoader, whose workers are the host's processes",
    "triton": "triton compiles for GPUs: write its kernels with torch's operations, or in NKI for the device",
    "horovod": "horovod knows no NeuronCore: DistributedDataParallel exchanges gradients in the process group xla",
    "mpi4py": "torchrun starts no MPI: mpi4py gives each process rank 0 of 1. Take RANK and WORLD_SIZE from the "
    "environment",
    "torch.nn.attention.flex_attention": "flex_attention raises on XLA's device (FlexAttention is only supported on "
    "CUDA, CPU or HPU devices): use torch.nn.functional.scaled_dot_product_attention",
    "torch.utils.cpp_extension": "CUDA's C++ is for GPUs: write its operators with torch's operations, or in C++ for "
    "the device (torch_neuronx.xla_impl.custom_op)",
    "torch.cuda.amp.custom_fwd": "custom_fwd and custom_bwd ask for CUDA's autocast: "
    'use torch.amp.custom_fwd(device_type="xla") and torch.amp.custom_bwd(device_type="xla")',
}
"""The remark on each module, or name in one."""
_SAME = {"torch.cuda.amp.custom_bwd": "torch.cuda.amp.custom_fwd"}
_LOADS = ("from_pretrained", "from_config", "pipeline")
_LITERALS = (
    (re.compile(r"flash_attention_[23]"), "flash_attn", _FLASH, '"sdpa"'),
    (
        re.compile(r"paged_\w+|(ada|lion|lamb|rms)\w*_(bnb_)?8bit"),
        "bitsandbytes",
        _OPTIMIZER,
        '"adamw_torch"',
    ),
)
"""Values of arguments and settings, with what to write instead."""
_ASKING = re.compile(r"available|find_spec|TYPE_CHECKING|has_", re.IGNORECASE)


@dataclass(frozen=True)
class _Use:
    """One use. ``of``: what is reported once."""

    of: str
    line: int
    text: str
    sure: bool
    edits: tuple[Edit, ...] = ()


def of_gpus(subject: Subject) -> Iterator[Finding]:
    """A finding on each at its first use in the program, with the edits of that file; in others only for edits."""
    before = itertools.takewhile(lambda one: one is not subject, subject.program)
    said = {use.of for one in before for use in _uses(one)}
    uses: dict[str, list[_Use]] = {}
    for use in _uses(subject):
        uses.setdefault(use.of, []).append(use)
    for of, (first, *more) in uses.items():
        edits = tuple(edit for use in (first, *more) for edit in use.edits)
        if edits or of not in said:
            yield Finding(first.line, f"{first.text.removesuffix('.')}.", edits, sure=first.sure)


def of_older_torch_xla(subject: Subject) -> Iterator[Finding]:
    """ignite's metrics and its idist, which ask for the world size by names that torch_xla no longer has."""
    script = subject.script
    if (
        subject.names.version <= (2, 6)
        or not subject.xla
        or any("xrt_world_size" in one.script.words for one in subject.program)
    ):
        return
    for node in script.walk(ast.Import, ast.ImportFrom):
        modules = {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
        modules |= {node.module or ""} if isinstance(node, ast.ImportFrom) else set()
        if any(name.startswith(("ignite.metrics", "ignite.distributed")) for name in modules):
            yield Finding(
                node.lineno,
                "ignite's metrics and idist use names that torch_xla 2.7 removed, and raise. Write before this line: "
                "xm.xrt_world_size, xm.get_ordinal, xm.get_local_ordinal = xr.world_size, xr.global_ordinal, "
                "xr.local_ordinal.",
            )
            return


@functools.lru_cache(maxsize=64)
def _uses(subject: Subject) -> tuple[_Use, ...]:
    script = subject.script
    found = [*_imports(script, subject.absent), *_arguments(script), *_literals(script)]
    return tuple(sorted(found, key=lambda use: use.line))


def _imports(script: Script, absent: Mapping[str, str]) -> Iterator[_Use]:
    """Imports with no way on where the module is missing, and torch's own names used in full."""
    texts = {**_IMPORTED, **absent}
    for node in script.walk(ast.Import, ast.ImportFrom, ast.Attribute):
        assert isinstance(node, ast.stmt | ast.expr)  # noqa: S101 - of the walk
        imports = isinstance(node, ast.Import | ast.ImportFrom)
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [] if node.level else [f"{node.module}.{alias.name}" for alias in node.names]
        elif (name := script.dotted(node)).startswith("torch."):
            names = [name]
        for name in names:
            known = [one for one in (*texts, *_SAME) if name == one or name.startswith(f"{one}.")]
            if known and not _is_optional(script, node):
                of = _SAME.get(known[0], known[0])
                lazy = imports and any(isinstance(one, ast.FunctionDef) for one in script.above(node))
                yield _Use(of, node.lineno, texts[of], not lazy and not script.is_chosen(node))


def _arguments(script: Script) -> Iterator[_Use]:
    for call, name in script.calls:
        uses = list(_of_call(script, call, name))
        if uses and not _is_optional(script, call):
            sure = not script.is_chosen(call)
            yield from (replace(use, sure=use.sure and sure) for use in uses)


def _of_call(script: Script, call: ast.Call, name: str) -> Iterator[_Use]:
    """The uses in a call's arguments, whatever stands around the call."""
    if name.endswith("BitsAndBytesConfig"):
        yield _Use("bitsandbytes", call.lineno, _QUANTIZED, True)
    for given in call.keywords:
        plain = isinstance(given.value, ast.Constant | ast.Dict)
        if isinstance(given.value, ast.Constant) and given.value.value in (None, False, "cpu"):
            continue
        if given.arg in ("load_in_4bit", "load_in_8bit"):
            yield _Use("bitsandbytes", given.value.lineno, _QUANTIZED, plain)
        elif given.arg == "deepspeed" and is_arguments(name):
            yield _Use("deepspeed", given.value.lineno, _DEEPSPEED, plain)
        elif given.arg == "device_map" and script.called(call).endswith(_LOADS):
            edit = without_argument(script, call, given)
            yield _Use("device_map", given.value.lineno, _PLACED, plain, (edit,))


def _literals(script: Script) -> Iterator[_Use]:
    for node in script.walk(ast.Constant):
        placed = isinstance(script.parents[node], ast.keyword | ast.Assign | ast.IfExp)
        if not placed or not isinstance(node.value, str):
            continue
        for words, of, text, instead in _LITERALS:
            if words.fullmatch(node.value):
                edit = replaced(script, node, instead)
                yield _Use(of, node.lineno, text, not script.is_chosen(node), (edit,))


def _is_optional(script: Script, node: ast.AST) -> bool:
    """Whether the script asks if a library is there, or goes on without it."""
    return script.is_tried(node) or any(
        isinstance(outer, ast.If | ast.IfExp) and _ASKING.search(ast.unparse(outer.test))
        for outer in script.above(node)
    )
