"""The pages on AWS's own clients are true: their programs are those that tests/clients runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "how_to" / "clients").glob("*.md"))
SCRIPTS = ROOT / "tests" / "clients" / "scripts"
_BLOCK = re.compile(r"(?:<!-- (?P<path>\S+) -->\n)?```(?P<language>\w+)\n(?P<code>.*?)```\n", flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_program_is_one_that_the_tests_run(page: Path) -> None:
    """Word for word; and that is all the code of the page, but for what a program prints."""
    blocks = list(_BLOCK.finditer(page.read_text()))
    assert blocks
    tests = "".join(path.read_text() for path in SCRIPTS.parent.glob("*.py"))
    for block in blocks:
        if block["language"] == "text":
            continue
        assert block["path"], f"this block is no script: {block['code'][:80]}"
        assert (ROOT / block["path"]).read_text() == block["code"]
        assert Path(block["path"]).name in tests


def test_every_program_is_on_a_page() -> None:
    """What the tests show is told, too."""
    told = "".join(page.read_text() for page in PAGES)
    for script in (*SCRIPTS.glob("with_*"), *SCRIPTS.glob("serving_with_*")):
        assert script.read_text() in told, script.name


def test_versions_are_those_of_the_tests() -> None:
    """The table names what is installed."""
    table = (ROOT / "docs" / "how_to" / "clients" / "README.md").read_text()
    requirements = SCRIPTS.parent / "requirements"
    for name, package in (
        ("boto3", "boto3"),
        ("awscli", "awscli"),
        ("sagemaker_v2", "sagemaker"),
        ("sagemaker_v3", "sagemaker"),
    ):
        pin = re.search(rf"^{package}==(\S+)$", (requirements / f"{name}.txt").read_text(), re.MULTILINE)
        assert pin and f"| {pin[1]} |" in table


def test_the_tuners_refusal_is_quoted_as_it_is() -> None:
    """The page and the test of the real package say the same words."""
    page = " ".join((ROOT / "docs" / "how_to" / "clients" / "sagemaker_v2.md").read_text().split())
    tested = (SCRIPTS.parent / "test_jobs.py").read_text()
    words = "when calling the CreateHyperParameterTuningJob operation: "
    assert words in page
    assert words in tested


def test_versions_of_data_clients_are_those_of_the_tests() -> None:
    """The page names what is installed, and nothing else."""
    page = (ROOT / "docs" / "how_to" / "clients" / "data_clients.md").read_text()
    told = re.findall(r"^\| (\w+) \| ([0-9.]+) \|$", page, re.MULTILINE)
    pins = (SCRIPTS.parent / "requirements" / "data_clients.txt").read_text().partition("#")[0]
    assert told == re.findall(r"^(\w+)(?:\[\w+\])?==(\S+)$", pins, re.MULTILINE)
