"""Replaces the report's advice for a shell or Python by advice for the form on the page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from windtunnel.rendering.document import Section
from windtunnel.reports.modelled.answer import GIVE_SIZE, NAME_OTHERS, STATE_PRICES
from windtunnel.reports.modelled.trust import STATE_LOADER
from windtunnel_local.ui.answer.choice import BATCHES

_HERE: Mapping[str, str] = {
    GIVE_SIZE: "Say how large the real job is: Samples of an epoch.",
    NAME_OTHERS: "Tick others.",
    STATE_PRICES: "Tick others.",
    STATE_LOADER: "say what a loader process prepares",
    "(--batch per-device)": f"(Batch: {BATCHES['per_device']})",
}

_BATCH = re.compile(r"\(--batch \d+\)|--batch(?P<each>-per-device)? (?P<size>\d+)")


def for_page(sections: Iterable[Section]) -> list[Section]:
    """The same sections, not cut for a terminal, with advice that can be followed on the page."""
    whole = (one.whole or one for one in sections)
    return [replace(one, notes=tuple(_said(note) for note in one.notes)) for one in whole]


def _said(note: str) -> str:
    for words, here in _HERE.items():
        note = note.replace(words, here)
    return _BATCH.sub(_batch, note)


def _batch(found: re.Match[str]) -> str:
    field = f"(Batch: {BATCHES['each' if found['each'] else 'total']})"
    return f"a batch of {found['size']} {field}" if found["size"] else field
