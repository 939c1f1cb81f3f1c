"""`pcluster`: the command line of AWS ParallelCluster 3, on clusters of this machine.

Arguments, JSON on stdout and exit codes are ParallelCluster's. Lines that ParallelCluster does not have go to stderr.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Sequence
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError

from windtunnel_local.cluster import answers
from windtunnel_local.cluster.answers import VERSION, Answer
from windtunnel_local.cluster.command_line import clusters_of, print_json, say_where, states
from windtunnel_local.cluster.enter import enter, ssh_command
from windtunnel_local.cluster.errors import BadRequest, InvalidConfiguration
from windtunnel_local.cluster.operations import Checks, Clusters, DryRun, File, UpdateRefused
from windtunnel_local.cluster.record import STATUSES
from windtunnel_local.service.ground.errors import WindtunnelError
from windtunnel_local.settings import Settings

_LEVELS = ("INFO", "WARNING", "ERROR")
_FLEET = ("START_REQUESTED", "STOP_REQUESTED", "ENABLED", "DISABLED")
_NODE_TYPES = ("HeadNode", "ComputeNode", "LoginNode")
_CLUSTER_NAME = "^[a-zA-Z][a-zA-Z0-9-]+$"

Command = Callable[[Clusters, argparse.Namespace], Answer]


class Failed(Exception):
    """An awaited state did not come. ``answer``: what is printed."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


def main(settings: Settings, argv: Sequence[str]) -> int:
    """Run one command on the clusters of a home; the exit code: 0; 1 with a message in JSON; 2 wrong usage."""
    return run(clusters_of(settings), argv)


def run(clusters: Clusters, argv: Sequence[str]) -> int:
    """As `main`, on the given clusters."""
    parser = _parser()
    arguments, more = parser.parse_known_args(argv)
    if more and arguments.operation != "ssh":
        parser.print_usage()
        print(f"Invalid arguments {more}")  # noqa: T201  as ParallelCluster says it
        return 1
    try:
        if arguments.operation == "version":
            print_json({"version": VERSION})
            return 0
        _check_name(arguments)
        if arguments.operation == "ssh":
            return _ssh(clusters, arguments, more)
        answer = arguments.command(clusters, arguments)
        print_json(_queried(answer, arguments.query))
        return 0
    except (DryRun, Failed) as other:
        print_json(other.answer)
    except InvalidConfiguration as error:
        print_json(answers.invalid(error))
    except UpdateRefused as error:
        print_json(answers.refused_update(error.changed))
    except (WindtunnelError, OSError) as error:
        print_json({"message": str(error)})
    except KeyboardInterrupt:
        pass
    return 1


def _create(clusters: Clusters, given: argparse.Namespace) -> Answer:
    answer, read = clusters.create(
        given.cluster_name, File.at(given.cluster_configuration), given.region, _checks(given)
    )
    say_where(given.cluster_name, read)
    return _waited(clusters, given, "CREATE_COMPLETE") if given.wait else answer


def _update(clusters: Clusters, given: argparse.Namespace) -> Answer:
    answer, read = clusters.update(
        given.cluster_name,
        File.at(given.cluster_configuration),
        given.region,
        _checks(given),
        force=given.force_update is True,
    )
    say_where(given.cluster_name, read)
    return _waited(clusters, given, "UPDATE_COMPLETE") if given.wait else answer


def _delete(clusters: Clusters, given: argparse.Namespace) -> Answer:
    answer = clusters.delete(given.cluster_name, given.region)
    if given.wait:
        if any(state.status == "DELETE_FAILED" for state in states(clusters, given.cluster_name)):
            raise Failed({"message": f"Failed when deleting cluster '{given.cluster_name}'."})
        return {"message": f"Successfully deleted cluster '{given.cluster_name}'."}
    return answer


def _describe(clusters: Clusters, given: argparse.Namespace) -> Answer:
    return clusters.describe(given.cluster_name, given.region)


def _list(clusters: Clusters, given: argparse.Namespace) -> Answer:
    return clusters.list(given.region, given.cluster_status or ())


def _fleet(clusters: Clusters, given: argparse.Namespace) -> Answer:
    return clusters.fleet(given.cluster_name, given.region)


def _set_fleet(clusters: Clusters, given: argparse.Namespace) -> Answer:
    return clusters.set_fleet(given.cluster_name, given.status, given.region)


def _instances(clusters: Clusters, given: argparse.Namespace) -> Answer:
    return clusters.instances(given.cluster_name, given.region, given.node_type, given.queue_name)


def _ssh(clusters: Clusters, given: argparse.Namespace, more: Sequence[str]) -> int:
    cluster = clusters.find(given.cluster_name, given.region)
    if given.dryrun:
        print_json({"command": shlex.join(ssh_command(cluster, None, more))})
        return 0
    return enter(cluster, None, more)


def _waited(clusters: Clusters, given: argparse.Namespace, wanted: str) -> Answer:
    """Wait until the cluster's operation is over, as ParallelCluster's hidden ``--wait`` does."""
    for state in states(clusters, given.cluster_name):
        if not state.status.endswith("IN_PROGRESS"):
            break
    answer = clusters.describe(given.cluster_name)
    if answer["clusterStatus"] != wanted:
        raise Failed(answer)
    return answer


def _checks(given: argparse.Namespace) -> Checks:
    return Checks(
        suppressed=tuple(given.suppress_validators or ()),
        failure_level=given.validation_failure_level or "ERROR",
        dry_run=given.dryrun is True,
    )


def _check_name(given: argparse.Namespace) -> None:
    name = getattr(given, "cluster_name", None)
    if name is not None and not re.match(_CLUSTER_NAME, name):
        raise BadRequest(f"'{name}' does not match '{_CLUSTER_NAME}' - 'cluster-name'")


def _queried(answer: Answer, query: str | None) -> Any:
    try:
        return jmespath.search(query, answer) if query else answer
    except JMESPathError:
        raise Failed({"message": "Invalid query string.", "query": query}) from None


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pcluster",
        description="AWS ParallelCluster's command line for clusters that Windtunnel simulates on this machine. "
        "Nothing is created on AWS.",
        epilog='For command specific flags, please run: "pcluster [command] --help"',
    )
    operations = parser.add_subparsers(title="COMMANDS", dest="operation", required=True)

    def add(operation: str, command: Command, text: str, *, name: bool = True) -> argparse.ArgumentParser:
        made = operations.add_parser(operation, help=text, description=text)
        made.set_defaults(command=command)
        made.add_argument("--debug", action="store_true", help="taken, without effect")
        made.add_argument("--query", help="JMESPath query on the output")
        made.add_argument("-r", "--region", help="of the cluster")
        if name:
            made.add_argument("-n", "--cluster-name", required=True)
        return made

    _add_configured(add("create-cluster", _create, "Create a cluster."), "--rollback-on-failure")
    _add_configured(add("update-cluster", _update, "Bring another configuration in force."), "--force-update")
    add("describe-cluster", _describe, "Show a cluster.")
    listed = add("list-clusters", _list, "List the clusters.", name=False)
    listed.add_argument("--cluster-status", nargs="+", choices=STATUSES)
    listed.add_argument("--next-token", help="taken, without effect: all are listed at once")
    deleted = add("delete-cluster", _delete, "Remove a cluster.")
    deleted.add_argument("--wait", action="store_true", help=argparse.SUPPRESS)
    add("describe-compute-fleet", _fleet, "Show the compute fleet's status.")
    fleet = add("update-compute-fleet", _set_fleet, "Start or stop the compute fleet.")
    fleet.add_argument("--status", required=True, choices=_FLEET)
    instances = add("describe-cluster-instances", _instances, "List the nodes that run.")
    instances.add_argument("--node-type", choices=_NODE_TYPES)
    instances.add_argument("--queue-name")
    instances.add_argument("--next-token", help="taken, without effect: all are listed at once")
    entered = add("ssh", _describe, "Enter the head node; what follows is ssh's.")
    entered.add_argument("--dryrun", type=_boolean, default=False)
    operations.add_parser("version", help="Show the version.").set_defaults(command=_describe)
    return parser


def _add_configured(parser: argparse.ArgumentParser, own: str) -> None:
    parser.add_argument("-c", "--cluster-configuration", required=True, metavar="FILE")
    parser.add_argument("--suppress-validators", nargs="+")
    parser.add_argument("--validation-failure-level", choices=_LEVELS)
    parser.add_argument("--dryrun", type=_boolean)
    parser.add_argument(own, type=_boolean)
    parser.add_argument("--wait", action="store_true", help=argparse.SUPPRESS)
