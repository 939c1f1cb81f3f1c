"""Exit codes of commands other than 0. The docstring of `main` says when each is used."""

from __future__ import annotations

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_DETACHED = 130
