"""`windtunnel cluster`: the command line for people. It waits, says what happens, and prints few lines."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone

from windtunnel.cli.parser import Parser
from windtunnel_local.cluster import answers
from windtunnel_local.cluster.command_line import clusters_of, print_json, say, say_where, states
from windtunnel_local.cluster.controller import shown_jobs
from windtunnel_local.cluster.enter import enter
from windtunnel_local.cluster.errors import InvalidConfiguration
from windtunnel_local.cluster.job_data import job_document
from windtunnel_local.cluster.layout import Layout
from windtunnel_local.cluster.operations import Clusters, File
from windtunnel_local.cluster.record import ClusterState
from windtunnel_local.service.ground.errors import WindtunnelError
from windtunnel_local.settings import Settings

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_DETACHED = 130

_LOGGED = re.compile(r"\S+ \S+ (?:INFO|WARNING|ERROR) windtunnel\.cluster: (.*)")

Command = Callable[[Clusters, argparse.Namespace], int]


def main(settings: Settings, argv: Sequence[str]) -> int:
    """Run one command; the exit code: 0; 1 failed; 2 the configuration or the command line is wrong; 130 detached."""
    return run(clusters_of(settings), argv)


def run(clusters: Clusters, argv: Sequence[str]) -> int:
    """As `main`, on the given clusters."""
    place = list(argv).index("--") if "--" in argv else len(argv)
    given = _parser().parse_args(argv[:place])
    given.words = list(argv[place + 1 :])
    try:
        return int(given.command(clusters, given))
    except KeyboardInterrupt:
        name = getattr(given, "name", None)
        if name and clusters.by_name(name).folder.exists():
            say(f"\nDetached; it goes on. How it is: windtunnel cluster describe {name}")
        else:
            say(f"\nInterrupted; there is no cluster {name}." if name else "")
        return EXIT_DETACHED
    except InvalidConfiguration as error:
        say(f"windtunnel: {error}")
        return EXIT_USAGE
    except (WindtunnelError, OSError) as error:
        say(f"windtunnel: {error}")
        return EXIT_FAILED


def _create(clusters: Clusters, given: argparse.Namespace) -> int:
    began = _Begin(clusters, given.name)
    _, read = clusters.create(given.name, File.at(given.file), given.region)
    say_where(given.name, read)
    for warning in read.warnings:
        say(f"Warning: {warning}")
    code = _follow(clusters, given.name, "CREATE_COMPLETE", began)
    if given.json:
        print_json(clusters.describe(given.name))
    elif code == 0:
        _print(f"Enter it: windtunnel cluster ssh {given.name}")
    return code


def _update(clusters: Clusters, given: argparse.Namespace) -> int:
    began = _Begin(clusters, given.name)
    answer, read = clusters.update(given.name, File.at(given.file))
    say_where(given.name, read)
    for change in answer["changeSet"]:
        say(f"  {change['parameter']}: {change['currentValue']} -> {change['requestedValue']}")
    code = _follow(clusters, given.name, "UPDATE_COMPLETE", began)
    if given.json:
        print_json(clusters.describe(given.name))
    return code


def _delete(clusters: Clusters, given: argparse.Namespace) -> int:
    began = _Begin(clusters, given.name)
    clusters.delete(given.name)
    code = _follow(clusters, given.name, None, began)
    if code == 0:
        say(f"Cluster {given.name} is deleted: its containers, its network and its files.")
    return code


def _start(clusters: Clusters, given: argparse.Namespace) -> int:
    return _move_fleet(clusters, given, "START_REQUESTED", "RUNNING")


def _stop(clusters: Clusters, given: argparse.Namespace) -> int:
    return _move_fleet(clusters, given, "STOP_REQUESTED", "STOPPED")


def _move_fleet(clusters: Clusters, given: argparse.Namespace, asked: str, wanted: str) -> int:
    began = _Begin(clusters, given.name)
    clusters.set_fleet(given.name, asked)
    status = "UNKNOWN"  # of a cluster that is deleted meanwhile
    for state in states(clusters, given.name, began.say_news):
        status = state.fleet_status
        if status in (wanted, "UNKNOWN"):
            break
    print_json(clusters.fleet(given.name)) if given.json else _print(f"Compute fleet: {status}")
    if status == wanted:
        return 0
    say(f"Its log: {began.log}")
    return EXIT_FAILED


def _describe(clusters: Clusters, given: argparse.Namespace) -> int:
    if given.json:
        print_json(clusters.describe(given.name))
        return 0
    cluster = clusters.find(given.name)
    state, configuration = cluster.state, cluster.configuration()
    _print(f"Cluster {state.name}: {state.status}, compute fleet {answers.fleet_status(state)}. Not on AWS.")
    if state.failure:
        _print(f"  {state.failure}")
    if state.head_node:
        _print(f"  head node  {configuration.head_instance_type}, {state.head_node.private_ip_address}")
    for queue in configuration.queues:
        for resource in queue.compute_resources:
            counts = f"{resource.min_count} to {resource.max_count} {resource.instance_type}"
            _print(f"  {queue.name}/{resource.name}  {counts}")
    for folder in configuration.shared_storage:
        _print(f"  {folder.mount_dir}  shared ({folder.name}, {folder.storage_type})")
    return 0


def _list(clusters: Clusters, given: argparse.Namespace) -> int:
    answer = clusters.list()
    if given.json:
        print_json(answer)
    for one in () if given.json else answer["clusters"]:
        _print(f"{one['clusterName']:<24} {one['clusterStatus']:<20} {one['region']}")
    return 0


def _ssh(clusters: Clusters, given: argparse.Namespace) -> int:
    return enter(clusters.find(given.name), given.node, given.words)


def _job(clusters: Clusters, given: argparse.Namespace) -> int:
    cluster = clusters.find(given.name)
    shown, now = shown_jobs(cluster), datetime.now(timezone.utc)
    print_json(job_document(cluster.folder, cluster.configuration(), given.job, shown, now))
    return 0


def _report(_clusters: Clusters, _given: argparse.Namespace) -> int:
    """Only for --help: the SDK handles ``cluster report`` before it comes here."""
    say("windtunnel: the report is the SDK's: windtunnel cluster report NAME JOBID")
    return EXIT_USAGE


def _follow(clusters: Clusters, name: str, wanted: str | None, began: _Begin) -> int:
    """Print the states until the last one; returns the exit code. ``wanted``: the state that is success; None: gone."""
    last: ClusterState | None = None
    for state in states(clusters, name, began.say_news):
        if last is None or last.status != state.status:
            began.say(state.status)
        if state.head_node and last is not None and last.head_node != state.head_node:
            began.say(f"head node {state.head_node.private_ip_address}")
        last = state
        if not state.status.endswith("IN_PROGRESS"):
            break
    else:
        return 0 if wanted is None else EXIT_FAILED
    if state.failure:
        say(f"{state.failure}\nIts log: {began.log}")
    return 0 if state.status == wanted else EXIT_FAILED


class _Begin:
    """When a command began, and the lines that the background process has logged since."""

    def __init__(self, clusters: Clusters, name: str) -> None:
        """The cluster of that name need not exist yet."""
        self.log = Layout(clusters.by_name(name).folder).log
        self._read = self.log.stat().st_size if self.log.exists() else 0
        self._since = time.monotonic()

    def say(self, text: str) -> None:
        """Print a line with the seconds since the beginning."""
        say(f"{time.monotonic() - self._since:6.1f} s  {text}")

    def say_news(self) -> None:
        """Print the lines logged since the last call, without tracebacks."""
        try:
            with self.log.open("rb") as log:
                log.seek(self._read)
                whole, _, _ = log.read().rpartition(b"\n")
        except FileNotFoundError:
            return
        self._read += len(whole) + bool(whole)
        for line in whole.decode(errors="replace").splitlines():
            if found := _LOGGED.match(line):
                self.say(found[1])


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201


def _parser() -> Parser:
    parser = Parser(
        prog="windtunnel cluster",
        description="Clusters of AWS ParallelCluster, simulated on this machine: a real Slurm in containers. "
        "Nothing is created on AWS. `pcluster` takes ParallelCluster's own arguments.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(
        word: str, command: Command, text: str, *, json: str = "ParallelCluster's JSON on stdout"
    ) -> Parser:
        made = commands.add_parser(word, help=text, description=text)
        made.set_defaults(command=command)
        if json:
            made.add_argument("--json", action="store_true", help=json)
        return made

    created = add("create", _create, "make a cluster, and wait for it")
    created.add_argument("-n", "--cluster-name", dest="name", required=True, metavar="NAME")
    created.add_argument("-r", "--region")
    add("list", _list, "list the clusters")
    updated = add("update", _update, "bring another configuration in force")
    for made in (created, updated):
        made.add_argument("-c", "--cluster-configuration", dest="file", required=True, metavar="FILE")
    entered = add("ssh", _ssh, "enter the head node or another; run a command there with -- COMMAND", json="")
    add("report", _report, "the bill of a Slurm job, and its time and cost on 1 to 64 real nodes", json="")
    text = "print all that is known of a Slurm job, as JSON; `report` makes its bill of it"
    asked = add("job", _job, text, json="it is JSON without it, too")
    others = (
        add("describe", _describe, "show a cluster"),
        add("delete", _delete, "remove a cluster with all that is in it", json=""),
        add("start", _start, "start the compute fleet"),
        add("stop", _stop, "stop the compute fleet: all its nodes go"),
    )
    for made in (updated, entered, asked, *others):
        made.add_argument("name", metavar="NAME")
    asked.add_argument("job", metavar="JOBID", help="as squeue prints it; of an array's task 2_0")
    entered.add_argument("node", nargs="?", metavar="NODE")
    entered.explain = lambda _given, _unknown: " A command to run stands behind --."
    return parser
