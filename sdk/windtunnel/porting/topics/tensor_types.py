"""``torch.cuda.FloatTensor`` and its like, with which older scripts make tensors, or convert them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from windtunnel.porting.finding import Edit, Finding, replaced
from windtunnel.porting.gpu_tests import TYPES, asks_cuda_more, is_dead
from windtunnel.porting.nodes import branches, constant, is_method, parameters, receiver
from windtunnel.porting.subject import Subject

_DTYPES = {
    "FloatTensor": "float", "DoubleTensor": "double", "HalfTensor": "half", "BFloat16Tensor": "bfloat16",
    "LongTensor": "long", "IntTensor": "int", "ShortTensor": "short", "CharTensor": "int8", "ByteTensor": "uint8",
    "BoolTensor": "bool",
}  # fmt: skip

_HOLDS = (ast.Tuple, ast.List, ast.Dict, ast.arguments, ast.NamedExpr)


def of_cuda(subject: Subject) -> Iterator[Finding]:
    """Findings on uses of these types, and on names given to them; not on annotations."""
    script, types = subject.script, _Types(subject)
    for node in script.walk(ast.Attribute, ast.Name, ast.Constant):
        name, parent = types.name(node), script.parents[node]
        used = isinstance(parent, ast.Assign | ast.IfExp | ast.keyword | ast.Return)
        used = used or (not isinstance(node, ast.Constant) and isinstance(parent, _HOLDS))
        used = used or (isinstance(parent, ast.Call) and node in (parent.func, *parent.args))
        used = used and node is not getattr(parent, "annotation", None)
        if not used or not name or any(script.is_call_of(one, "isinstance") for one in script.above(node)):
            continue
        if asks_cuda_more(subject, parent) or not is_dead(subject, node):
            yield Finding(
                node.lineno,
                f"{name} is for CUDA: without a GPU it raises. Make tensors with device={subject.names.device()}.",
                tuple(types.edits(node)),
                kind="device_unused",
            )


class _Types:
    """The CUDA tensor types of a script, and its own names for them."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._script = subject.script

    def name(self, node: ast.AST) -> str:
        """The type's name, ``torch.cuda.FloatTensor``, for an expression that is it or names it as text; else empty."""
        if isinstance(node, ast.Name):
            return "" if node.id in self._given else self._imported.get(node.id, "")
        name = str(constant(node) or self._script.dotted(node))
        return name if TYPES.fullmatch(name) else ""

    @cached_property
    def _imported(self) -> dict[str, str]:
        """Imported names of types. The host's may have the same name: ``else: from torch import FloatTensor``."""
        return {
            alias.asname or alias.name: name
            for node in self._script.walk(ast.ImportFrom)
            for alias in node.names
            if TYPES.fullmatch(name := f"{node.module}.{alias.name}")
        }

    @cached_property
    def _given(self) -> set[str]:
        """Names that the script assigns to, or has as parameters."""
        stored = {one.id for one in self._script.walk(ast.Name) if isinstance(one.ctx, ast.Store)}
        return stored | {node.arg for node in self._script.nodes if isinstance(node, ast.arg)}

    def edits(self, node: ast.expr) -> list[Edit]:
        """Edits for a type: where it is called or converted to; for one with a name, all its uses. Empty if unsure."""
        parent = self._script.parents[node]
        made = self._script.parents[parent] if isinstance(parent, ast.IfExp) else parent
        if not isinstance(made, ast.Assign):
            return self._use(node, self.name(node)) or []
        name = next((one for one, where in self._script.assigned if where is made), "")
        found = self._of_names.get(name, []) if len(made.targets) == 1 else []
        kind = self.name(node).rpartition(".")[2]
        host = replaced(self._script, made.value, self._host(kind))
        return [host, *found] if found else []

    def _host(self, kind: str) -> str:
        return f"{self._subject.names.module('torch')}.{kind}"

    @cached_property
    def _of_names(self) -> dict[str, list[Edit]]:
        """The edits of all uses of each name; without names that are used in other ways."""
        kinds = {name: self._kind(name) for name, _ in self._script.assigned}
        found: dict[str, list[Edit]] = {}
        unsure: set[str] = set()
        for node in self._script.walk(ast.Name):
            kind = kinds.get(node.id, "")
            if kind and isinstance(node.ctx, ast.Load):
                # A parameter of that name may be another type.
                other = any(node.id in parameters(scope) for scope in self._script.scopes(node))
                edits = [] if other else self._use(node, kind)
                found.setdefault(node.id, []).extend(edits)
                unsure |= set() if edits else {node.id}
        return {name: edits for name, edits in found.items() if name not in unsure}

    def _kind(self, name: str) -> str:
        """The one type that a name stands for, on CUDA and on the host; empty for others."""
        ends = [one for value in self._script.values(name) for one in branches(value)]
        names = {str(constant(one) or self._script.dotted(one)) for one in ends}
        kinds = {one.removeprefix("torch.cuda.").removeprefix("torch.") for one in names}
        kinds = {"FloatTensor" if one == "Tensor" else one for one in kinds}  # what torch.Tensor makes
        of_cuda = any(map(TYPES.fullmatch, names))
        return next(iter(kinds)) if of_cuda and len(kinds) == 1 and kinds <= _DTYPES.keys() else ""

    def _use(self, node: ast.expr, name: str) -> list[Edit]:
        """Edits of one use: what makes a tensor then makes it on the host and moves it; what converts, also moves."""
        call, script, kind = self._script.parents[node], self._script, name.rpartition(".")[2]
        device = self._subject.device_at(node)
        if not isinstance(call, ast.Call) or kind not in _DTYPES or call.keywords:
            return []
        if call.func is node:
            moved = Edit(script.end(call), script.end(call), f".to({device})")
            named = not self.name(node)  # as Tensor(3), whose name then stands for the host's type
            return [moved] if named else [replaced(script, node, self._host(kind)), moved]
        if is_method(call, "type") and call.args == [node]:
            place = script.behind(script.end(receiver(call)), script.end(call.func))
            dtype = f"{self._subject.names.module('torch')}.{_DTYPES[kind]}"
            return [Edit(place, script.end(call), f".to({device}, {dtype})")]
        return []
