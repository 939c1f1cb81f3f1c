"""AWS's own table: what its arithmetic gives, and what the model says of it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import windtunnel.priceperf
from windtunnel.priceperf import published_comparison

TABLE = published_comparison()


def test_trn1_cost_is_flagged_and_p4d_agrees() -> None:
    """41.47 printed, 41.435 recomputed: 0.08 % high. 68.6 is right to its printed precision."""
    assert TABLE.trn1.recomputed_usd == pytest.approx(41.435, abs=5e-4)
    assert not TABLE.trn1.agrees
    assert TABLE.trn1.off_percent == pytest.approx(0.08, abs=0.005)
    assert TABLE.p4d.recomputed_usd == pytest.approx(68.606, abs=5e-4)
    assert TABLE.p4d.agrees


def test_ratios_of_the_table() -> None:
    """22 % more iterations, 7.9 % fewer seconds, 39.5 % printed and 39.6 % recomputed, 9.9 % later."""
    assert round(TABLE.faster_percent) == 22
    assert round(TABLE.shorter_percent, 1) == 7.9
    assert round(TABLE.saving_printed_percent, 1) == 39.5
    assert round(TABLE.saving_recomputed_percent, 1) == 39.6
    assert round(TABLE.saving_later_percent, 1) == 9.9
    assert TABLE.p4d_later_usd == pytest.approx(45.964, abs=5e-4)


def test_most_of_the_billable_time_is_not_steps() -> None:
    """65 % on trn1, 61 % on p4d, for one epoch in batches of 256."""
    assert round(TABLE.trn1.outside_steps, 2) == 0.65
    assert round(TABLE.p4d.outside_steps, 2) == 0.61


def test_published_p4d_is_full_fp32() -> None:
    """The printed iterations/s are within 10 % of fp32 and far from TF32."""
    _, fp32, tf32 = TABLE.checks
    assert abs(fp32.error_percent) < 10
    assert tf32.error_percent > 100


def test_priceperf_is_pure() -> None:
    """Only the standard library's data and maths, and itself: no files, clock, environment, network."""
    allowed = {
        "__future__", "abc", "collections", "dataclasses", "datetime", "functools", "math", "statistics", "typing",
    }  # fmt: skip
    for path in Path(windtunnel.priceperf.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            else:
                continue
            assert {name.split(".")[0] for name in names} <= allowed, path.name
    assert allowed <= sys.stdlib_module_names
