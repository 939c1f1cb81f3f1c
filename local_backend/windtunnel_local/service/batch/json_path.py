"""The operators of JSONPath that SageMaker supports.

Operators: https://docs.aws.amazon.com/sagemaker/latest/dg/batch-transform-data-processing.html. Results have the form
of the Java library that this page names: one value if the path names one, an object if it names several members, else
an array. Python's libraries are not used: they return lists of matches, which do not show this difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_NAME = re.compile(r"\.?([\w-]+)|\.(\*)")
_PIECES = r"""(?:'[^']*'|"[^"]*"|[^'"{}])*"""
"""A pattern: quoted texts, and other characters except those put in for ``{}``."""
_BRACKET = re.compile(r"\.?\[(" + _PIECES.format(r"\]") + r")\]")
_PART = re.compile(_PIECES.format(","))
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_SLICE = re.compile(r"(-?\d+)?:(-?\d+)?")
_INDEX = re.compile(r"-?\d+")
_VALID = "It takes $, .name, .*, ['name','name'], [0], [0,2], [1:], [:-1] and [0,5:]"

Step = Callable[[Any], Any]


class JsonPath:
    """A parsed path, which can be applied to many values."""

    def __init__(self, text: str) -> None:
        """Parse a path. Raises ``ValueError`` if SageMaker does not support it; the message says what is valid."""
        self.text = text
        self.is_index = True
        """Whether the path is ``$`` or one step of indexes: only these can be used on a row of CSV."""
        self._steps: list[tuple[Step, bool]] = []
        """Each step, with whether it gives several values; the next step then applies to each of them."""
        if not text.startswith("$"):
            raise ValueError(f"{text!r} is no JSONPath: it must begin with $. {_VALID}.")
        position = 1
        while position < len(text):
            found = _BRACKET.match(text, position) or _NAME.match(text, position)
            if found is None or (found.re is _NAME and text[position] != "."):
                raise ValueError(f"{text!r} is not supported at {text[position:]!r}. {_VALID}.")
            self._add(found)
            position = found.end()

    @property
    def is_root(self) -> bool:
        """Whether the path is ``$``, the value itself."""
        return not self._steps

    def select(self, value: Any) -> Any:
        """Apply the path to a value. Raises ``LookupError`` if the value has no such member or element."""
        return _apply(self._steps, value)

    def _add(self, found: re.Match[str]) -> None:
        if found.re is _NAME:
            self.is_index = False
            step = (_every, True) if found[2] else (_member(found[1]), False)
        else:
            step = self._bracketed(_parts(found[1]))
            self.is_index = self.is_index and not self._steps
        self._steps.append(step)

    def _bracketed(self, parts: Sequence[str]) -> tuple[Step, bool]:
        names = [quoted[1] or quoted[2] or "" for part in parts if (quoted := _QUOTED.fullmatch(part))]
        if len(names) == len(parts):
            self.is_index = False
            return (_member(names[0]), False) if len(names) == 1 else (_members(names), False)
        if parts == ["*"]:
            return _every, True
        slices = [part for part in parts if _SLICE.fullmatch(part)]
        if len(slices) > 1 or any(not (_INDEX.fullmatch(part) or part in slices) for part in parts):
            raise ValueError(f"{self.text!r}: [{','.join(parts)}] is not supported. {_VALID}.")
        if len(parts) == 1 and not slices:
            return _element(int(parts[0])), False
        return _elements(parts), True


def _parts(text: str) -> list[str]:
    """Split the text in a bracket at its commas, except those in quoted names."""
    parts, position = [], 0
    while position <= len(text):
        found = _PART.match(text, position)
        assert found is not None  # noqa: S101 - the pattern matches an empty text, too
        parts.append(found[0].strip())
        position = found.end() + 1
    return parts


def _apply(steps: Sequence[tuple[Step, bool]], value: Any) -> Any:
    for number, (step, is_several) in enumerate(steps, 1):
        value = step(value)
        if is_several:
            return [_apply(steps[number:], one) for one in value]
    return value


def _member(name: str) -> Step:
    def step(value: Any) -> Any:
        if not isinstance(value, Mapping) or name not in value:
            raise LookupError(f"there is no {name!r}")
        return value[name]

    return step


def _members(names: Sequence[str]) -> Step:
    steps = {name: _member(name) for name in names}
    return lambda value: {name: step(value) for name, step in steps.items()}


def _element(index: int) -> Step:
    def step(value: Any) -> Any:
        if not isinstance(value, list) or not -len(value) <= index < len(value):
            raise LookupError(f"there is no element {index}")
        return value[index]

    return step


def _elements(parts: Sequence[str]) -> Step:
    def step(value: Any) -> Any:
        if not isinstance(value, list):
            raise LookupError("it is no array")
        found: list[Any] = []
        for part in parts:
            bounds = part.split(":")
            if len(bounds) == 1:
                found.append(_element(int(part))(value))
            else:
                found += value[slice(*(int(bound) if bound else None for bound in bounds))]
        return found

    return step


def _every(value: Any) -> Any:
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, list):
        return value
    raise LookupError("it has no elements")
