"""Shapes that change from batch to batch: each makes a graph of its own, which is compiled by itself."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator

from windtunnel.porting.finding import Finding
from windtunnel.porting.nodes import argument, arguments, calls_in, constant, is_method, keyword, receiver
from windtunnel.porting.on_the_device import runs_on_the_device
from windtunnel.porting.reads import ORDERS, Tensors
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject
from windtunnel.porting.tensors import FETCHES
from windtunnel.porting.topics.cpu_fallbacks import is_of_tensors

_COLLATORS = re.compile(r"DataCollator(ForSeq2Seq|WithPadding|ForLanguageModeling|ForTokenClassification)$")
_LONGEST = (True, "longest")
_MAX = ("max", "numpy.max", "torch.max")
_BLOCKS = ("TextDataset", "ConstantLengthDataset")
_KEPT_LENGTH = re.compile(r"(length|len\(.*\)) == [\w.]*(length|len|size)")
_PACKS = (".pack_padded_sequence", ".pack_sequence")
_CHANCE = re.compile(
    r"random\.(random|uniform|randint)|numpy\.random\.(rand|random|uniform|randint)|torch\.rand"
)
BY_DATA = {"nonzero", "masked_select", "unique", "unique_consecutive", "argwhere"}
_COMPARES = (
    "bool", "gt", "ge", "lt", "le", "eq", "ne", "isnan", "isfinite", "logical_and", "logical_or", "logical_not",
)  # fmt: skip
_RESHAPES = ("view", "reshape", "flatten", "squeeze", "unsqueeze", "expand", "expand_as")
_OF_GRAPHS = (
    "each batch has another number of nodes and edges, so each is a graph to compile. Pad both to a fixed number, "
    "with torch_geometric.transforms.Pad"
)
_LIBRARIES = {
    "torch_geometric.loader.": _OF_GRAPHS,
    "dgl.dataloading.": _OF_GRAPHS,
    "torchvision.models.detection.": "the model finds another number of boxes in each image, so each is a graph to "
    "compile. A model with a fixed number of queries, such as DETR, keeps its shapes",
}
"""Calls of libraries with which shapes change, whatever the script does."""


def of_lengths(subject: Subject) -> Iterator[Finding]:
    """Calls that pad a batch to its longest sample; not where the program pads to one length."""
    if not (subject.uses_device or subject.managed) or any(map(_pads_to_one, subject.program)):
        return
    equal = any(map(_cuts_to_one, subject.program))
    for call, name in subject.script.calls:
        grouped = constant(argument(call, "group_by_length")) is True
        collates = bool(_COLLATORS.search(name)) and not keyword(call, "pad_to_multiple_of")
        collates = collates and not (equal and name.endswith("ForLanguageModeling"))
        longest = constant(argument(call, "padding")) in _LONGEST and _is_of_a_batch(subject, call)
        padded = name.endswith(".pad_sequence") and _is_of_a_batch(subject, call)
        packed = name.endswith(_PACKS) and _is_packed_on_the_host(subject, call)
        if collates or longest or padded or packed or grouped or _is_of_the_longest(subject, call):
            what = "packs each batch by its lengths" if packed else "pads each batch to its longest sample"
            yield Finding(
                call.lineno,
                f"{what}: each length is a graph to compile. Pad to one length (a tokenizer: "
                'padding="max_length" and max_length).',
                sure=False,
            )


def _is_of_the_longest(subject: Subject, call: ast.Call) -> bool:
    """Whether a collate function asks for the longest sample, as ``max(map(len, batch))``, to pad the others to it."""
    script = subject.script
    lone = len(call.args) == 1  # max(n, 8) asks for a number
    if not (lone and script.dotted(call.func) in _MAX and _is_of_a_batch(subject, call)):
        return False
    given = [*arguments(call), *script.values(ast.unparse(call.args[0]))]
    return any(
        script.dotted(part) == "len" or (isinstance(part, ast.Attribute) and part.attr in ("size", "shape"))
        for one in given
        for part in ast.walk(one)
    )


def of_libraries(subject: Subject) -> Iterator[Finding]:
    """A finding on the first call of each library."""
    if not (subject.uses_device or subject.managed):
        return
    padded = any(one.script.calls_any("Pad") for one in subject.program)
    said = {_OF_GRAPHS} if padded else set[str]()
    for call, name in subject.script.calls:
        text = next((text for library, text in _LIBRARIES.items() if name.startswith(library)), "")
        if text and text not in said:
            said.add(text)
            yield Finding(call.lineno, f"{text}.", sure=False)


def of_sentences(subject: Subject) -> Iterator[Finding]:
    """sentence-transformers' models where they are trained: they pad by themselves, and no argument changes that."""
    script = subject.script
    padded = any(constant(argument(call, "padding")) == "max_length" for call, _ in script.calls)
    if padded or not script.calls_any("SentenceTransformerTrainer", "fit"):
        return
    for call, name in script.calls:
        if name == "sentence_transformers.SentenceTransformer":
            yield Finding(
                call.lineno,
                "pads each batch to its longest sentence: each length is a graph to compile. For one length: "
                'model[0].tokenize = functools.partial(model[0].tokenize, padding="max_length").',
                sure=False,
            )
            return


def of_growth(subject: Subject) -> Iterator[Finding]:
    """Text that a model's own method makes token by token, where the training program calls that method."""
    script = subject.script
    if not subject.trains or not subject.uses_device:
        return
    for target, node in script.assigned:
        function = script.scope(node)
        if not isinstance(function, ast.FunctionDef) or not _is_of_a_model(script, function):
            continue
        joins = isinstance(node.value, ast.Call) and script.dotted(node.value.func) in (
            "torch.cat",
            "torch.concat",
        )
        given = [*ast.walk(node.value.args[0])] if joins and node.value.args else []  # type: ignore[attr-defined]
        grows = any(isinstance(part, ast.Name) and part.id == target for part in given)
        runs = any(
            ast.unparse(call.func) in ("self", "self.forward")
            for call in calls_in(*subject.loops_around(node))
        )
        if grows and runs and subject.calls_of(function):
            yield Finding(
                node.lineno,
                f"{target} grows in each pass of this loop: each length is a graph to compile (if nothing reads a "
                "value, all passes are one graph). Pad it to its full length and write each token into it, or run the "
                "loop on the host, with a copy of the model (copy.deepcopy(model).cpu()).",
                sure=False,
                kind="growing_graphs",
            )


def _is_of_a_model(script: Script, function: ast.FunctionDef) -> bool:
    """Whether a function is a method of a module, but not its forward pass, which joins as many pieces each time."""
    owner = script.parents[function]
    bases = [ast.unparse(base) for base in owner.bases] if isinstance(owner, ast.ClassDef) else []
    return function.name != "forward" and any(base.endswith("Module") for base in bases)


def of_places(subject: Subject) -> Iterator[Finding]:
    """Writes to another place of a tensor in each pass of a loop in which the host reads a value, as of an agent's
    memory. Without that read all passes are one graph, as in a decoder's forward pass.
    """
    script = subject.script
    if subject.managed or not subject.uses_device:
        return
    for loop in script.walk(ast.For):
        if not any(is_method(part, *FETCHES) for part in ast.walk(loop)):
            continue
        for node in (part for part in ast.walk(loop) if isinstance(part, ast.Assign)):
            target = node.targets[0]
            if isinstance(target, ast.Subscript) and _is_filled(subject, loop, target):
                yield Finding(
                    node.lineno,
                    f"{script.segment(target)} = ... on the device, in a loop that reads a value in each pass: each "
                    "place is a graph to compile, and until a step ends each is larger than the one before. Put the "
                    f"pieces into a list, call {subject.names.end_of_step()} in each pass, and torch.stack() them "
                    "behind the loop.",
                    kind="growing_graphs",
                )
                break


def _is_filled(subject: Subject, loop: ast.For, target: ast.Subscript) -> bool:
    """Whether a loop writes to a tensor of the device, at the index that it counts."""
    first = (
        target.slice.elts[0] if isinstance(target.slice, ast.Tuple) and target.slice.elts else target.slice
    )
    counts = any(subject.script.is_call_of(part, "range", "trange") for part in ast.walk(loop.iter))
    if not counts or not isinstance(first, ast.Name) or ast.unparse(loop.target) != first.id:
        return False
    made = subject.script.values(ast.unparse(target.value))
    calls = [one for one in made if isinstance(one, ast.Call)]
    return any(one in subject.moves or subject.device_given(one) is not None for one in calls)


def of_pieces(subject: Subject) -> Iterator[Finding]:
    """CutMix on the device in a training step: torchvision's, and timm's unless it only mixes."""
    script = subject.script
    if not (subject.uses_device or subject.managed):
        return
    cutters = {
        target
        for target, node in script.assigned
        if any(_cuts_pieces(script, call) for call in calls_in(node.value))
    }
    for call in calls_in(*subject.steps):
        if ast.unparse(call.func) in cutters:
            yield Finding(
                call.lineno,
                f"{script.segment(call.func)} cuts a piece of another size from each batch: on the device each size is "
                "a graph to compile. Cut on the host, in the loader's collate function (timm: FastCollateMixup).",
                sure=False,
            )
            return


def _cuts_pieces(script: Script, call: ast.Call) -> bool:
    name = script.dotted(call.func)
    options = {one.arg for one in call.keywords}
    cuts = len(call.args) > 1 or bool(options & {"cutmix_alpha", "cutmix_minmax", None})
    return name == "torchvision.transforms.v2.CutMix" or (
        name.startswith("timm.data.") and name.endswith("Mixup") and cuts
    )


@functools.lru_cache(maxsize=64)
def _pads_to_one(one: Subject) -> bool:
    padded = (argument(call, "padding") for call, _ in one.script.calls)
    return "pad_to_max_length" in one.script.words or any(
        given is not None and any(constant(part) == "max_length" for part in ast.walk(given))
        for given in padded
    )


@functools.lru_cache(maxsize=64)
def _cuts_to_one(one: Subject) -> bool:
    """Whether texts are cut into blocks of one length, as ``[ids[i : i + n] for i in range(0, total, n)]``, or only
    texts of one length are kept.
    """
    steps = {
        ast.unparse(call.args[2]) for call, name in one.script.calls if name == "range" and call.args[2:]
    }
    for node in one.script.nodes:
        if isinstance(node, ast.Slice) and isinstance(node.upper, ast.BinOp):
            length = ast.unparse(node.upper.right)
            if length in steps and "batch" not in length:
                return True
        if isinstance(node, ast.If) and _KEPT_LENGTH.fullmatch(ast.unparse(node.test)):
            return True
    return one.script.calls_any(*_BLOCKS)


def _is_of_a_batch(subject: Subject, call: ast.Call) -> bool:
    """Whether a call is in a collate function, or in a class of one, by its name or as a loader gets it."""
    given = (argument(made, "collate_fn") for one in subject.program for made, _ in one.script.calls)
    parts = [part for one in given if one is not None for part in ast.walk(one)]
    named = {
        ast.unparse(part).rpartition(".")[2] for part in parts if isinstance(part, ast.Name | ast.Attribute)
    }
    return any(
        isinstance(outer, ast.FunctionDef | ast.ClassDef)
        and ("collat" in outer.name.lower() or outer.name in named)
        for outer in subject.script.above(call)
    )


def packed(subject: Subject) -> Iterator[Finding]:
    """Calls that pack a batch on the device, for a recurrent network."""
    if not (subject.uses_device or subject.managed):
        return
    for call, name in subject.script.calls:
        if name.endswith(_PACKS) and not _is_packed_on_the_host(subject, call):
            yield Finding(
                call.lineno,
                f"{subject.script.segment(call.func)}: torch's RNN, LSTM and GRU raise on sequences packed on the "
                "device (its data is not allocated yet). Give them the padded batch, all of one length, and mask the "
                "outputs of the padding.",
            )


def _is_packed_on_the_host(subject: Subject, call: ast.Call) -> bool:
    """Whether a batch is packed before it is moved to the device."""
    outer = subject.script.parents[call]
    return _is_of_a_batch(subject, call) or (
        isinstance(outer, ast.Attribute) and outer.attr in ("to", "cuda")
    )


def of_values(subject: Subject) -> Iterator[Finding]:
    """What gives as many elements as it finds, in a step, in a forward pass, or for each batch that is evaluated."""
    script = subject.script
    if subject.managed or not subject.uses_device:
        return
    said: set[int] = set()
    for place, tensors, surely in runs_on_the_device(subject):
        for node in ast.walk(place):
            if not isinstance(node, ast.Call | ast.Subscript) or node.lineno in said:
                continue
            if (
                _gives_by_data(script, node, tensors, surely=surely)
                if isinstance(node, ast.Call)
                else _is_masked(script, node, tensors)
            ):
                said.add(node.lineno)
                yield Finding(
                    node.lineno,
                    f"{script.segment(node.func if isinstance(node, ast.Call) else node)} gives as many elements as it "
                    "finds: another shape in each step, which is compiled again. Keep the shape, and mask: "
                    "torch.where(condition, x, 0).",
                    sure=False,
                )


def _gives_by_data(script: Script, call: ast.Call, tensors: Tensors, *, surely: bool) -> bool:
    """Whether a call is as ``torch.nonzero(x)``. ``surely``: only where x surely is on the device."""
    if surely and not is_of_tensors(call, tensors):
        return False
    name, called = script.dotted(call.func), script.called(call)
    of_torch = name == f"torch.{called}"
    if called == "where":
        return of_torch and len(call.args) == 1 and not call.keywords
    of_the_host = any(script.is_call_of(part, "tensor") for one in call.args for part in calls_in(one))
    of_a_tensor = called == "nonzero" or tensors.gave(receiver(call))
    return (
        called in BY_DATA
        and not of_the_host
        and (of_torch or (of_a_tensor and not name.startswith("numpy.")))
    )


def _is_masked(script: Script, node: ast.Subscript, tensors: Tensors) -> bool:
    """Whether it reads ``x[mask]``, of a tensor of the device, or with a mask that is computed from one."""
    indexes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    masks = [one for one in indexes if _is_mask(script, one)]
    return bool(masks) and isinstance(node.ctx, ast.Load) and any(map(tensors.gave, (node.value, *masks)))


def _is_mask(script: Script, node: ast.expr) -> bool:
    """Whether an expression surely is a mask: a comparison, `.bool()`, or made of masks; perhaps by a name."""
    if isinstance(node, ast.Name):
        here = [value for value in script.values(node.id) if script.scope(value) is script.scope(node)]
        return bool(here) and all(not isinstance(one, ast.Name) and _is_mask(script, one) for one in here)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return _is_mask(script, node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        return _is_mask(script, node.left) or _is_mask(script, node.right)
    if is_method(node, *_RESHAPES):
        return _is_mask(script, receiver(node))
    compared = isinstance(node, ast.Compare) and all(isinstance(one, ORDERS) for one in node.ops)
    made = isinstance(node, ast.Call) and "torch.bool" in ast.unparse(node)
    return compared or made or is_method(node, *_COMPARES)


def of_chance(subject: Subject) -> Iterator[Finding]:
    """Branches that a loop of a forward pass takes at random, as teacher forcing does."""
    if not (subject.uses_device or subject.managed):
        return
    script = subject.script
    for node in script.walk(ast.If, ast.IfExp):
        assert isinstance(node, ast.If | ast.IfExp)  # noqa: S101 - of the walk
        drawn = any(_CHANCE.fullmatch(script.dotted(call.func)) for call in calls_in(node.test))
        forward = script.scope_name(node) == "forward"
        if drawn and forward and subject.loops_around(node):
            yield Finding(
                node.lineno,
                "the loop takes one branch or another by chance, and each sequence of branches is a graph to compile. "
                "Choose on the device: torch.where(torch.rand(1, device=x.device) < p, one, other).",
                sure=False,
            )
