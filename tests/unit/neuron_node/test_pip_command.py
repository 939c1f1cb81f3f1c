"""Which pip commands are done as a job's requirements.txt is."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuron_node.pip_command import requirements_of


@pytest.mark.parametrize("option", [["-r", "{}"], ["-r{}"], ["--requirement={}"], ["--requirement", "{}"]])
def test_a_file_is_found_however_it_is_given(tmp_path: Path, option: list[str]) -> None:
    """The other words stay, in their order."""
    file = tmp_path / "needed.txt"
    file.write_text("h5py\n")
    words = ["install", "-U", *(word.format(file) for word in option), "--quiet"]
    assert requirements_of(words) == (file, ["install", "-U", "--quiet"])


@pytest.mark.parametrize(
    "words", [["list"], ["install", "h5py"], ["install", "-r", "nowhere.txt"], ["download", "-r", "a.txt"]]
)
def test_other_commands_are_pip_s_own(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing file too: pip has the message."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("h5py\n")
    assert requirements_of(words) is None


def test_files_that_name_others_are_read_where_they_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So are several."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("-r b.txt\n")
    (tmp_path / "b.txt").write_text("h5py\n")
    assert requirements_of(["install", "-r", "a.txt"]) is None
    assert requirements_of(["install", "-r", "b.txt", "-r", "b.txt"]) is None
