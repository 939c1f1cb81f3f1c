"""Collect the mistakes and warnings found in one file."""

from __future__ import annotations

from windtunnel_local.cluster.errors import Problem


class Findings:
    """The problems of one file, so that all of its mistakes are told at once."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._errors: list[Problem] = []
        self._warnings: list[Problem] = []

    def error(self, line: int, path: str, text: str, kind: str = "ConfigSchemaValidator") -> None:
        """Add a mistake: no cluster is made."""
        self._errors.append(Problem(self._file, line, path, text, kind))

    def warning(self, line: int, path: str, text: str, kind: str) -> None:
        """Add a warning: it works here, and is a mistake on AWS."""
        self._warnings.append(Problem(self._file, line, path, text, kind))

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The mistakes, in the order of the file."""
        return tuple(sorted(self._errors, key=lambda problem: problem.line))

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """The warnings, in the order of the file."""
        return tuple(sorted(self._warnings, key=lambda problem: problem.line))
