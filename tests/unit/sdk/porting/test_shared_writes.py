"""Files that each process deletes or writes: only the first can delete, and each writes over the others'."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_program import HEAD, LOOP, said

_HEAD = HEAD + "import glob, json, os, shutil, tempfile\nfrom pathlib import Path\nimport numpy as np\n"
_DELETED = "each process of an instance deletes this"
_WRITTEN = "each process of an instance writes to this file"


@pytest.mark.parametrize(
    "line",
    [
        "for old in sorted(glob.glob('ckpt_*.pt'))[:-1]: os.remove(old)",
        "if os.path.exists(path): os.unlink(path)",
        "shutil.rmtree(args.out)",
        "Path(args.out, 'old.pt').unlink()",
        "for old in sorted(Path(args.out).glob('*.pt')): old.unlink()",
    ],
)
def test_a_file_that_each_process_deletes(line: str) -> None:
    """Rank 1 ends with FileNotFoundError, here and on trn1."""
    (found,) = said(_HEAD + LOOP + line + "\n", _DELETED)
    assert found.startswith("16: each") and "if xm.is_master_ordinal():" in found
    guard = f"if xm.is_master_ordinal():\n    {line}\n"
    if not line.startswith(("for", "if")):
        assert said(_HEAD + LOOP + guard, _DELETED) == []
    assert said(_HEAD + LOOP + line + "\n", _DELETED, several=False) == []


@pytest.mark.parametrize(
    "line",
    [
        "open('log.csv', 'a').write(row)",
        "json.dump(result, open(path, 'w'))",
        "np.save('pred.npy', model(x).detach().cpu().numpy())",
        "Path(args.out, 'a.txt').write_text(text)",
        "Path(args.out, 'a.txt').open('w').write(text)",
    ],
)
def test_a_file_that_each_process_writes(line: str) -> None:
    """A note, once for all of a file."""
    (found,) = said(_HEAD + LOOP + f"{line}\n{line}\n{line}\n", _WRITTEN)
    assert found.startswith("16: note: each") and "(also in lines 17, 18)" in found


@pytest.mark.parametrize(
    "text",
    [
        "open(path).read(); open(path, 'rb'); open(path, 'wb')\n",
        "open(f'log_{rank}.csv', 'a').write(row)\n",
        "if rank == 0:\n    open('log.csv', 'a').write(row)\n    os.remove(path)\n",
        "def log():\n    open('log.csv', 'a').write(row)\ndef end():\n    log()\nif rank == 0:\n    end()\n",
        "def unused():\n    os.remove(path)\n",
        "try:\n    os.remove(path)\nexcept FileNotFoundError:\n    pass\n",
        "shutil.rmtree(path, ignore_errors=True)\nPath(path).unlink(missing_ok=True)\n",
        "shutil.rmtree(path, True)\n",
        "folder = tempfile.mkdtemp()\nshutil.rmtree(folder)\n",
        "name = f'part_{xr.global_ordinal()}'\npath = Path(name)\npath.write_text(text)\npath.unlink()\n",
        "for old in glob.glob(f'rank{rank}_*.pt'):\n    os.remove(old)\n",
        "def rid(path):\n    os.remove(path)\nrid(f'of_{rank}.pt')\n",
        "files.remove(path); memory.unlink()\n",
    ],
)
def test_a_file_of_one_process_or_of_each_its_own(text: str) -> None:
    """Behind a test of the rank, perhaps two calls above; with the rank in its path; or where nothing comes to it."""
    assert said(_HEAD + LOOP + text, "each process of an instance") == []
