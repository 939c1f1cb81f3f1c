"""What a version of Neuron, or a published row of NeuronCores, tells of the software."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import InvalidInput, quoted
from ..model.precision import AUTO_CAST, NO_CAST, Precision

_FIRST = (2, 3)
"""The first Neuron version on trn1."""
_NO_CAST = (2, 27)
"""The Neuron version whose compiler casts nothing unasked (AWS's release notes)."""
_NXD_LLAMA = (2, 14)
"""The Neuron version with which neuronx-distributed came to train Llama (AWS's release notes)."""


def parsed_version(version: object) -> tuple[int, int]:
    """The first two numbers of a Neuron version.

    Raises:
        InvalidInput: it has none, or is before trn1's first, or no 2.x.
    """
    text = version.lower() if isinstance(version, str) else ""  # of a float: 2.20 and 2.2 are one number
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
    """How the compiler of a Neuron version runs fp32 products without a flag. None: the newest one."""
    return AUTO_CAST if version is not None and parsed_version(version) < _NO_CAST else NO_CAST


def by_nemo(cells: Mapping[str, str], version: str | None) -> bool:
    """Whether NeMo Megatron trained this Llama: the row says so, or Neuron had no other library for it yet.

    Its scripts recompute whole layers at every version, those of neuronx-distributed attention alone.

    Raises:
        InvalidInput: the version is none.
    """
    said = any("nemo" in cells.get(column, "").lower() for column in ("config", "stack", "source"))
    return said or (version is not None and parsed_version(version) < _NXD_LLAMA)
