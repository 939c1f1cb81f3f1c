"""A YAML document as plain values, each with the line where it stands.

PyYAML parses. Mappings are built here, because its constructors drop line numbers and all but the last of several
equal keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml

Scalar = str | int | float | bool | None
LONGEST = 1 << 18
"""Most characters of a file: ParallelCluster's largest clusters need a tenth, and PyYAML is slow."""
_MOST_ENTRIES = 20_000
"""Most values of a document: by aliases a small file can hold a large one."""
_MERGE = "tag:yaml.org,2002:merge"
_SCALARS = {f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null")}
_AS_TEXT = {"tag:yaml.org,2002:str", "tag:yaml.org,2002:timestamp"}


class NotYaml(Exception):
    """The text is not YAML, or too large for a configuration. ``line``: where, from 1."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


@dataclass(frozen=True)
class Entry:
    """A value. ``line``: of its key, or of itself in a list; from 1."""

    value: Scalar | dict[str, Entry] | list[Entry]
    line: int

    def get(self, key: str, default: Any = None) -> Any:
        """The plain value under a key; ``default`` where there is none."""
        entry = self.at(key)
        return default if entry is None else entry.plain

    def at(self, *keys: str) -> Entry | None:
        """The entry below these keys, each in the one before; None if one is missing."""
        found: Entry | None = self
        for key in keys:
            found = found.value.get(key) if found and isinstance(found.value, dict) else None
        return found

    def items(self, *keys: str) -> list[Entry]:
        """The members of the list below these keys; none where there is no list."""
        entry = self.at(*keys)
        return entry.value if entry and isinstance(entry.value, list) else []

    @property
    def plain(self) -> Any:
        if isinstance(self.value, dict):
            return {key: entry.plain for key, entry in self.value.items()}
        if isinstance(self.value, list):
            return [entry.plain for entry in self.value]
        return self.value


def parse(text: str, duplicate: Callable[[int, str], None]) -> Entry:
    """The document. Of equal keys in one mapping the first counts, and ``duplicate`` is called for the others.

    Raises:
        NotYaml: no YAML, more than one document, too large a one, or one that holds itself.
    """
    if len(text) > LONGEST:
        raise NotYaml(1, f"the file has more than {LONGEST:,} characters, so it is no configuration")
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is None:
            raise NotYaml(1, "the file is empty")
        return _Converter(duplicate).entry(root, _line(root), ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise NotYaml(mark.line + 1 if mark else 1, f"no valid YAML: {error.problem or error}") from None
    except yaml.YAMLError as error:
        raise NotYaml(1, f"no valid YAML: {error}") from None
    except RecursionError:
        raise NotYaml(1, "the document is nested too deep") from None


class _Converter:
    def __init__(self, duplicate: Callable[[int, str], None]) -> None:
        self._duplicate = duplicate
        self._scalars = yaml.constructor.SafeConstructor()
        self._entries = 0

    def entry(self, node: yaml.Node, line: int, above: tuple[yaml.Node, ...]) -> Entry:
        self._entries += 1
        if self._entries > _MOST_ENTRIES:
            raise NotYaml(line, f"the document has more than {_MOST_ENTRIES} values")
        if any(node is other for other in above):
            raise NotYaml(line, "an alias makes the document hold itself")
        below = (*above, node)
        if isinstance(node, yaml.MappingNode) and node.tag.endswith(",2002:map"):
            return Entry(self._mapping(node, below), line)
        if isinstance(node, yaml.SequenceNode) and node.tag.endswith(",2002:seq"):
            return Entry([self.entry(item, _line(item), below) for item in node.value], line)
        if isinstance(node, yaml.ScalarNode):
            return Entry(self._scalar(node), line)
        raise NotYaml(_line(node), f"the tag {node.tag!r} has no meaning in a configuration")

    def _mapping(self, node: yaml.MappingNode, above: tuple[yaml.Node, ...]) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        merged: list[yaml.Node] = []
        for key_node, value in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise NotYaml(_line(key_node), "a key must be a word, not a list or a mapping")
            if key_node.tag == _MERGE:
                merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
                continue
            key, line = key_node.value, _line(key_node)
            entry = self.entry(value, line, above)
            if key in found:
                self._duplicate(
                    line, f"the key {key!r} stands here for the second time, first in line {found[key].line}"
                )
            else:
                found[key] = entry
        for other in merged:  # `<<: *other`: its keys, where none of that name is here or came before
            below = self.entry(other, _line(other), above).value
            if not isinstance(below, dict):
                raise NotYaml(_line(other), "`<<` takes a mapping, or a list of mappings")
            found = {**below, **found}
        return found

    def _scalar(self, node: yaml.ScalarNode) -> Scalar:
        if node.tag in _AS_TEXT:
            return str(node.value)
        if node.tag not in _SCALARS:
            raise NotYaml(_line(node), f"the tag {node.tag!r} has no meaning in a configuration")
        try:
            value: Scalar = self._scalars.construct_object(node)
        except (ValueError, KeyError, yaml.YAMLError):  # `!!int x`
            raise NotYaml(_line(node), f"{node.value!r} is no {node.tag.rpartition(':')[2]}") from None
        return value


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
