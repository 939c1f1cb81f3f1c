"""Draws tables and the devices' topology as the Neuron tools do. Pure."""

from __future__ import annotations

from collections.abc import Sequence

_DASHES = "\u2013\u2013"  # the documentation draws with en dashes

Block = Sequence[Sequence[str]]
"""The rows of one device."""


def shortened(text: str, width: int) -> str:
    """The text, cut to ``width`` characters with an ellipsis where it is longer."""
    return text if len(text) <= width else f"{text[: width - 3]}..."


def boxed(heading: Sequence[tuple[str, str]], blocks: Sequence[Block]) -> list[str]:
    """Lines of a table. If any block has several rows, there are rules between blocks."""
    rows = [row for block in blocks for row in block]
    widths = [
        max(len(above), len(below), *(len(row[column]) for row in rows), 0)
        for column, (above, below) in enumerate(heading)
    ]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = [rule]
    for line in range(2):
        titles = (_centred(title[line], width) for title, width in zip(heading, widths, strict=True))
        lines.append("| " + " | ".join(titles) + " |")
    lines.append(rule)
    apart = any(len(block) > 1 for block in blocks)
    for number, block in enumerate(blocks):
        if apart and number:
            lines.append(rule)
        for row in block:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append("| " + " | ".join(cells) + " |")
    return [*lines, rule]


def _centred(text: str, width: int) -> str:
    """Centre as the tool does: an odd space goes to the right, which `str.center` does not always do."""
    return f"{' ' * ((width - len(text)) // 2)}{text}".ljust(width)


def torus(shown: int, devices: int) -> str:
    """The documented drawing of the devices' connections. ``shown``: the first so many of ``devices``."""
    title = "Neuron Device Topology"
    if devices == 1:
        return f"{title}\n  [ 0 ]"
    side = int(devices**0.5)
    bar = ("        " + "        ".join("│" * side)).rstrip()
    down, up, wrap = (bar.replace("│", mark) for mark in "▼▲*")
    lines = [title, wrap, bar, down]
    for row in range(side):
        names = (
            f"[{number:<2} ]" if number > 9 else f"[ {number} ]"
            for number in range(row * side, (row + 1) * side)
        )
        lines += [f"  *{_DASHES}►" + f"◄{_DASHES}►".join(names) + f"◄{_DASHES}*", up, bar, down]
    lines[-1] = wrap
    if shown < devices:
        lines += [
            "",
            f"Rehearsed here: devices 0 to {shown - 1}." if shown > 1 else "Rehearsed here: device 0.",
        ]
    return "\n".join([*lines, "", "Legend:", "", f"         *{_DASHES}► = Wrap-around link"])
