"""How many processes xmp.spawn is told to start: on a TPU of long ago 8, on trn1 as many as there are cores."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.finding import Finding
from windtunnel.porting.script import Script, constant, is_method, keyword
from windtunnel.porting.subject import Subject
from windtunnel.porting.topics.processes import without


def unsupported_numbers(subject: Subject) -> Iterator[Finding]:
    """A number of processes that xmp.spawn is told, as of a TPU's cores: it takes 1 alone, or none."""
    if subject.names.spawns_any_number():
        return
    for call, name in subject.script.calls:
        if name != "torch_xla.distributed.xla_multiprocessing.spawn":
            continue
        given = keyword(call, "nprocs")
        told = given.value if given else next(iter(call.args[2:3]), None)
        number = _number(subject.script, told)
        if number is not None and number != 1:
            yield Finding(
                call.lineno,
                "",
                f"xmp.spawn raises of {number} processes: it takes 1, or starts one for each NeuronCore that "
                f"NEURONCORE_NUM_DEVICES names. Leave nprocs out, and put NEURONCORE_NUM_DEVICES={number} into the "
                "job's environment.",
                (without(subject.script, call, given),) if given else (),
            )
        elif told is not None and number is None and (usual := _by_default(subject, told)) not in (None, 1):
            yield Finding(
                call.lineno,
                "",
                f"xmp.spawn raises of any number but 1, and {ast.unparse(told)} is {usual} unless it is given. Leave "
                "nprocs out: NEURONCORE_NUM_DEVICES in the job's environment says how many start.",
                sure=False,
            )


def _by_default(subject: Subject, node: ast.expr) -> int | None:
    """The number of an option of the program's that is not given, as `args.nprocs`."""
    if not isinstance(node, ast.Attribute):
        return None
    for one in subject.program:
        for call, _ in one.script.calls:
            named = keyword(call, "default")
            options = [str(constant(option)).lstrip("-").replace("-", "_") for option in call.args]
            if is_method(call, "add_argument") and named is not None and node.attr in options:
                return _number(one.script, named.value)
    return None


def _number(script: Script, node: ast.expr | None) -> int | None:
    """What an expression surely is, or is unless a variable of the environment says more."""
    if isinstance(node, ast.Name):
        numbers = {_number(script, one) for one in script.values(node.id)}
        return numbers.pop() if len(numbers) == 1 else None
    if isinstance(node, ast.Call) and script.dotted(node.func) == "int" and node.args:
        return _number(script, node.args[0])
    if isinstance(node, ast.Call) and script.dotted(node.func) in ("os.environ.get", "os.getenv"):
        return _number(script, next(iter(node.args[1:2]), None))
    value = constant(node)
    return int(value) if type(value) is int or (isinstance(value, str) and value.isdigit()) else None
