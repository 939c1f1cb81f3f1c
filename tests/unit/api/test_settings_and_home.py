"""Promises of what is read and written at the edge: environment, key pair, lock."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from windtunnel import __version__
from windtunnel_local.credentials import CredentialsError, load_or_create
from windtunnel_local.home import AlreadyRunning, Home
from windtunnel_local.runner import runner_kind
from windtunnel_local.runner.docker import docker_settings
from windtunnel_local.runner.variables import SettingsError
from windtunnel_local.runner.without_container.interpreter import interpreter_of
from windtunnel_local.service.ground.job import SpotTerms
from windtunnel_local.settings import from_environment


def test_without_an_environment_there_are_defaults() -> None:
    """Those of the documentation."""
    settings = from_environment({})
    assert settings.home == Path("~/.windtunnel").expanduser()
    assert (settings.runner, settings.port, settings.idle_s, settings.stop_grace_s) == ("docker", 0, 900, 120)
    assert settings.image == f"windtunnel-training:{__version__}"
    assert settings.memory_gib is None
    assert (settings.max_cores, settings.max_memory_gib) == (None, None)
    assert settings.spot == SpotTerms(interruptions=0, seed=0, mean_s=60, after="start", discount=0.7)


def test_every_name_is_read() -> None:
    """Each into its place; an empty one counts as not set."""
    settings = from_environment(
        {
            "WINDTUNNEL_HOME": "relative",
            "WINDTUNNEL_RUNNER": "process",
            "WINDTUNNEL_PORT": "8123",
            "WINDTUNNEL_IDLE_SECONDS": "1.5",
            "WINDTUNNEL_IMAGE": "mine:1",
            "WINDTUNNEL_BASE_IMAGE": "base:1",
            "WINDTUNNEL_TORCH_INDEX_URL": "https://index.example/cpu",
            "WINDTUNNEL_MEMORY_GIB": "3.5",
            "WINDTUNNEL_STOP_GRACE_SECONDS": "",
            "WINDTUNNEL_SIM_PYTHON": "/venv/bin/python",
            "WINDTUNNEL_MAX_CORES": "16",
            "WINDTUNNEL_MAX_MEMORY_GIB": "12.5",
            "WINDTUNNEL_SPOT_INTERRUPTIONS": "3",
            "WINDTUNNEL_SPOT_SEED": "7",
            "WINDTUNNEL_SPOT_MEAN_SECONDS": "2.5",
            "WINDTUNNEL_SPOT_AFTER": "checkpoint",
            "WINDTUNNEL_SPOT_DISCOUNT": "0.6",
        }
    )
    assert (settings.max_cores, settings.max_memory_gib) == (16, 12.5)
    assert settings.spot == SpotTerms(3, 7, 2.5, 0.6, "checkpoint")
    assert settings.home == Path.cwd() / "relative"
    assert (settings.runner, settings.port, settings.idle_s) == ("process", 8123, 1.5)
    assert (settings.image, settings.memory_gib, settings.stop_grace_s) == ("mine:1", 3.5, 120)
    assert docker_settings(settings).base_image == "base:1"
    assert interpreter_of(settings.environment).python == Path("/venv/bin/python")


@pytest.mark.parametrize(
    "variables",
    [
        {"WINDTUNNEL_RUNNER": "podman"},
        {"WINDTUNNEL_HOME": "~no-such-user/home"},
        {"WINDTUNNEL_PORT": "-1"},
        {"WINDTUNNEL_PORT": "65536"},
        {"WINDTUNNEL_MEMORY_GIB": "much"},
        {"WINDTUNNEL_IDLE_SECONDS": "nan"},
        {"WINDTUNNEL_IDLE_SECONDS": "inf"},
        {"WINDTUNNEL_SPOT_DISCOUNT": "70"},
        {"WINDTUNNEL_SPOT_AFTER": "end"},
        {"WINDTUNNEL_MAX_CORES": "all"},
    ],
)
def test_a_bad_value_is_refused_by_name(variables: dict[str, str]) -> None:
    """With what was given."""
    with pytest.raises(SettingsError) as error:
        from_environment(variables)
    for name, value in variables.items():
        assert name in str(error.value)
        assert repr(value) in str(error.value)


def test_a_runners_own_bad_value_is_refused_by_name() -> None:
    """When that runner is made, and not before: the others do not read it."""
    settings = from_environment({"WINDTUNNEL_SIM_PYTHON": "~no-such-user/python"})
    with pytest.raises(SettingsError, match="WINDTUNNEL_SIM_PYTHON is '~no-such-user/python'"):
        runner_kind("process").make(settings)


def test_secrets_are_masked(tmp_path: Path) -> None:
    """Neither settings nor credentials show one."""
    settings = from_environment(
        {"WINDTUNNEL_TORCH_INDEX_URL": "https://u:sesame@x", "https_proxy": "http://u:sesame@p"}
    )
    credentials = load_or_create(tmp_path / "credentials.json")
    assert "sesame" not in repr(settings)
    assert "sesame" not in repr((docker_settings(settings), interpreter_of(settings.environment)))
    assert credentials.secret_access_key not in repr(credentials)


def test_the_key_pair_is_made_once_and_for_its_owner(tmp_path: Path) -> None:
    """Later starts read it, and take away what others may do."""
    path = tmp_path / "credentials.json"
    made = load_or_create(path)
    path.chmod(0o644)
    assert load_or_create(path) == made
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text()).keys() == {
        "access_key_id",
        "secret_access_key",
        "account_id",
        "region",
    }
    assert load_or_create(tmp_path / "other.json") != made


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"access_key_id": "a", "what": 1}',
        '{"access_key_id": "a", "secret_access_key": null}',
    ],
)
def test_a_broken_key_pair_is_said(tmp_path: Path, text: str) -> None:
    """With what to do."""
    path = tmp_path / "credentials.json"
    path.write_text(text)
    with pytest.raises(CredentialsError, match="Remove it"):
        load_or_create(path)


def test_files_that_go_while_a_home_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is leaving removes its note, and SQLite its own files: the next one starts all the same."""
    for name in ("backend.json", "record.sqlite-wal"):
        (tmp_path / name).touch()
    chmod = Path.chmod

    def late(path: Path, mode: int) -> None:
        if path.is_file():
            path.unlink()
        chmod(path, mode)

    monkeypatch.setattr(Path, "chmod", late)
    Home(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_home_is_held_by_one(tmp_path: Path) -> None:
    """The second learns where the first is; before the first accepts, it waits."""
    first, second = Home(tmp_path), Home(tmp_path)
    with first.locked():
        with pytest.raises(TimeoutError, match=r"backend\.lock"), second.locked(patience_s=0.1):
            pass
        first.write_note("http://127.0.0.1:1", "1", "docker")
        with pytest.raises(AlreadyRunning, match=rf"127\.0\.0\.1:1 \(pid {os.getpid()}\)"), second.locked():
            pass
    with second.locked():  # what a killed server left is no server
        assert second.read_note() is None
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
