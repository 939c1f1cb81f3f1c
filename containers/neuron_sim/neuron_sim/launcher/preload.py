"""Imports once what all workers would import, before any of them exists.

Safe to fork is only what has no XLA client and no threads of its own. The script's
own modules are left alone: they may touch the device when imported.
"""

from __future__ import annotations

import ast
import gc
import importlib
import importlib.util
import sys
from pathlib import Path

# Not safe to fork, or pointless: they start threads or processes when imported.
_NEVER = frozenset({"tensorflow", "jax", "wandb", "mlflow", "ray", "torch_neuronx", "libneuronxla"})


def warm_up(script: Path) -> list[str]:
    """Import torch_xla and the installed modules that the script imports at its top level.

    Returns the names imported. A module that fails to import is left to the workers,
    where the script shows the error in its own place.
    """
    from neuron_sim.device import activation

    activation.preload()
    imported = []
    for module, names in imports(script):
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
    """(module, names) of the script's top-level imports, in order; none when it does not parse."""
    try:
        tree = ast.parse(script.read_text())
    except (OSError, SyntaxError, ValueError):
        return []
    found: list[tuple[str, list[str]]] = []
    for node in _top_level(tree):
        if isinstance(node, ast.Import):
            found.extend((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.append((node.module, [alias.name for alias in node.names if alias.name != "*"]))
    return found


def _top_level(tree: ast.Module) -> list[ast.stmt]:
    """Statements that run on import, also inside try and if."""
    result: list[ast.stmt] = []
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop(0)
        result.append(node)
        if isinstance(node, ast.Try):
            waiting[:0] = node.body
    return result


def _installed(name: str, beside: Path) -> bool:
    """Whether a top-level name comes from an installed package, and not from beside the script."""
    if name in sys.stdlib_module_names or (beside / name).exists() or (beside / f"{name}.py").exists():
        return False
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    return spec is not None and "site-packages" in (spec.origin or "")
