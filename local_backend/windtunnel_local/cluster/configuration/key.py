"""One key of a configuration: its values, whether it has an effect here, and when an update may change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["text", "any", "whole", "number", "flag", "section", "list", "settings"]
"""``any``: one value of any type. ``settings``: names and values that other software defines, in any depth."""
Change = Literal["never", "always", "stopped", "strategy", "growing"]
"""When an update may change a key.

    always      also while the fleet runs
    growing     while it runs, if the change removes no node; else as `strategy`, for which DRAIN is not enough
    strategy    with the fleet stopped, or with a QueueUpdateStrategy
    stopped     with the fleet stopped
    never       only a new cluster can have another value
"""


@dataclass(frozen=True)
class Key:
    """One key. ``effect``: whether it changes something here; for a section, whether its keys do."""

    kind: Kind = "text"
    effect: bool = False
    required: bool = False
    change: Change | None = None
    """When an update may change it; None: as its section."""
    pattern: str = ""
    """Pattern of a text. A text without effect that does not match gets a warning only: no AWS account can check it."""
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    keys: Mapping[str, Key] = field(default_factory=dict)
    """The keys of a section."""
    of: Key | None = None
    """The members of a list."""
    named_by: str = ""
    """For a list of sections: the key by which an update finds a member again."""


def section(
    *shared: Mapping[str, Key], required: bool = False, change: Change | None = None, **own: Key
) -> Key:
    """A section: keys ``shared`` with other sections, and its own."""
    keys = {name: key for mapping in (*shared, own) for name, key in mapping.items()}
    return Key("section", keys=keys, required=required, change=change)


def each(
    named_by: str,
    *shared: Mapping[str, Key],
    required: bool = False,
    change: Change | None = None,
    **own: Key,
) -> Key:
    """A list of sections, which the key ``named_by`` tells apart."""
    return Key("list", of=section(*shared, own), named_by=named_by, required=required, change=change)


def texts(pattern: str = "", *, required: bool = False, change: Change | None = None) -> Key:
    return Key("list", of=Key(pattern=pattern), required=required, change=change)


def several(key: Key, names: str) -> dict[str, Key]:
    """The same key under several names."""
    return dict.fromkeys(names.split(), key)
