"""Batches: which core gets which, and whether their shapes stay the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from windtunnel.porting.evaluations import evaluation_loops
from windtunnel.porting.finding import Edit, Finding, before, replaced, with_argument
from windtunnel.porting.gone_over import loaders_gone_over, training
from windtunnel.porting.nodes import (
    argument,
    arguments,
    branches,
    constant,
    handed,
    keyword,
    parameters,
)
from windtunnel.porting.one_rank import knows_rank
from windtunnel.porting.script import Loop, Script
from windtunnel.porting.subject import Subject

_SHUFFLE = 2
"""The position of shuffle among DataLoader's arguments; its sampler and batch_sampler follow."""
_DIVIDING = (
    "DistributedSampler", "num_replicas", "num_shards", "split_dataset_by_node", "shard", "split_by_node",
)  # fmt: skip
_OF_ALL = ("RandomSampler", "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler")
"""Samplers of torch that do not divide the data among the cores."""
_ONE, _NO = ast.Constant(1), ast.Constant(False)
"""The defaults of batch_size and drop_last."""
_SMALLER = (
    "unless batch_size divides the number of samples of each core, the last batch is smaller: another shape, and each "
    "shape is compiled by itself. Pass drop_last=True, or pad that batch."
)
_SMALLER_THERE = (
    "unless batch_size divides the number of samples that a core evaluates, the last batch is smaller: another shape, "
    "and each shape is compiled by itself. Pad that batch, and do not count the padding (with drop_last=True its "
    "samples are never evaluated)."
)


def same_data(subject: Subject) -> Iterator[Finding]:
    """Loaders of training loops that give every core the same batches."""
    if not subject.several or subject.managed or not subject.uses_device or is_shared(subject):
        return
    for name, call, loop in loaders_gone_over(subject, training):
        shuffle, own = keyword(call, "shuffle"), keyword(call, "sampler")
        given = own and not _is_of_all(subject, own.value)
        if given or keyword(call, "batch_sampler") or len(call.args) > _SHUFFLE + 1:
            continue
        names = subject.names
        edits: tuple[Edit, ...] = ()
        plain = not call.args[_SHUFFLE:] and _are_known(subject.script, call)
        plain = plain and isinstance(_data_set(call), ast.Name | ast.Attribute | ast.Call)
        plain = plain and isinstance(subject.script.parents[call], ast.stmt)  # not an argument
        if own:
            plain = plain and _is_random_alone(subject, own.value, _data_set(call))
        if plain and loop is not None and _is_map_style(subject):
            edits = (*_sampler(subject, call, own or shuffle, name), *_epochs(subject, call, name, loop))
        sampler = (
            f"Give the DataLoader sampler=DistributedSampler(dataset, num_replicas={names.world_size()}, "
            f"rank={names.rank()}), and call its set_epoch(epoch) in each epoch."
        )
        if not _is_map_style(subject):
            sampler = (
                "A stream takes no sampler: let its __iter__ give each core a part, with itertools.islice(samples, "
                f"{names.rank()}, None, {names.world_size()}), or with split_dataset_by_node of datasets."
            )
        yield Finding(call.lineno, f"every core gets the same batches. {sampler}", edits, kind="same_data")


def last_batches(subject: Subject) -> Iterator[Finding]:
    """Loaders of loops that train or evaluate whose last batch is smaller, unless the samples happen to fit."""
    if subject.managed or not subject.uses_device or not _is_map_style(subject):
        return
    said: set[ast.Call] = set()
    for loops, text in ((training, _SMALLER), (evaluation_loops, _SMALLER_THERE)):
        for _, call, _ in loaders_gone_over(subject, loops):
            if call not in said and _may_be_smaller(subject, call):
                said.add(call)
                yield Finding(call.lineno, text, sure=False, kind="ragged_batch")


def _may_be_smaller(subject: Subject, call: ast.Call) -> bool:
    """Whether a loader keeps a last batch that is smaller."""
    options = _given(subject.script, call)
    size = call.args[1] if len(call.args) > 1 else options.get("batch_size", _ONE)
    decided = "batch_sampler" in options or len(call.args) > _SHUFFLE + 2
    decided |= not _are_known(subject.script, call)
    drops = constant(options.get("drop_last", _NO)) is not False
    return not decided and not drops and not (isinstance(size, ast.Constant) and size.value in (None, 1))


def _is_of_all(subject: Subject, sampler: ast.expr) -> bool:
    """Whether a sampler is None, or one that divides nothing, perhaps by a name. One made with the rank does divide."""
    values = subject.script.values(ast.unparse(sampler)) or [sampler]
    return all(
        one.value is None
        if isinstance(one, ast.Constant)
        else subject.script.is_call_of(one, *_OF_ALL) and not knows_rank(subject.script, one)
        for value in values
        for one in branches(value)
    )


def _is_random_alone(subject: Subject, sampler: ast.expr, data: ast.expr | None) -> bool:
    """Whether a sampler is ``RandomSampler(data)``, written where it is given."""
    given = arguments(sampler) if subject.script.is_call_of(sampler, "RandomSampler") else []
    return data is not None and [*map(ast.unparse, given)] == [ast.unparse(data)]


def _data_set(call: ast.Call) -> ast.expr | None:
    return argument(call, "dataset", 0)


def _options(call: ast.Call) -> ast.expr | None:
    """``options`` of ``DataLoader(data, **options)``."""
    return next((one.value for one in call.keywords if one.arg is None), None)


def _are_known(script: Script, call: ast.Call) -> bool:
    """Whether all arguments of a loader are known: given there, or in one dict of the script that has no sampler."""
    options = _options(call)
    if options is None:
        return True
    values = [one for value in script.values(ast.unparse(options)) for one in branches(value)]
    written = bool(values) and all(isinstance(one, ast.Dict) or _is_dict(one) for one in values)
    samples = any(
        constant(node) in ("sampler", "batch_sampler")
        or (isinstance(node, ast.keyword) and node.arg in ("sampler", "batch_sampler"))
        for node in script.nodes
    )
    return (
        isinstance(options, ast.Name)
        and written
        and not samples
        and sum(not one.arg for one in call.keywords) == 1
    )


def _given(script: Script, call: ast.Call) -> dict[object, ast.expr]:
    """A loader's keyword arguments, also from a dict of the script."""
    options = _options(call)
    given: dict[object, ast.expr] = {}
    for made in script.values(ast.unparse(options)) if options is not None else ():
        if isinstance(made, ast.Dict):
            given |= {
                constant(name): value for name, value in zip(made.keys, made.values, strict=True) if name
            }
        elif isinstance(made, ast.Call):
            given |= {one.arg: one.value for one in made.keywords}
    return given | {one.arg: one.value for one in call.keywords if one.arg}


def _is_dict(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "dict" and not node.args


def _sampler(subject: Subject, call: ast.Call, shuffle: ast.keyword | None, loader: str) -> Iterator[Edit]:
    """Edits that make a sampler before the loader, and pass it to that; it shuffles where the loader did."""
    script, names = subject.script, subject.names
    bound, prefix = script.bound_names(), loader.replace(".", "_")
    made = "sampler" if "sampler" not in bound else f"{prefix}_sampler"
    of_all = shuffle is not None and shuffle.arg == "sampler"  # a RandomSampler
    shuffles = "True" if of_all else script.segment(shuffle.value) if shuffle else "False"
    options = None if shuffle else _options(call)
    if options is not None:
        shuffles = f'{script.segment(options)}.get("shuffle", False)'
    data = _data_set(call)
    assert data is not None  # noqa: S101 - asked for before
    lines, given = [], script.segment(data)
    if isinstance(
        data, ast.Call
    ):  # written out a second time, it would be made twice, and perhaps not the same
        name = "dataset" if "dataset" not in bound else f"{prefix}_dataset"
        lines, given = [f"{name} = {given}"], name
        yield replaced(script, data, given)
    lines.append(
        f"{made} = {names.sampler()}({given}, num_replicas={names.world_size()}, "
        f"rank={names.rank()}, shuffle={shuffles})"
    )
    yield before(script, script.statement_with(call), *lines)
    if shuffle is not None:
        yield replaced(script, shuffle, f"sampler={made}")
    elif options is not None:
        text = f'{{**{script.segment(options)}, "shuffle": False}}'
        place = script.text.rindex(b"**", 0, script.start(options))
        yield Edit(place, place, f"sampler={made}, ")
        yield replaced(script, options, text)
    else:
        yield with_argument(script, call, f"sampler={made}")


def is_shared(subject: Subject) -> bool:
    """Whether anything in the program divides the data among the cores."""
    return any(word in name for one in subject.program for name in one.script.words for word in _DIVIDING)


def _is_map_style(subject: Subject) -> bool:
    """Whether nothing in the file names data that cannot be indexed."""
    names = subject.script.bound_names() | {
        node.attr for node in subject.script.nodes if isinstance(node, ast.Attribute)
    }
    streams = any(isinstance(node, ast.keyword) and node.arg == "streaming" for node in subject.script.nodes)
    return not streams and not names & {"IterableDataset", "webdataset", "wds"}


def _epochs(subject: Subject, made: ast.Call, loader: str, loop: Loop) -> Iterator[Edit]:
    """Edits that call ``loader.sampler.set_epoch(epoch)`` before the loop, where the epoch has a name there; else
    before those calls of the function around it that pass the loader with the new sampler.
    """
    script = subject.script
    if any(b"set_epoch" in one.script.text for one in subject.program):
        return
    bar = subject.loaders.bar(loop)
    first = loop if bar is None else bar[0]  # enumerate() draws the sampler's order at once
    here = script.scope(loop)
    epoch = _epoch_around(subject, first)
    if not epoch and "epoch" in parameters(here) and script.parents.get(first) is here:
        epoch = "epoch"
    places = [
        (one, call, _loader_there(subject, call, here, loader, made)) for one, call in subject.calls_of(here)
    ]
    known = [
        value is not None and one.loaders.all.get(ast.unparse(value)) is made for one, _, value in places
    ]
    if epoch and (loader not in parameters(here) or all(known)):
        yield before(script, first, f"{loader}.sampler.set_epoch({epoch})")
        return
    for (one, call, value), sure in zip(places, known, strict=True):
        statement, epoch = script.parents.get(call), _epoch_around(subject, call) if one is subject else ""
        if (
            sure
            and epoch
            and value is not None
            and isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign)
        ):
            yield before(script, statement, f"{ast.unparse(value)}.sampler.set_epoch({epoch})")


def _loader_there(
    subject: Subject, call: ast.Call, function: ast.AST, loader: str, made: ast.Call
) -> ast.expr | None:
    """The loader's name where its function is called: the argument, or the same name, of `self` or the module."""
    if isinstance(function, ast.FunctionDef) and loader in parameters(function):
        return dict(handed(function, call)).get(loader)
    of_self = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "self"
    same = of_self if loader.startswith("self.") else isinstance(subject.script.scope(made), ast.Module)
    return ast.parse(loader, mode="eval").body if same and "[]" not in loader else None


def _epoch_around(subject: Subject, place: ast.AST) -> str:
    """The name of the epoch: of a loop around that is named so, as in `for epoch ...: for part in parts:`, else of the
    next loop, if the place is directly in its body.
    """
    statement = place if isinstance(place, ast.stmt) else subject.script.parents[place]
    outer = subject.script.parents.get(statement)
    around = [
        one.target.id
        for one in subject.loops_around(place)
        if isinstance(one, ast.For) and isinstance(one.target, ast.Name)
    ]
    names = [name for name in around if "epoch" in name.lower()]
    if isinstance(outer, ast.For) and isinstance(outer.target, ast.Name) and statement in outer.body:
        names.append(outer.target.id)
    return next(iter(names), "")
