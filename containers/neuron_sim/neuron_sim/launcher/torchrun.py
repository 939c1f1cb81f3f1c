"""`torchrun` with torch's own arguments, rendezvous, agent and exit codes.

The difference: a Python script's workers are forked from this process after it has
imported torch, torch_xla and the script's own installed modules. `--no-python`,
`--module` and `--start-method` go to torch's launcher unchanged.
"""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
import uuid
from pathlib import Path

from torch.distributed import run as torch_run
from torch.distributed.elastic.multiprocessing import api as multiprocessing_api
from torch.distributed.elastic.multiprocessing.errors import record
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from neuron_sim import settings
from neuron_sim.errors import NeuronSimError
from neuron_sim.interconnect import region
from neuron_sim.interconnect.communicator import LAUNCH_VARIABLE
from neuron_sim.launcher import interpreter, postmortem, preload, worker, xla_flags

_PLAIN_VARIABLE = "NEURON_SIM_PLAIN_TORCHRUN"
"""Set to 1 to use torch's launcher unchanged: for comparison, or to rule out the fork as a cause."""


@record  # type: ignore[untyped-decorator]
def main(argv: list[str] | None = None) -> None:
    """Launch the workers; raises ChildFailedError or SystemExit like torch's torchrun."""
    arguments = torch_run.parse_args(argv)
    try:
        current = settings.read()
        arguments.nproc_per_node = current.workers(arguments.nproc_per_node)
    except NeuronSimError as error:
        # Names one of Python's own errors: `postmortem.lines` says why.
        sys.exit(f"neuron_sim: RuntimeError: {error}")
    forkable = not (
        arguments.no_python
        or arguments.module
        or arguments.run_path
        or os.environ.get(_PLAIN_VARIABLE) == "1"
    )
    script = Path(arguments.training_script)
    if not forkable or not script.is_file():
        torch_run.run(arguments)
        return
    _announce(current, arguments)
    _choose_flags(arguments.nproc_per_node)
    _avoid_taken_port(arguments)
    preload.warm_up(script)
    if not preload.safe_to_fork():
        print(
            "neuron_sim: a module that the script imports uses the XLA device or starts a thread when "
            "imported, so the workers are started one by one instead of forked.",
            file=sys.stderr,
        )
        torch_run.run(arguments)
        return
    _launch(arguments)


def _log_as_for_programs() -> None:
    """Have torch log one line about a failed worker, as on AWS, where workers are programs that it starts.

    About a forked worker it would log its own traceback, and how it ends the others. FailureReason's limited room is
    for the script's traceback.
    """
    launcher = os.getpid()

    def is_logged(record: logging.LogRecord) -> bool:
        if os.getpid() != launcher:
            return True  # workers inherit this filter, and a script may use these loggers itself
        record.exc_info = None
        return record.name == agent

    agent = "torch.distributed.elastic.multiprocessing.api"
    error_handler = "torch.distributed.elastic.multiprocessing.errors.error_handler"
    for name in (agent, error_handler, "torch.multiprocessing.spawn"):
        logging.getLogger(name).addFilter(is_logged)


class _EndOfProcess:
    """Replaces the event at which torch has finished workers wait, connections open, until all can end together."""

    def wait(self) -> None:
        os._exit(0)  # after `interpreter.last_words`, which `worker.run` has called


def _end_as_programs_do() -> None:
    """Have each worker end with its script: its closed connections tell peers that wait over gloo, as on AWS."""
    wrap = multiprocessing_api._wrap
    multiprocessing_api._wrap = lambda *given: wrap(*given[:-1], _EndOfProcess())


def _launch(arguments: argparse.Namespace) -> None:
    _log_as_for_programs()
    _end_as_programs_do()
    with preload.no_gpu_counted():
        config, _, _ = torch_run.config_from_args(arguments)
    config.start_method = "fork"
    sys.stdin = None  # multiprocessing closes it in each process that it forks
    os.environ[LAUNCH_VARIABLE] = uuid.uuid4().hex
    shared_memory_bytes = settings.read().shared_memory_mib * 2**20
    try:
        with postmortem.watching(
            config.nproc_per_node, config.max_restarts, shared_memory_bytes, _meeting_point(config)
        ):
            elastic_launch(config, worker.run)(arguments.training_script, *arguments.training_script_args)
    finally:
        region.forget(os.environ[LAUNCH_VARIABLE])


def _meeting_point(config: LaunchConfig) -> tuple[str, int] | None:
    """Address and port at which the workers of several hosts meet; None for one host, or if not known beforehand."""
    if config.max_nodes == 1 or config.rdzv_backend != "static":
        return None
    address, _, port = config.rdzv_endpoint.rpartition(":")
    return address, int(port)


def _announce(current: settings.Settings, arguments: argparse.Namespace) -> None:
    """Say in the job's log that the cores are simulated and how many there are; warn of what AWS does not have."""
    workers, instance = arguments.nproc_per_node, current.instance
    cores = f"{workers} of the {instance.cores} NeuronCores of {current.instance_type}, simulated"
    if current.local_cores is not None and current.local_cores < instance.cores:
        cores += f"; local_cores={current.local_cores}: a rehearsal with fewer cores than the instance has"
    print(f"Windtunnel: {cores}.", flush=True)
    if arguments.nnodes not in ("1", "1:1") and not instance.has_efa:
        print(
            f"Windtunnel: warning: {current.instance_type} has no EFA, over which NeuronCores of several instances "
            "meet: on AWS this job does not run on more than one. Take ml.trn1.32xlarge.",
            flush=True,
        )


def _avoid_taken_port(arguments: argparse.Namespace) -> None:
    """Choose another port if the default one is taken: single-host jobs of the `process` runner share a network."""
    if arguments.nnodes not in ("1", "1:1") or arguments.rdzv_backend != "static" or arguments.rdzv_endpoint:
        return
    with socket.socket() as probe:
        # As torch's store binds it: a port in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", arguments.master_port))
        except OSError:
            with socket.socket() as other:
                other.bind(("", 0))
                arguments.master_port = other.getsockname()[1]


def _choose_flags(workers: str) -> None:
    """Set XLA's flags for this many workers on the processors there are."""
    processors = len(os.sched_getaffinity(0))
    if workers.isdigit():
        chosen = xla_flags.choose(int(workers), processors)
        os.environ["XLA_FLAGS"] = xla_flags.added_to(os.environ.get("XLA_FLAGS", ""), chosen)


if __name__ == "__main__":
    interpreter.run(main)
