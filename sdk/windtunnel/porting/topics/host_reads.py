"""Values of the device that the host reads in each step of a training loop, and other waits for the device."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence

from windtunnel.porting.finding import Finding
from windtunnel.porting.nodes import arguments, calls_in, constant, handed, is_method, receiver
from windtunnel.porting.script import Loop, Script
from windtunnel.porting.subject import Subject, computes_gradients, names_rank
from windtunnel.porting.tensors import FETCHES

_NUMBERS = {"float", "int", "math.isnan", "math.isinf", "math.isfinite", "math.exp"}
"""Functions that need the value of a tensor."""
_LOGGERS = ("wandb.log", "mlflow.log_metric")
_WRITERS = ("add_scalar", "add_scalars", "add_histogram", "set_postfix")
"""Methods of TensorBoard's writer and of progress bars."""
_QUESTIONS = {"torch.isnan", "torch.isinf", "torch.isfinite"}
_ENDS = ("torch_xla.sync", "torch_xla.core.xla_model.mark_step")
_WAIT = "torch_xla.core.xla_model.wait_device_ops"
_OF_A_DEVICE = {
    "device", "cuda", "to", "autocast", "mpdeviceloader", "parallelloader", "per_device_loader", "optimizer_step",
    "reduce_gradients", "mark_step", "accelerator",
}  # fmt: skip
_LEAVES = (ast.Continue, ast.Return)
"""What follows one of these in a function that a step calls does not run in each step."""
_ON_THE_HOST = {"shape", "size", "dim", "ndim", "numel", "nelement", "stride", "dtype", "device"}
"""What a tensor knows without asking the device."""


def host_reads(subject: Subject) -> Iterator[Finding]:
    """Findings on `loss.item()` and its like, where they run in every step."""
    script = subject.script
    # With accelerate the loop is the script's own.
    accelerated = any("accelerate" in one.script.packages for one in subject.program)
    if not accelerated and (subject.managed or not subject.uses_device):
        return
    said: set[int] = set()
    for step, tensors in _on_the_device(subject):
        yield from _remarks(script, _each_step(step.body), tensors, said)
        yield from _waits(script, _each_step(step.body), said)
    for (where, function), (names, one, call) in _handed_over(tuple(subject.program)).items():
        if where is not subject or function in subject.steps:
            continue
        tensors = _Tensors(script, function, names)
        given = f", with a tensor of the device from {subject.line_in(one, call.lineno)}"
        yield from _remarks(script, _each_step(function.body, _LEAVES), tensors, said, given)
    for function, names in _of_buffers(subject) if subject.trains else ():
        tensors = _Tensors(script, function, names)
        given = ", of a buffer (a Python number beside it may do the counting)"
        yield from _remarks(script, _each_step(function.body, _LEAVES), tensors, said, given)


def _on_the_device(subject: Subject) -> Iterator[tuple[Loop | ast.FunctionDef, _Tensors]]:
    """The steps of a file with their tensors, without steps that run on the host for reference."""
    returning = _returning(subject)
    for step in subject.steps:
        if _names_a_device(subject.script.scope(step) if isinstance(step, Loop) else step):
            yield step, _Tensors(subject.script, step, steps=returning)


def _of_buffers(subject: Subject) -> Iterator[tuple[ast.FunctionDef, set[str]]]:
    """The forward passes of the file's modules, and methods that these always call; with the names of buffers."""
    for module in subject.script.nodes:
        if not isinstance(module, ast.ClassDef):
            continue
        methods = {one.name: one for one in module.body if isinstance(one, ast.FunctionDef)}
        names = {
            f"self.{constant(part.args[0])}"
            for part in calls_in(module)
            if part.args and ast.unparse(part.func) == "self.register_buffer"
        }
        reached = [methods["forward"]] if names and "forward" in methods else []
        for function in reached:  # grows in the loop
            yield function, names
            for part in _each_step(function.body, _LEAVES):
                if isinstance(part, ast.Call) and ast.unparse(part.func).startswith("self."):
                    called = methods.get(subject.script.called(part))
                    reached += [called] if called is not None and called not in reached else []


def _waits(script: Script, run: Iterable[ast.AST], said: set[int]) -> Iterator[Finding]:
    """Findings on calls that wait in each step and read nothing."""
    for node in run:
        if not isinstance(node, ast.Call) or node.lineno in said:
            continue
        name = script.dotted(node.func)
        first = [*node.args[:1], *(one.value for one in node.keywords if one.arg == "wait")]
        if (name in _ENDS and any(map(constant, first))) or name == _WAIT:
            said.add(node.lineno)
            yield Finding(
                node.lineno,
                f"{_shown(script, node)} in each step: the host waits for the device, and cannot record the next step "
                "meanwhile. Leave the wait out: reading a value waits anyway. To time steps, wait before and after "
                "many.",
                kind="host_read",
            )


def _remarks(
    script: Script, run: Iterable[ast.AST], tensors: _Tensors, said: set[int], given: str = ""
) -> Iterator[Finding]:
    """Findings on reads of these tensors in the code that is run; at most one a line."""
    for node in run:
        read, *of = _read(script, node) or (None,)
        if read is None or read.lineno in said:
            continue
        fetches = is_method(read, *FETCHES)  # only tensors, or numpy's arrays, have these
        if not any(tensors.gave(one, widely=fetches) for one in of):
            continue
        said.add(read.lineno)
        yield Finding(
            read.lineno,
            f"{_shown(script, read)} in each step{given}: the host waits for the device. Do this in "
            "xm.add_step_closure(fn, args=(tensor,)), or every N steps only. Keep sums on the device.",
            kind="host_read",
        )


@functools.lru_cache(maxsize=1)
def _handed_over(
    program: Sequence[Subject],
) -> dict[tuple[Subject, ast.FunctionDef], tuple[set[str], Subject, ast.Call]]:
    """The program's functions that a step calls with tensors of the device: the parameters, and the first such call."""
    found: dict[tuple[Subject, ast.FunctionDef], tuple[set[str], Subject, ast.Call]] = {}
    for one in program:
        for step, tensors in _on_the_device(one):
            for call in (node for node in _each_step(step.body) if isinstance(node, ast.Call)):
                for other, function in _called(program, one, call):
                    given = {name for name, value in handed(function, call) if tensors.gave(value)}
                    names, where, first = found.get((other, function), (set[str](), one, call))
                    if given:
                        found[other, function] = (names | given, where, first)
    return found


def _called(
    program: Sequence[Subject], one: Subject, call: ast.Call
) -> Iterator[tuple[Subject, ast.FunctionDef]]:
    """The program's function that a call surely is of: among several of this name the file's own; a method only of an
    object that the file makes of its class.
    """
    name = one.script.called(call)
    known = [other for other in program if name in other.script.functions]
    for other in known if len(known) == 1 else [other for other in known if other is one]:
        function = other.script.functions[name]
        owner = other.script.parents[function]
        if isinstance(owner, ast.ClassDef):
            made = (
                one.script.values(ast.unparse(call.func.value))
                if isinstance(call.func, ast.Attribute)
                else []
            )
            if not any(one.script.is_call_of(value, owner.name) for value in made):
                continue
        if any(to is call for _, to in other.calls_of(function)):
            yield other, function


def _returning(subject: Subject) -> set[str]:
    """The names of functions of the file that compute gradients, and return only values on the device."""
    found = set()
    for function in subject.steps:
        if isinstance(function, Loop) or not _names_a_device(function):
            continue
        tensors = _Tensors(subject.script, function)
        given = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
        values = [part for one in given for part in (one.elts if isinstance(one, ast.Tuple) else [one])]
        if values and all(value is not None and tensors.gave(value) for value in values):
            found |= {function.name, f"self.{function.name}"}
    return found


def _names_a_device(function: ast.AST) -> bool:
    """Whether a function, or the module, mentions a device."""
    return any(
        isinstance(node, ast.Name | ast.Attribute | ast.arg)
        and ast.unparse(node).rpartition(".")[2].lower() in _OF_A_DEVICE
        for node in ast.walk(function)
    )


def _shown(script: Script, read: ast.expr) -> str:
    text = script.segment(read)
    return f"{ast.unparse(read.func)}(...)" if isinstance(read, ast.Call) and "\n" in text else text


def _read(script: Script, node: ast.AST) -> tuple[ast.expr, ...] | None:
    """What reads a value at a node, and the expressions of which one must be a tensor for that; None: nothing reads."""
    if isinstance(node, ast.FormattedValue):
        return (node.value, node.value) if isinstance(node.value, ast.Name) else None
    if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
        asked = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
        if is_method(asked, "any", "all"):
            asked = receiver(asked)
        if isinstance(asked, ast.Call) and asked.args and script.dotted(asked.func) in _QUESTIONS:
            return asked, asked.args[0]
        return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(constant(node.left), str):
        return node, *(node.right.elts if isinstance(node.right, ast.Tuple) else [node.right])
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and (
        (node.func.attr in FETCHES and not node.args)
        or (node.func.attr == "to" and constant(next(iter(node.args), None)) == "cpu")
    ):
        return node, node.func.value
    if script.dotted(node.func) in _NUMBERS and len(node.args) == 1:
        return node, node.args[0]
    if _is_logger(script, node):
        given = (*node.args, *(one.value for one in node.keywords))
        return node, *(part for one in given for part in (one.values if isinstance(one, ast.Dict) else [one]))
    return None


def _is_logger(script: Script, call: ast.Call) -> bool:
    """Whether a call logs the numbers that it is given, or makes text of them."""
    called = script.dotted(call.func)
    formats = is_method(call, "format") and isinstance(constant(receiver(call)), str)
    return called == "print" or called.startswith(_LOGGERS) or is_method(call, *_WRITERS) or formats


class _Tensors:
    """Names that surely hold tensors of the device in a step: `.backward()` is called on them, the trained model
    returns them, or they are computed from such.

    ``given``: parameters that hold such tensors; ``steps``: functions that return them.
    """

    def __init__(
        self,
        script: Script,
        step: Loop | ast.FunctionDef,
        given: Collection[str] = (),
        steps: Collection[str] = (),
    ) -> None:
        self._script = script
        self._models = {*script.models, *steps}
        assigned = list(_assignments(step))
        self._assigned = {*given, *(name for name, _ in assigned)}
        self._fetched: dict[str, int] = {}  # the line from which on a name holds a value of the host
        for name, value in assigned:
            if any(_read(script, part) for part in ast.walk(value)):
                self._fetched.setdefault(name, value.lineno)
        self._names = set(given)
        for node in calls_in(step):
            if computes_gradients(node):
                # accelerator.backward(loss) has the tensor as its argument, loss.backward() before the point
                of_tensor = is_method(node, "backward") and not node.args
                self._names |= self._sources(receiver(node) if of_tensor else arguments(node)[0])
        while found := {name for name, value in assigned if self.gave(value)} - self._names:
            self._names |= found
        self._made = set(self._names)
        while found := {name for name, value in assigned if self.gave(value, widely=True)} - self._made:
            self._made |= found

    def gave(self, node: ast.expr, *, widely: bool = False) -> bool:
        """Whether an expression is computed from one of these names, and is still on the device.

        ``widely``: also by functions that are given one, whatever they make of it, and by the model's methods.
        """
        names = self._made if widely else self._names
        return any(
            name in (names | self._models) and node.lineno <= self._fetched.get(name, sys.maxsize)
            for name in self._sources(node, widely=widely)
        )

    def _sources(self, node: ast.AST, *, widely: bool = False) -> set[str]:
        """Names that an expression is computed from, so that it is a tensor if they are."""
        if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in self._assigned:
            return {ast.unparse(node)}
        parts: list[ast.AST] = []
        if isinstance(node, ast.Attribute | ast.Subscript | ast.NamedExpr | ast.Starred):
            parts = [] if isinstance(node, ast.Attribute) and node.attr in _ON_THE_HOST else [node.value]
        elif isinstance(node, ast.BinOp):
            parts = [node.left, node.right]
        elif isinstance(node, ast.UnaryOp):
            parts = [node.operand]
        elif isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and _read(self._script, node) is None:
            called = ast.unparse(node.func)
            if called in self._models:
                return {called}
            if widely and called.rpartition(".")[0] in self._models:
                return {called.rpartition(".")[0]}
            if widely and not self._reads(node):
                parts = [*node.args]
            if self._script.dotted(node.func).startswith("torch.") or is_method(node, "scale"):
                parts = [*node.args]
            elif isinstance(node.func, ast.Attribute) and node.func.attr not in _ON_THE_HOST:
                parts += [node.func.value]
        elif widely and isinstance(node, ast.ListComp | ast.DictComp | ast.GeneratorExp):
            parts = [] if any(map(self._reads, ast.walk(node))) else [one.iter for one in node.generators]
        return {name for part in parts for name in self._sources(part, widely=widely)}

    def _reads(self, node: ast.AST) -> bool:
        """Whether a node fetches a value, or calls a function of the file that does."""
        function = self._script.functions.get(self._script.called(node))
        within = [node, *(ast.walk(function) if function is not None else ())]
        return any(_read(self._script, part) is not None for part in within)


def _assignments(step: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(step):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.NamedExpr):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for one in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
                    if isinstance(one, ast.Name | ast.Attribute):
                        yield ast.unparse(one), node.value


def _each_step(
    nodes: Iterable[ast.AST], ends: tuple[type[ast.stmt], ...] = (ast.Continue,)
) -> Iterator[ast.AST]:
    """What runs in every pass, on one rank at least; nothing behind a `continue`. A step that returns early, as there
    is too little data to learn from yet, does not count.
    """
    for node in nodes:
        yield node
        yield from _each_step(_always(node), ends)
        if isinstance(node, ast.For | ast.While):
            continue  # a `continue` in it is its own
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue  # and so is a `return`
        if (
            isinstance(node, ast.stmt)
            and not _skips_the_first(node)
            and any(isinstance(part, ends) for part in ast.walk(node))
        ):
            return


def _skips_the_first(statement: ast.stmt) -> bool:
    """Whether a condition only asks how far the loop has come, as ``if step < resumed: continue``: what follows runs in
    all steps except some at the start, or at the end.
    """
    if not isinstance(statement, ast.If):
        return False
    tests = statement.test.values if isinstance(statement.test, ast.BoolOp) else [statement.test]
    orders = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.IsNot)
    return all(
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], orders)
        and not any(isinstance(part, ast.BinOp) for part in ast.walk(test))
        for test in tests
    )


def _always(node: ast.AST) -> Iterable[ast.AST]:
    """The parts of a node that run whenever it does."""
    if isinstance(node, ast.If) and names_rank(ast.unparse(node.test)) and not _varies(node.test):
        return [node.test, *node.body]
    if isinstance(node, ast.If) and _asks_for_a_tensor(node.test):
        return [node.test, *node.body]
    if isinstance(node, ast.If | ast.IfExp):
        return [node.test]
    if isinstance(node, ast.BoolOp):
        return node.values[:1]
    if isinstance(node, ast.Try):
        return [*node.body, *node.finalbody]
    if isinstance(node, ast.For):
        return [node.iter, *node.body]
    if isinstance(node, ast.Match):
        return [node.subject]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return []
    return ast.iter_child_nodes(node)


def _asks_for_a_tensor(test: ast.expr) -> bool:
    """Whether it is as ``isinstance(value, torch.Tensor)``, below which only tensors are reported."""
    if not isinstance(test, ast.Call):
        return False
    named = {ast.unparse(one).rpartition(".")[2] for one in (test.func, *test.args)}
    return "is_tensor" in named or named >= {"isinstance", "Tensor"}


def _varies(test: ast.expr) -> bool:
    """Whether a test of the rank asks for something else, too, as for every tenth step."""
    return any(isinstance(node, ast.BoolOp | ast.BinOp) for node in ast.walk(test))
