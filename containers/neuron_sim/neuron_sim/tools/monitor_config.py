"""The configuration of `neuron-monitor`: which metric groups, of which processes, how often. Pure.

Form: AWS Neuron documentation, "Neuron Monitor User Guide", "JSON objects and fields in the
configuration file".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neuron_sim.errors import NeuronSimError

DEFAULT_PERIOD_S = 5.0
RUNTIME_GROUPS = ("neuroncore_counters", "memory_used", "neuron_runtime_vcpu_usage", "execution_stats")
SYSTEM_GROUPS = ("vcpu_usage", "memory_info", "neuron_hw_counters")

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SHORTEST_S = 0.1


class ConfigError(NeuronSimError):
    """A configuration that cannot be followed."""


@dataclass(frozen=True)
class RuntimeSelection:
    """Processes whose tag matches, and for each of their metric groups the seconds between two updates."""

    tag_filter: str
    periods: Mapping[str, float]


@dataclass(frozen=True)
class MonitorConfig:
    """What to report. ``system``: seconds between two updates by group."""

    runtimes: Sequence[RuntimeSelection]
    system: Mapping[str, float]


def everything(period_s: float) -> MonitorConfig:
    """All metric groups, of every process."""
    of_processes = RuntimeSelection(".*", dict.fromkeys(RUNTIME_GROUPS, period_s))
    return MonitorConfig((of_processes,), dict.fromkeys(SYSTEM_GROUPS, period_s))


DEFAULT = everything(DEFAULT_PERIOD_S)
"""Without a file."""


def parse(document: Any) -> MonitorConfig:
    """The configuration of a JSON document.

    Raises:
        ConfigError: says where the document is wrong and what is valid there.
    """
    root = _mapping(document, "the configuration")
    period = _period(root, DEFAULT_PERIOD_S, "period")
    runtimes = []
    for number, entry in enumerate(_list(root, "neuron_runtimes")):
        place = f"neuron_runtimes[{number}]"
        runtime = _mapping(entry, place)
        tag_filter = str(runtime.get("tag_filter", ".*"))
        try:
            re.compile(tag_filter)
        except re.error as error:
            raise ConfigError(
                f"{place}.tag_filter {tag_filter!r} is no regular expression: {error}."
            ) from None
        own = _period(runtime, period, f"{place}.period")
        groups = _groups(_list(runtime, "metrics"), RUNTIME_GROUPS, own, f"{place}.metrics")
        runtimes.append(RuntimeSelection(tag_filter, groups))
    system = _groups(_list(root, "system_metrics"), SYSTEM_GROUPS, period, "system_metrics")
    return MonitorConfig(tuple(runtimes), system)


def duration_s(text: str) -> float:
    """Seconds of ``"1s"``, ``"500ms"`` or ``"1m30s"``.

    Raises:
        ConfigError: the text has another form, or means less than a tenth of a second.
    """
    parts = _DURATION.findall(text)
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if not parts or "".join(number + unit for number, unit in parts) != text or seconds < _SHORTEST_S:
        raise ConfigError(f"period {text!r} is not a time such as 1s, 500ms or 1m; at least 100ms.")
    return seconds


def _groups(entries: Sequence[Any], known: Sequence[str], period: float, place: str) -> dict[str, float]:
    found = {}
    for number, entry in enumerate(entries):
        group = _mapping(entry, f"{place}[{number}]")
        kind = group.get("type")
        if kind not in known:
            raise ConfigError(
                f"{place}[{number}].type {kind!r} is not a metric group here: {', '.join(known)}."
            )
        found[str(kind)] = _period(group, period, f"{place}[{number}].period")
    return found


def _period(holder: Mapping[str, Any], default: float, place: str) -> float:
    if "period" not in holder:
        return default
    try:
        return duration_s(str(holder["period"]))
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from None


def _mapping(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{place} must be a JSON object; given: {value!r}.")
    return value


def _list(holder: Mapping[str, Any], name: str) -> Sequence[Any]:
    value = holder.get(name, [])
    if not isinstance(value, list):
        raise ConfigError(f"{name} must be a JSON array; given: {value!r}.")
    return value
