"""Steps over time as blocks: a block's width is its duration, and its height is divided by the parts of the step.

Steps that are too narrow to be seen are drawn together. Of a step's parts only the sums are known, not their order,
so the parts are drawn above one another over the whole width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

WIDTH, _HEIGHT, _FOOT = 1000, 60, 5
_BLOCKS_A_PAGE = 500
_SEPARATED_FROM = 5.0
"""Blocks of this width or more have a line between them."""


@dataclass(frozen=True)
class Block:
    """A step, or several drawn as one. Seconds on the lane's time axis. ``marked``: with a line below."""

    begin_s: float
    end_s: float
    parts: tuple[float, ...]
    marked: bool


def lane_svg(steps: Sequence[Block], begin_s: float, end_s: float, lanes: int) -> Markup:
    """One lane as ``<svg>``, from ``begin_s`` to ``end_s``. ``lanes``: lanes of the page. A table says the same."""
    span = max(end_s - begin_s, 1e-9)

    def x(moment: float) -> float:
        return (moment - begin_s) / span * WIDTH

    blocks = list(_merged(steps, span * max(1, lanes) / _BLOCKS_A_PAGE))
    kinds = len(steps[0].parts) if steps else 0
    paths: list[list[str]] = [[] for _ in range(kinds)]
    marks, borders = [], []
    for block in blocks:
        left, width = x(block.begin_s), max(0.3, x(block.end_s) - x(block.begin_s))
        whole, top = sum(block.parts) or 1.0, 0.0
        for path, part in zip(paths, block.parts, strict=True):
            height = part / whole * _HEIGHT
            if height >= 0.05:
                path.append(f"M{left:.1f} {top:.1f}h{width:.1f}v{height:.1f}h-{width:.1f}z")
            top += height
        if block.marked:
            marks.append(f"M{left:.1f} {_HEIGHT + 2}h{width:.1f}v{_FOOT - 2}h-{width:.1f}z")
        if width >= _SEPARATED_FROM:
            borders.append(f"M{left:.1f} 0V{_HEIGHT}")
    drawn = [
        Markup('<path class="part part-{}" d="{}"/>').format(kind, "".join(path))
        for kind, path in enumerate(paths, 1)
        if path
    ]
    return Markup(
        '<svg class="lane" viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true">{}'
        '<path class="trains" d="{}"/><path class="border" vector-effect="non-scaling-stroke" d="{}"/></svg>'
    ).format(WIDTH, _HEIGHT + _FOOT, Markup("").join(drawn), "".join(marks), "".join(borders))


def _merged(steps: Sequence[Block], least_s: float) -> Iterator[Block]:
    """Join steps that follow one another into blocks of about ``least_s`` seconds or more; no step is left out."""
    open_block: Block | None = None
    for step in steps:
        if open_block is None:
            open_block = step
        elif (
            open_block.end_s - open_block.begin_s < least_s and step.end_s - open_block.begin_s < 2 * least_s
        ):
            parts = tuple(a + b for a, b in zip(open_block.parts, step.parts, strict=True))
            open_block = Block(open_block.begin_s, step.end_s, parts, open_block.marked or step.marked)
        else:
            yield open_block
            open_block = step
    if open_block is not None:
        yield open_block
