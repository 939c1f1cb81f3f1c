"""The simulator is a project of its own: these tests take the parts that need no torch from its folder."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "containers" / "neuron_sim"))
