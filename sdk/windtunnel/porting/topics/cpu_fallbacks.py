"""What XLA lacks, so that torch_xla computes it on the CPU: modules of torch, and functions of tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.finding import Finding
from windtunnel.porting.nodes import receiver
from windtunnel.porting.on_the_device import runs_on_the_device
from windtunnel.porting.reads import Tensors
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject

_KIND = "cpu_fallback"
_BAGS = (
    "torch.nn.EmbeddingBag",
    "torch.nn.EmbeddingBag.from_pretrained",
    "torch.nn.functional.embedding_bag",
)
_WEIGHT_NORM = ("torch.nn.utils.weight_norm", "torch.nn.utils.parametrizations.weight_norm")
_CTC = ("torch.nn.CTCLoss", "torch.nn.functional.ctc_loss", "torch.ctc_loss")
_MODULES = {
    **dict.fromkeys(
        _BAGS,
        "{} has no XLA form: the CPU computes it in each step. With bags of one size take torch.nn.Embedding, and "
        ".sum(1) or .mean(1) of what it gives.",
    ),
    **dict.fromkeys(
        _CTC,
        "{} has no XLA form: the CPU computes it in each step, forward and backward, while the device waits. Keep it "
        "if the model's own part of a step is much longer. Else write its recursion with torch.logsumexp, over "
        "batches padded to one length.",
    ),
    **dict.fromkeys(
        _WEIGHT_NORM,
        "weight_norm has no XLA form: the CPU computes each such weight in each step. Leave it out, or write it as a "
        "parametrization of torch's operations: g * v / v.norm(dim=(1, 2), keepdim=True).",
    ),
}
"""The remark on each, with a place for its name."""
FUNCTIONS = {
    "bincount", "histc", "multinomial", "poisson", "median", "mode", "isin", "searchsorted", "bucketize",
}  # fmt: skip
"""Functions of tensors whose results have a fixed shape. Those with as many elements as they find: `shapes.BY_DATA`."""


def of_modules(subject: Subject) -> Iterator[Finding]:
    """Findings on EmbeddingBag, CTC's loss, and the first weight_norm of a file: a vocoder has dozens."""
    if not subject.uses_device:
        return
    said: set[str] = set()
    for call, name in subject.script.calls:
        text = _MODULES.get(name)
        if text is None or (name in _WEIGHT_NORM and text in said):
            continue
        said.add(text)
        yield Finding(call.lineno, text.format(name.removesuffix(".from_pretrained")), kind=_KIND)


def of_functions(subject: Subject) -> Iterator[Finding]:
    """Notes on functions such as ``torch.bincount(x)``, where x surely is on the device."""
    if subject.managed or not subject.uses_device:
        return
    script, said = subject.script, set[int]()
    for place, tensors, _ in runs_on_the_device(subject):
        for node in ast.walk(place):
            if not isinstance(node, ast.Call) or node.lineno in said:
                continue
            if _is_lacked(script, node) and is_of_tensors(node, tensors):
                said.add(node.lineno)
                yield Finding(
                    node.lineno,
                    f"{script.segment(node.func)} has no XLA form: the CPU computes it each time, and the device "
                    "waits. Write it with operations that XLA has, or do it in the data loader.",
                    sure=False,
                    kind=_KIND,
                )


def _is_lacked(script: Script, call: ast.Call) -> bool:
    called, name = script.called(call), script.dotted(call.func)
    of_another = name.partition(".")[0] in script.imports.values() and not name.startswith("torch.")
    return called in FUNCTIONS and not of_another


def is_of_tensors(call: ast.Call, tensors: Tensors) -> bool:
    """Whether a call is a method of a tensor on the device, or is given one."""
    return any(map(tensors.gave, (receiver(call), *call.args)))
