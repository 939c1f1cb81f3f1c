"""All findings, one per cause and line, worst first, and their text in the job's log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SEVERITIES = ("error", "warning", "note")
"""The severities, worst first."""
WRONG_RESULT = ("no_exchange", "same_data", "no_number", "untied_weights", "unequal_weights", "wrong_split")
"""Kinds whose cost is not time: the script does not train what it means to train."""

_MOST_AT_ONCE = 20
"""The most warnings in the log while the script runs; further ones are only in the summary and the counters."""
_MOST_AT_END = 10
_MOST_KEPT = 200


@dataclass(frozen=True)
class Finding:
    """Something to change in the script.

    ``line``: the user's ``file:line``; ``seconds``: what it cost here; ``count``: how often; ``cause``
    tells two findings of one kind on one line apart.
    """

    kind: str
    severity: str
    line: str
    message: str
    advice: str
    count: int = 1
    seconds: float = 0.0
    cause: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Two findings with the same key are one finding that was seen again."""
        return self.kind, self.line, self.cause

    @property
    def text(self) -> str:
        """The finding as a line of the job's log."""
        place = "" if self.line == "?" else f"{self.line}: "
        return f"{self.severity}: {place}{self.message} {self.advice}"

    def record(self) -> dict[str, Any]:
        """The finding as a record of the counters."""
        return {
            "kind": "finding",
            "finding": self.kind,
            "severity": self.severity,
            "line": self.line,
            "message": self.message,
            "advice": self.advice,
            "count": self.count,
            "seconds": round(self.seconds, 6),
            "cause": self.cause,
        }


note: Callable[[Finding], None]
"""Takes a finding of this core, from anywhere. `hooks.table` sets it."""


def times(count: int) -> str:
    """How often something happened, in words."""
    return "once" if count == 1 else f"{count} times"


def worst_first(finding: Finding) -> tuple[int, bool, float, int]:
    """Sort key: severity; wrong results before slow ones; what it cost here; how often it happened."""
    slow = finding.kind not in WRONG_RESULT
    return SEVERITIES.index(finding.severity), slow, -finding.seconds, -finding.count


class Findings:
    """All findings of one process."""

    def __init__(self, write: Callable[[dict[str, Any]], None], say: Callable[[str], None]) -> None:
        """``write`` takes records for the counters, ``say`` lines for the job's log."""
        self._write = write
        self._say = say
        self._found: dict[tuple[str, str, str], Finding] = {}
        self._said: set[tuple[str, str, str]] = set()

    def note(self, finding: Finding, *, said: bool = False, at_once: bool = False) -> None:
        """Add a finding; a later one of the same key replaces it. Errors and warnings are logged once, notes not here.

        ``said``: it has been logged already. ``at_once``: it is logged though it is a note.
        """
        if said:
            self._said.add(finding.key)
        if finding.key not in self._found:
            if len(self._found) >= _MOST_KEPT:
                return
            self._write(finding.record())
        self._found[finding.key] = finding
        if (
            (finding.severity == "note" and not at_once)
            or finding.key in self._said
            or len(self._said) >= _MOST_AT_ONCE
        ):
            return
        self._said.add(finding.key)
        self._say(finding.text)

    def ranked(self) -> list[Finding]:
        """All findings, worst first."""
        return sorted(self._found.values(), key=worst_first)

    def close(self) -> None:
        """Write the final figures, and sum up in the log. Without findings, nothing is logged."""
        ranked = self.ranked()
        for finding in ranked:
            self._write(finding.record())
        if not ranked:
            return
        self._say(f"what to change before trn1, worst first ({len(ranked)} found on simulated NeuronCores):")
        for number, finding in enumerate(ranked[:_MOST_AT_END], 1):
            self._say(f"{number:2d}. {finding.text}")
        if len(ranked) > _MOST_AT_END:
            self._say(f"    and {len(ranked) - _MOST_AT_END} more: job.diagnostics()")
