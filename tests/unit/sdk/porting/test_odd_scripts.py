"""The diff of any script: it applies, what it makes compiles, and a second one has nothing to add."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path

import pytest
from ruff import find_ruff_bin  # type: ignore[import-untyped]

from tests.unit.sdk.porting.odd_scripts import SCRIPTS
from windtunnel.porting.patch import diff, ported
from windtunnel.porting.program import read
from windtunnel.porting.script import Script

RUFF = find_ruff_bin()  # through Python it would take five times as long
FORMS: dict[str, Callable[[str], bytes]] = {
    "as it is": lambda text: text.encode(),
    "Windows with a mark": lambda text: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
    "no last line end": lambda text: text.rstrip("\n").encode(),
}


def undefined(files: Mapping[Path, bytes]) -> set[tuple[str, str]]:
    """Names that are used where nothing gives them a value, with their files, which are written."""
    write(files)
    command = [RUFF, "check", "--isolated", "--no-cache", "--select=F821", "--output-format=concise", *files]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return set(re.findall("^([^:]*):.* name `(.*)`", found, re.MULTILINE))


def write(files: Mapping[Path, bytes]) -> None:
    for file, source in files.items():
        file.write_bytes(source)


def test_the_diffs_of_odd_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Applied with git and patch they give the ported texts; these compile and are ported. Of each form alike, a file
    each: one run of a tool for all.
    """
    monkeypatch.chdir(tmp_path)
    before, after, edits = {}, {}, ""
    for (number, text), (form, formed) in product(enumerate(SCRIPTS.values()), FORMS.items()):
        file = Path(f"{number}_{form.replace(' ', '_')}.py")
        before[file] = formed(text)
        compile(before[file], file, "exec")
        script = Script(file, before[file])
        found = read(script)
        edits += diff(script, found)
        after[file] = ported(script, found).source
        compile(after[file], file, "exec")
        again = Script(file, after[file])
        assert diff(again, read(again)) == "", (file, text)
    assert undefined(after) <= undefined(before)
    for command in (["patch", "-p1", "--binary", "-s"], ["git", "apply", "-"]):
        write(before)
        subprocess.run(command, input=edits.encode(), check=True)
        for file, source in after.items():
            assert file.read_bytes() == source, (file, command)
