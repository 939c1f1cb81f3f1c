"""The processes: their group, the wrapper of the model, and what starts them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.finding import Edit, Finding, replaced, with_argument, without_argument
from windtunnel.porting.nodes import (
    argument,
    arguments,
    brings_torch,
    calls_in,
    constant,
    is_main,
    is_method,
    keyword,
    parameters,
)
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject
from windtunnel.porting.topics.some_ranks import is_lone

_STARTS = (".spawn", ".launch")
_FACTORIES = {
    f"torch.{name}" for name in ("rand", "randn", "randint", "zeros", "ones", "full", "arange", "tensor")
}
_SPAWNS = ("torch.multiprocessing.spawn", "torch.multiprocessing.spawn.spawn")
_PROCESSES = ("torch.multiprocessing.Process", "multiprocessing.Process")
_ADDRESS = ("MASTER_ADDR", "MASTER_PORT")


def groups(subject: Subject) -> Iterator[Finding]:
    """Findings on processes without a group, and on wrappers and starts that are for GPUs."""
    yield from _no_group(subject)
    yield from _wrappers(subject)
    yield from _made_on_the_host(subject)
    yield from _own_address(subject)
    yield from _local_rank(subject)
    yield from _own_url(subject)
    yield from _barriers(subject)
    for call, name in subject.script.calls:
        if name in _SPAWNS:
            yield Finding(
                call.lineno,
                "torch.multiprocessing.spawn starts a process for each GPU. On trn1 torchrun starts one for each "
                "NeuronCore: call the function once, with RANK and WORLD_SIZE of the environment (or use xmp.spawn).",
            )
        elif name in _PROCESSES and subject.several and subject.uses_device:
            target = argument(call, "target")
            if target and _starts_training(subject, call):
                yield Finding(
                    call.lineno,
                    "torchrun starts a process for each NeuronCore; one that is started here has no core. Call "
                    f"{subject.script.segment(target)} once, and let the processes exchange gradients. They "
                    "cannot share one model: the device's memory is not shared (share_memory raises).",
                )


def start_of_as_many(subject: Subject, count: ast.Call) -> tuple[Subject, ast.Call] | None:
    """The program's call that starts as many processes as a call counts, with its file; None: there is none."""
    for one in subject.program:
        for call, name in one.script.calls:
            numbers: list[ast.expr] = []
            if name in _SPAWNS and (told := argument(call, "nprocs", 2)) is not None:
                numbers = [told]
            elif name in _PROCESSES and _starts_training(one, call):
                numbers = [loop.iter for loop in one.script.iterations(call)]
            if any(_comes_from(one, number, count, set()) for number in numbers):
                return one, call
    return None


def _comes_from(one: Subject, value: ast.expr, call: ast.Call, seen: set[ast.AST]) -> bool:
    """Whether a value is computed from a call's, perhaps by names and by what functions are given or return."""
    if value in seen:
        return False
    seen.add(value)
    for part in ast.walk(value):
        if part is call:
            return True
        given: list[tuple[Subject, ast.expr]] = []
        if isinstance(part, ast.Name | ast.Attribute):
            scopes, name = one.script.scopes(part), ast.unparse(part)
            given += one.passed(scopes[0], name)
            if isinstance(part, ast.Attribute) or name not in parameters(scopes[0]):
                seen_there = (made for made in one.script.values(name) if one.script.scope(made) in scopes)
                given += ((one, made) for made in seen_there)
        elif isinstance(part, ast.Call):
            for other in one.program:
                function = other.script.functions.get(one.script.called(part))
                returned = (
                    [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
                    if function
                    else []
                )
                given += ((other, made) for made in returned if made is not None)
        if any(_comes_from(other, made, call, seen) for other, made in given):
            return True
    return False


def _starts_training(subject: Subject, call: ast.Call) -> bool:
    target = argument(call, "target")
    return target is not None and _trains(subject, subject.script.dotted(target).rpartition(".")[2])


def _trains(subject: Subject, name: str) -> bool:
    """Whether a function of the program computes gradients in a loop, or calls one that does."""
    loops = {one.script.scope(loop) for one in subject.program for loop in one.training_loops}
    return any(
        function in loops
        or any(one.script.called(call) in subject.training_functions for call in calls_in(function))
        for one in subject.program
        if (function := one.script.functions.get(name)) is not None
    )


def _no_group(subject: Subject) -> Iterator[Finding]:
    """A script for one GPU joins no process group, which several cores need. It is the started file that joins."""
    script = subject.script
    starts = ("spawn", "launch", "init_distributed", "init_device_mesh")
    started = any(one.script.joins_group("") or one.script.calls_any(*starts) for one in subject.program)
    if (
        not subject.several
        or subject.managed
        or subject.parallel_model
        or started
        or not subject.trains
        or subject is not subject.program[0]
    ):
        return
    if not subject.cuda and (not subject.xla or subject.exchanges):
        return
    imports = script.first_imports
    line = imports[-1].lineno if imports else 1
    edits: tuple[Edit, ...] = ()
    first = _first_of_main(script)
    known = first is not None or any(map(brings_torch, imports))
    if subject.whole and known and imports and script.is_alone(imports[-1]):
        join = f'{subject.names.module("torch")}.distributed.init_process_group("xla"){script.newline}'
        if first is not None:
            line, place, join = first.lineno, script.lines[first.lineno - 1], script.before(first) + join
        else:
            place, join = script.lines[imports[-1].end_lineno or 0], script.newline + join
        edits = (Edit(place, place, join),)
    yield Finding(
        line,
        "no process group: torchrun starts a process for each NeuronCore. Let each join the group, with "
        'torch.distributed.init_process_group("xla").',
        edits,
        sure=subject.whole,
    )


def _first_of_main(script: Script) -> ast.stmt | None:
    """Where the program begins if it is started: code that imports the script, to serve its model, joins no group."""
    for node in script.tree.body:
        if isinstance(node, ast.For | ast.While):
            return None  # the script trains when it is imported
        if isinstance(node, ast.If) and is_main(node):
            return node.body[0] if script.is_alone(node.body[0]) else None
    return None


def _wrappers(subject: Subject) -> Iterator[Finding]:
    script, lines = subject.script, list[int]()
    for call, name in script.calls:
        last = name.rpartition(".")[2]
        if last == "DataParallel" and name.startswith("torch."):
            yield Finding(
                call.lineno, "DataParallel finds no GPU, and does nothing. Leave it out: torchrun has a "
                "process for each NeuronCore.",
            )  # fmt: skip
        if name.startswith("torch.distributed.fsdp") and last in ("FullyShardedDataParallel", "fully_shard"):
            yield Finding(
                call.lineno, f"torch's {last} does not know the device xla, and raises. torch_xla has its own: "
                "torch_xla.distributed.fsdp.XlaFullyShardedDataParallel(model).",
            )  # fmt: skip
        of_torch = name == last or name.startswith("torch.")  # apex has one, and scripts of their own
        if last != "DistributedDataParallel" or not of_torch or keyword(call, "gradient_as_bucket_view"):
            continue
        gpu = [one for one in call.keywords if one.arg in ("device_ids", "output_device")]
        if not gpu and not subject.cuda:
            continue
        view = "gradient_as_bucket_view=True"
        edits = [without_argument(script, call, one) for one in gpu[1:]]
        edits.append(replaced(script, gpu[0], view) if gpu else with_argument(script, call, view))
        yield Finding(
            call.lineno,
            f"DistributedDataParallel {'takes no GPU number' if gpu else 'needs one more argument'} on Trainium: "
            f"DistributedDataParallel(model, {view}).",
            tuple(edits),
        )
        lines.append(call.lineno)
    if lines:
        yield Finding(
            lines[0],
            "on trn1 its gradients may not be exchanged: with gradient_as_bucket_view=True torch_xla 2.9 alone was "
            "seen not to, which no rehearsal shows. Prefer the model without DistributedDataParallel: "
            f"{subject.names.module('xm')}.broadcast_master_param(model) once it is on the device, and "
            f"{subject.names.module('xm')}.optimizer_step(optimizer).",
            sure=False,
            kind="no_exchange",
        )


def _made_on_the_host(subject: Subject) -> Iterator[Finding]:
    """Tensors made in the call of a model: with a GPU's number DistributedDataParallel moves them to the device."""
    script = subject.script
    wrapped = {
        target for target, made in script.assigned if script.is_call_of(made.value, "DistributedDataParallel")
    }
    for call, _ in script.calls:
        if ast.unparse(call.func) not in wrapped or not subject.uses_device:
            continue
        for given in arguments(call):
            if not isinstance(given, ast.Call) or script.dotted(given.func) not in _FACTORIES:
                continue
            if not keyword(given, "device"):
                device = subject.device_at(call)
                yield Finding(
                    given.lineno,
                    "without a GPU number DistributedDataParallel moves nothing to the device, and the model raises "
                    f"on a tensor of the host (Expected XLA tensor). Write {script.segment(given)}.to({device}).",
                    (Edit(script.end(given), script.end(given), f".to({device})"),),
                )


def _own_address(subject: Subject) -> Iterator[Finding]:
    """An address of the processes' meeting that overwrites torchrun's: no server listens there, and all wait for it."""
    script = subject.script
    own_start = any(name.startswith("torch_xla.") and name.endswith(_STARTS) for _, name in script.calls)
    if not subject.several or not subject.uses_device or own_start:
        return
    for node in script.walk(ast.Assign):
        if not isinstance(target := node.targets[0], ast.Subscript):
            continue
        if any(isinstance(one, ast.If) and not is_main(one) for one in script.above(node)):
            continue
        place, name = script.dotted(target.value), constant(target.slice)
        if place != "os.environ" or name not in _ADDRESS or constant(node.value) is None:
            continue
        instead = f'{script.segment(target.value)}.setdefault("{name}", {script.segment(node.value)})'
        yield Finding(
            node.lineno,
            f"torchrun sets {name}, where its own server listens. With another value init_process_group waits for a "
            "server that nobody starts.",
            (replaced(script, node, instead),),
        )


def _own_url(subject: Subject) -> Iterator[Finding]:
    """An address option in a script that reads the number of processes from the environment only for "env://"."""
    script = subject.script
    asks = any(
        isinstance(node, ast.Compare) and "env://" in map(constant, (node.left, *node.comparators))
        for node in script.nodes
    )
    if not subject.several or not asks or not subject.uses_device:
        return
    for call, _ in script.calls:
        default = argument(call, "default")
        url = constant(default)
        if default and is_method(call, "add_argument") and isinstance(url, str) and url.startswith("tcp://"):
            yield Finding(
                call.lineno,
                'only with "env://" does the script read the number of processes from torchrun\'s environment: with '
                f'{script.segment(default)} each process thinks it is alone. Write default="env://".',
                (replaced(script, default, '"env://"'),),
                kind="no_exchange",
            )


def _local_rank(subject: Subject) -> Iterator[Finding]:
    """The option of torch.distributed.launch by which a script tells whether it is one of several processes."""
    script = subject.script
    known = any(constant(node) == "LOCAL_RANK" for one in subject.program for node in one.script.nodes)
    known |= any("local_rank" in target for one in subject.program for target, _ in one.script.assigned)
    if not subject.several or known or not any(map(_asks_for_local_rank, subject.program)):
        return
    for call, _ in script.calls:
        default = argument(call, "default")
        named = {constant(one) for one in call.args} & {"--local_rank", "--local-rank"}
        if is_method(call, "add_argument") and named and default and ast.unparse(default) == "-1":
            instead = subject.names.told_by_torchrun("LOCAL_RANK", -1)
            yield Finding(
                call.lineno,
                "torchrun sets LOCAL_RANK in the environment and gives no such argument: with -1 each process thinks "
                f"it is alone, and joins no group. Write default={instead}.",
                (replaced(script, default, instead),),
                kind="no_exchange",
            )


def _barriers(subject: Subject) -> Iterator[Finding]:
    """`torch.distributed.barrier()` of all processes; a group passed to it may have another backend."""
    gloo = subject.xla and any(one.script.joins_group("gloo") for one in subject.program)
    if not subject.several or gloo or not subject.uses_device:
        return
    for call, name in subject.script.calls:
        options = {one.arg for one in call.keywords}
        waits_for_ever = is_lone(subject, call, name)  # if barrier() waited
        if name != "torch.distributed.barrier" or waits_for_ever:
            continue
        if not call.args and options <= {"device_ids"}:
            waits = f'{subject.names.module("xm")}.rendezvous("barrier")'
            yield Finding(
                call.lineno,
                f"barrier() does nothing in the process group xla: no process waits. {waits} waits for all, and runs "
                "all that is pending.",
                (replaced(subject.script, call, waits),),
            )


def _asks_for_local_rank(one: Subject) -> bool:
    return any(
        isinstance(node, ast.Compare)
        and ast.unparse(node.left).endswith("local_rank")
        and ast.unparse(node).endswith(("== -1", "!= -1", "> -1", ">= 0"))
        for node in one.script.nodes
    )
