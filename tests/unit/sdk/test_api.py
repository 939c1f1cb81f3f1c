"""The package's face: what it exports, and how little importing it costs."""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import windtunnel
from windtunnel import errors


def test_all_is_sorted_and_complete() -> None:
    """`__all__` names everything public, in order, and nothing else."""
    assert windtunnel.__all__ == sorted(windtunnel.__all__)
    assert set(windtunnel.__all__) <= set(dir(windtunnel))
    tree = ast.parse(Path(str(windtunnel.__file__)).read_text())
    seen_by_mypy = {
        name.asname: f"{node.module}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
        if name.asname
    }
    assert set(windtunnel.__all__) == set(seen_by_mypy)
    for name in set(seen_by_mypy) - {"__version__"}:
        assert getattr(import_module(seen_by_mypy[name]), name) is getattr(windtunnel, name)


def test_every_error_is_exported() -> None:
    """A user can catch every error by its public name."""
    defined = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and value.__module__ == errors.__name__
    }
    assert defined <= set(windtunnel.__all__)
    for name in defined:
        assert name in (errors.__doc__ or "")


def test_unknown_name_is_an_attribute_error() -> None:
    """A typo is reported as Python reports it."""
    with pytest.raises(AttributeError, match="Estimater"):
        windtunnel.Estimater  # noqa: B018


def test_import_loads_nothing_heavy() -> None:
    """`import windtunnel` and its classes leave boto3, rich and others unloaded; JSON and CSV need no numpy."""
    code = (
        "import sys, windtunnel as w, windtunnel.cli.main\n"
        "w.PyTorch, w.TrainingJob, w.Predictor, w.PyTorchModel, w.NumpySerializer()\n"
        "w.JSONSerializer().serialize([1]), w.CSVSerializer().serialize([1])\n"
        "heavy = 'boto3', 'botocore', 'rich', 'docker', 'matplotlib', 'jinja2', 'numpy'\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "error",
    [
        errors.ServiceCallFailed("CreateTrainingJob", "ResourceInUse", "taken"),
        errors.JobNotFound("j", local=False),
        errors.EndpointNotFound("InvokeEndpoint", "e", local=True),
        errors.Detached("j", " --aws"),
        errors.TrainingJobFailed("j", "r", log_tail=["x"], logs_location="l", next_step="n"),
    ],
)
def test_errors_cross_a_pickle(error: BaseException) -> None:
    """In a process pool one that cannot be made again breaks the pool, and nobody sees why."""
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
