"""A script's requirements.txt in the image: what can be had is installed, what cannot is stood in for."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

TOOLKIT = """
import sys
from sagemaker_training import modules
from neuron_sim.launcher.requirements import with_stand_ins
with_stand_ins(modules.install_requirements)(sys.argv[1], capture_error=True)
"""
OWN = "windtunnel-some-requirement"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a requirements.txt as a job would, from three wheels; the exit code and the log."""
    for name, version in ((OWN, "1"), ("huggingface-hub", "0.36.2"), ("torch", "2.8.0")):
        wheel(tmp_path, name, version)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))

    def run(text, **environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        (tmp_path / "requirements.txt").write_text(text)
        done = subprocess.run(
            [sys.executable, "-c", TOOLKIT, str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (tmp_path / "requirements.txt").read_text() == text
        return done.returncode, done.stdout + done.stderr

    yield run
    subprocess.run([sys.executable, "-m", "pip", "uninstall", "--quiet", "--yes", OWN], check=True)
    subprocess.run([sys.executable, "-m", "pip", "check"], check=True)


def wheel(folder: Path, name: str, version: str) -> None:
    """A distribution without any module."""
    stem = f"{name.replace('-', '_')}-{version}"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as file:
        info = f"{stem}.dist-info"
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")


def has(name: str) -> bool:
    """Whether a distribution is installed."""
    return any(metadata.distributions(name=name))


def test_a_pin_that_cannot_be_had_is_stood_in_for_and_the_rest_is_installed(install):
    """The log names both versions, and what to set to fail instead."""
    code, log = install(f"# ours\ntransformers[torch]==4.21.0  # why\n{OWN}\n")
    assert code == 0
    assert has(OWN)
    assert f"==4.21.0 is left out; transformers {metadata.version('transformers')}, which is installed" in log
    assert "WINDTUNNEL_STRICT_REQUIREMENTS=1" in log


@pytest.mark.parametrize("line", ["huggingface_hub==0.36.2", "torch==2.8.0"])
def test_a_pin_that_would_break_what_is_installed_is_stood_in_for(install, line):
    """pip could have it: transformers, or the simulator, could not run with it."""
    code, log = install(f"{line}\n{OWN}\n")
    assert (code, has(OWN)) == (0, True)
    assert f"{line} is left out" in log


def test_what_leaving_out_does_not_help_fails_as_on_sagemaker(install):
    """With the toolkit's own error, and nothing installed."""
    code, log = install(f"transformers==4.21.0\nwindtunnel-nowhere\n{OWN}\n")
    assert (code, has(OWN)) == (1, False)
    assert "InstallRequirementsError" in log


def test_strict_requirements_are_installed_as_they_are_or_not_at_all(install):
    """By the setting."""
    code, log = install(f"transformers==4.21.0\n{OWN}\n", WINDTUNNEL_STRICT_REQUIREMENTS="1")
    assert (code, has(OWN)) == (1, False)
    assert "Windtunnel:" not in log
