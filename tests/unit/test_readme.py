"""The README is true: its code compiles and imports, its folders, commands and settings exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import windtunnel
from windtunnel.cli.main import build_parser
from windtunnel_local import settings

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def snippets() -> list[str]:
    """The Python blocks."""
    return re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("code", snippets())
def test_code_compiles_and_what_it_imports_exists(code: str) -> None:
    """A name that is gone from the API is gone from the README."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module == "windtunnel":
            for alias in node.names:
                assert hasattr(windtunnel, alias.name)


@pytest.mark.parametrize("path", re.findall(r"^\| `([\w/.-]+/)`", README, flags=re.MULTILINE))
def test_the_map_shows_folders_that_exist(path: str) -> None:
    """Every folder of the table is there."""
    assert (ROOT / path).is_dir()


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#:]+)\)", README))
def test_links_lead_somewhere(target: str) -> None:
    """Relative links point at files of the repository."""
    assert (ROOT / target).exists()


def test_settings_are_those_that_the_server_reads() -> None:
    """The table has every variable of the server, but the interpreter of the process runner."""
    read = set(re.findall(r"^    (WINDTUNNEL_\w+)", str(settings.__doc__), flags=re.MULTILINE))
    told = set(re.findall(r"`(WINDTUNNEL_\w+)`", README))
    assert read - told <= {"WINDTUNNEL_SIM_PYTHON"}
    assert told - read == {"WINDTUNNEL_LOCAL_CORES", "WINDTUNNEL_MAX_COST"}


def test_commands_exist() -> None:
    """Every `windtunnel COMMAND` of the text is one."""
    commands = set(re.findall(r"`windtunnel (\w+)", README))
    assert commands
    for command in commands:
        assert command in build_parser().format_help()
