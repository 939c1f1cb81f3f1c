"""Write docs/reference/names.md, and what `windtunnel check` says of names, from the simulator's registry of names:
`python scripts/api_table.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "containers" / "neuron_sim"))

from neuron_sim.names import page  # noqa: E402  (the simulator is a project of its own)

if __name__ == "__main__":
    (ROOT / "docs" / "reference" / "names.md").write_text(page.text())
    (ROOT / "sdk" / "windtunnel" / "porting" / "image_lacks.json").write_text(page.for_check())
