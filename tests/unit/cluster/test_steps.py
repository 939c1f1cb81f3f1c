"""What the background process does to its cluster when things are not as it left them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.fakes.cluster import POST
from windtunnel_local.cluster import record
from windtunnel_local.cluster.errors import ClusterError, ClusterNotFound, InvalidConfiguration
from windtunnel_local.cluster.fleet.steps import Abandoned, Steps
from windtunnel_local.cluster.layout import Layout
from windtunnel_local.cluster.nodes import NodeContainer, Nodes
from windtunnel_local.cluster.record import ClusterRecord
from windtunnel_local.service.ground.errors import RunnerUnavailable
from windtunnel_local.settings import from_environment


class NodesInMemory(Nodes):
    """No engine's. ``away``: none answers. ``shown``: what sinfo says; ``told``: what Slurm was told.

    ``restarts``: exit codes of slurmctld's restarts to come.
    """

    def __init__(self) -> None:
        self.away = False
        self.shown = ""
        self.told: list[str] = []
        self.restarts: list[int] = []
        self.states = {"head": "running", "compute1-st-queue1-i1-1": "exited"}

    def found(self) -> dict[str, NodeContainer]:
        if self.away:
            raise RunnerUnavailable("Cannot reach Docker.")
        return {name: NodeContainer(name, "id", state, "", "", "") for name, state in self.states.items()}

    def run(self, node: str, command: Sequence[str]) -> tuple[int, str]:  # noqa: ARG002
        if command[0] == "sinfo":
            return 0, self.shown
        if command[0].endswith("restart-slurmctld.sh"):
            return self.restarts.pop(0), "no answer"
        self.told.append(" ".join(command[2:]))
        return 0, ""

    def tail(self, node: str, lines: int) -> str:  # noqa: ARG002
        return f"{node} says"

    def remove_all(self) -> None:
        self.states.clear()


@pytest.fixture
def made(tmp_path: Path) -> ClusterRecord:
    """A cluster that was just asked for."""
    return record.create(tmp_path, "trn1", POST, "cluster.yaml", "us-west-2")


@pytest.fixture
def nodes() -> NodesInMemory:
    return NodesInMemory()


def steps_of(made: ClusterRecord, nodes: Nodes, *, own: bool = True) -> Steps:
    settings = from_environment({"WINDTUNNEL_HOME": str(made.folder.parent.parent)})
    return Steps(Layout(made.folder), settings, lambda: own, nodes)


def test_a_failed_creation_says_why_and_removes_all(made: ClusterRecord, nodes: NodesInMemory) -> None:
    """With the ends of the nodes' logs."""
    said = steps_of(made, nodes).roll_back(ClusterError("no room")).splitlines()
    assert said == [
        "no room",
        "The end of compute1-st-queue1-i1-1's log:",
        "compute1-st-queue1-i1-1 says",
        "The end of head's log:",
        "head says",
    ]
    assert nodes.states == {}


def test_a_creation_that_fails_with_its_engine_says_so(made: ClusterRecord, nodes: NodesInMemory) -> None:
    """It has failed nonetheless: nobody waits for it any longer, and deleting it removes what is left."""
    nodes.away = True
    said = steps_of(made, nodes).roll_back(ClusterError("no head node"))
    assert said.startswith("no head node\n") and "until the cluster is deleted: Cannot reach Docker." in said


def test_nothing_is_kept_of_a_cluster_whose_folder_is_another_s(
    made: ClusterRecord, nodes: NodesInMemory
) -> None:
    """Removed by hand, and made again: two processes would end each other's nodes."""
    made.move_to("CREATE_COMPLETE")
    with pytest.raises(ClusterNotFound):
        steps_of(made, nodes, own=False).look()


def test_a_damaged_configuration_is_no_hindrance_to_deleting(
    made: ClusterRecord, nodes: NodesInMemory
) -> None:
    """And one to everything else."""
    made.configuration_file.write_text("Image: 1")
    with pytest.raises(InvalidConfiguration):
        steps_of(made, nodes)
    made.make_deletable()
    made.move_to("DELETE_IN_PROGRESS")
    steps_of(made, nodes).delete()
    assert not made.folder.exists() and nodes.states == {}


def test_nodes_that_slurm_has_given_up_can_be_asked_for_again(
    made: ClusterRecord, nodes: NodesInMemory
) -> None:
    """They did not come in time, on a machine that was too busy; a static one comes back at once."""
    made.move_to("CREATE_COMPLETE")
    made.set_fleet("RUNNING")
    static, dynamic = "compute1-st-queue1-i1-1", "compute1-dy-queue1-i1-"
    nodes.shown = f"{static} down~\n{dynamic}1 down~\n{dynamic}2 idle\n{dynamic}3 idle~\n{dynamic}4 down\n"
    steps = steps_of(made, nodes)
    steps.look()
    assert nodes.told == [f"NodeName={static},{dynamic}1 State=POWER_DOWN"]
    assert steps.keeper.wanted == {f"{dynamic}2", f"{dynamic}4"}
    nodes.shown, nodes.told = f"{static} idle~\n{dynamic}1 idle~\n", []
    steps_of(made, nodes).look()
    assert nodes.told == [f"NodeName={static} State=POWER_UP"]


def test_a_static_node_is_asked_for_once(
    made: ClusterRecord, nodes: NodesInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """sinfo may lag behind: a second order begins anew, and the node that came for the first one never counts."""
    made.move_to("CREATE_COMPLETE")
    static, looks = "compute1-st-queue1-i1-1", iter(["idle~"] * 3 + ["idle#"] * 2)
    monkeypatch.setattr(
        NodesInMemory, "shown", property(lambda _: f"{static} {next(looks, 'idle')}"), raising=False
    )
    (made.folder / "slurm" / "conf").mkdir(parents=True)
    steps_of(made, nodes).start_fleet()
    assert [order for order in nodes.told if "POWER" in order] == [f"NodeName={static} State=POWER_UP"]
    assert made.fleet_status == "RUNNING"


@pytest.mark.parametrize("back", [True, False])
def test_an_update_that_slurm_does_not_take_says_why(
    back: bool, made: ClusterRecord, nodes: NodesInMemory
) -> None:
    """In its own words; whether what was in force before is so again is said, too."""
    made.move_to("CREATE_COMPLETE")
    made.move_to("UPDATE_IN_PROGRESS")
    made.propose(POST.replace("MaxCount: 16", "MaxCount: 17"))
    nodes.states = {"head": "running"}
    nodes.restarts = [1, 0 if back else 1]
    steps = steps_of(made, nodes)
    with pytest.raises(ClusterError) as failed:
        steps.update()
    said = str(failed.value)
    assert "restart-slurmctld.sh" in said and "The end of head's log:\nhead says" in said
    assert ("does not come back either" in said) is not back
    assert made.update_file.exists(), "one that is gone is in force"
    assert "MaxCount: 16" in made.configuration_file.read_text()


def test_an_update_that_is_in_force_is_done(made: ClusterRecord, nodes: NodesInMemory) -> None:
    """Its process was killed before it could say so."""
    made.move_to("CREATE_COMPLETE")
    made.move_to("UPDATE_IN_PROGRESS")
    made.propose(POST.replace("MaxCount: 16", "MaxCount: 17"))
    made.take_update()
    steps_of(made, nodes).update()
    assert "MaxCount: 17" in made.configuration_file.read_text()


def test_a_deletion_that_came_twice_leaves_the_next_cluster_alone(
    made: ClusterRecord, nodes: NodesInMemory
) -> None:
    """The first has freed the name, and somebody has made another cluster of it."""
    with pytest.raises(ClusterNotFound):
        steps_of(made, nodes, own=False).delete()
    assert made.status == "CREATE_IN_PROGRESS" and nodes.states != {}


def test_a_cluster_that_is_deleted_waits_for_no_image(
    made: ClusterRecord, nodes: NodesInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To build it takes minutes."""
    steps, built = steps_of(made, nodes), threading.Event()

    def build(_settings: object, progress: Callable[[str], None], _engine: object) -> None:
        steps.deleting.set()
        progress("step 1")
        built.set()

    monkeypatch.setattr("windtunnel_local.cluster.fleet.steps.ensure_cluster_image", build)
    monkeypatch.setattr("windtunnel_local.cluster.fleet.steps.remove_abandoned", lambda _engine: None)
    with pytest.raises(Abandoned):
        steps.create()
    assert not built.is_set()
