"""All findings on a script, and on the files beside it that it imports."""

from __future__ import annotations

import ast
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from windtunnel.errors import SourceError
from windtunnel.local_paths import is_file, is_folder
from windtunnel.porting import image_lacks, search_path
from windtunnel.porting.finding import Finding
from windtunnel.porting.left_out import LeftOut
from windtunnel.porting.script import Script
from windtunnel.porting.subject import Subject
from windtunnel.porting.topics import TOPICS
from windtunnel.porting.topics.not_simulated import of_spmd

_USE_A_CORE = {"torch_xla", "torch_neuronx", "neuronx_distributed", "optimum", "accelerate", "transformers"}
_BY_MODULE = "ignite.distributed"
"""This module trains on torch_xla's device; ignite itself trains on any."""
_STARTS = ("subprocess.", "os.system", "os.exec", "os.spawn", "os.posix_spawn")
_NAMES_A_CLASS = re.compile(r"[a-z_]\w*(\.\w+)*\.[A-Z]\w*")
"""A text as ``"training.loss.Loss"``, by which some programs import a class."""
_MOST_MODULES = 40
"""The most files beside the script that are read: more are a library of their own."""


def read(script: Script, version: str = "2.9", *, several: bool = True) -> list[Finding]:
    """The findings on a script that is its whole program, in the order of its lines.

    ``version``: the framework's. ``several``: torchrun starts the script once for each NeuronCore.
    """
    return read_program([script], version, several=several)[script]


def read_program(
    scripts: Sequence[Script],
    version: str = "2.9",
    *,
    several: bool = True,
    whole: bool = True,
    absent: Mapping[str, str] | None = None,
) -> dict[Script, list[Finding]]:
    """The findings on each file of a program, of which the first is started.

    Left out is what the other files do below ``if __name__ == "__main__":``, and what is in functions and classes that
    nothing names on the way from the first file. ``whole``: these are all files of the program. If not, only the first
    is reported on, and the others are read for what it uses. ``absent``: the packages of AWS's images that the job
    lacks, with what is said of each; by default all that the training image lacks.
    """
    subjects = [Subject(script, version, several=several) for script in scripts]
    for subject in subjects:
        subject.program, subject.whole = subjects, whole
        subject.absent = image_lacks.packages() if absent is None else absent
    told = subjects if whole else subjects[:1]
    left_out = LeftOut(subjects)
    spmd = {one: left_out.without(one.script, [*of_spmd(one)]) for one in subjects}
    if any(finding.sure for findings in spmd.values() for finding in findings):
        for subject in subjects:
            subject.several = False  # one process drives all cores
    found = {
        one: [*spmd[one], *left_out.without(one.script, [said for topic in TOPICS for said in topic(one)])]
        for one in told
    }
    return {
        one.script: sorted(_merged(findings), key=lambda finding: finding.line)
        for one, findings in found.items()
    }


def _merged(findings: Iterable[Finding]) -> Iterable[Finding]:
    """The findings, with one for those that say the same of one line, as of ``x.cuda(), y.cuda()``."""
    found: dict[Finding, Finding] = {}
    for one in findings:
        said = replace(one, edits=())
        found[said] = replace(one, edits=(*found[said].edits, *one.edits)) if said in found else one
    return found.values()


def modules_of(script: Script, source_dir: Path | None = None) -> tuple[list[Script], bool, list[str]]:
    """The files that a script imports from its directory, and those that they import there, nearest first; whether
    these are all; and why some cannot be read.

    ``source_dir``: a directory in which the container finds modules, too. They are also looked for in folders that the
    files add to ``sys.path``.
    """
    folders = list(dict.fromkeys((script.path.parent, source_dir or script.path.parent)))
    found, seen = [script], {script.path.resolve()}
    broken: list[str] = []
    for one in found:  # grows in the loop
        folders += [place for place in search_path.added(one) if place not in folders]
        for path in _imported(one, folders):
            if path.resolve() in seen:
                continue
            if len(found) > _MOST_MODULES:
                return found[1:], False, broken
            seen.add(path.resolve())
            try:
                found.append(Script(path))
            except SourceError as error:
                broken.append(str(error))
    return found[1:], True, broken


def _imported(script: Script, folders: Sequence[Path]) -> Iterator[Path]:
    """The files below these folders that a script's imports run, and those of classes that its texts name."""
    for node in script.nodes:
        starts = folders
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            before = f"{node.module}." if node.module else ""
            names = [before + alias.name for alias in node.names]
            if node.level:  # a relative import from above them fails when it runs
                above = [*script.path.parents][node.level - 1 : node.level]
                starts = [one for one in above if any(map(one.is_relative_to, folders))]
        elif isinstance(node, ast.Constant) and _NAMES_A_CLASS.fullmatch(str(node.value)):
            names = [str(node.value)]
        else:
            continue
        for start, name in itertools.product(starts, names):
            parts = name.split(".")
            if starts is folders and parts[0] in sys.stdlib_module_names:
                continue
            for count in range(1, len(parts) + 1):
                place = start.joinpath(*parts[:count])
                yield from filter(is_file, (place / "__init__.py", place.with_name(f"{place.name}.py")))


def of_its_imports(script: Script, modules: Sequence[Script] = ()) -> list[str]:
    """Remarks on what the script and the files beside it import."""
    if any(one.packages & _USE_A_CORE or _BY_MODULE in one.imported_modules for one in (script, *modules)):
        return []
    started = next((call.lineno for call, name in script.calls if name.startswith(_STARTS)), None)
    if started is None:
        return [
            "imports nothing that uses a NeuronCore (torch_xla, ...): it would train on the instance's CPU."
        ]
    return [
        f"line {started} starts another program, which is not read: if that one trains, check it by its name."
    ]


def left_behind(script: Script, dependencies: Iterable[str]) -> list[str]:
    """A remark on what a script that is sent alone imports from its own directory.

    ``dependencies``: files and directories that are sent beside it.
    """
    missing = script.packages - {script.path.stem, *(Path(name).stem for name in dependencies)}
    beside = sorted(name for name in missing if _is_module(script.path.with_name(name)))
    if not beside:
        return []
    return [
        f"imports {', '.join(beside)} from its own directory, which does not go into the container "
        "unless --source-dir names it (or --dependency the file)."
    ]


def _is_module(place: Path) -> bool:
    """Whether an import of this name would find a module there, and not only a folder of data."""
    if is_file(place.with_name(f"{place.name}.py")):
        return True
    return is_folder(place) and any(next(place.glob(what), None) for what in ("*.py", "[!.]*/*.py"))
