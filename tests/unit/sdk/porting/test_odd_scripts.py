"""The diff of any script: it applies, what it makes compiles, and a second one has nothing to add."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
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
    "Windows": lambda text: text.replace("\n", "\r\n").encode(),
    "no last line end": lambda text: text.rstrip("\n").encode(),
    "with a mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "ends with a comment": lambda text: f"{text}# the end".encode(),
}


def undefined(source: bytes) -> set[str]:
    """Names that are used where nothing gives them a value."""
    command = [RUFF, "check", "--isolated", "--select=F821", "--output-format=concise", "-"]
    return set(
        re.findall("name `(.*)`", subprocess.run(command, input=source, capture_output=True).stdout.decode())
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SCRIPTS)
def test_the_diff_of_an_odd_script(
    name: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Applied with git and patch it gives the ported text; that compiles and is ported."""
    monkeypatch.chdir(tmp_path)
    file = Path("train.py")
    source = FORMS[form](SCRIPTS[name])
    file.write_bytes(source)
    compile(source, "train.py", "exec")
    script = Script(file)
    edits, after = diff(script, read(script)), ported(script, read(script)).source
    compile(after, "train.py", "exec")
    if new := undefined(after):  # of most there are none: the source need not be looked at
        assert new <= undefined(source)
    for command in (["patch", "-p1", "--binary", "-s"], ["git", "apply", "-"]) if edits else ():
        file.write_bytes(source)
        subprocess.run(command, input=edits.encode(), check=True)
        assert file.read_bytes() == after, command
    again = Script(file, after)
    assert diff(again, read(again)) == ""
