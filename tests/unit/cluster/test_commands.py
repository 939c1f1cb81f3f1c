"""`windtunnel cluster`: it waits, and says what happens in a few lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.cluster import POST, FleetWithoutContainers
from windtunnel_local.__main__ import main as backend
from windtunnel_local.cluster import command_line, commands, record
from windtunnel_local.cluster.operations import Clusters


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """With a cluster's file."""
    (tmp_path / "cluster.yaml").write_text(POST)
    return tmp_path


def run(home: Path, *argv: str, engine: bool = True) -> int:
    return commands.run(Clusters(home, FleetWithoutContainers(engine=engine)), argv)


def create(home: Path, *more: str) -> int:
    return run(home, "create", "--cluster-configuration", str(home / "cluster.yaml"), "-n", "trn1", *more)


def test_a_cluster_is_made_shown_and_removed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """stdout has what was asked for, stderr what happens."""
    assert create(home) == 0
    out, err = capsys.readouterr()
    assert out == "Enter it: windtunnel cluster ssh trn1\n"
    assert "Nothing is created on AWS" in err and "CREATE_COMPLETE" in err
    assert run(home, "list") == 0
    assert capsys.readouterr().out.split() == ["trn1", "CREATE_COMPLETE", "us-west-2"]
    assert run(home, "describe", "trn1") == 0
    out = capsys.readouterr().out
    assert "compute1/queue1-i1  1 to 16 trn1.32xlarge" in out and "/fsx" in out
    assert run(home, "delete", "trn1") == 0
    assert record.every(home) == []


def test_json_is_what_pcluster_prints(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing else is on stdout."""
    assert create(home, "--json") == 0
    assert json.loads(capsys.readouterr().out)["clusterStatus"] == "CREATE_COMPLETE"
    assert run(home, "stop", "trn1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["status"] == "STOPPED"


def test_an_update_says_what_changes(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Line by line."""
    create(home)
    (home / "cluster.yaml").write_text(POST.replace("MaxCount: 16", "MaxCount: 17"))
    assert run(home, "update", "trn1", "-c", str(home / "cluster.yaml")) == 0
    assert "MaxCount: 16 -> 17" in capsys.readouterr().err


def test_mistakes_are_one_clean_message(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """2: the file is wrong; 1: it cannot be done."""
    (home / "bad.yaml").write_text(POST.replace("MinCount: 1", "MinCount: 17"))
    assert run(home, "create", "-c", str(home / "bad.yaml"), "-n", "trn1") == 2
    err = capsys.readouterr().err
    assert (
        err.startswith("windtunnel: Invalid cluster configuration.\n")
        and "17 is more than MaxCount, 16." in err
    )
    assert run(home, "describe", "trn1") == 1
    assert capsys.readouterr().err.startswith("windtunnel: Cluster 'trn1' does not exist")
    assert run(home, "create", "-c", str(home / "cluster.yaml"), "-n", "trn1", engine=False) == 1
    assert "No Docker engine answers." in capsys.readouterr().err


def test_a_failed_creation_says_why(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the log's place; the exit code is 1."""

    class Failing(FleetWithoutContainers):
        def start(self, folder: Path) -> None:
            record.ClusterRecord(folder).move_to("CREATE_FAILED", "the image cannot be built")

    argv = ["create", "-c", str(home / "cluster.yaml"), "-n", "trn1"]
    assert commands.run(Clusters(home, Failing()), argv) == 1
    err = capsys.readouterr().err
    assert "the image cannot be built" in err and "fleet.log" in err


def test_whoever_waits_starts_a_killed_process_again(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody else may ask, and the wait would have no end."""

    class Killed(FleetWithoutContainers):
        def start(self, folder: Path) -> None:
            if len(self.started) == 2:
                super().start(folder)
            self.started.append(folder)

    monkeypatch.setattr(command_line, "_LOOK_S", 0.0)
    argv = ["create", "-c", str(home / "cluster.yaml"), "-n", "trn1"]
    assert commands.run(Clusters(home, Killed()), argv) == 0
    assert "CREATE_COMPLETE" in capsys.readouterr().err


def test_ctrl_c_says_whether_there_is_a_cluster(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One whose process was not there yet goes; one that is made goes on."""

    class Interrupted(FleetWithoutContainers):
        def start(self, _folder: Path) -> None:
            raise KeyboardInterrupt

    argv = ["create", "-c", str(home / "cluster.yaml"), "-n", "trn1"]
    assert commands.run(Clusters(home, Interrupted()), argv) == 130
    assert capsys.readouterr().err.endswith("Interrupted; there is no cluster trn1.\n")
    assert record.every(home) == []
    assert create(home) == 0
    capsys.readouterr()
    assert commands.run(Clusters(home, Interrupted()), ["describe", "trn1"]) == 130
    assert "it goes on. How it is: windtunnel cluster describe trn1" in capsys.readouterr().err


def test_a_fleet_that_does_not_start_says_where_to_look(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what its process has logged."""

    class Failing(FleetWithoutContainers):
        def call(self, folder: Path, order: dict[str, Any]) -> dict[str, Any]:
            line = "2026-11-23 06:30:02 WARNING windtunnel.cluster: node q-st-r-1 does not start: no room\n"
            with (folder / "fleet.log").open("a") as log:
                log.write(line)
            record.ClusterRecord(folder).set_fleet("UNKNOWN" if order["do"] == "start-fleet" else "STOPPED")
            return {}

    create(home)
    clusters = Clusters(home, Failing())
    assert commands.run(clusters, ["stop", "trn1"]) == 0
    capsys.readouterr()
    assert commands.run(clusters, ["start", "trn1"]) == 1
    out, err = capsys.readouterr()
    assert out == "Compute fleet: UNKNOWN\n"
    assert "no room" in err and "fleet.log" in err


def test_a_command_without_dashes_is_told_where_it_stands(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`cluster ssh NAME NODE hostname` is what one tries first."""
    with pytest.raises(SystemExit) as ended:
        run(home, "ssh", "trn1", "q-st-r-1", "hostname")
    assert ended.value.code == 2
    assert "hostname. A command to run stands behind --." in capsys.readouterr().err


def test_help_names_each_command_for_what_it_is(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`report`, which is the SDK's, among them; what `job` prints is no answer of ParallelCluster's."""
    with pytest.raises(SystemExit):
        run(home, "--help")
    assert "\n    report  " in capsys.readouterr().out
    with pytest.raises(SystemExit):
        run(home, "job", "--help")
    assert "ParallelCluster" not in capsys.readouterr().out


def test_a_wrong_setting_is_told_by_the_command_that_was_called(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A module's name is none that a user knows."""
    monkeypatch.setenv("WINDTUNNEL_PORT", "x")
    assert backend(["cluster", "list"]) == 1
    assert capsys.readouterr().err.startswith("windtunnel: WINDTUNNEL_PORT is 'x'")
