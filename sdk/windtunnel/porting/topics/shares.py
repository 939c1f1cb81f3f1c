"""Values of a core's share of the data that are divided by the number of all samples."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.evaluations import evaluation_loops
from windtunnel.porting.finding import Finding
from windtunnel.porting.gone_over import loaders_gone_over, training
from windtunnel.porting.nodes import argument, keyword
from windtunnel.porting.script import Loop
from windtunnel.porting.subject import Subject
from windtunnel.porting.topics.batches import same_data

_SUMS = (
    "all_gather", "all_gather_object", "all_reduce", "gather", "gather_for_metrics", "mesh_reduce", "reduce",
    "reduce_scatter",
)  # fmt: skip
"""Functions that may have added up what all cores counted."""


def of_all_samples(subject: Subject) -> Iterator[Finding]:
    """Sums over the batches of a loader with a DistributedSampler, by its data set's length: ``right / len(data)``.

    Only what a loop over such a loader adds up in the same function, of a script that exchanges no sums.
    """
    script = subject.script
    if not subject.several or subject.managed or any(one.script.calls_any(*_SUMS) for one in subject.program):
        return
    said: set[ast.BinOp] = set()
    shared = {found.line for found in same_data(subject) if found.edits}
    for loops in (training, evaluation_loops):
        for _, call, loop in loaders_gone_over(subject, loops):
            if loop is None or not (call.lineno in shared or _has_sampler(subject, call)):
                continue
            added = {
                ast.unparse(node.target)
                for node in ast.walk(loop)
                if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)
            }
            for node in script.walk(ast.BinOp):
                here = script.scope(node) is script.scope(loop) and node not in said
                adds = any(ast.unparse(part) in added for part in ast.walk(node.left))
                if here and adds and _is_of_all(subject, node, call, loop):
                    said.add(node)
                    yield Finding(
                        node.lineno,
                        f"with a DistributedSampler {ast.unparse(node)} is too small by the number of cores: each adds "
                        "up only its share of the samples. Divide by the number of samples that it has seen, or "
                        "exchange the sum first: xm.all_reduce(xm.REDUCE_SUM, ...).",
                        sure=False,
                    )


def _has_sampler(subject: Subject, call: ast.Call) -> bool:
    """Whether a loader gets a DistributedSampler in any case."""
    given = keyword(call, "sampler")
    if given is None:
        return False
    values = subject.script.values(ast.unparse(given.value)) or [given.value]
    return all(subject.script.is_call_of(one, "DistributedSampler") for one in values)


def _is_of_all(subject: Subject, node: ast.BinOp, call: ast.Call, loop: Loop) -> bool:
    """Whether a quotient is by the length of the data set that a loader is made of."""
    script, by = subject.script, node.right
    known = script.values(ast.unparse(by))
    by = known[0] if len(known) == 1 else by
    if not isinstance(node.op, ast.Div) or not script.is_call_of(by, "len") or len(by.args) != 1:
        return False
    data, given = by.args[0], argument(call, "dataset", 0)
    if isinstance(data, ast.Attribute) and data.attr == "dataset":
        return subject.loaders.maker(ast.unparse(data.value), loop) is call
    is_same = given is not None and ast.unparse(data) == ast.unparse(given)
    return is_same and isinstance(data, ast.Name) and script.scope(call) is script.scope(loop)
