"""Reads from a script's source what it imports before it does anything; nothing is executed.

Modules beside the script are read too, at the place where it imports them: their imports
from site-packages count, the modules themselves are left to the workers.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path

WORKERS_VARIABLES = frozenset((
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE",
    "ROLE_RANK", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
))  # fmt: skip
"""What torchrun sets for each worker, and for no other process, whatever the script assigns."""

# No import reads these: the device does, when the script first uses it.
_READ_LATE = ("NEURON_", "XLA_", "PJRT_DEVICE")

Import = tuple[str, list[str]]


def imports(script: Path) -> list[Import]:
    """(module, names) of what the script imports at its top, in order; none when it does not parse.

    The list ends at the first statement, in the script or a module beside it, whose effect a later
    import could notice. Plain settings of the environment (``os.environ["HF_HOME"] = "/tmp"``) do
    not end it: they are made in this process too, since libraries read them when imported.
    """
    reader = _Reader(script.parent)
    reader.read(script, package="")
    return reader.found


def local(name: str, beside: Path) -> Path | None:
    """The file of a module beside the script, by its dotted name; a package's is its `__init__.py`.

    A package without `__init__.py` gives its folder; a name that is not there, None.
    """
    path = beside.joinpath(*name.split("."))
    for candidate in (path / "__init__.py", path.with_name(f"{path.name}.py")):
        if candidate.is_file():
            return candidate
    return path if path.is_dir() else None


class _Reader:
    """Follows imports from file to file, as the interpreter would."""

    def __init__(self, beside: Path) -> None:
        """``beside``: the script's folder, which Python searches first."""
        self.found: list[Import] = []
        self._beside = beside
        self._read: set[str] = set()

    def read(self, path: Path, package: str, *, is_main: bool = True) -> bool:
        """Collect a file's imports. Returns whether all of it was read, so that reading can go on behind its import."""
        try:
            body = ast.parse(path.read_text()).body
        except (OSError, SyntaxError, ValueError):
            return False
        waiting = list(body)
        while waiting:
            node = waiting.pop(0)
            if isinstance(node, ast.Try):
                waiting[:0] = node.body
            elif isinstance(node, ast.Import | ast.ImportFrom):
                if not self._follow(node, package):
                    return False
            elif not (_make_setting(node) or _is_harmless(node) or _is_skipped(node, is_main)):
                return False
        return True

    def _follow(self, node: ast.Import | ast.ImportFrom, package: str) -> bool:
        if isinstance(node, ast.Import):
            return all(self._take(alias.name, []) for alias in node.names)
        module = node.module or ""
        if node.level:
            parents = package.split(".") if package else []
            if node.level > len(parents):
                return True  # no such parent: the interpreter raises in the worker
            module = ".".join([*parents[: len(parents) - node.level + 1], *filter(None, [module])])
        names = [alias.name for alias in node.names if alias.name != "*"]
        # `from package import name`: the name may be a module of its own.
        modules = [f"{module}.{name}" for name in names if local(f"{module}.{name}", self._beside)]
        return self._take(module, names) and all(self._take(name, []) for name in modules)

    def _take(self, module: str, names: list[str]) -> bool:
        if local(module.partition(".")[0], self._beside) is None:
            self.found.append((module, names))
            return True
        parts = module.split(".")
        # Parents first, as the interpreter does.
        return all(self._enter(".".join(parts[:count])) for count in range(1, len(parts) + 1))

    def _enter(self, module: str) -> bool:
        path = local(module, self._beside)
        if module in self._read or path is None or path.is_dir():
            return True
        self._read.add(module)
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        return self.read(path, package, is_main=False)


def _make_setting(node: ast.stmt) -> bool:
    """Whether the statement sets an environment variable; a constant is set in this process too."""
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
    if name.value in WORKERS_VARIABLES or name.value.startswith(_READ_LATE):
        return True
    if not (isinstance(value, ast.Constant) and isinstance(value.value, str)):
        return False
    if isinstance(node, ast.Assign):
        os.environ[name.value] = value.value
    else:
        os.environ.setdefault(name.value, value.value)
    return True


def _is_harmless(node: ast.stmt) -> bool:
    """Whether no import can notice it: a definition, a text, a value without calls, a setting of warnings or logs."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Pass):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or _is_log_call(node.value)
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        plain = all(isinstance(target, ast.Name) for target in targets)
        value = node.value
        if value is None or _is_log_call(value):
            return plain
        return plain and not any(isinstance(part, ast.Call) for part in ast.walk(value))
    return False


def _is_log_call(value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return False
    return ast.unparse(value.func).partition(".")[0] in ("warnings", "logging")


def _is_skipped(node: ast.stmt, is_main: bool) -> bool:
    """Whether the interpreter skips it: imports for type checkers, the `__main__` block of an imported module."""
    if not isinstance(node, ast.If) or node.orelse:
        return False
    condition = ast.unparse(node.test)
    if condition in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
        return True
    return not is_main and condition == "__name__ == '__main__'"
