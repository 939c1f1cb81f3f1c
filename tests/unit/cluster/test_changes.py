"""What an update changes, and when ParallelCluster would refuse it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.fakes.cluster import POST
from windtunnel_local.cluster.configuration import KeyChange, changes

RESOURCE = "Scheduling.SlurmQueues[compute1].ComputeResources[queue1-i1]"
QUEUE = yaml.safe_load(POST)["Scheduling"]["SlurmQueues"][0]


def changed(
    *edits: tuple[str, str], fleet_stopped: bool = False, strategy: str | None = None
) -> list[KeyChange]:
    text = POST
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    after = yaml.safe_load(text)
    if strategy:
        after["Scheduling"]["SlurmSettings"] = {"QueueUpdateStrategy": strategy}
    found = changes(yaml.safe_load(POST), after, fleet_stopped=fleet_stopped)
    return [one for one in found if "QueueUpdateStrategy" not in one.parameter]


def test_what_is_the_same_is_no_change() -> None:
    """Neither is the order of keys."""
    document: dict[str, Any] = yaml.safe_load(POST)
    assert changes(document, dict(reversed(document.items())), fleet_stopped=False) == []


def test_a_change_says_what_was_and_what_is_asked() -> None:
    """With the way to the key, members of lists by their names."""
    assert changed(("MaxCount: 16", "MaxCount: 20")) == [KeyChange(f"{RESOURCE}.MaxCount", 20, 16, None)]
    assert changed(("Region: us-west-2\n", ""))[0].requested == "-"


@pytest.mark.parametrize(
    ("edits", "while_running", "with_drain", "with_terminate", "stopped"),
    [
        ([("MaxCount: 16", "MaxCount: 20")], True, True, True, True),
        ([("MaxCount: 16", "MaxCount: 8")], False, False, True, True),
        ([("MinCount: 1", "MinCount: 2")], False, False, True, True),  # a dynamic node goes for it
        ([("MinCount: 1", "MinCount: 2"), ("MaxCount: 16", "MaxCount: 17")], True, True, True, True),
        ([("trn1.32xlarge", "trn1.2xlarge")], False, False, False, True),
        ([("CapacityType: ONDEMAND", "CapacityType: SPOT")], False, True, True, True),
        ([("MountDir: /fsx", "MountDir: /lustre")], False, True, True, True),
        ([("Name: queue1-i1", "Name: queue1-i2")], False, False, True, True),  # one comes, and one goes
        ([("Os: ubuntu2004", "Os: ubuntu2204")], False, False, False, False),
        ([("us-west-2", "us-east-1")], False, False, False, False),
        ([("c5.4xlarge", "c5.9xlarge")], False, False, False, False),
        ([("StorageCapacity: 1200", "StorageCapacity: 2400")], False, True, True, True),
    ],
)
def test_when_a_change_is_refused(
    edits: list[tuple[str, str]], while_running: bool, with_drain: bool, with_terminate: bool, stopped: bool
) -> None:
    """As ParallelCluster's update policies have it: by the fleet's state and the QueueUpdateStrategy."""

    def allowed(**how: Any) -> bool:
        found = changed(*edits, **how)
        assert found
        return not any(one.refusal for one in found)

    assert allowed() is while_running
    assert allowed(strategy="DRAIN") is with_drain
    assert allowed(strategy="TERMINATE") is with_terminate
    assert allowed(fleet_stopped=True) is stopped


def test_a_queue_may_be_added_while_the_fleet_runs_and_not_removed() -> None:
    """A refusal says what to do."""
    before, after = yaml.safe_load(POST), yaml.safe_load(POST)
    after["Scheduling"]["SlurmQueues"].append({**QUEUE, "Name": "compute2"})
    (added,) = changes(before, after, fleet_stopped=False)
    assert (added.parameter, added.current, added.refusal) == ("Scheduling.SlurmQueues", "-", None)
    (removed,) = changes(after, before, fleet_stopped=False)
    assert removed.refusal and "STOP_REQUESTED" in removed.refusal and "TERMINATE" in removed.refusal
