"""``tensor.split([2, 4], dim)``, which cuts other pieces on trn1, in silence."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.finding import Edit, Finding
from windtunnel.porting.script import constant, keyword
from windtunnel.porting.subject import Subject


def of_sizes(subject: Subject) -> Iterator[Finding]:
    """In forward passes, where tensors are the device's. `tensor_split` takes where pieces begin, not their sizes."""
    script = subject.script
    asked = (
        constant(node) == "XLA_DISABLE_FUNCTIONALIZATION"
        for one in subject.program
        for node in one.script.nodes
    )
    if not subject.names.leaves_functionalization_out() or any(asked):
        return
    for call, name in script.calls:
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "split"):
            continue
        place = 1 if name == "torch.split" else 0
        sizes = call.args[place] if len(call.args) > place else None
        if not isinstance(sizes, ast.List | ast.Tuple) or len(sizes.elts) < 2 or _is_first(call, place + 1):
            continue
        if getattr(script.scopes(call)[0], "name", "") != "forward":
            continue
        pieces = [script.segment(one) for one in sizes.elts]
        begins = ", ".join(" + ".join(pieces[:count]) for count in range(1, len(pieces)))
        end = script.end(call.func)
        yield Finding(
            call.lineno,
            "wrong_split",
            "split() with a list of sizes gives other values on trn1, in silence "
            "(https://github.com/pytorch/xla/issues/8640). tensor_split is right.",
            (
                Edit(end - len("split"), end, "tensor_split"),
                Edit(script.start(sizes), script.end(sizes), f"[{begins}]"),
            ),
        )


def _is_first(call: ast.Call, place: int) -> bool:
    """Whether it splits along the first dimension, which is right; a dimension that has a name may be any."""
    named = keyword(call, "dim")
    dim = call.args[place] if len(call.args) > place else named.value if named else ast.Constant(0)
    return isinstance(dim, ast.Constant) and dim.value == 0
