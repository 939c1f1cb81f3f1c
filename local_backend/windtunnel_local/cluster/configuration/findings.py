"""The mistakes found in one file, and what is worth a warning."""

from __future__ import annotations

from windtunnel_local.cluster.errors import Problem


class Findings:
    """Problems, collected; one file has all of its mistakes named at once."""

    def __init__(self, file: str) -> None:
        """None is found yet."""
        self._file = file
        self._errors: list[Problem] = []
        self._warnings: list[Problem] = []

    def error(self, line: int, path: str, text: str, kind: str = "ConfigSchemaValidator") -> None:
        """A mistake: no cluster is made."""
        self._errors.append(Problem(self._file, line, path, text, kind))

    def warning(self, line: int, path: str, text: str, kind: str) -> None:
        """Fine here, and a mistake on AWS."""
        self._warnings.append(Problem(self._file, line, path, text, kind))

    @property
    def errors(self) -> tuple[Problem, ...]:
        """In the order of the file."""
        return tuple(sorted(self._errors, key=lambda problem: problem.line))

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """In the order of the file."""
        return tuple(sorted(self._warnings, key=lambda problem: problem.line))
