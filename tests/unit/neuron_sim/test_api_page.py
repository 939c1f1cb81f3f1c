"""The table of names in docs/, and what `windtunnel check` reads, are written from the registry."""

from __future__ import annotations

from pathlib import Path

from neuron_sim import names
from neuron_sim.names import page

ROOT = Path(__file__).resolve().parents[3]


def test_the_page_and_what_check_says_are_what_the_registry_says() -> None:
    """After a change of the registry: `python scripts/api_table.py`."""
    assert (ROOT / "docs" / "reference" / "names.md").read_text() == page.text()
    assert (ROOT / "sdk" / "windtunnel" / "porting" / "image_lacks.json").read_text() == page.for_check()


def test_each_name_is_listed_once_with_versions_in_order() -> None:
    """And what is refused says what to do instead."""
    seen = set()
    for name in names.every():
        key = (name.module, name.name)
        assert key not in seen, key
        seen.add(key)
        assert (name.since or names.FIRST) <= (name.until or names.LATEST)
        assert name.supported or len(name.refused) > 20


def test_a_name_is_there_from_its_first_to_its_last_version() -> None:
    """xm.xrt_world_size: up to 2.6, as torch_xla's sources have it."""
    (name,) = (name for name in names.every() if name.name == "xrt_world_size")
    assert name.in_version((1, 11))
    assert name.in_version((1, 13))
    assert name.in_version((2, 6))
    assert not name.in_version((2, 7))
