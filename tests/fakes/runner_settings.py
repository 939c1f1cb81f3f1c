"""What a `DockerRunner` of a test reads of its settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """Of a home that builds no image."""

    home: Path
    image: str = "windtunnel-none:test"
    base_image: str | None = None
    torch_index_url: str | None = None
    sim_python: Path | None = None
