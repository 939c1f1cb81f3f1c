"""Properties of the software that follow from a Neuron version, or from a published row of NeuronCores."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import InvalidInput, quoted
from ..model.precision import AUTO_CAST, NO_CAST, Precision

_FIRST = (2, 3)
"""The first Neuron version on trn1."""
_NO_CAST = (2, 27)
"""The first Neuron version whose compiler casts nothing by default (AWS's release notes)."""
_NXD_LLAMA = (2, 14)
"""The first Neuron version in which neuronx-distributed trains Llama (AWS's release notes)."""


def parsed_version(version: object) -> tuple[int, int]:
    """The first two numbers of a Neuron version.

    Raises:
        InvalidInput: it is no text with two numbers, is older than the first version on trn1, or is no 2.x.
    """
    text = version.lower() if isinstance(version, str) else ""  # no floats: 2.20 and 2.2 would be the same
    parts = text.removeprefix("neuron").strip().lstrip("v").split(".")
    if len(parts) < 2 or not all(part.isdecimal() for part in parts[:2]):
        raise InvalidInput(f"neuron_version must be a number as 2.21 or 2.21.0, not {quoted(version)}")
    found = int(parts[0]), int(parts[1])
    if not _FIRST <= found < (_FIRST[0] + 1, 0):
        raise InvalidInput(
            f"neuron_version must be {'.'.join(map(str, _FIRST))}, the first on trn1, or a later 2.x, not "
            f"{quoted(version)}"
        )
    return found


def unasked_cast(version: str | None) -> Precision:
    """How the compiler of a Neuron version runs fp32 products by default. None: the newest version."""
    return AUTO_CAST if version is not None and parsed_version(version) < _NO_CAST else NO_CAST


def by_nemo(cells: Mapping[str, str], version: str | None) -> bool:
    """Whether NeMo Megatron trained this Llama: the row says so, or Neuron had no other library for it yet.

    It matters because its scripts recompute whole layers, those of neuronx-distributed only attention.

    Raises:
        InvalidInput: ``version`` is no Neuron version.
    """
    said = any("nemo" in cells.get(column, "").lower() for column in ("config", "stack", "source"))
    return said or (version is not None and parsed_version(version) < _NXD_LLAMA)
