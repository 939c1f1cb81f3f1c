"""Imports once what all workers would import, before any of them exists.

Safe to fork is only what has no XLA client and no threads of its own. The script's
own modules are left alone: they may touch the device when imported.
"""

from __future__ import annotations

import ast
import gc
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

# Not safe to fork, or pointless: they start threads or processes when imported.
_NEVER = frozenset({"tensorflow", "jax", "wandb", "mlflow", "ray", "torch_neuronx", "libneuronxla"})

# torchrun sets these for each worker, whatever the script assigns.
_TORCHRUN_VARIABLES = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})

# No import reads these: the device does, when the script first uses it.
_READ_LATE = ("NEURON_", "XLA_", "PJRT_DEVICE")


def warm_up(script: Path) -> list[str]:
    """Import torch_xla and the installed modules that the script imports at its top level.

    Returns the names imported. A module that fails to import is left to the workers,
    where the script shows the error in its own place.
    """
    from neuron_sim.device import activation

    wanted = imports(script)
    activation.preload()
    imported = []
    for module, names in wanted:
        if module.partition(".")[0] in _NEVER or not _installed(module.partition(".")[0], script.parent):
            continue
        try:
            loaded = importlib.import_module(module)
            for name in names:
                # Lazy packages (transformers) import the real module at this access.
                getattr(loaded, name, None)
        except Exception:  # noqa: BLE001, S112 - any import error is the script's to show
            continue
        imported.append(module)
    # The workers share these objects' memory as long as nobody writes to it: not even the collector.
    gc.collect()
    gc.freeze()
    return imported


def safe_to_fork() -> bool:
    """Whether no XLA client exists yet in this process."""
    import _XLAC

    return not _XLAC._xla_runtime_is_initialized()


def imports(script: Path) -> list[tuple[str, list[str]]]:
    """(module, names) of what the script imports at its top, in order; none when it does not parse.

    Ends where something is executed that an import behind it could notice. Plain settings
    of the environment (``os.environ["HF_HOME"] = "/tmp"``) are not the end: they are made
    here as well, since libraries read them when imported.
    """
    try:
        tree = ast.parse(script.read_text())
    except (OSError, SyntaxError, ValueError):
        return []
    found: list[tuple[str, list[str]]] = []
    for node in _prologue(tree.body):
        if isinstance(node, ast.Import):
            found.extend((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.append((node.module, [alias.name for alias in node.names if alias.name != "*"]))
    return found


def _prologue(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Imports, also inside `try`, up to the first statement with an effect on those behind it."""
    waiting = list(body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.Try):
            waiting[:0] = node.body
        elif not (_make_setting(node) or _is_harmless(node)):
            return


def _make_setting(node: ast.stmt) -> bool:
    """Make the setting that this statement is, if it is one, in this process too."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value = node.targets[0], node.value
        if not (isinstance(target, ast.Subscript) and ast.unparse(target.value) == "os.environ"):
            return False
        name = target.slice
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        if ast.unparse(call.func) != "os.environ.setdefault" or len(call.args) != 2:
            return False
        name, value = call.args
    else:
        return False
    if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
        return False
    if name.value in _TORCHRUN_VARIABLES or name.value.startswith(_READ_LATE):
        return True
    if not (isinstance(value, ast.Constant) and isinstance(value.value, str)):
        return False
    if isinstance(node, ast.Assign):
        os.environ[name.value] = value.value
    else:
        os.environ.setdefault(name.value, value.value)
    return True


def _is_harmless(node: ast.stmt) -> bool:
    """Definitions, texts, values without calls, and what only warnings and logs notice."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Pass):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func).partition(".")[0] in ("warnings", "logging")
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign):
        plain = all(isinstance(target, ast.Name) for target in node.targets)
        return plain and not any(isinstance(part, ast.Call) for part in ast.walk(node.value))
    return False


def _installed(name: str, beside: Path) -> bool:
    """Whether a top-level name comes from an installed package, and not from beside the script."""
    if name in sys.stdlib_module_names or (beside / name).exists() or (beside / f"{name}.py").exists():
        return False
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    return spec is not None and "site-packages" in (spec.origin or "")
