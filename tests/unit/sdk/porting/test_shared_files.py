"""Folders and downloads: each process of an instance makes them, at the same time."""

from __future__ import annotations

import ast

import pytest

from tests.unit.sdk.porting.test_patch import changed
from tests.unit.sdk.porting.test_program import HEAD, LOOP, said
from windtunnel.porting.topics import shared_files

_THERE = "import os\nfrom pathlib import Path\n"
_IS_MADE = "each process makes this folder"


def _made(lines: str) -> str:
    return changed(HEAD + LOOP + _THERE + lines).rpartition(_THERE)[2]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if not os.path.isdir('a'):\n    os.mkdir('a')\n",
         "if not os.path.isdir('a'):\n    os.makedirs('a', exist_ok=True)\n"),
        ("os.makedirs(os.path.join(a, b))\n", "os.makedirs(os.path.join(a, b), exist_ok=True)\n"),
        ("Path('a').mkdir()\n", "Path('a').mkdir(exist_ok=True)\n"),
        ("Path('a').mkdir(parents=True)\n", "Path('a').mkdir(parents=True, exist_ok=True)\n"),
    ],
)  # fmt: skip
def test_a_folder(before: str, after: str) -> None:
    """The second process raises, also where both have asked whether it is there."""
    assert said(HEAD + LOOP + _THERE + before, _IS_MADE)
    assert _made(before) == after
    assert said(HEAD + LOOP + _THERE + after, _IS_MADE) == []
    assert said(HEAD + LOOP + _THERE + before, _IS_MADE, several=False) == []


@pytest.mark.parametrize(
    "lines",
    [
        "if rank == 0:\n    os.mkdir(path)\n",
        "if xm.is_master_ordinal() and not os.path.exists(path):\n    os.mkdir(path)\n",
        "os.mkdir(f'{path}/{rank}')\n",
        "try:\n    os.mkdir(path)\nexcept FileExistsError:\n    pass\n",
        "os.makedirs(path, exist_ok=overwrite)\n",
        "def f():\n    os.mkdir(path)\n",
        "files.mkdir(path, 7)\n",
    ],
)
def test_a_folder_of_one_process(lines: str) -> None:
    """Or of each its own, or one that nothing makes; and what is not known to be a folder."""
    assert said(HEAD + LOOP + _THERE + lines, _IS_MADE) == []
    assert _made(lines) == lines


def test_of_other_calls_nobody_asks_who_comes_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer walks the whole program: asked of each call it took most of a long program's time."""
    asked: list[str] = []
    monkeypatch.setattr(shared_files, "is_by_one", lambda _, call: asked.append(ast.unparse(call)))
    said(HEAD + LOOP + _THERE + "os.mkdir(path)\nload(download=True)\nprint(path)\nload(download=False)\n")
    assert asked == ["os.mkdir(path)", "load(download=True)"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("data = datasets.MNIST('data', download=True)\n", 1),
        ("data = datasets.MNIST(f'data/{rank}', download=True)\n", 0),
        ("data = datasets.MNIST('data', download=False)\n", 0),
        ("if rank: xm.rendezvous('a')\ndata = datasets.MNIST('data', download=True)\n", 0),
        ("if rank == 0:\n    data = datasets.MNIST('data', download=True)\n", 0),
        ("with PartialState().main_process_first():\n    data = datasets.MNIST('data', download=True)\n", 0),
    ],
)
def test_a_download(line: str, told: int) -> None:
    """A note: the files may be there."""
    assert len(said(HEAD + line + LOOP, "note: each process of an instance downloads")) == told
