"""Optimizers of torch that read the device, or compute on the CPU, in each step; averages that compile anew."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.finding import Edit, Finding, replaced, with_argument
from windtunnel.porting.nodes import argument, constant, is_method
from windtunnel.porting.subject import Subject

_CAPTURABLE = ("ASGD", "Rprop")
"""Optimizers that read values on the host without capturable=True."""
_OTHERS = {
    "Adafactor": (
        "host_read",
        "torch.optim.Adafactor reads two norms of each parameter in each step. transformers.optimization.Adafactor("
        "parameters, lr=..., scale_parameter=False, relative_step=False) reads none.",
    ),
    "LBFGS": (
        "host_read",
        "torch.optim.LBFGS reads values of the device to decide on the host, and its graphs grow with its history: "
        "train with AdamW, or keep LBFGS and its model on the CPU.",
    ),
    "Muon": (
        "cpu_fallback",
        "torch.optim.Muon multiplies by torch.addmm with alpha and beta, which XLA does not have: the CPU does it in "
        "each step. A Muon of your own, with b * A + c * (A @ A) instead, stays on the device.",
    ),
}


def by_the_host(subject: Subject) -> Iterator[Finding]:
    """A finding on each such optimizer, by its name in torch.optim."""
    script = subject.script
    if not (subject.uses_device or subject.managed):
        return
    for call, name in script.calls:
        package, _, called = name.rpartition(".")
        if name == "torch.optim.swa_utils.update_bn" and not _is_of_the_host(call):
            yield Finding(
                call.lineno,
                "update_bn compiles a graph for each batch: the number of batches so far is a constant in it. Run it "
                "on the host: update_bn(loader, model.cpu()), with the DataLoader itself.",
                sure=False,
            )
        if package != "torch.optim":
            continue
        if called in _OTHERS:
            kind, text = _OTHERS[called]
            yield Finding(call.lineno, text, kind=kind)
        elif called in _CAPTURABLE:
            yield from _without_capturable(subject, call, name)


def _without_capturable(subject: Subject, call: ast.Call, name: str) -> Iterator[Finding]:
    script, given = subject.script, argument(call, "capturable")
    if given is not None and constant(given) is not False:
        return
    edits: tuple[Edit, ...] = ()
    if given is not None:
        edits = (replaced(script, given, "True"),)
    elif all(one.arg for one in call.keywords):
        edits = (with_argument(script, call, "capturable=True"),)
    yield Finding(
        call.lineno,
        f"{name} reads values of the device in each step, or compiles a new graph for them. Pass capturable=True.",
        edits,
        kind="host_read",
    )


def _is_of_the_host(call: ast.Call) -> bool:
    return any(is_method(one, "cpu") for one in call.args)
