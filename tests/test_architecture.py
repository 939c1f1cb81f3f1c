"""The layout says how the program works, so imports must follow it; hidden ones too.

Each rule names a folder and what its files may import of ours and of others. The
standard library is free unless a rule takes something away.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {
    "windtunnel": ROOT / "sdk" / "windtunnel",
    "windtunnel_local": ROOT / "local_backend" / "windtunnel_local",
    "neuron_sim": ROOT / "containers" / "neuron_sim" / "neuron_sim",
    "libneuronxla": ROOT / "containers" / "neuron_sim" / "libneuronxla",
    "torch_neuronx": ROOT / "containers" / "neuron_sim" / "torch_neuronx",
    "neuron_node": ROOT / "containers" / "cluster" / "software" / "neuron_node",
    "utilities": ROOT / "containers" / "cluster" / "software" / "utilities",
}
LONGEST_FILE = 400


@dataclass(frozen=True)
class Rule:
    """Modules under ``package`` may import these prefixes, besides themselves and the standard library."""

    package: str
    allowed: tuple[str, ...]


def _floors(*names: str) -> tuple[str, ...]:
    return tuple(f"windtunnel_local.service.{name}" for name in names)


def _sdk(*names: str) -> tuple[str, ...]:
    """Rooms of the SDK, with what all of them may use."""
    ground = ("_version", "errors", "settings", "local_paths", "atomic_file", "priceperf")
    return tuple(f"windtunnel.{name}" for name in (*ground, *names))


_RUNNERS_SHARE = (
    "windtunnel_local.runner.runner_kind",
    "windtunnel_local.runner.mounts",
    "windtunnel_local.runner.host_network",
    "windtunnel_local.runner.sources",
    "windtunnel_local.runner.variables",
    "windtunnel_local.runner.without_container",
)

RULES = (
    # Pure: seconds and dollars from data. Nothing of ours, nothing of others.
    Rule("windtunnel.priceperf", ()),
    # A leaf: documents, text, HTML and plots. Of the price model it knows the error for a wrong argument.
    Rule(
        "windtunnel.rendering", ("windtunnel._version", "windtunnel.priceperf.errors", "rich", "matplotlib")
    ),
    # From the ground up: what is asked for, where it is sent, what runs, what is said of it.
    Rule("windtunnel.budget", _sdk("rehearsal", "rendering.format")),
    Rule("windtunnel.request", _sdk("budget")),
    Rule("windtunnel.session", (*_sdk("request"), "boto3", "botocore")),
    Rule("windtunnel.prices", (*_sdk("session.client_environment"), "boto3", "botocore")),
    Rule(
        "windtunnel.reports",
        (
            *_sdk("rendering", "prices", "rehearsal", "user_calibration"),
            *_sdk("request.instance_groups", "session.training_service"),
            "rich",
            "matplotlib",
        ),
    ),
    Rule(
        "windtunnel.hosting",
        (*_sdk("request", "session", "prices", "rendering.format"), "numpy"),
    ),
    Rule("windtunnel.job", _sdk("request", "session", "reports", "hosting", "porting")),
    Rule(
        "windtunnel.estimator",
        _sdk("request", "session", "hosting", "job", "budget", "prices", "rehearsal", "user_calibration"),
    ),
    # Reads a script's text; knows no job and no session.
    Rule("windtunnel.porting", ("windtunnel.errors", "windtunnel.local_paths")),
    Rule("windtunnel.cli", ("windtunnel", "huggingface_hub", "rich", "shtab")),
    # The SDK meets the backend only on the wire.
    Rule("windtunnel", ("windtunnel", "boto3", "botocore", "rich", "matplotlib")),
    # The rules of a job know no HTTP, no SQL, no Docker; a floor knows those below it.
    Rule("windtunnel_local.service.ground", ()),
    Rule("windtunnel_local.service.request", (*_floors("ground"), "windtunnel.priceperf")),
    Rule("windtunnel_local.service.data", _floors("ground", "request")),
    Rule(
        "windtunnel_local.service.observed", (*_floors("ground", "request", "data"), "windtunnel.priceperf")
    ),
    Rule(
        "windtunnel_local.service.running",
        (*_floors("ground", "request", "data", "observed"), "windtunnel.priceperf"),
    ),
    Rule(
        "windtunnel_local.service.hosting",
        (*_floors("ground", "request", "data", "observed", "running"), "windtunnel.priceperf"),
    ),
    Rule("windtunnel_local.service.batch", _floors("ground", "request", "data", "hosting")),
    Rule("windtunnel_local.service", ("windtunnel_local.service",)),
    # What the service needs, implemented: each on its own.
    # (A search looks also at what an answer computes from a job.)
    Rule("windtunnel_local.store", _floors("ground", "answers")),
    Rule("windtunnel_local.objects", _floors("ground")),
    # A runner by its name; each runner knows what they share, and no other.
    Rule(
        "windtunnel_local.runner.docker",
        (*_floors("ground"), *_RUNNERS_SHARE, "docker", "requests", "urllib3"),
    ),
    Rule("windtunnel_local.runner.process", (*_floors("ground"), *_RUNNERS_SHARE)),
    Rule("windtunnel_local.runner.slurm", (*_floors("ground"), *_RUNNERS_SHARE)),
    Rule("windtunnel_local.runner", (*_floors("ground"), "windtunnel_local.runner")),
    # The wire speaks to the service; its S3 is the object store's own wire form (parts of an upload
    # and conditions are no business of a training job, so the service's port does not have them).
    Rule(
        "windtunnel_local.api",
        (
            "windtunnel_local.service",
            "windtunnel_local.objects",
            "windtunnel.priceperf.instances",
            "starlette",
            "anyio",
            "botocore",
            "cbor2",
            "httptools",  # requests to endpoints' containers
        ),
    ),
    # A cluster is none of the server's: a process of its own, with containers of its own. What the page sees of it
    # is read from its files, and needs neither.
    Rule(
        "windtunnel_local.cluster.seen",
        tuple(
            f"windtunnel_local.cluster.{name}"
            for name in (
                *("answers", "configuration", "errors", "layout", "node_log", "record"),
                *("seen_jobs", "slurm_jobs", "untrusted_files"),
            )
        ),
    ),
    Rule(
        "windtunnel_local.cluster",
        (
            "windtunnel_local.runner",
            *_floors("ground", "observed"),
            "windtunnel_local.credentials",
            "windtunnel_local.log_format",
            "windtunnel_local.settings",
            "windtunnel.atomic_file",
            "windtunnel.cli.parser",
            "windtunnel.priceperf",
            "docker",
            "requests",
            "yaml",
            "jmespath",
        ),
    ),
    # A process of its own, which alone imports TensorBoard.
    Rule("windtunnel_local.ui.tensorboard.process", ("tensorboard",)),
    # The page of clusters calls nobody: it has what their folders tell, and asks no process and no engine.
    Rule(
        "windtunnel_local.ui.pages.clusters",
        (
            "windtunnel_local.ui",
            "windtunnel_local.cluster.seen",
            "windtunnel_local.cluster.job_data",
            "windtunnel_local.cluster.slurm_jobs",
            "windtunnel.reports",
            "starlette",
        ),
    ),
    # The page calls what the wire calls. What a job would cost on AWS, the SDK's reports work out from the job's own
    # counters: the page shows that very report, so here alone the backend imports them and their rendering.
    Rule(
        "windtunnel_local.ui",
        (
            "windtunnel_local.service",
            "windtunnel_local.settings",
            "windtunnel_local.credentials",
            "windtunnel.priceperf",
            "windtunnel.reports",
            "windtunnel.rendering",
            "starlette",
            "anyio",
            "jinja2",
            "markupsafe",
        ),
    ),
    # The composition root and its commands see everything of the backend. A mistaken command line is answered as the
    # SDK's commands answer it.
    Rule(
        "windtunnel_local",
        (
            "windtunnel_local",
            "windtunnel._version",
            "windtunnel.atomic_file",
            "windtunnel.cli.parser",
            "windtunnel.priceperf",
            "starlette",
            "uvicorn",
            "httptools",
        ),
    ),
    # A kept container imports AWS's toolkit before a job needs it.
    Rule("neuron_sim.launcher.error_names", ("neuron_sim.errors",)),
    Rule("neuron_sim.launcher.missing", ("neuron_sim.names", "sagemaker_training")),
    Rule("neuron_sim.launcher.unreached", ()),
    Rule(
        "neuron_sim.launcher.requirements",
        ("neuron_sim.launcher.unreached", "neuron_sim.settings", "sagemaker_training", "packaging"),
    ),
    Rule(
        "neuron_sim.launcher.train",
        (
            "neuron_sim.diagnostics.log",
            "neuron_sim.interconnect.notes",
            "neuron_sim.launcher.error_names",
            "neuron_sim.launcher.missing",
            "neuron_sim.launcher.requirements",
            "neuron_sim.processes",
            "neuron_sim.settings",
            "sagemaker_training",
            "sagemaker_pytorch_container",
        ),
    ),
    # Handlers are called by AWS's toolkit, in processes apart from the server's.
    Rule(
        "neuron_sim.serving",
        (
            "neuron_sim.diagnostics.log",
            "neuron_sim.launcher.missing",
            "neuron_sim.launcher.requirements",
            "neuron_sim.processes",
            "neuron_sim.settings",
            "sagemaker_training",
            "sagemaker_pytorch_serving_container",
            "starlette",
            "uvicorn",
            "torch",
        ),
    ),
    Rule("neuron_sim.warm", ("neuron_sim", "torch", "sagemaker_training", "sagemaker_pytorch_container")),
    # The simulator is installed in the image on its own.
    Rule("neuron_sim", ("neuron_sim", "torch", "torch_xla", "_XLAC", "numpy", "tensorboard")),
    Rule("libneuronxla", ("neuron_sim",)),
    Rule("torch_neuronx", ("neuron_sim",)),
    # What a cluster's nodes have besides: of the simulator, how requirements are installed.
    Rule(
        "neuron_node",
        (
            "neuron_sim.launcher.requirements",
            "sagemaker_training",
            "pip",
            "h5py",
            "numpy",
            "tokenizers",
            "torch",
            "transformers",
        ),
    ),
    Rule("utilities", ()),
)

# Modules of the standard library that only one place may use.
RESERVED = {
    "sqlite3": ("windtunnel_local.store",),
}

# Where the environment is read (os.environ, os.getenv).
ENVIRONMENT_READERS = {
    "windtunnel.settings",
    "windtunnel_local.settings",
    "windtunnel_local.__main__",
    "windtunnel_local.cluster.fleet.__main__",
    "windtunnel_local.runner.docker.endpoint",  # the docker command's own variables, which docker-py reads, too
}


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of ours: dotted name and file."""
    for package, folder in SOURCES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join((package, *parts)).removesuffix(".__init__")
            yield name, path


MODULES = dict(modules())


def imported(name: str, path: Path, tree: ast.Module) -> Iterator[str]:
    """Dotted names that a file imports anywhere, also inside functions and by `import_module`."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield full if full in MODULES else base
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "attr", getattr(node.func, "id", "")) in ("import_module", "__import__")
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value)


@cache
def looked_through() -> tuple[dict[str, list[str]], set[str]]:
    """What each module imports, and those that read the environment. Each file is parsed once."""
    imports, readers = {}, set()
    for name, path in MODULES.items():
        tree = ast.parse(path.read_text())
        imports[name] = list(imported(name, path, tree))
        if any(
            isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv") for node in ast.walk(tree)
        ):
            readers.add(name)
    return imports, readers


def within(name: str, prefix: str) -> bool:
    """Whether a dotted name is the prefix or lies below it."""
    return name == prefix or name.startswith(f"{prefix}.")


def rule_of(name: str) -> Rule:
    """The first, so the most special, rule for a module."""
    return next(rule for rule in RULES if within(name, rule.package))


def refused(name: str, imports: Iterable[str]) -> Iterator[str]:
    """What a module imports against its folder's rule, and what that rule allows."""
    rule = rule_of(name)
    allowed = (rule.package, *rule.allowed)
    for target in imports:
        top = target.partition(".")[0]
        if top in sys.stdlib_module_names:
            if not any(within(name, owner) for owner in RESERVED.get(top, (name,))):
                yield f"{name} imports {target}"
        elif not any(within(target, prefix) for prefix in allowed):
            yield (
                f"{name} imports {target}; {rule.package} may import {', '.join(allowed)} and the standard library"
            )


def test_imports_run_one_way() -> None:
    """A module imports what its folder's rule allows, and nothing else."""
    imports, _ = looked_through()
    wrong = [line for name, targets in imports.items() for line in refused(name, targets)]
    assert not wrong, "\n".join(wrong)


def file_imports() -> Iterator[tuple[str, str]]:
    """Which file of ours imports which other: (importer, imported)."""
    for name, targets in looked_through()[0].items():
        for target in targets:
            while target and target not in MODULES:
                target = target.rpartition(".")[0]
            if target and target != name:
                yield name, target


def neighbours(edges: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The same imports between the units of one package: its files and folders, each as a whole.

    `a.b.c` imports `a.d.e`: `a.b` needs `a.d`. A package's own `__init__` is no unit beside its parts.
    """
    for importer, target in edges:
        above, below = importer.split("."), target.split(".")
        same = next((i for i, (a, b) in enumerate(zip(above, below, strict=False)) if a != b), None)
        if same is not None:
            yield ".".join(above[: same + 1]), ".".join(below[: same + 1])


def circle(edges: Iterable[tuple[str, str]]) -> list[str]:
    """The names along one circle, or none."""
    graph: dict[str, set[str]] = {}
    for importer, target in edges:
        graph.setdefault(importer, set()).add(target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [str(name) for name in reversed(error.args[1])]
    return []


def test_no_files_import_each_other() -> None:
    """Whoever reads a file needs no file that needs it."""
    assert circle(file_imports()) == []


def test_no_folders_import_each_other() -> None:
    """The parts of each package stand on floors."""
    assert circle(neighbours(file_imports())) == []


def test_circles_are_found() -> None:
    """The checker itself: between files, and between folders whose files have no circle."""
    files = [("p.a.one", "p.b.one"), ("p.b.two", "p.a.two"), ("p.a.one", "p.a")]
    assert circle(files) == []
    assert set(circle(neighbours(files))) == {"p.a", "p.b"}
    assert set(circle([("p.a", "p.b"), ("p.b", "p.c"), ("p.c", "p.a")])) == {"p.a", "p.b", "p.c"}


def test_only_the_settings_read_the_environment() -> None:
    """A setting has one place where it enters the program."""
    _, found = looked_through()
    readers = {name for name in found if not (within(name, "neuron_sim") or within(name, "neuron_node"))}
    assert readers <= ENVIRONMENT_READERS, (
        f"also read the environment: {sorted(readers - ENVIRONMENT_READERS)}"
    )


def test_a_package_that_lists_its_files_lists_all() -> None:
    """Their own first line says what is in them: a list is not needed."""
    incomplete = {}
    for name, path in MODULES.items():
        if path.name != "__init__.py":
            continue
        described = ast.get_docstring(ast.parse(path.read_text())) or ""
        within_it = {each.stem for each in path.parent.glob("*.py") if not each.stem.startswith("__")}
        within_it |= {each.parent.name for each in path.parent.glob("*/__init__.py")}
        listed = set(re.findall(r"^(\w+)(?:, |  )", described, flags=re.MULTILINE)) & within_it
        missing = within_it - set(re.findall(r"\w+", described))
        if len(listed) > 1 and missing:
            incomplete[name] = missing
    assert incomplete == {}


def test_files_stay_small_enough_to_read() -> None:
    """One concept a file."""
    long = {name: len(path.read_text().splitlines()) for name, path in MODULES.items()}
    assert {name: lines for name, lines in long.items() if lines > LONGEST_FILE} == {}


def test_the_rules_see_hidden_imports() -> None:
    """The checker itself: imports in functions, relative ones and dynamic ones are found."""
    text = (
        "def f():\n    import docker\n    from ..store import sqlite\n"
        "    import importlib\n    importlib.import_module('boto3')\n"
    )
    found = set(imported("windtunnel_local.api.module", Path("module.py"), ast.parse(text)))
    assert {"docker", "windtunnel_local.store.sqlite", "boto3"} <= found
