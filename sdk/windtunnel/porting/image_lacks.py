"""What AWS's images have and the training image lacks: Neuron packages, and names that a rehearsal refuses.

The facts are the simulator's (`neuron_sim/names`), which says them when a job fails: `scripts/api_table.py` writes
`image_lacks.json` from them.
"""

from __future__ import annotations

import ast
import functools
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from windtunnel.local_paths import is_file, is_folder
from windtunnel.porting import search_path
from windtunnel.porting.nodes import constant
from windtunnel.porting.script import Script

_BRINGS = {"optimum.neuron": "neuronx_distributed"}
"""What pip installs along with a package."""
_COMMENT = re.compile(r"(^|\s)#.*")
_MORE = re.compile(r"\s*(?:-r|--requirement)[\s=]+(\S+)")
_OWN_PACKAGE = re.compile(r"\s*(?:(?:-e|--editable)[\s=]*)?\.(?:\[.*\])?\s*")
"""A line that installs the folder itself, with what `_OF_A_PACKAGE` names."""
_OF_A_PACKAGE = ("setup.py", "setup.cfg", "pyproject.toml")


@functools.lru_cache(maxsize=1)
def _facts() -> dict[str, dict[str, str]]:
    facts: dict[str, dict[str, str]] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
    return facts


def packages() -> dict[str, str]:
    """What is said of the import of each package, by its dotted name."""
    return _facts()["packages"]


def refused_names() -> dict[str, str]:
    """What to do instead of using each name, by the name with its module."""
    return _facts()["names"]


def absent(scripts: Sequence[Script], folders: Iterable[Path], requirements: Path | None) -> dict[str, str]:
    """Those of `packages` that a job of this program does not have either.

    It has what stands in requirements.txt, what the program tells pip to install, and what lies in one of the
    ``folders``, or in one that the program adds to ``sys.path``.
    """
    texts = [
        value
        for one in scripts
        for node in one.walk(ast.Constant)
        if isinstance(value := constant(node), str) and one.statement(node) is None  # no docstring
    ]
    for_pip = " ".join(texts) if any(re.search(r"\bpip3?\b", text) for text in texts) else ""
    folders = [*folders]
    files = [folder / name for name in re.findall(r"\S+\.txt\b", for_pip) for folder in folders]
    files += [requirements] if requirements else []
    asked = spelled(" ".join([for_pip, *(line for file in files for line in _lines(file))]))
    places = [*folders, *(place for one in scripts for place in search_path.added(one))]
    there = {
        name
        for name in packages()
        if re.search(rf"(?<![a-z0-9]){spelled(name)}(?![a-z0-9])", asked)
        or any(_is_in(place, name.partition(".")[0]) for place in places)
    }
    there |= {_BRINGS[name] for name in there if name in _BRINGS}
    return {name: text for name, text in packages().items() if name not in there}


def spelled(name: str) -> str:
    """A name of a distribution, or of its module, in the one spelling that pip compares."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_in(folder: Path, module: str) -> bool:
    return is_folder(folder / module) or is_file(folder / f"{module}.py")


def _lines(requirements: Path, seen: frozenset[Path] = frozenset()) -> list[str]:
    """The lines of a file of requirements, and of the files that it names."""
    if requirements in seen or not is_file(requirements):
        return []
    lines = [
        _COMMENT.sub("", line) for line in requirements.read_text("utf-8", errors="replace").splitlines()
    ]
    named = [found[1] for line in lines if (found := _MORE.match(line))]
    if any(_OWN_PACKAGE.fullmatch(line) for line in lines):
        named += _OF_A_PACKAGE
    return [
        *lines,
        *(line for one in named for line in _lines(requirements.parent / one, seen | {requirements})),
    ]
