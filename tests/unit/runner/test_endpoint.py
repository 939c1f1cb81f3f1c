"""The engine that is asked is the one that the docker command would ask."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from windtunnel_local.runner.docker import Engine, endpoint
from windtunnel_local.service.ground.errors import RunnerUnavailable

ALT = "unix:///run/alt/docker.sock"


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The docker command's own folder, with a context `alt` that is not in use."""
    for variable in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    (tmp_path / "config.json").write_text('{"auths": {}}')
    add_context(tmp_path, "alt", ALT)
    return tmp_path


def add_context(configuration: Path, name: str, host: str) -> Path:
    """As `docker context create NAME --docker host=HOST` writes it."""
    path = configuration / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest() / "meta.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    endpoints = {"docker": {"Host": host, "SkipTLSVerify": False}}
    path.write_text(json.dumps({"Name": name, "Metadata": {}, "Endpoints": endpoints}))
    return path


def use(configuration: Path, name: str) -> None:
    """As `docker context use NAME`."""
    (configuration / "config.json").write_text(json.dumps({"auths": {}, "currentContext": name}))


def test_the_context_in_use_is_asked(configuration: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rootless Docker, Docker Desktop, colima and OrbStack set one: `docker ps` works, and so does Windtunnel.

    DOCKER_CONTEXT is stronger than `docker context use`, and DOCKER_HOST than both; one that is empty is unset.
    """
    default = "unix:///var/run/docker.sock"
    assert endpoint.address() == default
    use(configuration, "alt")
    assert endpoint.address() == ALT
    monkeypatch.setenv("DOCKER_HOST", "")
    monkeypatch.setenv("DOCKER_CONTEXT", "default")
    assert endpoint.address() == default
    monkeypatch.setenv("DOCKER_CONTEXT", "")
    assert endpoint.arguments() == {"base_url": ALT, "tls": None}
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:2375")
    assert endpoint.arguments() == {"base_url": "tcp://127.0.0.1:2375", "tls": None}


def test_the_certificates_of_a_context_are_its_own(
    configuration: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not those that the environment names for DOCKER_HOST."""
    add_context(configuration, "far", "tcp://far.test:2376")
    use(configuration, "far")
    folder = configuration / "contexts" / "tls" / hashlib.sha256(b"far").hexdigest() / "docker"
    folder.mkdir(parents=True)
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (folder / name).touch()
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", "/nowhere")
    assert endpoint.arguments()["tls"].cert == (str(folder / "cert.pem"), str(folder / "key.pem"))


def test_a_context_that_cannot_be_read_is_no_other_engine(
    configuration: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docker-py would ask the default one."""
    monkeypatch.setenv("DOCKER_CONTEXT", "gone")
    with pytest.raises(RunnerUnavailable, match=r"'gone'.*none of this name.*docker context use NAME"):
        Engine().client()
    monkeypatch.setenv("DOCKER_CONTEXT", "alt")
    written = add_context(configuration, "alt", ALT)
    told = json.loads(written.read_text())
    for text, why in (
        ("{", ".*DOCKER_HOST"),
        (json.dumps({**told, "Endpoints": {"kubernetes": {}}}), "it names no Docker"),
    ):
        written.write_text(text)
        with pytest.raises(RunnerUnavailable, match=rf"'alt'.*cannot be read: {why}"):
            Engine().client()


def test_an_engine_that_does_not_answer_is_named(
    configuration: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nobody knows which one was asked."""
    use(configuration, "alt")
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/docker")
    with pytest.raises(RunnerUnavailable, match=f"Cannot reach Docker: no engine answers at {ALT}"):
        Engine().client()
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", "/nowhere")
    with pytest.raises(RunnerUnavailable, match=r"tcp://127.0.0.1:1\..*\(Path to a certificate"):
        Engine().client()


def test_an_engine_over_ssh_is_told_for_what_it_is(
    configuration: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine's, in vain started here; what is wrong is not that docker-py misses a package."""
    monkeypatch.setenv("DOCKER_HOST", "ssh://me@far.test")
    with pytest.raises(
        RunnerUnavailable, match=r"ssh://me@far.test is another machine's.*Run Windtunnel there"
    ):
        Engine().client()
