"""What `pcluster` prints: the answers of ParallelCluster's API, member by member in its order.

A value that only AWS could give has AWS's form with the local account (a stack's ARN), says that it is simulated (the
version), or is left out if it is optional.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from windtunnel_local.cluster.configuration import ClusterConfiguration, KeyChange
from windtunnel_local.cluster.errors import InvalidConfiguration, Problem
from windtunnel_local.cluster.record import WORKING, ClusterRecord, ClusterState
from windtunnel_local.credentials import ACCOUNT_ID

VERSION = "3.12.0+windtunnel"
"""The version of ParallelCluster whose schema and answers these are, marked as not AWS's own."""

Answer = dict[str, Any]


def summary(state: ClusterState, status: str | None = None) -> Answer:
    """A cluster in a list, or in the answer to a request. ``status``: the state after that request."""
    status = status or state.status
    return {
        "clusterName": state.name,
        "cloudformationStackStatus": status,
        "cloudformationStackArn": _stack_arn(state),
        "region": state.region,
        "version": VERSION,
        "clusterStatus": status,
        "scheduler": {"type": "slurm"},
    }


def description(record: ClusterRecord, state: ClusterState, configuration: ClusterConfiguration) -> Answer:
    """The answer of describe-cluster."""
    answer: Answer = {"creationTime": state.created}
    head = state.head_node
    if head is not None:
        answer["headNode"] = {
            "launchTime": head.launch_time,
            "instanceId": head.instance_id,
            # The head node's one address, at which this machine reaches it.
            "publicIpAddress": head.private_ip_address,
            "instanceType": configuration.head_instance_type,
            "state": head.state,
            "privateIpAddress": head.private_ip_address,
        }
    tags = [
        *configuration.tags,
        ("parallelcluster:cluster-name", state.name),
        ("parallelcluster:version", VERSION),
    ]
    answer |= {
        "version": VERSION,
        "clusterConfiguration": {"url": record.configuration_file.as_uri()},
        "tags": [{"value": value, "key": key} for key, value in tags],
        "cloudFormationStackStatus": state.status,
        "clusterName": state.name,
        "computeFleetStatus": fleet_status(state),
        "cloudformationStackArn": _stack_arn(state),
        "lastUpdatedTime": state.updated,
        "region": state.region,
        "clusterStatus": state.status,
        "scheduler": {"type": "slurm"},
    }
    if state.status == "CREATE_FAILED":
        reason = state.failure or "Failed to create the cluster."
        answer["failures"] = [{"failureCode": "ClusterCreationFailure", "failureReason": reason}]
    return answer


def fleet_status(state: ClusterState) -> str:
    """UNKNOWN while the cluster is made or deleted, as with ParallelCluster."""
    return state.fleet_status if state.status in (*WORKING, "UPDATE_IN_PROGRESS") else "UNKNOWN"


def fleet(state: ClusterState, *, updated: bool) -> Answer:
    """The answer of describe-compute-fleet; of update-compute-fleet with ``updated``."""
    status, since = fleet_status(state), state.fleet_updated
    if status == "UNKNOWN" and not updated:
        return {"status": status}
    return {"status": status, "lastStatusUpdatedTime": since}


def messages(problems: Iterable[Problem], level: str) -> list[Answer]:
    """Problems of a configuration as ParallelCluster lists them."""
    return [{"level": level, "type": problem.kind, "message": str(problem)} for problem in problems]


def accepted(
    cluster: Answer, warnings: Sequence[Problem], changed: Sequence[KeyChange] | None = None
) -> Answer:
    """The answer of create-cluster; of update-cluster with what it changes."""
    answer: Answer = {"cluster": cluster}
    if warnings:
        answer["validationMessages"] = messages(warnings, "WARNING")
    if changed is not None:
        answer["changeSet"] = change_set(changed)
    return answer


def dry_run(warnings: Sequence[Problem], changed: Sequence[KeyChange] | None = None) -> Answer:
    """What `--dryrun true` prints; with exit code 1, as ParallelCluster has it."""
    answer: Answer = {"validationMessages": messages(warnings, "WARNING")} if warnings else {}
    answer["message"] = "Request would have succeeded, but DryRun flag is set."
    if changed is not None:
        answer["changeSet"] = change_set(changed)
    return answer


def change_set(changed: Iterable[KeyChange]) -> list[Answer]:
    """The changes of an update, as ParallelCluster lists them."""
    return [
        {"parameter": one.parameter, "requestedValue": one.requested, "currentValue": one.current}
        for one in changed
    ]


def invalid(error: InvalidConfiguration) -> Answer:
    """The answer to a configuration with mistakes."""
    return {
        "configurationValidationErrors": messages(error.problems, error.level),
        "message": "Invalid cluster configuration.",
    }


def refused_update(changed: Sequence[KeyChange]) -> Answer:
    """The answer to an update that cannot be done now."""
    return {
        "message": "Update failure",
        "updateValidationErrors": [
            {
                "parameter": one.parameter,
                "requestedValue": one.requested,
                "message": one.refusal,
                "currentValue": one.current,
            }
            for one in changed
            if one.refusal
        ],
        "changeSet": change_set(changed),
    }


_INSTANCE = (
    "launchTime", "instanceId", "queueName", "publicIpAddress", "instanceType", "state", "nodeType",
    "privateIpAddress",
)  # fmt: skip


def instance(given: Mapping[str, str]) -> Answer:
    """A running node, as the background process describes it; members without a value are left out."""
    whole = dict(given)
    if given["nodeType"] == "HeadNode":
        whole["publicIpAddress"] = given["privateIpAddress"]
    return {key: whole[key] for key in _INSTANCE if whole.get(key)}


def _stack_arn(state: ClusterState) -> str:
    return f"arn:aws:cloudformation:{state.region}:{ACCOUNT_ID}:stack/{state.name}/{state.stack_id}"
