"""Make pip regard packages as installed, without any content: `pretend.py SUMMARY NAME==VERSION...`."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

SITE = Path(sysconfig.get_path("purelib"))


def pretend(name: str, version: str, summary: str) -> None:
    """Make pip regard a package as installed: `pip list` shows it, but it has no module to import."""
    folder = SITE / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {summary}\n"
    )
    (folder / "WHEEL").write_text("Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    (folder / "RECORD").write_text(
        "".join(f"{folder.name}/{file},,\n" for file in ("METADATA", "WHEEL", "RECORD"))
    )


if __name__ == "__main__":
    for requirement in sys.argv[2:]:
        pretend(*requirement.split("=="), summary=sys.argv[1])
