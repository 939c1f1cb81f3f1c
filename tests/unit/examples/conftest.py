"""The example's modules import each other by bare name, as scripts in one folder do."""

from __future__ import annotations

import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "bert_amazon_polarity"
sys.path.insert(0, str(EXAMPLE))
