"""`pcluster`: arguments, answers and exit codes of AWS ParallelCluster 3, held against its API specification."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.cluster import POST, FleetWithoutContainers
from windtunnel_local.cluster import pcluster, record
from windtunnel_local.cluster.operations import Clusters

SUMMARY = [
    "clusterName", "cloudformationStackStatus", "cloudformationStackArn", "region", "version", "clusterStatus",
    "scheduler",
]  # fmt: skip
DESCRIPTION = [
    "creationTime", "headNode", "version", "clusterConfiguration", "tags", "cloudFormationStackStatus",
    "clusterName", "computeFleetStatus", "cloudformationStackArn", "lastUpdatedTime", "region", "clusterStatus",
    "scheduler",
]  # fmt: skip
HEAD_NODE = ["launchTime", "instanceId", "publicIpAddress", "instanceType", "state", "privateIpAddress"]
INSTANCE = ["launchTime", "instanceId", "queueName", "instanceType", "state", "nodeType", "privateIpAddress"]
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


class CommandLine:
    """Runs commands in one home."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.fleet = FleetWithoutContainers()
        self.home = home
        self.file = home / "cluster.yaml"
        self.file.write_text(POST)
        self._capsys = capsys
        self.stderr = ""

    def __call__(self, *argv: str, code: int = 0) -> Any:
        """The JSON that a command prints."""
        assert pcluster.run(Clusters(self.home, self.fleet), argv) == code
        out, self.stderr = self._capsys.readouterr()
        document = json.loads(out)
        assert out == json.dumps(document, indent=2) + "\n"
        return document

    def create(self, name: str = "trn1", *more: str, code: int = 0) -> Any:
        """create-cluster of the file."""
        return self("create-cluster", "--cluster-configuration", str(self.file), "-n", name, *more, code=code)

    def edit(self, old: str, new: str) -> None:
        """Change the file."""
        text = self.file.read_text()
        assert old in text
        self.file.write_text(text.replace(old, new))


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """A home without clusters."""
    return CommandLine(tmp_path, capsys)


def test_create_cluster_answers_that_it_is_under_way(cli: CommandLine) -> None:
    """At once, in ParallelCluster's form; that nothing is created on AWS goes to stderr."""
    answer = cli.create()
    assert list(answer) == ["cluster"]
    cluster = answer["cluster"]
    assert list(cluster) == SUMMARY
    assert cluster["clusterStatus"] == cluster["cloudformationStackStatus"] == "CREATE_IN_PROGRESS"
    assert (cluster["clusterName"], cluster["region"], cluster["scheduler"]) == (
        "trn1",
        "us-west-2",
        {"type": "slurm"},
    )
    assert re.fullmatch(
        r"arn:aws:cloudformation:us-west-2:000000000000:stack/trn1/[0-9a-f-]{36}",
        cluster["cloudformationStackArn"],
    )
    assert "windtunnel" in cluster["version"]
    assert "Nothing is created on AWS" in cli.stderr
    assert "HeadNode.Ssh.KeyName" in cli.stderr


def test_describe_cluster_has_the_members_of_the_api(cli: CommandLine) -> None:
    """In its order; the configuration's address is one that can be read."""
    cli.create()
    answer = cli("describe-cluster", "-n", "trn1")
    assert list(answer) == DESCRIPTION
    assert list(answer["headNode"]) == HEAD_NODE
    assert re.fullmatch(r"i-[0-9a-f]{17}", answer["headNode"]["instanceId"])
    for time in (answer["creationTime"], answer["lastUpdatedTime"], answer["headNode"]["launchTime"]):
        assert re.fullmatch(TIME, time)
    assert (answer["clusterStatus"], answer["computeFleetStatus"]) == ("CREATE_COMPLETE", "RUNNING")
    assert {"value": "trn1", "key": "parallelcluster:cluster-name"} in answer["tags"]
    assert Path(answer["clusterConfiguration"]["url"].removeprefix("file://")).read_text() == POST


def test_list_clusters_filters_by_status_and_region(cli: CommandLine) -> None:
    """All clusters of the home otherwise."""
    cli.create("one")
    cli.edit("us-west-2", "us-east-1")
    cli.create("two")
    assert [list(one) for one in cli("list-clusters")["clusters"]] == [SUMMARY, SUMMARY]
    assert cli("list-clusters", "--query", "clusters[].clusterName") == ["one", "two"]
    assert cli("list-clusters", "-r", "us-east-1", "--query", "clusters[].clusterName") == ["two"]
    assert cli("list-clusters", "--cluster-status", "CREATE_FAILED", "DELETE_FAILED") == {"clusters": []}


def test_the_compute_fleet_is_stopped_and_started(cli: CommandLine) -> None:
    """Twice the same order is one."""
    cli.create()
    assert list(cli("describe-compute-fleet", "-n", "trn1")) == ["status", "lastStatusUpdatedTime"]
    for _ in range(2):
        answer = cli("update-compute-fleet", "-n", "trn1", "--status", "STOP_REQUESTED")
        assert answer["status"] == "STOPPED"
    assert cli.fleet.orders == ["stop-fleet"]
    refused = cli("update-compute-fleet", "-n", "trn1", "--status", "ENABLED", code=1)
    assert refused["message"].startswith(
        "Bad Request: the update compute fleet status can only be set to `START_"
    )


def test_describe_cluster_instances(cli: CommandLine) -> None:
    """Of one type or one queue."""
    cli.create()
    head, node = cli("describe-cluster-instances", "-n", "trn1")["instances"]
    assert list(node) == INSTANCE
    assert "queueName" not in head and head["nodeType"] == "HeadNode"
    only = cli("describe-cluster-instances", "-n", "trn1", "--node-type", "ComputeNode")["instances"]
    assert (
        only
        == cli("describe-cluster-instances", "-n", "trn1", "--queue-name", "compute1")["instances"]
        == [node]
    )


def test_update_cluster_says_what_changes(cli: CommandLine) -> None:
    """And describes the cluster in UPDATE_IN_PROGRESS."""
    cli.create()
    cli.edit("MaxCount: 16", "MaxCount: 20")
    answer = cli("update-cluster", "-n", "trn1", "-c", str(cli.file))
    assert list(answer) == ["cluster", "changeSet"]
    assert answer["cluster"]["clusterStatus"] == "UPDATE_IN_PROGRESS"
    (change,) = answer["changeSet"]
    assert list(change) == ["parameter", "requestedValue", "currentValue"]
    assert (change["requestedValue"], change["currentValue"]) == (20, 16)
    assert len(list(record.find(cli.home, "trn1").configuration().nodes())) == 20


def test_update_cluster_refuses_what_needs_a_stopped_fleet(cli: CommandLine) -> None:
    """With the reason of each change; once the fleet is stopped it is done."""
    cli.create()
    cli.edit("MaxCount: 16", "MaxCount: 4")
    answer = cli("update-cluster", "-n", "trn1", "-c", str(cli.file), code=1)
    assert list(answer) == ["message", "updateValidationErrors", "changeSet"]
    (error,) = answer["updateValidationErrors"]
    assert list(error) == ["parameter", "requestedValue", "message", "currentValue"]
    assert "STOP_REQUESTED" in error["message"]
    assert cli.fleet.orders == []
    cli("update-compute-fleet", "-n", "trn1", "--status", "STOP_REQUESTED")
    cli("update-cluster", "-n", "trn1", "-c", str(cli.file))
    assert len(list(record.find(cli.home, "trn1").configuration().nodes())) == 4


def test_an_update_without_a_change_is_refused(cli: CommandLine) -> None:
    """As ParallelCluster does."""
    cli.create()
    answer = cli("update-cluster", "-n", "trn1", "-c", str(cli.file), code=1)
    assert answer == {"message": "Bad Request: No changes found in your cluster configuration."}


def test_delete_cluster_frees_the_name(cli: CommandLine) -> None:
    """Its answer says DELETE_IN_PROGRESS."""
    cli.create()
    answer = cli("delete-cluster", "-n", "trn1")
    assert list(answer["cluster"]) == SUMMARY
    assert answer["cluster"]["clusterStatus"] == "DELETE_IN_PROGRESS"
    assert cli("list-clusters") == {"clusters": []}
    cli.create()
    assert cli("delete-cluster", "-n", "trn1", "--wait") == {
        "message": "Successfully deleted cluster 'trn1'."
    }


def test_a_bad_configuration_is_refused_with_all_of_its_mistakes(cli: CommandLine) -> None:
    """In ParallelCluster's form, each message with file and line; nothing is made."""
    cli.edit("MinCount: 1", "MinCount: 17")
    cli.edit("trn1.32xlarge", "trn9.large")
    answer = cli.create(code=1)
    assert list(answer) == ["configurationValidationErrors", "message"]
    assert answer["message"] == "Invalid cluster configuration."
    errors = answer["configurationValidationErrors"]
    assert [list(error) for error in errors] == [["level", "type", "message"]] * 2
    assert [error["type"] for error in errors] == ["InstanceTypeValidator", "ComputeResourceSizeValidator"]
    assert all(error["level"] == "ERROR" and f"{cli.file}:" in error["message"] for error in errors)
    assert cli("list-clusters") == {"clusters": []}


def test_warnings_can_be_made_mistakes_and_suppressed(cli: CommandLine) -> None:
    """--validation-failure-level and --suppress-validators, as ParallelCluster has them."""
    cli.edit("trn1.32xlarge", "p4d.24xlarge")
    refused = cli.create("a1", "--validation-failure-level", "WARNING", code=1)
    assert refused["configurationValidationErrors"][0]["level"] == "WARNING"
    (warning,) = cli.create("a1")["validationMessages"]
    assert (warning["level"], warning["type"]) == ("WARNING", "InstanceTypeValidator")
    assert "validationMessages" not in cli.create("a2", "--suppress-validators", "type:InstanceTypeValidator")
    assert "does not match" in cli.create("a3", "--suppress-validators", "nonsense", code=1)["message"]


def test_a_dry_run_makes_nothing(cli: CommandLine) -> None:
    """And exits with 1, as ParallelCluster does."""
    answer = cli.create("trn1", "--dryrun", "true", code=1)
    assert answer == {"message": "Request would have succeeded, but DryRun flag is set."}
    assert cli("list-clusters") == {"clusters": []}


def test_what_cannot_be_asked_is_a_message_in_json(cli: CommandLine) -> None:
    """Never a traceback."""
    cli.create()
    for argv, words in (
        (("describe-cluster", "-n", "none"), "Cluster 'none' does not exist"),
        (("describe-cluster", "-n", "trn1", "-r", "eu-west-1"), "Cluster 'trn1' does not exist"),
        (("describe-cluster", "-n", "trn_1"), "Bad Request: 'trn_1' does not match"),
        (("create-cluster", "-n", "trn1", "-c", str(cli.file)), "Cluster trn1 already exists."),
        (("create-cluster", "-n", "trn2", "-c", "/no/such"), "Bad Request: File not found: '/no/such'"),
        (("create-cluster", "-n", "trn2", "-c", "/"), "Bad Request: '/' cannot be read"),
        (("create-cluster", "-n", "trn2", "-c", str(cli.file), "-r", "eu-west-1"), "and conflicts."),
        (("list-clusters", "--query", "["), "Invalid query string."),
    ):
        assert words in cli(*argv, code=1)["message"]


def test_whoever_asks_for_a_cluster_starts_its_process_again(cli: CommandLine) -> None:
    """Otherwise no node would come for the jobs that wait. That of a failed cluster has left for good."""
    cli.create()
    started = len(cli.fleet.started)
    cli("describe-cluster", "-n", "trn1")
    assert len(cli.fleet.started) == started + 1
    made = record.create(cli.home, "failed", POST, "f", "us-west-2")
    made.move_to("CREATE_FAILED", "no room")
    answer = cli("describe-cluster", "-n", "failed")
    assert answer["failures"] == [{"failureCode": "ClusterCreationFailure", "failureReason": "no room"}]
    assert len(cli.fleet.started) == started + 1


def test_a_damaged_cluster_is_listed_and_deleted(cli: CommandLine) -> None:
    """It hides no other, and its name is free again."""
    cli.create("broken")
    cli.create("sound")
    (cli.home / "clusters" / "broken" / "cluster.json").write_text("{")
    assert cli("list-clusters", "--query", "clusters[].[clusterName,clusterStatus]") == [
        ["broken", "DELETE_FAILED"],
        ["sound", "CREATE_COMPLETE"],
    ]
    assert "cluster.json is damaged" in cli("describe-cluster", "-n", "broken", code=1)["message"]
    cli("delete-cluster", "-n", "broken")
    assert cli("list-clusters", "--query", "clusters[].clusterName") == ["sound"]
    cli.create("broken")


def test_without_an_engine_nothing_is_left(cli: CommandLine) -> None:
    """One message, and no cluster."""
    cli.fleet = FleetWithoutContainers(engine=False)
    assert cli.create(code=1) == {"message": "No Docker engine answers."}
    assert cli("list-clusters") == {"clusters": []}


def test_an_argument_that_it_does_not_know_is_refused(
    cli: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the usage, as ParallelCluster does."""
    assert pcluster.run(Clusters(cli.home, cli.fleet), ["list-clusters", "--all"]) == 1
    assert "Invalid arguments ['--all']" in capsys.readouterr().out


def test_wait_answers_with_the_cluster_that_is_there(cli: CommandLine) -> None:
    """ParallelCluster's hidden flag."""
    assert cli.create("trn1", "--wait")["clusterStatus"] == "CREATE_COMPLETE"


def test_a_question_loads_no_client_of_docker(tmp_path: Path) -> None:
    """Its import would be half of what describe-cluster takes, which scripts ask again and again."""
    code = (
        "import sys\nfrom windtunnel_local.__main__ import pcluster\n"
        "assert pcluster() == 0\nprint('docker' in sys.modules)"
    )
    home = {**os.environ, "WINDTUNNEL_HOME": str(tmp_path)}
    ask = [sys.executable, "-c", code, "list-clusters"]
    done = subprocess.run(ask, env=home, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
