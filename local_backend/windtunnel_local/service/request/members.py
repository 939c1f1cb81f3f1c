"""What a request may ask for: every member of AWS's model is honoured, kept, or refused, and why.

One table of three an operation. A member that is in none of them, because a later version of AWS's model has
brought it, is refused by name; a test walks the model and finds it.

A path names a member and where it is, lists without an index. What is honoured or kept is listed to the last
member; what is refused covers all that lies below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from windtunnel_local.service.ground.errors import ValidationFailed

_NOT_HERE = "this backend does not simulate it; leave it out, or send the request to AWS"
Path = tuple[str, ...]


@dataclass(frozen=True)
class Members:
    """The members of one operation's request, by path."""

    honoured: frozenset[str]
    """It does here what it does on AWS, or its value is refused with the reason."""
    kept: Mapping[str, str]
    """Remembered and shown by Describe, and why nothing else has to follow from it here."""
    refused: Mapping[str, str]
    """What is not served, and what to do instead."""

    def check(self, request: Mapping[str, Any]) -> None:
        """Refuse the first member that asks for something that is neither honoured nor kept.

        Raises:
            ValidationFailed: names the member and the reason.
        """
        for path, shown in self._unserved(request, (), ()):
            known = self.refused_by(".".join(path))
            depth = len(known.split(".")) if known else self._first_unknown(path)
            raise ValidationFailed(
                f"{'.'.join(shown[:depth])} is not supported: {self.refused.get(known, _NOT_HERE)}."
            )

    def refused_by(self, path: str) -> str:
        """The entry of `refused` that covers a path; empty if none does."""
        return next((known for known in self.refused if path == known or path.startswith(f"{known}.")), "")

    def _first_unknown(self, path: Path) -> int:
        """How many parts of a path name the highest member that no table has anything of."""
        known = {tuple(entry.split(".")) for entry in (*self.honoured, *self.kept, *self.refused)}
        return next(
            (end for end in range(1, len(path)) if not any(entry[:end] == path[:end] for entry in known)),
            len(path),
        )

    def _unserved(self, value: Any, path: Path, shown: Path) -> Iterator[tuple[Path, Path]]:
        """Paths of the values that ask for what is not served, each also as a message shows it.

        `false`, 0 and what is empty, and structures of such, ask for nothing.
        """
        name = ".".join(path)
        if name in self.honoured or name in self.kept:
            return
        if isinstance(value, Mapping):
            for member, item in value.items():
                yield from self._unserved(item, (*path, member), (*shown, member))
        elif isinstance(value, list):
            for item in value:
                label = item.get("ChannelName") if isinstance(item, Mapping) else None
                inner = (*shown[:-1], f"{shown[-1]}[{label}]") if label else shown
                yield from self._unserved(item, path, inner)
        elif value:
            yield path, shown
