"""A cluster's folder: its states, also where several processes write them at once."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes.cluster import POST
from windtunnel_local.cluster import record
from windtunnel_local.cluster.errors import BadRequest, ClusterNotFound, Conflict, DamagedRecord
from windtunnel_local.cluster.record import ClusterRecord, HeadNode


@pytest.fixture
def made(tmp_path: Path) -> ClusterRecord:
    """A cluster that was just asked for."""
    return record.create(tmp_path, "trn1", POST, "/home/me/cluster.yaml", "us-west-2")


def test_a_cluster_begins_in_create_in_progress(made: ClusterRecord, tmp_path: Path) -> None:
    """With its configuration, whose region is the file's own."""
    assert (made.status, made.fleet_status, made.state.head_node) == ("CREATE_IN_PROGRESS", "UNKNOWN", None)
    assert made.configuration().region == "us-west-2"
    assert record.find(tmp_path, "trn1").state == made.state
    assert [one.name for one in record.every(tmp_path)] == ["trn1"]


def test_states_follow_each_other_as_on_aws(made: ClusterRecord) -> None:
    """What cannot follow is refused, and changes nothing."""
    for status in (
        "CREATE_COMPLETE",
        "UPDATE_IN_PROGRESS",
        "UPDATE_FAILED",
        "UPDATE_IN_PROGRESS",
        "UPDATE_COMPLETE",
    ):
        assert made.move_to(status).status == status
    with pytest.raises(Conflict):
        made.move_to("CREATE_COMPLETE")
    assert made.status == "UPDATE_COMPLETE"
    made.move_to("DELETE_IN_PROGRESS")
    with pytest.raises(Conflict, match="DELETE_IN_PROGRESS"):
        made.move_to("UPDATE_IN_PROGRESS")


def test_a_failure_is_kept_until_the_next_state(made: ClusterRecord) -> None:
    """And says why."""
    made.move_to("CREATE_FAILED", "no image")
    assert made.state.failure == "no image"
    assert made.move_to("DELETE_IN_PROGRESS").failure is None


def test_a_head_node_is_written(made: ClusterRecord) -> None:
    """As it was given."""
    head = HeadNode("i-0123456789abcdef0", record.now(), "172.18.0.2")
    assert made.set_head_node(head).head_node == head
    assert ClusterRecord(made.folder).state.head_node == head


def test_an_update_comes_in_force_whole(made: ClusterRecord) -> None:
    """Until then the configuration is the old one; doing it twice changes nothing."""
    made.propose(POST.replace("MaxCount: 16", "MaxCount: 20"))
    assert len(list(made.configuration().nodes())) == 16
    assert len(list(made.next_configuration().nodes())) == 20
    made.take_update()
    made.take_update()
    assert len(list(made.configuration().nodes())) == 20


@pytest.mark.parametrize("name", ["a", "1a", "a_b", "a" * 61, "", "../a", "a/b", "a.b"])
def test_a_name_that_is_none_is_refused(name: str, tmp_path: Path) -> None:
    """Nothing is written, and nothing outside of the home is read."""
    with pytest.raises(BadRequest, match="is no name for a cluster"):
        record.create(tmp_path, name, POST, "f", "us-east-1")
    with pytest.raises(ClusterNotFound):
        record.find(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


def test_a_removed_cluster_is_gone_and_its_name_free(made: ClusterRecord, tmp_path: Path) -> None:
    """Removing it again does nothing; whoever still has the record hears that it is gone."""
    made.remove()
    made.remove()
    assert list((tmp_path / "clusters").iterdir()) == []
    for ask in (lambda: made.state, lambda: made.set_fleet("RUNNING"), made.configuration):
        with pytest.raises(ClusterNotFound):
            ask()
    record.create(tmp_path, "trn1", POST, "f", "us-east-1")


def test_a_cluster_whose_files_cannot_be_removed_is_still_there(
    made: ClusterRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that its failure can be told, and the next try goes on."""
    (made.folder / "home" / "ubuntu").mkdir(parents=True)

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", refuse)
        with pytest.raises(PermissionError):
            made.remove()
    made.move_to("DELETE_IN_PROGRESS")
    made.remove()
    assert not made.folder.exists()


@pytest.mark.parametrize("content", ["{", "", "[]", "{}", '{"head_node": null, "status": "HALF"}', None])
def test_a_damaged_record_says_which_file(content: str | None, made: ClusterRecord) -> None:
    """And what to do: it can be deleted, whatever is left of it."""
    _damage(made.folder / "cluster.json", content)
    with pytest.raises(DamagedRecord, match=r"cluster.json is damaged .*cluster delete trn1\), then create"):
        _ = made.status
    made.make_deletable()
    assert made.status == "DELETE_FAILED"
    assert "cluster.json is damaged" in (made.state.failure or "")
    made.move_to("DELETE_IN_PROGRESS")


@pytest.mark.parametrize("content", ["", "Image: [", b"\xff\xfe\x00", None])
def test_a_cluster_with_a_damaged_configuration_can_be_deleted(
    content: str | bytes | None, made: ClusterRecord
) -> None:
    """Or with one that an earlier version took, and this one refuses."""
    made.move_to("CREATE_COMPLETE")
    _damage(made.configuration_file, content)
    made.make_deletable()
    assert made.status == "DELETE_FAILED"


def _damage(path: Path, content: str | bytes | None) -> None:
    """``content``: what is left of the file; None: nothing."""
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def test_a_sound_cluster_stays_as_it_is_before_it_is_deleted(made: ClusterRecord) -> None:
    """Nothing is written."""
    before = made.state
    made.make_deletable()
    assert made.state == before


def test_of_many_who_create_one_name_one_does(tmp_path: Path) -> None:
    """The others are told that it exists, and leave nothing behind."""
    outcomes = at_once(8, lambda number: created(tmp_path, f"file{number}"))
    assert outcomes.count("exists") == 7
    winner = next(one for one in outcomes if one != "exists")
    assert record.find(tmp_path, "trn1").state.file == winner
    assert [path.name for path in (tmp_path / "clusters").iterdir()] == ["trn1"]


def created(home: Path, file: str) -> str:
    try:
        return record.create(home, "trn1", POST, file, "us-west-2").state.file
    except BadRequest:
        return "exists"


def test_of_many_updates_at_once_one_begins(made: ClusterRecord) -> None:
    """The others find another operation under way."""
    made.move_to("CREATE_COMPLETE")

    def begin(_: int) -> str:
        try:
            return made.move_to("UPDATE_IN_PROGRESS").status
        except Conflict:
            return "conflict"

    assert sorted(at_once(8, begin)) == ["UPDATE_IN_PROGRESS"] + ["conflict"] * 7


def at_once(count: int, act: Callable[[int], str]) -> list[str]:
    """What each of several threads got, all begun together."""
    barrier = threading.Barrier(count)

    def run(number: int) -> str:
        barrier.wait()
        return act(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_no_change_of_several_at_once_is_lost(made: ClusterRecord) -> None:
    """Each reads what the one before has written, and sees whole states all the while.

    The lock is one of an open file, so threads that each open it are to each other as processes are.
    """

    def write(number: int) -> str:
        for time in range(50):
            word = f",{number}.{time}"
            made.change(lambda state, word=word: replace(state, file=state.file + word))  # type: ignore[misc]
            assert made.state.name == "trn1"
        return ""

    at_once(3, write)
    written = made.state.file.split(",")[1:]
    assert sorted(written) == sorted(f"{number}.{time}" for number in range(3) for time in range(50))
