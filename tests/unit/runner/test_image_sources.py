"""The image's sources: what identifies them, what is sent to the engine, and from what base."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from windtunnel_local.runner.docker.base import LOCAL_BASE, REGISTRY_BASE, choose_base, debian_mirror
from windtunnel_local.runner.docker.image import image_tag, index_answers
from windtunnel_local.runner.docker.settings import DockerSettings
from windtunnel_local.runner.process.simulator import console_scripts
from windtunnel_local.runner.sources import build_context, containers_folder, content_hash


@pytest.fixture
def containers(tmp_path: Path) -> Path:
    """A small containers/ folder."""
    files = {
        "training/Dockerfile": "FROM debian",
        "training/pip-install.sh": "pip",
        "neuron_sim/pyproject.toml": "[project]",
        "neuron_sim/neuron_sim/__init__.py": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def names(context: io.BytesIO) -> list[str]:
    """What a context holds."""
    with tarfile.open(fileobj=context) as tar:
        return tar.getnames()


def test_the_context_is_training_with_the_simulator_beside_it(containers: Path) -> None:
    """As the Dockerfile's COPY lines name it; an empty CA bundle where the host has none."""
    assert names(build_context(containers, None)) == [
        "Dockerfile",
        "pip-install.sh",
        "neuron_sim/neuron_sim/__init__.py",
        "neuron_sim/pyproject.toml",
        "build-inputs/ca-bundle.crt",
    ]


def test_the_hosts_ca_bundle_is_sent_but_does_not_change_the_hash(containers: Path, tmp_path: Path) -> None:
    """An image is not stale because another host built it."""
    bundle = tmp_path / "ca.crt"
    bundle.write_text("certificates")
    before = content_hash(containers)
    with tarfile.open(fileobj=build_context(containers, bundle)) as tar:
        member = tar.extractfile("build-inputs/ca-bundle.crt")
        assert member is not None
        assert member.read() == b"certificates"
    assert content_hash(containers) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda c: (c / "neuron_sim/neuron_sim/__init__.py").write_text("x = 1"),
        lambda c: (c / "neuron_sim/neuron_sim/new.py").write_text(""),
        lambda c: (c / "training/pip-install.sh").chmod(0o755),
        lambda c: (c / "training/pip-install.sh").rename(c / "training/other.sh"),
    ],
)
def test_every_change_of_a_source_changes_the_hash(
    containers: Path, change: Callable[[Path], object]
) -> None:
    """Content, a new file, a mode, a name."""
    before = content_hash(containers)
    change(containers)
    assert content_hash(containers) != before


def test_what_is_no_source_changes_nothing(containers: Path) -> None:
    """Caches, byte code, another umask, another age: same hash, same bytes for the engine's layer cache."""
    before, context = content_hash(containers), build_context(containers, None).getvalue()
    for clutter in ("neuron_sim/neuron_sim/__pycache__/x.pyc", "training/build-inputs/ca-bundle.crt"):
        (containers / clutter).parent.mkdir()
        (containers / clutter).write_text("clutter")
    (containers / "training/Dockerfile").chmod(0o600)
    (containers / "training/Dockerfile").touch()
    assert content_hash(containers) == before
    assert build_context(containers, None).getvalue() == context


def test_the_real_sources_are_found_and_complete() -> None:
    """Everything the Dockerfile copies is in the context."""
    context = names(build_context(containers_folder(), None))
    dockerfile = (containers_folder() / "training" / "Dockerfile").read_text()
    copied = [
        line.split()[1:-1]
        for line in dockerfile.splitlines()
        if line.startswith("COPY ") and "--from" not in line
    ]
    for source in (word for words in copied for word in words):
        assert any(name == source or name.startswith(source) for name in context), source
    scripts = console_scripts((containers_folder() / "neuron_sim" / "pyproject.toml").read_text())
    assert {"torchrun", "neuron-ls"} <= set(scripts)


@pytest.mark.parametrize(
    ("configured", "present", "choice"),
    [
        ("mine:1", {REGISTRY_BASE, LOCAL_BASE}, "mine:1"),
        (None, {REGISTRY_BASE, LOCAL_BASE}, REGISTRY_BASE),
        (None, {LOCAL_BASE}, LOCAL_BASE),
        (None, set(), None),
        ("", set(), None),
    ],
)
def test_the_base_is_the_configured_one_else_one_that_is_there(
    configured: str | None, present: set[str], choice: str | None
) -> None:
    """None: it must be pulled or made."""
    assert choose_base(configured, present.__contains__) == choice


@pytest.mark.parametrize(
    ("sources", "mirror"),
    [
        ("deb http://mirror.test/debian bookworm main", "http://mirror.test/debian"),
        (
            "deb [arch=amd64 signed-by=/k] http://mirror.test/debian/ trixie main",
            "http://mirror.test/debian/",
        ),
        ("Types: deb\nURIs: http://mirror.test/debian\nSuites: bookworm", "http://mirror.test/debian"),
        ("# deb http://old.test/debian bookworm main", None),
        ("deb http://mirror.test/debian-security bookworm-security main", None),
        ("deb http://archive.test/ubuntu noble main", None),
        ("deb https://a.test/debian x main\ndeb http://b.test/debian x main", "http://b.test/debian"),
        ("deb https://a.test/debian x main", "https://a.test/debian"),
        ("", None),
    ],
)
def test_the_hosts_own_debian_mirror_is_used(sources: str, mirror: str | None) -> None:
    """Only Debian's main archive can feed debootstrap; None leaves it its default."""
    assert debian_mirror(sources) == mirror


@pytest.mark.parametrize(
    ("image", "test_image"),
    [
        ("windtunnel-training:0.1.0", "windtunnel-training-test:0.1.0"),
        ("registry.test:5000/team/training", "registry.test:5000/team/training-test"),
        ("registry.test:5000/team/training:2", "registry.test:5000/team/training-test:2"),
        ("plain", "plain-test"),
    ],
)
def test_the_test_image_is_tagged_beside_the_training_image(image: str, test_image: str) -> None:
    """A port in a registry's name is no tag."""
    settings = DockerSettings(Path("/nowhere"), image)
    assert image_tag(settings) == image
    assert image_tag(settings, "test") == test_image


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/whl/cpu", "file:///etc", "nonsense", ""])
def test_an_index_that_does_not_answer_is_done_without(url: str) -> None:
    """The build goes on with the default index."""
    assert not index_answers(url)
