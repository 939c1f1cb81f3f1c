"""One key of a configuration: what it takes, whether it has an effect here, and when an update may change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["text", "any", "whole", "number", "flag", "section", "list", "settings"]
"""``any``: one value of whatever type. ``settings``: names and values that are somebody else's, in any depth."""
Change = Literal["never", "always", "stopped", "strategy", "growing"]
"""When an update may change a key.

    always      also while the fleet runs
    growing     while it runs, if no node goes by it; else as `strategy`, of which DRAIN is not enough
    strategy    with the fleet stopped, or with a QueueUpdateStrategy
    stopped     with the fleet stopped
    never       only another cluster has another value
"""


@dataclass(frozen=True)
class Key:
    """One key. ``effect``: it changes something here; of a section, that is said of the keys in it."""

    kind: Kind = "text"
    effect: bool = False
    required: bool = False
    change: Change | None = None
    """None: as the section that it stands in."""
    pattern: str = ""
    """Of a text with an effect, checked; of one without, only warned of: there is no account to hold it against."""
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    keys: Mapping[str, Key] = field(default_factory=dict)
    """Of a section."""
    of: Key | None = None
    """Of a list: its members."""
    named_by: str = ""
    """Of a list of sections: the key by which an update finds a member again."""


def section(
    *shared: Mapping[str, Key], required: bool = False, change: Change | None = None, **own: Key
) -> Key:
    """Keys with values: ``shared`` with other sections, and its own."""
    keys = {name: key for mapping in (*shared, own) for name, key in mapping.items()}
    return Key("section", keys=keys, required=required, change=change)


def each(
    named_by: str,
    *shared: Mapping[str, Key],
    required: bool = False,
    change: Change | None = None,
    **own: Key,
) -> Key:
    """A list of sections, told apart by the key ``named_by``."""
    return Key("list", of=section(*shared, own), named_by=named_by, required=required, change=change)


def texts(pattern: str = "", *, required: bool = False, change: Change | None = None) -> Key:
    """A list of texts."""
    return Key("list", of=Key(pattern=pattern), required=required, change=change)


def several(key: Key, names: str) -> dict[str, Key]:
    """The same for several names."""
    return dict.fromkeys(names.split(), key)
