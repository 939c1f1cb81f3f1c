"""How much faster or slower than modelled a software trains, as far as its published rows say.

Constants hold the speed of the software whose rows they are fitted to. Of other software
(`published_rows.elsewhere`) each model that it trained tells one difference. Their mean, drawn to that of the
software that shares its core, is expected of its next model; the core's mean is drawn to no difference. Told apart
are one node and many (`left_out.kind_of`), and products in fp8, where both have rows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from statistics import mean
from typing import Literal

from ..errors import InvalidInput, quoted
from ..instances import InstanceType
from ..model.architectures import Architecture
from ..model.plain_script import SOFTWARE as SCRIPTS
from ..model.plain_script import is_plain
from ..model.training_settings import Attention, Training
from .left_out import fitted, kind_of, kind_of_run, log_speed_of_stranger, strangers
from .measured_scripts import log_speed_of_scripts
from .published_rows import elsewhere, is_fitted, rows_of
from .row_reader import PublishedRow

CORES: Mapping[str, frozenset[str]] = {
    "Megatron-core": frozenset({"megatron-core", "megatron-bridge", "nemo", "te"}),
}
"""What several software are built on, with the words in their names that tell it. ``te``: Transformer Engine. That of
Megatron-DeepSpeed tells nothing: its rows lie from 0.5 below to 0.2 above the model."""


def software_named(name: str) -> str:
    """The software of that name, whatever its case, as published rows spell it.

    Raises:
        InvalidInput: no published row is by it; the message lists all.
    """
    known = {stack.lower(): stack for key in fitted()["calibrations"] for stack in (*_known(key), *SCRIPTS)}
    found = (known.get(name.lower()) or core_of(name)) if isinstance(name, str) else None
    if found is None:
        names = "; ".join(sorted({*known.values(), *CORES}, key=str.lower))
        raise InvalidInput(
            f"software {quoted(name)} has no published row. Leave it out, or give one of these: {names}"
        )
    return found


def core_of(name: str) -> str | None:
    """What the software of that name is built on, of `CORES`."""
    words = _words(name)
    if "megatron" in words:
        return None  # NeMo Megatron, for Neuron too, is older than its core
    return next((core for core, its in CORES.items() if words & its), None)


def first_told(names: Sequence[str], key: str) -> str | None:
    """The first of these, as `software_named` spells them, that rows of a calibration tell of."""
    known = _known(key)
    return next((name for name in names if name in known or name in map(core_of, known)), None)


def software_of(row: PublishedRow) -> str | None:
    """What trained a row of a file, if other rows are by it, or share its core.

    As its ``stack`` says; else the one software whose words all stand in the row's name or in the repository that
    its source begins with; else the only software of that repository.
    """
    known = _known(row.calibration)
    if row.stack:
        return {stack.lower(): stack for stack in known}.get(row.stack.lower()) or core_of(row.stack)
    words = _words(f"{row.config} {_repository(row)}")
    named = [stack for stack in known if words.issuperset(_words(stack))]
    named = named or [stack for stack, repositories in known.items() if _repository(row) in repositories]
    return named[0] if len(named) == 1 else core_of(" ".join(words)) if not named else None


def usual_log_speed(row: PublishedRow, software: str | None) -> float:
    """`left_out.log_speed_of_stranger` of a row of a file, whose `software_of` is given and no `log_speed` known.

    0 where constants are fitted to its software or, if that is not told, to rows of the same source.
    """
    stack = software or row.stack
    if is_plain(stack):
        return log_speed_of_scripts(kind_of(row)) or 0.0
    if stack and is_fitted(stack, row.calibration):
        return 0.0
    if not stack and _origin(row) in map(_origin, rows_of(row.calibration)):
        return 0.0
    return log_speed_of_stranger(kind_of(row), stack)


def log_speed(
    software: str | None,
    kind: str,
    training: Training,
    but: Callable[[PublishedRow], bool] | None = None,
) -> float | None:
    """Log of the throughput beside the modelled one. None: nothing is known, or constants hold it.

    Args:
        software: as `software_named` spells it; None: not told.
        kind: of the rows that it is like, see `left_out.kind_of`.
        training: what is trained.
        but: rows that do not count.
    """
    if software is None:
        return None  # and no row is read
    if is_plain(software):
        return log_speed_of_scripts(kind)
    core, in_fp8 = core_of(software), _in_fp8(training)
    own: list[float] = []
    others: list[float] = []
    for (other, its_kind), rows in strangers().items():
        if its_kind == kind and (other == software or (core and core_of(other) == core)):
            means = _of_models(rows, in_fp8, but)
            if other == software:
                own = means
            elif means:
                others.append(mean(means))
    if not (own or others):
        return None
    of_core = math.fsum(others) / (len(others) + 1)
    return (math.fsum(own) + of_core) / (len(own) + 1)


def attention_of(
    stated: Attention | Literal["auto"] | None,
    software: str | None,
    instance: InstanceType,
    model: Architecture,
    length: int,
) -> Attention | None:
    """As stated; else, on GPUs, that of the software's published rows of such models, which its speed is of.

    None: that of a script of today. So it is of language models, and where its rows are shorter, or tell nothing.
    """
    if stated is not None and stated != "auto":
        return stated
    key = instance.calibration
    if software is None or key is None or instance.is_neuron or model.is_causal:
        return None
    rows = [row.training for row in (*rows_of(key), *elsewhere(key)) if row.stack == software]
    like = [row for row in rows if row.architecture.family == model.family]
    found = {row.attention for row in like if length <= max(row.sequence_length for row in like)}
    return found.pop() if len(found) == 1 else None


def usual_speed(software: str | None, instance: InstanceType, count: int) -> float:
    """Times the modelled throughput that software reaches on ``count`` instances if nothing is known of its speed.

    1 where constants are fitted to it, and of plain scripts. ``software`` as in `log_speed`.
    """
    key = instance.calibration or ""
    if software is not None and (is_plain(software) or is_fitted(software, key)):
        return 1.0
    return math.exp(fitted()["strangers"][kind_of_run(key, count)])


def _of_models(
    rows: Sequence[tuple[PublishedRow, float]], in_fp8: bool, but: Callable[[PublishedRow], bool] | None
) -> list[float]:
    """One difference a model: of products in fp8 or in more, as asked for, or of the others where there are none."""
    models: Mapping[bool, defaultdict[object, list[float]]] = {
        True: defaultdict(list),
        False: defaultdict(list),
    }
    for row, difference in rows:
        if not (but and but(row)):
            models[_in_fp8(row.training)][row.training.architecture].append(difference)
    return [*map(mean, (models[in_fp8] or models[not in_fp8]).values())]


@cache
def _known(key: str) -> Mapping[str, frozenset[str]]:
    """The software of a calibration's rows, each with its repositories."""
    found = defaultdict(set)
    for row in (*rows_of(key), *elsewhere(key)):
        found[row.stack].add(_repository(row))
    return {stack: frozenset(repositories - {""}) for stack, repositories in found.items()}


def _repository(row: PublishedRow) -> str:
    """As ``pytorch/torchtitan``; empty where the source begins with none."""
    first = row.source.partition(" ")[0].partition("@")[0].lower().removeprefix("https://")
    parts = first.removeprefix("github.com/").split("/")
    return "/".join(parts[:2]) if len(parts) > 1 else ""


def _origin(row: PublishedRow) -> object:
    """The repository, or two words: AWS Neuron, arXiv 2205.05198."""
    return _repository(row) or row.source.lower().split()[:2]


def _words(text: str) -> set[str]:
    return set("".join(sign if sign.isalnum() or sign == "-" else " " for sign in text.lower()).split())


def _in_fp8(training: Training) -> bool:
    return training.matmul_dtype == "fp8"
