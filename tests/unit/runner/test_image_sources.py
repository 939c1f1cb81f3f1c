"""The image's sources: what identifies them, what is sent to the engine, and from what base."""

from __future__ import annotations

import io
import socket
import subprocess
import tarfile
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.fakes.http import serving
from windtunnel_local.runner.docker.base import (
    LOCAL_BASE,
    REGISTRY_BASE,
    choose_base,
    debian_mirror,
    mmdebstrap_advice,
    mmdebstrap_command,
)
from windtunnel_local.runner.docker.image import image_tag, index_answers
from windtunnel_local.runner.docker.settings import DockerSettings
from windtunnel_local.runner.sources import build_context, containers_folder, content_hash, cpu_wheels
from windtunnel_local.runner.without_container.simulator import console_scripts


@pytest.fixture
def containers(tmp_path: Path) -> Path:
    """A small containers/ folder."""
    files = {
        "training/Dockerfile": "FROM debian",
        "training/install.sh": "uv",
        "training/requirements.txt": "# why\ntorch==2.9.0\ntorchvision==0.24.0\nwheel\n",
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
        "install.sh",
        "requirements.txt",
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


def test_cpu_builds_that_the_host_keeps_are_sent(containers: Path, tmp_path: Path) -> None:
    """Of the versions that the image pins, for its Python and processor: the build sees no folder of its host."""
    wheels, index, files = (tmp_path / name for name in ("wheels", "index", "files"))
    for folder in (wheels, index / "torchvision", files):
        folder.mkdir(parents=True)
    torch = wheels / "torch-2.9.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"
    vision = files / "torchvision-0.24.0+cpu-cp311-cp311-linux_x86_64.whl"
    others = ("torch-2.9.0", "torch-2.9.0+cu128", "torch-2.13.0+cpu", "torchaudio-2.9.0+cpu")
    for file in (torch, vision, *(wheels / f"{name}-cp311-cp311-linux_x86_64.whl" for name in others)):
        file.write_text(file.name)
    (wheels / "torch-2.9.0+cpu-cp312-cp312-linux_x86_64.whl").touch()
    (index / "torchvision" / "index.html").write_text(
        '<a href="../../files/torchvision-0.24.0%2Bcpu-cp311-cp311-linux_x86_64.whl#sha256=0">torchvision</a>'
        '<a href="http://index.test/torchvision-0.24.0+cpu-cp311-cp311-linux_x86_64.whl">elsewhere</a>'
    )
    found = cpu_wheels(containers, [wheels, index, tmp_path / "none"])
    assert sorted(found) == sorted([torch, vision])
    sent = names(build_context(containers, None, found))
    assert {f"build-inputs/{torch.name}", f"build-inputs/{vision.name}"} < set(sent)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: (c / "neuron_sim/neuron_sim/__init__.py").write_text("x = 1"),
        lambda c: (c / "neuron_sim/neuron_sim/new.py").write_text(""),
        lambda c: (c / "training/install.sh").chmod(0o755),
        lambda c: (c / "training/install.sh").rename(c / "training/other.sh"),
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
    """Only Debian's main archive can feed mmdebstrap; None leaves it its default."""
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


def test_an_index_has_a_moment_to_answer() -> None:
    """One that takes the connection and says nothing does not hold up the build."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert not index_answers(f"http://127.0.0.1:{silent.getsockname()[1]}/whl/cpu", timeout_s=0.2)


def test_an_index_with_torch_answers() -> None:
    """Asked for its page of torch, with the name and password of its address."""
    asked = []

    class Index(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Authorization"]))
            self.send_response(200 if self.path == "/whl/cpu/torch/" else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Index)) as port:
        host = f"127.0.0.1:{port}"
        assert index_answers(f"http://user:sesame@{host}/whl/cpu/")
        assert not index_answers(f"http://{host}/whl/none")
    assert asked[0] == ("/whl/cpu/torch/", "Basic dXNlcjpzZXNhbWU=")


def test_uv_finds_packages_where_pip_would() -> None:
    """It reads no pip.conf: pip's variables become its own, unless those are set; empty ones say nothing."""
    pip = {
        "PIP_INDEX_URL": "https://user:se$ame@index.test/simple",
        "PIP_EXTRA_INDEX_URL": "https://a.test/ https://b.test/",
        "PIP_FIND_LINKS": "/srv/a  /srv/b",
        "PIP_TRUSTED_HOST": "",
        "PIP_CERT": "/srv/ca.crt",
        "UV_HTTP_TIMEOUT": "7",
        "PIP_DEFAULT_TIMEOUT": "180",
    }
    script = f". {containers_folder()}/training/uv-env.sh; env"
    run = subprocess.run(["/bin/sh", "-c", script], env=pip, capture_output=True, text=True, check=True)
    found = dict(line.split("=", 1) for line in run.stdout.splitlines())
    assert {name: value for name, value in found.items() if name.startswith(("UV_", "SSL_"))} == {
        "UV_DEFAULT_INDEX": "https://user:se$ame@index.test/simple",
        "UV_INDEX": "https://a.test/ https://b.test/",
        "UV_FIND_LINKS": "/srv/a,/srv/b",
        "UV_HTTP_TIMEOUT": "7",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "SSL_CERT_FILE": "/srv/ca.crt",
    }


@pytest.mark.parametrize(("as_root", "folder"), [(True, "/var/tmp/own"), (False, "/var/tmp")])
def test_the_base_is_made_in_a_folder_that_its_maker_may_enter(as_root: bool, folder: str) -> None:
    """For others than root mmdebstrap works as a user of a namespace, to whom our own folder is closed."""
    command = mmdebstrap_command(
        Path("/var/tmp/own/system.tar"), "http://mirror/debian", ["gcc"], as_root=as_root
    )
    assert f"TMPDIR={folder}" in command
    assert command[-2:] == ["/var/tmp/own/system.tar", "http://mirror/debian"]


def test_a_user_without_a_namespace_is_not_sent_to_the_mirror() -> None:
    """mmdebstrap needs newuidmap then, which no message of its own names."""
    assert "sudo apt-get install uidmap" in mmdebstrap_advice(
        "E: unable to pick chroot mode automatically (use --mode for manual selection)", None
    )
    assert "http://mirror/debian can be reached" in mmdebstrap_advice(
        "E: apt-get update failed", "http://mirror/debian"
    )
