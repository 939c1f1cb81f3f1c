"""`windtunnel validate`: every row with its error, as a table and as JSON; files of all sorts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.conftest import Invoke
from windtunnel.priceperf import CATALOG
from windtunnel.priceperf.calibration.data_files import table

HEADER = (
    "config,architecture,instance_type,nodes,tensor_parallel,microbatch,global_batch,sequence_length,"
    "recompute,zero1,sequences_per_second\n"
)
ROW = "Llama2-13B 16n,Llama2-13B,trn1.32xlarge,16,8,1,1024,4096,selective,True,45\n"


def printed(invoke: Invoke, *argv: str) -> Any:
    """The JSON that the command prints."""
    return json.loads(invoke("validate", "--json", *argv).out)


def test_json_of_the_built_in_rows(invoke: Invoke) -> None:
    """Rows and summary as promised: what is published, predicted, and how far off, left out and not."""
    data = printed(invoke)
    assert len(data["rows"]) == data["summary"]["rows"] == len(table("published_fitted"))
    assert data["summary"]["not_predicted"] == 0
    for row in data["rows"]:
        assert row["error_percent"] == pytest.approx(
            100 * (row["predicted"] / row["published"] - 1), abs=0.01
        )
        assert row["interval"][0] < row["predicted"] < row["interval"][1]
        assert f"ml.{row['instance_type']}" in CATALOG
    for kind, worst in (("trn1", 8), ("a100", 7), ("a100_cluster", 10), ("h100", 8)):
        summary = data["summary"][kind]
        for level in ("leave_one_out", "leave_one_family_out", "leave_one_source_out"):
            assert summary[level]["mean_percent"] <= worst
            assert summary[level]["coverage_percent"] >= 75
        assert 75 <= summary["leave_one_source_out"]["group_coverage_percent"] <= 96
        assert summary["interval_coverage_percent"] <= 90
    assert len(data["elsewhere"]) == sum(
        data["summary"][kind]["other_software"]["rows"] for kind in ("trn1", "a100", "a100_cluster", "h100")
    )
    assert all(row["leave_one_out_error_percent"] is None for row in data["elsewhere"])
    assert data["summary"]["version_floor_percent"] == 7
    fitted = [name for name, item in data["constants"]["trn1"].items() if item["fitted"]]
    assert len(fitted) == 8
    assert all(data["constants"]["trn1"][name]["rows"] for name in fitted)


def test_the_table_says_the_same(invoke: Invoke) -> None:
    """Errors four ways, coverage, the floor, where constants come from, and that nothing is excluded."""
    out = " ".join(invoke("validate").out.split())
    for text in ("GPT3-175B", "leave one family out", "±7% between Neuron versions", "No row is excluded",
                 "inside an 80% interval that others have set", "leave one source out",
                 "karpathy/nanoGPT", "none of these rows set a constant",
                 "the Llama rows", "assumed"):  # fmt: skip
        assert text in out


def test_a_file_of_unseen_rows(tmp_path: Path, invoke: Invoke) -> None:
    """Predicted with the built-in constants; the row that cannot be carries its reason."""
    path = tmp_path / "rows.csv"
    path.write_text("\ufeff" + HEADER + ROW + "\n# a remark\nP,Perceiver,trn1.32xlarge,1,1,4,,2048,,,140\n")
    data = printed(invoke, "--published", str(path))
    assert [row["predicted"] is None for row in data["rows"]] == [False, True]
    assert "Perceiver" in data["rows"][1]["reason"]
    assert data["summary"]["not_predicted"] == 1
    assert data["summary"]["trn1"]["leave_one_out"]["rows"] == 1
    assert data["constants"] == printed(invoke)["constants"]
    path.write_text(path.read_text().replace(",", ";"))  # as some spreadsheets write it
    assert printed(invoke, "--published", str(path))["rows"][0] == data["rows"][0]
    out = " ".join(invoke("validate", "--published", str(path)).out.split())
    assert "NOT PREDICTED" in out
    assert "this file changed none" in out


def test_files_of_the_validation(tmp_path: Path, invoke: Invoke) -> None:
    """A page, and no picture where there is nothing to draw."""
    page, rows = tmp_path / "rows.html", tmp_path / "rows.csv"
    rows.write_text(HEADER + ROW.replace(",45\n", ",\n"))
    invoke("validate", "--published", str(rows), "--html", str(page))
    assert "Llama2-13B 16n" in page.read_text(encoding="utf-8")
    said = invoke("validate", "--published", str(rows), "--png", str(tmp_path / "a.png"), exits=2).err
    assert "nothing to plot: no row has both" in said


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read"),
        (b"", "has no rows"),
        (HEADER.encode(), "has no rows"),
        (b'{"a": 1, "b": 1, "a": 1}', "has no rows"),
        (b"\xff\xfe\x00", "is no UTF-8 text"),
        (b'a,b\n"open,1\n', "is no CSV table"),
        # What cannot be told apart is not guessed.
        ((HEADER.replace("zero1", "nodes") + ROW).encode(), "more than one column nodes"),
        (
            (HEADER + ROW.replace("Llama2-13B 16n", '"Llama2" 16n')).encode(),
            'in or before the line \'"Llama2" 16n',
        ),
    ],
)
def test_a_file_that_is_no_table(tmp_path: Path, invoke: Invoke, content: bytes | None, message: str) -> None:
    """One clean message, exit code 2."""
    path = tmp_path / "rows.csv"
    if content is not None:
        path.write_bytes(content)
    assert message in invoke("validate", "--published", str(path), exits=2).err


def test_rows_of_the_wrong_length_are_told(tmp_path: Path, invoke: Invoke) -> None:
    """Too many cells may have moved others, empty ones have not; too few are missing values."""
    path = tmp_path / "rows.csv"
    path.write_text(HEADER + ROW.strip() + ",more,cells\n" + ROW.strip() + ",,\nshort,BERT-Large\n")
    first, second, third = printed(invoke, "--published", str(path))["rows"]
    assert first["reason"].startswith("the row has 2 cells more than the header")
    assert second["predicted"]
    assert third["reason"] == "instance_type is missing"


@pytest.mark.parametrize(
    ("given", "hint"), [("src/train.py", "check src/train.py"), ("a.csv", "--published a.csv")]
)
def test_a_script_is_sent_to_check(given: str, hint: str, invoke: Invoke) -> None:
    """The command that checks scripts has another name."""
    assert hint in invoke("validate", given, exits=2).err


def test_a_file_is_not_called_left_out(tmp_path: Path, invoke: Invoke) -> None:
    """Rows of a user's file are figures of the file; a reason of many rows is said once, with all their names."""
    path = tmp_path / "rows.csv"
    path.write_text(
        HEADER
        + ROW
        + "A,Perceiver,trn1.32xlarge,1,1,4,,2048,,,1\nB,Perceiver,trn1.32xlarge,1,1,4,,2048,,,1\n"
    )
    out = " ".join(invoke("validate", "--published", str(path)).out.split())
    assert re.search(r"trn1: the one published figure of the file is off by [\d.]+ %\. ", out)
    assert "left-out rows" not in out
    assert "A; B: architecture 'Perceiver' is not known" in out


@pytest.mark.parametrize(
    ("text", "published"),
    [
        (HEADER + "# a comment, with commas\n#1 of ours," + ROW.partition(",")[2], [45.0]),
        ((HEADER + ROW).replace(",", ";").replace(";45", ";1.245,5"), [1245.5]),
        (HEADER + ROW.replace(",45", ',"1,245.5"'), [1245.5]),
        (HEADER + ROW.replace(",45", ",1,245") + ROW, [None, 45.0]),
        (HEADER + ROW.replace("16n", "16\u2028n"), [45.0]),
    ],
)
def test_no_row_of_a_file_is_lost(
    text: str, published: list[float | None], tmp_path: Path, invoke: Invoke
) -> None:
    """Comments are none; decimal commas of semicolon files; a row with cells to spare says so."""
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8")
    rows = printed(invoke, "--published", str(path))["rows"]
    assert [row["published"] for row in rows] == published
    assert all((row["predicted"] is None) == (row["published"] is None) for row in rows)
    assert all("cells more than the header" in row["reason"] for row in rows if row["published"] is None)
