"""Libraries that run the training loop: which program has one, and whether it sends rank 0's weights to all."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from windtunnel.porting.nodes import is_method, receiver
from windtunnel.porting.script import Script

_PACKAGES = {
    "accelerate",
    "lightning",
    "pytorch_lightning",
    "deepspeed",
    "optimum",
    "neuronx_distributed_training",
}
"""Packages that bring device, loaders and steps of their own."""
_SEND_WEIGHTS = _PACKAGES - {"accelerate"}
_LIGHTNING = {"lightning", "pytorch_lightning"}
_PARTS = {"callbacks", "loggers", "utilities"}
"""Parts of Lightning that a program with a training loop of its own uses, too."""


def run_the_loop(program: Sequence[Script]) -> bool:
    """Whether a program imports such a library, or makes a library's Trainer."""
    classes = {
        node.name: (script, node)
        for script in program
        for node in script.nodes
        if isinstance(node, ast.ClassDef) and "Trainer" in node.name
    }
    return any(
        _runs_it(script) or any(_is_a_librarys(name, classes) for _, name in script.calls)
        for script in program
    )


def _runs_it(script: Script) -> bool:
    """Whether an imported library runs the loop. Lightning's callbacks, loggers and utilities alone do not."""
    modules = (one.split(".") for one in script.imported_modules)
    of_lightning = any(one[0] in _LIGHTNING and _PARTS.isdisjoint(one) for one in modules)
    return of_lightning or not script.packages.isdisjoint(_PACKAGES - _LIGHTNING)


def _is_a_librarys(name: str, classes: dict[str, tuple[Script, ast.ClassDef]]) -> bool:
    """Whether a class of this dotted name is a library's Trainer, or the program's own that is derived from one."""
    last = name.rpartition(".")[2]
    if "Trainer" not in last:
        return False
    if last not in classes:
        return "." in name
    script, own = classes[last]
    others = {other: known for other, known in classes.items() if other != last}
    return any(_is_a_librarys(script.dotted(base), others) for base in own.bases)


def send_no_weights(program: Sequence[Script]) -> bool:
    """Whether the library leaves each process's model as it is: on XLA, accelerate (1.15) and transformers' Trainer
    (4.48) do. Lightning sends rank 0's weights to all.
    """
    packages = {package for script in program for package in script.packages}
    return not packages.isdisjoint({"accelerate", "transformers"}) and packages.isdisjoint(_SEND_WEIGHTS)


def trains(call: ast.Call) -> bool:
    """Whether a call is ``trainer.train()``, or ``Trainer(model).train()``."""
    owner = receiver(call)
    made = owner.func if isinstance(owner, ast.Call) else owner
    return is_method(call, "train") and ast.unparse(made).lower().endswith("trainer")


def is_arguments(name: str) -> bool:
    """Whether a class of this name is transformers' TrainingArguments, or derived from it, as trl's SFTConfig."""
    last = name.rpartition(".")[2]
    of_trl = name.startswith("trl.") and last.endswith("Config") and last != "ModelConfig"
    return of_trl or last.endswith("TrainingArguments")
