"""Tables of request members: each member of AWS's model is honoured, kept or refused, with the reason.

Each operation has one `Members` of three tables. A member that is in none of the three, because a later version
of AWS's model has added it, is refused by name; a test compares the tables with the model.

A path is the member's names from the top, joined by dots; list indexes are left out. Honoured and kept members
are listed down to the innermost ones; a refused path covers everything below it.
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
    """The tables of one operation's request members, by path."""

    honoured: frozenset[str]
    """Members that work as on AWS; a value that is not supported is refused with the reason."""
    kept: Mapping[str, str]
    """Members that are only stored and shown by Describe, with the reason why they need no effect here."""
    refused: Mapping[str, str]
    """Members that are not supported, with what to do instead."""

    def check(self, request: Mapping[str, Any]) -> None:
        """Refuse the request if a member asks for something that is not in `honoured` or `kept`.

        Raises:
            ValidationFailed: names the first such member and the reason.
        """
        for path, shown in self._unserved(request, (), ()):
            known = self.refused_by(".".join(path))
            depth = len(known.split(".")) if known else self._first_unknown(path)
            raise ValidationFailed(
                f"{'.'.join(shown[:depth])} is not supported: {self.refused.get(known, _NOT_HERE)}."
            )

    def refused_by(self, path: str) -> str:
        """The entry of `refused` that covers a path; an empty text if none does."""
        return next((known for known in self.refused if path == known or path.startswith(f"{known}.")), "")

    def _first_unknown(self, path: Path) -> int:
        """The number of leading parts of a path that name its outermost member unknown to all tables."""
        known = {tuple(entry.split(".")) for entry in (*self.honoured, *self.kept, *self.refused)}
        return next(
            (end for end in range(1, len(path)) if not any(entry[:end] == path[:end] for entry in known)),
            len(path),
        )

    def _unserved(self, value: Any, path: Path, shown: Path) -> Iterator[tuple[Path, Path]]:
        """The paths of values that are not in `honoured` or `kept`; of each also the form that a message shows.

        Values that ask for nothing are left out: `false`, 0, empty values, and structures of only these.
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
