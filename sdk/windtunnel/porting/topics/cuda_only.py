"""What of torch works on CUDA, but not on XLA's device: fused optimizers, inductor, generators, averages, ..."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting import checkpointing
from windtunnel.porting.finding import (
    Edit,
    Finding,
    Removal,
    replaced,
    unwrapped,
    with_argument,
    without_lines,
)
from windtunnel.porting.models import is_model
from windtunnel.porting.nodes import argument, constant, is_method, receiver
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject
from windtunnel.porting.trainers import is_arguments

_COMPLEX = "complex numbers, which neuronx-cc refuses (NCC_EVRF004): compute with real and imaginary parts"
_NO_ALGORITHM = "an algorithm that neuronx-cc does not have (NCC_EVRF001, NCC_EVRF015)"
_REFUSED = {
    **dict.fromkeys(("torch.view_as_complex", "torch.stft", "torch.istft"), _COMPLEX),
    **dict.fromkeys(("torch.linalg.eigh", "torch.linalg.eigvalsh", "torch.triangular_solve"), _NO_ALGORITHM),
    "torch.cummax": "a window over two arrays, which neuronx-cc refuses (NCC_EVRF019)",
}
"""Functions whose graph neuronx-cc is documented to refuse, as the simulated compiler does, and what they need."""
_SPARSE = ("torch.nn.Embedding", "torch.nn.Embedding.from_pretrained", "torch.nn.functional.embedding")
_SPLITS = ("output_split_sizes", "input_split_sizes")
_TO_SPARSE = ("to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc")
_MAKES_SPARSE = (
    "torch.sparse_coo_tensor", "torch.sparse_csr_tensor", "torch.sparse_csc_tensor", "torch.sparse.FloatTensor",
)  # fmt: skip
_SYNCED = ("SyncBatchNorm", "convert_sync_batchnorm")
_RECOMPUTING = ("gradient_checkpointing_enable", "enable_gradient_checkpointing")
_OWN_RECOMPUTING = ("neuronx_distributed", "optimum")
"""Packages that recompute by torch_xla's function on their own."""
_INDUCTOR = "inductor, which does not know XLA's device, and XLA compiles the whole step anyway"
_REAL = ("fftfreq", "rfftfreq", "fftshift", "ifftshift")


def cuda_only(subject: Subject) -> Iterator[Finding]:
    """Findings on calls that fail when they first run."""
    script = subject.script
    for call, name in script.calls:
        if is_arguments(name) and not name.startswith("optimum."):  # whose default is torch's plain AdamW
            yield from _fused_by_default(subject, call)
        fused = argument(call, "fused")
        if name.startswith("torch.optim.") and fused is not None and constant(fused) is True:
            yield Finding(
                call.lineno,
                "fused=True is for CUDA's optimizers; XLA fuses the step itself.",
                (replaced(script, fused, "False"),),
            )
        elif name == "torch.compile":
            yield from _compiled(subject, call)
        elif name.startswith("torch.nn.") and name.rpartition(".")[2] in _SYNCED:
            yield from _synced(subject, call)
        elif name == "torch.Generator":
            yield from _generator(subject, call)
        elif _recomputes(subject, call, name):
            yield Finding(
                call.lineno,
                "the library's gradient checkpointing asks for torch.xla, which does not exist. Write, "
                f"{checkpointing.FOR_A_LIBRARY}",
            )
        elif name.startswith("torch.utils.checkpoint.checkpoint") and not _has_torch_xla_there(subject):
            yield Finding(
                call.lineno,
                "torch.utils.checkpoint asks for torch.xla, which does not exist; use "
                "torch_xla.utils.checkpoint.checkpoint(function, *args, use_reentrant=True).",
            )
        elif _compiles_itself(script, call):
            yield from _compiled(subject, call)
    yield from _decorators(subject)
    if subject.uses_device or subject.managed:
        yield from _inference_mode(subject)
        yield from _refused(script)
    if subject.uses_device:
        yield from _sparse(script)
        yield from _sparse_tensors(subject)
        yield from _unequal_parts(script)
        yield from _averages(script)


def _fused_by_default(subject: Subject, call: ast.Call) -> Iterator[Finding]:
    """The optimizer of transformers' Trainer, since 4.54 fused by default; a note, as the version is not known."""
    script, named = subject.script, argument(call, "optim")
    if named is None and any(one.arg is None for one in call.keywords):
        return  # it may be in the unpacked dict
    if named is not None and constant(named) != "adamw_torch_fused":
        return
    if named is not None:
        edit = replaced(script, named, '"adamw_torch"')
    else:
        edit = with_argument(script, call, 'optim="adamw_torch"')
    yield Finding(
        call.lineno,
        "the fused optimizer, transformers' default since 4.54, raises without CUDA: pass "
        'optim="adamw_torch".',
        (edit,),
        sure=named is not None,
    )


def _sparse(script: Script) -> Iterator[Finding]:
    """Sparse gradients. On XLA, EmbeddingBag makes dense ones by itself, which all other optimizers of torch accept."""
    for call, name in script.calls:
        given = argument(call, "sparse")
        if name in _SPARSE and given is not None and constant(given) is True:
            yield Finding(
                call.lineno,
                "sparse=True: XLA's device has no sparse gradients, so the backward pass raises (SparseXLA).",
                (replaced(script, given, "False"),),
            )
        elif name == "torch.optim.SparseAdam":
            yield Finding(
                call.lineno,
                "SparseAdam raises, as gradients are dense on XLA's device. torch.optim.Adam takes them; it also "
                "changes rows that are not in the batch.",
            )


def _averages(script: Script) -> Iterator[Finding]:
    for node in script.walk(ast.Attribute):
        if script.dotted(node) == "torch.distributed.ReduceOp.AVG":
            yield Finding(
                node.lineno,
                "the process group xla has no ReduceOp.AVG (Invalid reduce op): reduce with ReduceOp.SUM and "
                "divide by the world size.",
            )


def _unequal_parts(script: Script) -> Iterator[Finding]:
    """Parts of different sizes that the cores send each other; a note, as the sizes may be None."""
    for call, name in script.calls:
        named = [one.value for one in call.keywords if one.arg in _SPLITS]
        sizes = [one for one in (*call.args[2:4], *named) if not isinstance(one, ast.Constant)]
        if name == "torch.distributed.all_to_all_single" and sizes:
            yield Finding(
                call.lineno,
                f"the process group xla takes no sizes of parts, and raises: {script.segment(sizes[0])}. Exchange "
                "parts of one size, padded.",
                sure=False,
            )


def _sparse_tensors(subject: Subject) -> Iterator[Finding]:
    """Sparse tensors that are moved to the device, made in the move or under a name that holds nothing else."""
    for move in subject.moves:
        moved = receiver(move)
        made = subject.script.values(ast.unparse(moved)) if isinstance(moved, ast.Name) else [moved]
        before = [one for one in made if one is not move]  # except x = x.to(device)
        if before and all(_is_sparse(subject.script, one) for one in before):
            yield Finding(
                move.lineno,
                "XLA's device has no sparse tensors, so this raises (SparseXLA): move a dense one (x.to_dense()).",
            )


def _is_sparse(script: Script, node: ast.expr) -> bool:
    return script.callee(node) in _MAKES_SPARSE or is_method(node, *_TO_SPARSE)


def _recomputes(subject: Subject, call: ast.Call, name: str) -> bool:
    """Whether a call makes a library's model recompute by torch's function: a method of transformers' and diffusers'
    models, or an argument of trainers. Not where torch's function is replaced, or the method gets another one.
    """
    asked = constant(argument(call, "gradient_checkpointing")) is True
    method = is_method(call, *_RECOMPUTING) and not call.args
    if not method and not (asked and name.endswith(("Arguments", "Config"))):
        return False
    modules = {module for one in subject.program for module in one.script.imported_modules}
    own = any(module.startswith(("torch_xla.utils", *_OWN_RECOMPUTING)) for module in modules)
    return not own and not _has_torch_xla_there(subject) and (subject.uses_device or subject.managed)


def _has_torch_xla_there(subject: Subject) -> bool:
    """Whether the program makes the ``torch.xla`` that torch's function asks for."""
    return any(one.script.calls_any("torch._register_device_module") for one in subject.program)


def _compiled(subject: Subject, call: ast.Call) -> Iterator[Finding]:
    """torch.compile, by its backend: inductor, the default, or torch_xla's. Other backends are not reported."""
    backend = argument(call, "backend")
    if backend is None:
        kind, why = "", _INDUCTOR
    elif constant(backend) == "openxla":
        kind = "torch_compile"
        why = "TorchDynamo, which AWS does not support on Neuron, and XLA compiles the whole step anyway"
    else:
        return
    statement = subject.script.statement(call)
    edits: tuple[Edit | Removal, ...] = ()
    if decorator := _undecorated(subject.script, call):
        edits = (decorator,)
    elif statement and not call.args:
        edits = (Removal(statement),)
    yield Finding(
        call.lineno,
        f"torch.compile is {why}: leave it out.",
        edits or _without(subject, call),
        sure=not subject.script.is_chosen(call),
        kind=kind,
    )


def _compiles_itself(script: Script, call: ast.Call) -> bool:
    """Whether it is ``model.compile()`` of torch's modules; that of Keras gets an optimizer."""
    own = {"backend", "mode", "dynamic", "fullgraph", "options"}.issuperset(one.arg for one in call.keywords)
    return is_method(call, "compile") and own and not call.args and is_model(script, receiver(call))


def _decorators(subject: Subject) -> Iterator[Finding]:
    """``@torch.compile`` without brackets, which is no call."""
    script = subject.script
    for node in script.walk(ast.Attribute, ast.Name):
        if script.dotted(node) == "torch.compile" and (edit := _undecorated(script, node)):
            yield Finding(node.lineno, f"torch.compile is {_INDUCTOR}: leave it out.", (edit,))


def _undecorated(script: Script, node: ast.expr) -> Edit | None:
    """Remove a decorator with its lines; None if the node is no decorator."""
    of = script.parents[node]
    if not isinstance(of, ast.FunctionDef | ast.ClassDef) or node not in of.decorator_list:
        return None
    return without_lines(script, node)


def _refused(script: Script) -> Iterator[Finding]:
    """Functions that neuronx-cc refuses, by their names; notes, as on the host they do no harm."""
    for call, name in script.calls:
        transform = name.startswith("torch.fft.") and not name.endswith(_REAL)
        needs = _COMPLEX if transform else _REFUSED.get(name)
        if needs is not None:
            text = (
                f"{name} needs {needs}. On the device this ends the job; on the CPU (tensor.cpu()) it works."
            )
            yield Finding(call.lineno, text, sure=False)


def _inference_mode(subject: Subject) -> Iterator[Finding]:
    """torch.inference_mode: a linear layer makes a view of its weight, and XLA's tensors count a view's versions."""
    script = subject.script
    for node in script.walk(ast.Attribute, ast.Name):
        called = script.parents[node]
        if script.dotted(node) == "torch.inference_mode":
            given = isinstance(called, ast.Call) and (called.args or called.keywords)
            edit = replaced(script, node, f"{subject.names.module('torch')}.no_grad")
            yield Finding(
                node.lineno,
                "torch.inference_mode: a linear layer on XLA's device raises in it (Cannot set version_counter for "
                "inference tensor). Use torch.no_grad().",
                () if given else (edit,),
            )


def _generator(subject: Subject, call: ast.Call) -> Iterator[Finding]:
    """A generator on a device. One of the CPU draws for the device, too."""
    given = argument(call, "device", 0)
    if given is None:
        return
    library = subject.managed and ast.unparse(given).rpartition(".")[2] == "device"  # as accelerator.device
    if library or (subject.uses_device and subject.is_cuda_place(given)):
        yield Finding(
            call.lineno,
            f"torch.Generator({subject.script.segment(given)}) raises: Trainium's device has no generator. Make it for "
            '"cpu", which draws on the host; or leave it out, and the device draws (xm.set_rng_state seeds it).',
            (replaced(subject.script, given, '"cpu"'),),
        )


def _synced(subject: Subject, call: ast.Call) -> Iterator[Finding]:
    """Batch norm over all GPUs, made or converted to, in a script whose model is, or will be, on the device."""
    if not subject.uses_device:
        return
    converts = ast.unparse(call.func).endswith("convert_sync_batchnorm")
    edits = _without(subject, call) if converts else ()
    raises = "SyncBatchNorm raises on Trainium (expected input tensor to be on GPU)."
    instead = (
        "BatchNorm takes its statistics from the samples of each core alone. If a core has few of them, use a larger "
        "batch, or a norm without such statistics (GroupNorm)."
    )
    sure = not subject.script.is_chosen(call)
    if edits:
        yield Finding(call.lineno, f"{raises} Keep BatchNorm.", edits, sure=sure)
        # What is learnt changes: a finding of its own, as the text of those with edits is not printed beside the diff.
        yield Finding(call.lineno, instead, sure=False)
    else:
        yield Finding(call.lineno, f"{raises} {instead}", sure=sure)


def _without(subject: Subject, call: ast.Call) -> tuple[Edit | Removal, ...]:
    """The edits that leave a call's first argument only; empty where it has none, as a decorator's factory."""
    if not call.args or isinstance(call.args[0], ast.Starred):
        return ()
    return unwrapped(subject.script, call, call.args[0])
