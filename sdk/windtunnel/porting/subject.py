"""What several topics ask about a script: its device, its training loops, and which library trains for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cached_property

from windtunnel.porting import trainers
from windtunnel.porting.loaders import Loaders
from windtunnel.porting.names import Names
from windtunnel.porting.nodes import (
    argument,
    arguments,
    computes_gradients,
    constant,
    default_of,
    handed,
    is_method,
    is_optimizer,
    names_rank,
    parameters,
    receiver,
)
from windtunnel.porting.script import Loop, Script

_ACCELERATOR = "torch.accelerator.current_accelerator"
_CHOSEN = (_ACCELERATOR, "torch_geometric.device")
"""Calls that find out which device there is: none of these knows a NeuronCore."""
_CUDA = re.compile(r"cuda(:|$)")
_DEVICE = re.compile("device|rank|gpu|xla", re.IGNORECASE)
_GPU = re.compile(r"gpu|local_?rank", re.IGNORECASE)
_EXCHANGES = (
    "optimizer_step", "reduce_gradients", "all_reduce", "all_reduce_bucketized_gradients", "reduce_scatter",
    "ZeroRedundancyOptimizer", "FullyShardedDataParallel", "XlaFullyShardedDataParallel", "FSDP", "fully_shard",
    "average_gradients", "parallelize_module", "NeuronZero1Optimizer", "auto_optim",
)  # fmt: skip


class Subject:
    """A file of a program, and where it is to run. ``several``: on several cores, each with a process of its own."""

    def __init__(self, script: Script, version: str, *, several: bool) -> None:
        self.script = script
        self.names = Names(script, version)
        self.loaders = Loaders(script)
        self.several = several
        self.program = [self]
        """All files of the program that are read; the first is the one that is started."""
        self.whole = True
        """Whether these are all files of the program, so that what they lack is missing."""
        self.absent: Mapping[str, str] = {}
        """Packages of AWS's images that the job lacks, with what is said of each."""

    def line_in(self, other: Subject, line: int) -> str:
        """How a remark on this file names a line of the program: "line 3", or "line 3 of data.py"."""
        return f"line {line}" + ("" if other is self else f" of {other.script.path.name}")

    # --- device ---

    def is_cuda_device(self, node: ast.AST | None) -> bool:
        """Whether an expression names a CUDA device: ``"cuda:0"``, ``torch.device("cuda" if ... else "cpu")``."""
        if isinstance(node, ast.Constant):
            return isinstance(node.value, str) and bool(_CUDA.match(node.value))
        if isinstance(node, ast.JoinedStr):
            return bool(node.values) and self.is_cuda_device(node.values[0])
        if isinstance(node, ast.IfExp):
            more = isinstance(node.test, ast.BoolOp)  # such as `torch.cuda.is_available() and not args.cpu`
            more |= any(map(self.is_xla_device, (node.body, node.orelse)))
            return not more and (self.is_cuda_device(node.body) or self.is_cuda_device(node.orelse))
        if isinstance(node, ast.Attribute):
            return node.attr == "type" and self.is_cuda_device(node.value)
        if isinstance(node, ast.BinOp):
            return self.is_cuda_device(node.left)
        if isinstance(node, ast.Call):
            if self.script.dotted(node.func) in _CHOSEN:
                return True
            if self.script.dotted(node.func) == "torch.device":
                given = arguments(node)[:1]
                number = any(map(_numbers_gpu, given)) and not self.xla
                return number or any(
                    self.is_cuda_device(value) or self._numbers_accelerator(value) for value in given
                )
            return is_method(node, "format") and self.is_cuda_device(receiver(node))
        return False

    def _numbers_accelerator(self, node: ast.expr) -> bool:
        """Whether it is ``f"{acc}:{rank}"``, where acc comes from torch.accelerator."""
        (first, *_) = [*(node.values if isinstance(node, ast.JoinedStr) else []), node]
        return (
            isinstance(first, ast.FormattedValue)
            and ast.unparse(first.value).removesuffix(".type") in self._accelerators
        )

    @cached_property
    def _accelerators(self) -> set[str]:
        return {
            target
            for target, node in self.script.assigned
            if _ACCELERATOR in map(self.script.dotted, ast.walk(node.value))
        }

    def is_cuda_place(self, node: ast.expr) -> bool:
        """Whether a map_location names a CUDA device, or a variable that holds CUDA's device or torch_xla's."""
        held = {
            target
            for target, made in self.script.assigned
            if self._is_device(made.value) or self._numbers_accelerator(made.value)
        }
        functions = {*self.script.functions.values()}
        held |= {
            name for one in functions for name in parameters(one) if self._is_device(default_of(one, name))
        }
        return ast.unparse(node) in held or any(
            self.is_cuda_device(part)
            or is_method(part, "cuda")
            or (isinstance(part, ast.JoinedStr) and self._numbers_accelerator(part))
            for part in ast.walk(node)
        )

    @cached_property
    def cuda(self) -> bool:
        """Whether the program is written for CUDA."""
        return any(one._is_for_cuda for one in self.program)

    @cached_property
    def uses_device(self) -> bool:
        """Whether the program is written for CUDA, or for torch_xla's device."""
        return self.cuda or self.xla

    @cached_property
    def _is_for_cuda(self) -> bool:
        named = any(self.is_cuda_device(node) for node in self.script.nodes)
        return (
            named
            or bool(self.gpu_numbers)
            or any(
                name.startswith(("torch.cuda.", "torch.accelerator.")) or is_method(call, "cuda")
                for call, name in self.script.calls
            )
        )

    def device_given(self, call: ast.Call) -> ast.expr | None:
        """The argument that tells ``x.to(...)``, or a function of torch, the device; None: none does."""
        if is_method(call, "to"):
            return argument(call, "device", 0)
        return argument(call, "device") if self.script.dotted(call.func).startswith("torch.") else None

    @cached_property
    def gpu_numbers(self) -> set[str]:
        """Expressions that hold the number of a GPU, and are no name of a device: what set_device and device_ids get,
        and without torch_xla also `.to(gpu_id)`, `.to(0)` and `device=gpu_id`.
        """
        found: list[ast.AST] = []
        for call, name in self.script.calls:
            if name == "torch.cuda.set_device":
                found += call.args
            ids = argument(call, "device_ids")
            found += ids.elts if isinstance(ids, ast.List) else []
            given = self.device_given(call)
            if given is not None and _numbers_gpu(given) and not self.xla:
                found.append(given)
        return {
            ast.unparse(node)
            for node in found
            if isinstance(node, ast.Name | ast.Attribute | ast.Constant)
            and not self.is_cuda_place(node)
            and (not ast.unparse(node).endswith("device") or self._counts(node))
        }

    def _counts(self, node: ast.AST) -> bool:
        """Whether a name is given a number, as a rank or the rest of a division, or nothing, as a parameter."""
        given = self.script.values(ast.unparse(node))
        texts = map(ast.unparse, given)
        return not given or any(names_rank(one) or "gpu" in one or "%" in one for one in texts)

    @cached_property
    def xla(self) -> bool:
        """Whether the program imports torch_xla."""
        return any("torch_xla" in one.script.packages for one in self.program)

    def is_xla_device(self, node: ast.AST | None) -> bool:
        """Whether an expression is torch_xla's device."""
        return self.script.callee(node) in ("torch_xla.device", "torch_xla.core.xla_model.xla_device")

    def _is_device(self, node: ast.AST | None) -> bool:
        return self.is_xla_device(node) or self.is_cuda_device(node) or constant(node) == "xla"

    @cached_property
    def _named_devices(self) -> list[tuple[str, ast.stmt]]:
        """Names that hold a device, with the statements that assign it."""
        return [
            (target, node)
            for target, node in self.script.assigned
            if target.isidentifier() and self._is_device(node.value)
        ]

    def device_at(self, place: ast.AST) -> str:
        """An expression for the device at a place: the script's own name for it, if it has one there."""
        here, *_ = scopes = self.script.scopes(place)
        line = getattr(place, "lineno", 0)
        for scope in scopes:
            for name, made in self._named_devices:
                # Of the same block or one around it; methods do not see the names of their class.
                of_a_class = isinstance(self.script.parents[made], ast.ClassDef)
                around = self.script.block_that_gives(made, name) in (scope, *self.script.above(place))
                visible = around and self.script.scope(made) is scope and not of_a_class
                if name in parameters(scope) or (visible and (scope is not here or made.lineno < line)):
                    return name
        return self.names.device()

    @cached_property
    def moves(self) -> list[ast.Call]:
        """Calls of ``something.to(device)`` and ``something.cuda()``."""
        return [
            call
            for call, name in self.script.calls
            if (is_method(call, "cuda") and name != "torch.cuda")
            or (is_method(call, "to") and any(map(self._may_be_device, arguments(call))))
        ]

    def _may_be_device(self, node: ast.expr) -> bool:
        return self._is_device(node) or bool(_DEVICE.search(ast.unparse(node)))

    # --- training ---

    @cached_property
    def managed(self) -> bool:
        """Whether a library runs the training loop."""
        return trainers.run_the_loop([one.script for one in self.program])

    @cached_property
    def sends_no_weights(self) -> bool:
        """Whether the library that runs the loop leaves the weights of each process's model as they are."""
        return trainers.send_no_weights([one.script for one in self.program])

    def calls_of(self, function: ast.AST) -> list[tuple[Subject, ast.Call]]:
        """The program's calls of a function of this file, with their files; empty for what is no function.

        ``x.name()`` calls a method, or a function of a module: `generator.train()` is no call of the script's own
        function `train`.
        """
        if not isinstance(function, ast.FunctionDef):
            return []
        owner = self.script.parents[function]
        of_a_class = isinstance(owner, ast.ClassDef)
        name = (
            owner.name if isinstance(owner, ast.ClassDef) and function.name == "__init__" else function.name
        )
        return [
            (one, call)
            for one, call in self.program[0].calls_by_name.get(name, ())
            if not isinstance(call.func, ast.Attribute)
            or (of_a_class and name == function.name and not _is_of_torch(one.script, call.func))
            or _is_of_a_module(one.script, call.func)
        ]

    def passed(self, function: ast.AST, name: str) -> list[tuple[Subject, ast.expr]]:
        """What the program's calls of a function pass to its parameter, with the files of these calls."""
        if not isinstance(function, ast.FunctionDef) or name not in parameters(function):
            return []
        return [
            (one, value)
            for one, call in self.calls_of(function)
            for parameter, value in handed(function, call)
            if parameter == name
        ]

    @cached_property
    def calls_by_name(self) -> dict[str, list[tuple[Subject, ast.Call]]]:
        """The program's calls by the last name of what is called."""
        found: dict[str, list[tuple[Subject, ast.Call]]] = {}
        for one in self.program:
            for call, _ in one.script.calls:
                found.setdefault(one.script.called(call), []).append((one, call))
        return found

    @cached_property
    def training_loops(self) -> list[Loop]:
        """Loops in which gradients are computed, there or in a function called there.

        Of nested loops it is the innermost over a DataLoader, else the innermost.
        """
        found: list[Loop] = []
        for one in self.program:
            for call in one._gradients:
                places: list[ast.AST] = [call] if one is self else []
                function = one.script.scope(call)
                if isinstance(function, ast.FunctionDef) and not one.loops_around(call):
                    places = [place for other, place in one._callers(function) if other is self]
                for loops in map(self.loops_around, places):
                    over_data = [loop for loop in loops if self.loaders.iterated(loop) is not None]
                    found += (over_data or loops)[:1]
        return list(dict.fromkeys(found))

    @cached_property
    def _gradients(self) -> list[ast.Call]:
        """The calls of this file that compute gradients."""
        return [call for call, _ in self.script.calls if computes_gradients(call)]

    def _callers(self, function: ast.FunctionDef) -> list[tuple[Subject, ast.AST]]:
        """The program's calls of a function, and this file's to which it is passed, as ``optimizer.step(closure)``.

        Other files' only if no other file has a function of this name.
        """
        passed = (
            call
            for call, _ in self.script.calls
            for value in arguments(call)
            if isinstance(value, ast.Name) and value.id == function.name
        )
        alone = sum(function.name in one.script.functions for one in self.program) == 1
        calls = [(one, call) for one, call in self.calls_of(function) if alone or one is self]
        return [*calls, *((self, call) for call in passed)]

    @cached_property
    def steps(self) -> list[Loop | ast.FunctionDef]:
        """What runs once a step or more: the training loops, and functions called there that compute gradients."""
        functions = [
            one
            for one in map(self.script.scope, self._gradients)
            if isinstance(one, ast.FunctionDef)
            and any(
                loop in other.training_loops
                for other, call in self._callers(one)
                for loop in other.loops_around(call)
            )
        ]
        return list(dict.fromkeys([*self.training_loops, *functions]))

    @cached_property
    def training_functions(self) -> set[str]:
        """The names of the program's functions with a training loop; empty for one that is in no function."""
        return {one.script.scope_name(loop) for one in self.program for loop in one.training_loops}

    def has_trained(self, place: ast.Call) -> bool:
        """Whether something trains before a call, in the same function."""
        before: list[ast.stmt | ast.expr] = [*self.training_loops]
        before += [
            call
            for call, _ in self.script.calls
            if self.script.called(call) in self.training_functions - {""} or trainers.trains(call)
        ]
        scope = self.script.scope(place)
        return any(one.lineno < place.lineno and self.script.scope(one) is scope for one in before)

    def loops_around(self, node: ast.AST) -> list[Loop]:
        """The loops around a node in the same function, from the inside out."""
        return [one for one in self.script.above_within(node) if isinstance(one, Loop)]

    @cached_property
    def optimizers(self) -> set[str]:
        """Expressions that hold an optimizer: made of torch's classes, or with a call of `zero_grad`."""
        made = {
            target for target, node in self.script.assigned if is_optimizer(self.script.callee(node.value))
        }
        return made | {
            ast.unparse(receiver(call)) for call, _ in self.script.calls if is_method(call, "zero_grad")
        }

    @cached_property
    def parallel_model(self) -> bool:
        """Whether DistributedDataParallel exchanges the gradients."""
        return any(one.script.calls_any("DistributedDataParallel") for one in self.program)

    @cached_property
    def exchanges(self) -> bool:
        """Whether anything exchanges gradients."""
        return (
            self.parallel_model
            or any(one.script.calls_any(*_EXCHANGES) for one in self.program)
            or any("neuronx_distributed" in one.script.packages for one in self.program)
        )

    @cached_property
    def trains(self) -> bool:
        """Whether there is a training loop in any file of the program."""
        return any(one.training_loops for one in self.program)


def _is_of_a_module(script: Script, function: ast.Attribute) -> bool:
    """Whether a function may be of a module of the program: `torch.save` is not the script's own `save`."""
    imported = script.imports.get(ast.unparse(function).partition(".")[0], "torch")
    return imported.partition(".")[0] not in ("torch", "torch_xla")


def _is_of_torch(script: Script, function: ast.Attribute) -> bool:
    """Whether it is a function of torch, and so no method of the program."""
    return script.dotted(function).startswith(("torch.", "torch_xla."))


def _numbers_gpu(node: ast.expr) -> bool:
    named = isinstance(node, ast.Name | ast.Attribute) and _GPU.search(ast.unparse(node))
    return type(constant(node)) is int or bool(named)
