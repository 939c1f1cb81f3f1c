"""Packing: the same tree gives the same bytes, and what cannot travel is refused."""

from __future__ import annotations

import io
import os
import socket
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.errors import SourceError, SourceWarning
from windtunnel.request import source_archive
from windtunnel.request.source_archive import packed, source_tree, write_tarball

NAMES = st.text("abcXYZ09._-é", min_size=1, max_size=8).filter(lambda name: name.strip(".") != "")
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
TREES = st.dictionaries(PATHS, st.binary(max_size=200), max_size=6)


def tarball(source_dir: Path, entry_point: str = "train.py", dependencies: tuple[str, ...] = ()) -> bytes:
    out = io.BytesIO()
    write_tarball(source_tree(entry_point, str(source_dir), dependencies), out)
    return out.getvalue()


def names(data: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return tar.getnames()


def write_tree(root: Path, tree: dict[tuple[str, ...], bytes], order: int) -> None:
    root.mkdir()
    (root / "train.py").write_text("pass")
    for parts in list(tree)[::order]:
        path = root.joinpath(*parts)
        if any(parent.is_file() for parent in path.parents) or path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(tree[parts])
        os.utime(path, (time.time(), 1_000_000 + order))


@settings(max_examples=40)
@given(TREES)
def test_same_tree_same_bytes(tree: dict[tuple[str, ...], bytes]) -> None:
    """Neither time, nor place, nor the order of creation shows in the tarball; what is in it comes out."""
    tree = {parts: data for parts, data in tree.items() if not any(p in parts for p in parts[1:])}
    prefixes = {parts[:i] for parts in tree for i in range(1, len(parts))}
    tree = {parts: data for parts, data in tree.items() if parts not in prefixes and parts[0] != "train.py"}
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "a"), Path(folder, "b", "c")
        second.parent.mkdir()
        write_tree(first, tree, 1)
        write_tree(second, tree, -1)
        data = tarball(first)
        assert data == tarball(second)
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            for parts, content in tree.items():
                if any(part.endswith(".pyc") for part in parts):
                    continue
                member = tar.extractfile("/".join(parts))
                assert member is not None
                assert member.read() == content


def test_layout_and_what_is_left_out(project: Path) -> None:
    """Contents at the root, dependencies beside them, caches and version control left out."""
    for skipped in (".git/config", "__pycache__/x.pyc", ".ipynb_checkpoints/n", "lib/__pycache__/y"):
        path = project / "src" / skipped
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (project / "src" / "old.pyc").write_text("x")
    (project / "src" / "lib" / "util.py").write_text("x")
    found = names(tarball(project / "src", dependencies=("data",)))
    assert found == ["data", "data/train.csv", "lib", "lib/util.py", "train.py"]


def test_a_virtual_environment_stays_here(project: Path) -> None:
    """Its links to this machine's Python lead out of source_dir, and it would be of no use in the container."""
    environment = project / "src" / "environment"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").symlink_to(sys.executable)
    (environment / "pyvenv.cfg").write_text("home = /usr/bin")
    assert names(tarball(project / "src")) == ["train.py"]


@pytest.mark.parametrize("folder", ["environment", "__pycache__", "lib/.git"])
def test_an_entry_point_that_would_stay_here_is_refused(project: Path, folder: str) -> None:
    """Else the job would begin without its script."""
    place = project / "src" / folder
    place.mkdir(parents=True)
    (place / "train.py").write_text("pass")
    if folder == "environment":
        (place / "pyvenv.cfg").write_text("home = /usr/bin")
    with pytest.raises(SourceError, match=r"is not packed, .* Move the script"):
        source_tree(f"{folder}/train.py", str(project / "src"))


def test_much_more_than_code_is_told_before_it_is_packed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, with what has most of it."""
    monkeypatch.setattr(source_archive, "LARGE_BYTES", 2_000_000)
    (project / "src" / "corpus").mkdir()
    for name in ("a", "b", "c"):
        (project / "src" / "corpus" / name).write_bytes(b"x" * 1_000_000)
    with pytest.warns(SourceWarning, match=r"more than 2 MB, so far 3 MB of it in corpus.*channel") as told:
        tarball(project / "src")
    assert len(told) == 1


def test_entry_point_alone(project: Path) -> None:
    """Without source_dir only the script is packed, under its own name."""
    tree = source_tree("src/train.py")
    assert tree.script == "train.py"
    with packed(tree) as file:
        assert names(file.read()) == ["train.py"]


def test_owner_time_and_mode_are_normalised(project: Path) -> None:
    """Owner 0, time 0, and only the executable bit of the mode."""
    (project / "src" / "run.sh").write_text("x")
    (project / "src" / "run.sh").chmod(0o700)
    (project / "src" / "train.py").chmod(0o600)
    with tarfile.open(fileobj=io.BytesIO(tarball(project / "src"))) as tar:
        found = {member.name: (member.mode, member.uid, member.gid, member.mtime) for member in tar}
    assert found == {"run.sh": (0o755, 0, 0, 0), "train.py": (0o644, 0, 0, 0)}


def test_link_inside_becomes_its_content(project: Path) -> None:
    """A link within the tree is packed as the file it points to, as SDK v2 does."""
    (project / "src" / "alias.py").symlink_to("train.py")
    with tarfile.open(fileobj=io.BytesIO(tarball(project / "src"))) as tar:
        assert tar.getmember("alias.py").isreg()


def test_link_that_leaves_the_tree(project: Path) -> None:
    """A link to somewhere else is refused, by name, with both ways out."""
    (project / "src" / "secret").symlink_to(project / "data" / "train.csv")
    with pytest.raises(SourceError, match=r"secret is a symbolic link to .*train.csv.*dependencies="):
        tarball(project / "src")


def test_link_within_the_repository(project: Path) -> None:
    """Files that scripts of one repository share are packed, what git keeps for itself is not."""
    (project / "src" / "shared.csv").symlink_to("../data/train.csv")
    (project / ".git").mkdir()
    (project / ".git" / "config").write_text("url = https://token@example.com")
    assert names(tarball(project / "src")) == ["shared.csv", "train.py"]
    (project / "src" / "config").symlink_to("../.git/config")
    with pytest.raises(SourceError, match=r"config is a symbolic link to .*\.git/config, which is not among"):
        tarball(project / "src")


def test_link_loop(project: Path) -> None:
    """A directory that contains itself is refused instead of packed for ever."""
    (project / "src" / "again").symlink_to(".")
    with pytest.raises(SourceError, match="loop"):
        tarball(project / "src")


def test_links_in_a_circle_are_named(project: Path) -> None:
    """They lead to nothing, which pathlib says in another way in each Python."""
    (project / "src" / "one").symlink_to("two")
    (project / "src" / "two").symlink_to("one")
    with pytest.raises(SourceError, match="one cannot be read: Too many levels of symbolic links"):
        tarball(project / "src")


def test_socket_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket cannot travel."""
    monkeypatch.chdir(project / "src")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("sock")
        with pytest.raises(SourceError, match=r"sock is a socket, pipe or device"):
            tarball(project / "src")


def test_two_things_of_one_name(project: Path) -> None:
    """A dependency never silently replaces a file of source_dir."""
    (project / "other").mkdir()
    (project / "other" / "train.py").write_text("x")
    with pytest.raises(SourceError, match=r"both be /opt/ml/code/train\.py"):
        tarball(project / "src", dependencies=("other/train.py",))


@pytest.mark.parametrize(
    ("entry_point", "source_dir", "message"),
    [
        (None, None, "entry_point is missing"),
        ("trian.py", "src", r"no file .*/src/trian.py. Did you mean 'train.py'\? Scripts there: train.py"),
        ("train.py", "nowhere", "nowhere is not a directory"),
        ("../data/train.csv", "src", "leaves source_dir"),
        ("my train.py", "src", "unquoted"),
        ("tr$(x).py", None, "unquoted"),
        ("s3://b/train.py", None, "it is a path"),
    ],
)
def test_bad_entry_points(
    project: Path, entry_point: str | None, source_dir: str | None, message: str
) -> None:
    """Each mistake is named with the path and the way out."""
    with pytest.raises(SourceError, match=message):
        source_tree(entry_point, source_dir)


@pytest.mark.parametrize("absolute", [True, False])
def test_a_script_in_a_folder_that_is_no_name_for_a_shell(
    project: Path, absolute: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packed alone, it reaches the toolkit by its own name: the folders before it do not matter."""
    monkeypatch.chdir(project)
    folder = Path("my code (1)")
    folder.mkdir()
    (folder / "train.py").write_text("x")
    given = folder / "train.py"
    assert source_tree(given.absolute() if absolute else given).script == "train.py"


def test_missing_dependency(project: Path) -> None:
    """A dependency that is not there is named."""
    with pytest.raises(SourceError, match="nowhere does not exist"):
        source_tree("train.py", "src", ["nowhere"])
