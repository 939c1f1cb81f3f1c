"""The catalog of instance types: `instances.json`, read into objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import UnknownInstance, did_you_mean
from .instance_type import Accelerator, Figure, InstanceType


def _read() -> dict[str, InstanceType]:
    data = json.loads(Path(__file__).with_name("instances.json").read_text(encoding="utf-8"))
    accelerators = {name: _accelerator(name, entry) for name, entry in data["accelerators"].items()}
    listed = data["instances"]
    found = {}
    for name, entry in listed.items():
        whole = {**listed.get(entry.get("like"), {}), **entry}
        found[name] = _instance(name, whole, accelerators[whole["accelerator"]])
    return found


def _accelerator(name: str, entry: Mapping[str, Any]) -> Accelerator:
    return Accelerator(
        name=name,
        is_neuron="neuron" in entry,
        core_name=entry["core_name"],
        cores=_count(entry, "cores"),
        logical_core_config=entry.get("logical_core_config", 1),
        memory=_figure(entry["memory"], entry),
        memory_bandwidth=_figure(entry["memory_bandwidth"], entry),
        peaks={dtype: _figure(text, entry) for dtype, text in entry["peaks"].items()},
        calibration=entry["calibration"],
        from_specification=entry.get("from_specification", False),
    )


def _instance(name: str, entry: Mapping[str, Any], accelerator: Accelerator) -> InstanceType:
    link = entry.get("accelerator_link")
    return InstanceType(
        name=name,
        accelerator=accelerator,
        accelerators=_count(entry, "accelerators"),
        vcpus=_count(entry, "vcpus"),
        host_memory=_figure(entry["host_memory"], entry),
        accelerator_link=_figure(link, entry) if link else None,
        network=_figure(entry["network"], entry),
        has_efa=entry.get("efa", True),
        sagemaker=frozenset(entry["sagemaker"]),
    )


def _figure(text: str, entry: Mapping[str, Any]) -> Figure:
    """Parse a text such as ``32 GiB``; source and date are those of its entry."""
    value, unit = text.split()
    return Figure(float(value), unit, entry["source"], entry["date"])


def _count(entry: Mapping[str, Any], what: str) -> Figure:
    return Figure(float(entry[what]), what, entry["source"], entry["date"])


CATALOG: Mapping[str, InstanceType] = _read()
"""Every known instance type, by its SageMaker name (``ml.trn1.32xlarge``)."""

NEURON_TYPES: Mapping[str, InstanceType] = {name: entry for name, entry in CATALOG.items() if entry.is_neuron}
"""The instance types with NeuronCores. Only these can be rehearsed."""

_LARGEST: Mapping[str, str] = {
    family: max(
        (name for name in CATALOG if name.startswith(f"ml.{family}.")),
        key=lambda name: CATALOG[name].core_count,
    )
    for family in {name.split(".")[1] for name in CATALOG}
}
"""By family, the type with the most cores; of equal ones the first in the catalog."""


def instance_type(name: str) -> InstanceType:
    """The instance type of that name, with or without ``ml.``.

    Raises:
        UnknownInstance: it is not in the catalog. The message lists the known types, or those of a named family.
    """
    return instance_types([name])[0]


def instance_types(names: Iterable[str]) -> list[InstanceType]:
    """The instance types of these names, each as for `instance_type`.

    Raises:
        UnknownInstance: some are not in the catalog. The message names them all, with what is near to each.
    """
    unknown = []
    found = []
    for name in names:
        full = name if name.startswith("ml.") else f"ml.{name}"
        if full in CATALOG:
            found.append(CATALOG[full])
        elif types := [other for other in CATALOG if other.startswith(f"{full}.")]:
            own = " or ".join(other if name == full else other.removeprefix("ml.") for other in types)
            raise UnknownInstance(f"{name!r} is a family of instance types. Name the type: {own}.")
        else:
            unknown.append(f"No figures for instance type {name!r}.{_near(full)}")
    if unknown:
        raise UnknownInstance(
            f"{' '.join(unknown)} Known: {', '.join(CATALOG)}. Choose one of these; other types cannot be modelled."
        )
    return found


def _near(full: str) -> str:
    """The types with the accelerator of that name, or the types or families whose names are near."""
    name = full.removeprefix("ml.").lower()
    with_it = [
        kind for kind, one in CATALOG.items() if one.accelerator.name.partition("-")[0].lower() == name
    ]
    if with_it:
        return f" It is the accelerator of {' and '.join(with_it)}."
    return did_you_mean(full, CATALOG) or did_you_mean(name, sorted(_LARGEST))


def named_instance(asked: str) -> str:
    """Turn a family (``trn1``) into its largest type (``ml.trn1.32xlarge``); return any other name unchanged."""
    return _LARGEST.get(asked.removeprefix("ml."), asked)
