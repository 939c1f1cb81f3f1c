"""What xmp.spawn refuses: a number of processes, as older TPUs had it, and a process that has used the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.finding import Finding, without_argument
from windtunnel.porting.names import NO_NUMBER
from windtunnel.porting.nodes import argument, constant, is_main, is_method, keyword
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject

_SPAWN = "torch_xla.distributed.xla_multiprocessing.spawn"
_USES = (
    "torch_xla.device",
    "torch_xla.manual_seed",
    "torch_xla.core.xla_model.xla_device",
    "torch_xla.core.xla_model.set_rng_state",
)
"""Calls that set up torch_xla's runtime."""


def unsupported_numbers(subject: Subject) -> Iterator[Finding]:
    """A number of processes that xmp.spawn is told, as of a TPU's cores: it takes only 1, or none."""
    if subject.names.version < NO_NUMBER:
        return
    for call, name in subject.script.calls:
        if name != _SPAWN:
            continue
        given, told = keyword(call, "nprocs"), _told(call)
        number = _number(subject.script, told)
        if number is not None and number != 1:
            yield Finding(
                call.lineno,
                f"xmp.spawn raises for {number} processes: it takes 1, or starts as many as "
                f"NEURONCORE_NUM_DEVICES says. Leave nprocs out, and put NEURONCORE_NUM_DEVICES={number} into the "
                "job's environment.",
                (without_argument(subject.script, call, given),) if given else (),
            )
        elif told is not None and number is None and (usual := _by_default(subject, told)) not in (None, 1):
            yield Finding(
                call.lineno,
                f"xmp.spawn raises for any number but 1, and {ast.unparse(told)} is {usual} by default. Leave "
                "nprocs out: NEURONCORE_NUM_DEVICES in the job's environment says how many start.",
                sure=False,
            )


def used_too_soon(subject: Subject) -> Iterator[Finding]:
    """Uses of the device before an xmp.spawn in the same process: torch_xla's runtime can be set up only once."""
    script = subject.script
    for call, name in script.calls:
        if name != _SPAWN or _number(script, _told(call)) == 1:
            continue
        for use, used in script.calls:
            if used in _USES and _is_before(script, use, call):
                yield Finding(
                    use.lineno,
                    f"xmp.spawn (line {call.lineno}) raises once the device has been used. Call "
                    f"{ast.unparse(use.func)} in the function that it starts.",
                    sure=not any(script.is_chosen(node, ast.Try) for node in (use, call)),
                )
                return


def _is_before(script: Script, use: ast.Call, spawn: ast.Call) -> bool:
    """Whether a use, if it runs, runs before the processes start: in the same function, or when the file is read."""
    here, there = script.scope(use), script.scope(spawn)
    choices = [one for one in script.above(spawn) if isinstance(one, ast.If)]
    apart = any(use in ast.walk(one) and not is_main(one) for one in choices)
    of_file = isinstance(here, ast.Module) and not any(map(is_main, script.above(use)))
    earlier = (use.lineno, use.col_offset) < (spawn.lineno, spawn.col_offset)
    return not apart and (earlier if here is there else of_file)


def _told(call: ast.Call) -> ast.expr | None:
    """The argument for the number of processes."""
    return argument(call, "nprocs", 2)


def _by_default(subject: Subject, node: ast.expr) -> int | None:
    """The default of a program's option, as of `args.nprocs`."""
    if not isinstance(node, ast.Attribute):
        return None
    for one in subject.program:
        for call, _ in one.script.calls:
            default = argument(call, "default")
            options = [str(constant(option)).lstrip("-").replace("-", "_") for option in call.args]
            if is_method(call, "add_argument") and default is not None and node.attr in options:
                return _number(one.script, default)
    return None


def _number(script: Script, node: ast.expr | None) -> int | None:
    """The number that an expression surely is, or is unless an environment variable says another."""
    if isinstance(node, ast.Name):
        numbers = {_number(script, one) for one in script.values(node.id)}
        return numbers.pop() if len(numbers) == 1 else None
    if isinstance(node, ast.Call) and script.dotted(node.func) == "int" and node.args:
        return _number(script, node.args[0])
    if isinstance(node, ast.Call) and script.dotted(node.func) in ("os.environ.get", "os.getenv"):
        return _number(script, next(iter(node.args[1:2]), None))
    value = constant(node)
    return int(value) if type(value) is int or (isinstance(value, str) and value.isdigit()) else None
