"""README and docs are true: code compiles and imports, folders, links, commands and settings exist."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import windtunnel
from windtunnel.cli.main import build_parser
from windtunnel.priceperf.workload.counted_input import Input, Loader
from windtunnel.priceperf.workload.counters import Counters, Parameters, Steps, Work
from windtunnel.reports.diagnostics import diagnostics_of
from windtunnel.settings import REHEARSE_VARIABLE
from windtunnel_local import settings
from windtunnel_local.cluster import machine
from windtunnel_local.cluster.configuration import read_all
from windtunnel_local.cluster.errors import InvalidConfiguration
from windtunnel_local.credentials import REGION
from windtunnel_local.runner import RUNNERS
from windtunnel_local.service.request.training_members import TRAINING_JOB

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = {str(page.relative_to(ROOT)): page.read_text() for page in PAGES}
LONGEST_README = 150


def test_code_compiles_and_what_it_imports_exists() -> None:
    """A name that is gone from the API is gone from the pages."""
    for name, text in TEXTS.items():
        for code in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
            for node in ast.walk(ast.parse(code, name)):
                if isinstance(node, ast.ImportFrom) and node.module == "windtunnel":
                    for alias in node.names:
                        assert hasattr(windtunnel, alias.name), f"{name}: {alias.name}"


def headings(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_lead_somewhere() -> None:
    """Relative links point at files of the repository, and at headings that are there."""
    for name, text in TEXTS.items():
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", text):
            page = ((ROOT / name).parent / target).resolve() if target else ROOT / name
            assert page.exists(), f"{name}: {target}"
            assert not anchor or anchor in headings(page.read_text()), f"{name}: {target}#{anchor}"


def test_commands_and_their_options_exist() -> None:
    """Options that stand behind a command are its own; what stands behind -- is a script's."""
    parser = build_parser()
    help_text = parser.format_help()
    (commands,) = (one.choices for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    for name, text in TEXTS.items():
        for command in re.findall(r"(?:`|^)windtunnel (\w+)", text, flags=re.MULTILINE):
            assert command in help_text, f"{name}: {command}"
        for command, words in re.findall(r"windtunnel ([a-z-]+)((?: [^`\n|#]*)?)", text):
            if command not in commands or command == "cluster":
                continue
            known = {option for action in commands[command]._actions for option in action.option_strings}
            told = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", words.split(" -- ")[0]))
            assert told <= known, f"{name}: windtunnel {command}{words}"


def test_the_cluster_of_the_page_is_one() -> None:
    """Its file is read, and AWS would have nothing against it either."""
    (text,) = re.findall(r"```yaml\n(.*?)```", TEXTS["docs/how_to/cluster.md"], flags=re.DOTALL)
    assert read_all(text, "cluster.yaml").warnings == ()


def test_the_mistakes_of_the_page_are_told_so() -> None:
    """Those that it makes in its own file, word for word."""
    page = TEXTS["docs/how_to/cluster.md"]
    (text,) = re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)
    wrong = text.replace("MinCount: 0", "MinCount: 17").replace("SubnetIds:", "SubnetIDs:")
    with pytest.raises(InvalidConfiguration) as refused:
        read_all(wrong, "cluster.yaml")
    _, _, mistakes = str(refused.value).partition("\n")
    assert f"```\n{mistakes}\n```" in page


def test_every_page_is_in_the_index() -> None:
    """A page that no list names is not found."""
    docs = ROOT / "docs"
    listed = set(re.findall(r"\]\(([^)#:]+)\)", (docs / "README.md").read_text()))
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md") if page.parent.name != "clients"}
    assert pages - {"README.md"} <= listed


@pytest.mark.parametrize("name", ["README.md", "docs/explanation/architecture.md"])
def test_the_map_shows_folders_that_exist(name: str) -> None:
    """Every path of a table's first column is there."""
    paths = re.findall(r"^\| `([\w/.-]+)`", TEXTS[name], flags=re.MULTILINE)
    assert paths
    for path in paths:
        assert (ROOT / path).exists(), path


def test_the_map_names_files_that_exist() -> None:
    """A path begins at its heading's folder or at the repository's root."""
    parts = re.split(r"^### .*`([\w/]+)`$", TEXTS["docs/explanation/architecture.md"], flags=re.MULTILINE)
    tables = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert len(tables) == 4
    for folder, text in tables.items():
        table = text.partition("\n## ")[0]
        named = re.findall(r"`([a-z_]+/[\w/.-]*|[\w/-]+\.(?:py|json|csv|sql|html|css|js|txt|toml))`", table)
        assert len(named) > 10
        for path in named:
            assert (ROOT / folder / path).exists() or (ROOT / path).exists(), path


def test_settings_are_those_that_the_server_reads() -> None:
    """The table has every variable of the server, but the interpreter, which is all that the process runner reads."""
    own = [import_module(f"windtunnel_local.runner.{name}.settings") for name in RUNNERS if name != "process"]
    pages = "".join(str(module.__doc__) for module in (settings, machine, *own))
    read = set(re.findall(r"^ *(WINDTUNNEL_\w+)  ", pages, flags=re.MULTILINE))
    told = set(re.findall(r"`(WINDTUNNEL_\w+)`", TEXTS["docs/reference/settings.md"]))
    assert read - told <= {"WINDTUNNEL_SIM_PYTHON"}
    of_the_sdk = {"WINDTUNNEL_LOCAL_CORES", "WINDTUNNEL_MAX_COST"}
    of_a_job = {
        "WINDTUNNEL_COLLECTIVE_TIMEOUT_SECONDS",
        "WINDTUNNEL_REHEARSE_STEPS",
        "WINDTUNNEL_SHARED_MEMORY_MIB",
    }
    assert told - read == of_the_sdk | of_a_job


@pytest.mark.parametrize("page", ["ci.md", "clients/boto3.md"])
def test_a_short_rehearsal_by_a_request_is_told_where_requests_are(page: str) -> None:
    """No argument of boto3 or of the AWS CLI has its name."""
    assert REHEARSE_VARIABLE in TEXTS[f"docs/how_to/{page}"]


def test_what_is_accepted_without_effect_is_told() -> None:
    """Each member, by its own name or by that of what it is in: all others that have no effect are refused."""
    told = set(re.findall(r"`(\w+)`", TEXTS["docs/reference/limits.md"]))
    assert [path for path in TRAINING_JOB.kept if not told & set(path.split("."))] == []


def test_pages_tell_the_one_region() -> None:
    """A client may name another."""
    for page in ("docs/reference/limits.md", "docs/how_to/clients/README.md"):
        assert any("region" in line and REGION in line for line in TEXTS[page].splitlines())


def test_a_build_is_told_under_which_key_findings_are() -> None:
    """As the command and the report print them."""
    found = {
        "kind": "host_read",
        "severity": "warning",
        "line": "a.py:1",
        "message": ".item()",
        "advice": "Less.",
    }
    counters = {"schema": "windtunnel.counters/1", "job": "j", "instance_type": "ml.trn1.2xlarge",
                "instance_count": 1, "graphs": {"count": 0}, "diagnostics": [found]}  # fmt: skip
    data = diagnostics_of(counters).to_dict()
    assert [item["severity"] for item in data["diagnostics"]] == ["warning"]
    assert "`.diagnostics[].severity`" in TEXTS["docs/how_to/ci.md"]


@pytest.mark.parametrize("part", [Counters, Steps, Work, Parameters, Input, Loader])
def test_what_counters_json_holds_is_told(part: type[Any]) -> None:
    """Each of its keys, on the page that lists them."""
    told = set(re.findall(r"`(\w+)`", TEXTS["docs/reference/counters.md"]))
    assert {one.name for one in dataclasses.fields(part)} <= told


def test_the_readme_stays_one_page() -> None:
    """What is longer belongs to docs/."""
    assert len(TEXTS["README.md"].splitlines()) <= LONGEST_README
