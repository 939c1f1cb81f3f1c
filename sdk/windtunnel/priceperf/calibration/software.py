"""The speed of a training software relative to the model, as far as its published rows show it.

The constants include the speed of the software to whose rows they are fitted. For other software
(`published_rows.elsewhere`) each trained model gives one difference. Their mean, shrunk towards that of the
software with the same core, is expected of its next model; the core's mean is shrunk towards 0. One node and many
(`left_out.kind_of`), and products in fp8 and others, are separate if both have rows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from statistics import mean
from typing import Literal

from ..errors import InvalidInput, did_you_mean, quoted
from ..instances import InstanceType
from ..model.architectures import Architecture
from ..model.plain_script import SOFTWARE as SCRIPTS
from ..model.plain_script import is_compiled, is_plain
from ..model.training_settings import Attention, Training
from .left_out import fitted, kind_of, kind_of_run, log_speed_of_stranger, strangers
from .measured_scripts import log_speed_of_scripts
from .published_rows import elsewhere, is_fitted, rows_of
from .row_reader import PublishedRow
from .torch_compile import log_gain

CORES: Mapping[str, frozenset[str]] = {
    "Megatron-core": frozenset({"megatron-core", "megatron-bridge", "nemo", "te"}),
}
"""Cores on which several software are built, with the words in a software's name that show its core. ``te``:
Transformer Engine. Megatron-DeepSpeed is not a core: its rows lie from 0.5 below to 0.2 above the model."""


ON_NEURON: Mapping[str, str] = {"Megatron-core": "NeMo Megatron for Neuron"}
"""What trains on NeuronCores for whoever names a core of GPUs: AWS's port."""


def software_named(name: str) -> str:
    """The name of a software as published rows spell it. Case is ignored.

    Raises:
        InvalidInput: no published row is by it; the message lists all software.
    """
    known = {stack.lower(): stack for key in fitted()["calibrations"] for stack in (*_known(key), *SCRIPTS)}
    found = (known.get(name.lower()) or core_of(name)) if isinstance(name, str) else None
    if found is None:
        names = sorted({*known.values(), *CORES}, key=str.lower)
        hint = did_you_mean(name, names) if isinstance(name, str) else ""
        raise InvalidInput(
            f"software {quoted(name)} has no published row.{hint} Leave it out, or give one of these: "
            f"{'; '.join(names)}"
        )
    return found


def core_of(name: str) -> str | None:
    """The core (of `CORES`) on which the software of that name is built; None: none is known."""
    words = _words(name)
    if "megatron" in words:
        return None  # NeMo Megatron (also the one for Neuron) is older than Megatron-core
    return next((core for core, its in CORES.items() if words & its), None)


def software_on(instance: InstanceType, name: str | None) -> str | None:
    """The software that stands there for a name, spelled as by `software_named`."""
    return ON_NEURON.get(name, name) if name and instance.is_neuron else name


def first_told(names: Sequence[str], instance: InstanceType) -> str | None:
    """The first of these names (spelled as by `software_named`) that has rows of the instance's accelerator there."""
    known = _known(instance.calibration or "")
    there = (software_on(instance, name) for name in names)
    return next((name for name in there if name in known or name in map(core_of, known)), None)


def software_of(row: PublishedRow) -> str | None:
    """The software of a row of a user's file, if built-in rows are by it or share its core; None: not known.

    It is the row's ``stack``; else the only software whose words are all in the row's name or in the repository at
    the start of its source; else the only software of that repository.
    """
    known = _known(row.calibration)
    if row.stack:
        return {stack.lower(): stack for stack in known}.get(row.stack.lower()) or core_of(row.stack)
    words = _words(f"{row.config} {_repository(row)}")
    named = [stack for stack in known if words.issuperset(_words(stack))]
    named = named or [stack for stack, repositories in known.items() if _repository(row) in repositories]
    return named[0] if len(named) == 1 else core_of(" ".join(words)) if not named else None


def usual_log_speed(row: PublishedRow, software: str | None) -> float:
    """The log speed of a row of a user's file for which `log_speed` gives None. ``software``: from `software_of`.

    It is `left_out.log_speed_of_stranger`; for plain scripts theirs; 0 if constants are fitted to its software or, if
    that is not known, to rows of the same source.
    """
    stack = software or row.stack
    if is_plain(stack):
        return _of_scripts(stack, kind_of(row), row.training) or 0.0
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
    """Log of a software's throughput over the modelled one. None: not known, or constants are fitted to it.

    Args:
        software: as `software_named` spells it; None: not known.
        kind: of rows that are like the job, see `left_out.kind_of`.
        training: what is trained.
        but: tells which rows to leave out.
    """
    if software is None:
        return None  # early, so that no row is read
    if is_plain(software):
        return _of_scripts(software, kind, training)
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
    """The stated attention; else, on GPUs, the one in the software's published rows of such models, because its speed
    comes from them.

    None: that of today's scripts. This is so for language models, for sequences longer than in the rows, and if the
    rows differ or do not say.
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
    """Real over modelled throughput on ``count`` instances for software of unknown speed.

    It is 1 if constants are fitted to the software, and for plain scripts. ``software``: as in `log_speed`.
    """
    key = instance.calibration or ""
    if software is not None and (is_plain(software) or is_fitted(software, key)):
        return 1.0
    return math.exp(fitted()["strangers"][kind_of_run(key, count)])


def _of_scripts(software: str, kind: str, training: Training) -> float | None:
    """`log_speed` of a plain script; None: none was measured, and no GPU compiles it."""
    speed = log_speed_of_scripts(kind)
    compiled = training.plain and is_compiled(software)
    return (speed or 0.0) + log_gain() if compiled else speed


def _of_models(
    rows: Sequence[tuple[PublishedRow, float]], in_fp8: bool, but: Callable[[PublishedRow], bool] | None
) -> list[float]:
    """One mean log difference for each model, from rows with (or without) fp8; if there are none, from the others."""
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
    """The software with rows of a calibration's accelerator, each with its repositories."""
    found = defaultdict(set)
    for row in (*rows_of(key), *elsewhere(key)):
        found[row.stack].add(_repository(row))
    return {stack: frozenset(repositories - {""}) for stack, repositories in found.items()}


def _repository(row: PublishedRow) -> str:
    """The repository at the start of a row's source, as ``pytorch/torchtitan``; empty if there is none."""
    first = row.source.partition(" ")[0].partition("@")[0].lower().removeprefix("https://")
    parts = first.removeprefix("github.com/").split("/")
    return "/".join(parts[:2]) if len(parts) > 1 else ""


def _origin(row: PublishedRow) -> object:
    """What identifies a row's source: its repository, or its first two words (AWS Neuron, arXiv 2205.05198)."""
    return _repository(row) or row.source.lower().split()[:2]


def _words(text: str) -> set[str]:
    return set("".join(sign if sign.isalnum() or sign == "-" else " " for sign in text.lower()).split())


def _in_fp8(training: Training) -> bool:
    return training.matmul_dtype == "fp8"
