"""The table of names, as Markdown; and what `windtunnel check` reads of it."""

from __future__ import annotations

import json
from collections.abc import Iterable

from neuron_sim.names.absent_packages import PACKAGES
from neuron_sim.names.name import FIRST, LATEST, Name, Version
from neuron_sim.names.registry import every

_HEAD = """# Names that Trainium scripts use

Written by `scripts/api_table.py` from `neuron_sim/names`; a test in the image tries every entry.

- **supported**: works on simulated NeuronCores; torch_xla's own code, where it is torch_xla's name.
- **refused**: can be imported; its use raises `NotSimulatedError`, which says what to do instead.
- *from*, *to*: framework versions that have the name, as `framework_version` of the job asks for them. A name
  that is gone in the version asked for is absent; a name that is newer works, and warns when the script
  uses it. A dash: in all versions, or not documented. A version before {first} has the names of {first}.
- The image has torch_xla {latest}: a name's behaviour is that of {latest} in all versions.
"""

_PACKAGES = """
## Packages that the image does not have

`import` of one of these ends in ModuleNotFoundError, and the job's log ends with what stands here.

| package | what it is | here |
|---|---|---|
"""

_ROW = "| name | here | from | to | remark |\n|---|---|---|---|---|\n"


def text() -> str:
    """The whole page."""
    parts = [_HEAD.format(first=_version(FIRST), latest=_version(LATEST))]
    by_module: dict[str, list[Name]] = {}
    for name in every():
        by_module.setdefault(name.module, []).append(name)
    parts += [
        f"\n## {module}\n\n{_ROW}{''.join(_rows(sorted(names, key=lambda name: name.name.lower())))}"
        for module, names in by_module.items()
    ]
    parts += [
        _PACKAGES,
        *(f"| `{package.module}` | {package.what} | {package.here} |\n" for package in PACKAGES),
    ]
    return "".join(parts)


def for_check() -> str:
    """As JSON: what is said of the packages that the image lacks, and of the names that are refused."""
    packages = {package.module: package.advice for package in PACKAGES}
    refused = {f"{name.module}.{name.name}": name.refused for name in every() if name.refused}
    return json.dumps({"packages": packages, "names": refused}, indent=2) + "\n"


def _rows(names: Iterable[Name]) -> Iterable[str]:
    for name in names:
        here = "supported" if name.supported else "refused"
        remark = name.refused or name.note
        yield f"| `{name.name}` | {here} | {_version(name.since)} | {_version(name.until)} | {remark} |\n"


def _version(version: Version | None) -> str:
    return ".".join(map(str, version)) if version else "-"
