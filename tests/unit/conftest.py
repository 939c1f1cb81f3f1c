"""What is in the images is projects of their own: these tests take the parts that need no torch from their folders."""

from __future__ import annotations

import sys
from pathlib import Path

_CONTAINERS = Path(__file__).resolve().parents[2] / "containers"
sys.path[:0] = [str(_CONTAINERS / "neuron_sim"), str(_CONTAINERS / "cluster" / "software")]
