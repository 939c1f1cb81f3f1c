"""What a command ends with, other than 0. `main` says when."""

from __future__ import annotations

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_DETACHED = 130
