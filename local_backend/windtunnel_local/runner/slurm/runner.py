"""The `slurm` runner: all hosts of a job as one job of a Slurm cluster, each a process of its node."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Sequence

from windtunnel_local.runner.slurm.commands import Slurm, SlurmJob
from windtunnel_local.runner.slurm.ends import ended_early, leaves_open, taken_back, verdict_of
from windtunnel_local.runner.slurm.job_folder import JobFolder
from windtunnel_local.runner.slurm.queue_view import QueueView
from windtunnel_local.runner.slurm.settings import SlurmSettings
from windtunnel_local.runner.without_container.log_file import follow_file
from windtunnel_local.runner.without_container.orders import prepare
from windtunnel_local.runner.without_container.record import exited, jobs_with, moment, write
from windtunnel_local.service.ground.containers import ContainerPlan, ContainerState, JobPlan, LogBatch
from windtunnel_local.service.ground.errors import RunnerError, RunnerUnavailable
from windtunnel_local.service.ground.ports import Progress, Runner

FOLDER = "slurm"
"""Folder of the home that jobs share with their nodes."""

_RESERVE_S = 1.0
_START_PATIENCE_S = 120.0
_KILL_PATIENCE_S = 10.0
_SHARED_PATIENCE_S = 60.0
"""Seconds until a file that a task writes is seen here; over NFS that may take a while."""
_USUAL_AGE_S = 5.0
"""Most seconds of age of squeue's answer, while the job's files say that it runs."""
_DECIDING_AGE_S = 1.0
_LEAST_PAUSE_S, _MOST_PAUSE_S, _PAUSE_SHARE = 0.03, 0.5, 0.05
"""Time between two looks at a host's files, as a share of its run time: many long jobs then cost little."""


class SlurmRunner(Runner):
    """Runs a job's hosts on nodes of a Slurm cluster, without containers around them.

    The Slurm job is submitted by `reserve`; its tasks wait on their nodes until `start` gives each the orders of
    its host. What they write into ``<home>/slurm/<job>`` says how the hosts are; where it is silent, Slurm does.
    """

    name = "slurm"
    read_only_mounts = False
    """A mount is a link, through which a job can write."""

    def __init__(self, settings: SlurmSettings) -> None:
        self._home = settings.home
        self._interpreter = settings.interpreter
        self._arguments = settings.arguments
        self._slurm = Slurm(settings.interpreter)
        self._queue = QueueView(self._slurm)
        self._running_since: dict[int, float] = {}
        self._known_since: dict[int, float] = {}
        self._killed_since: dict[tuple[int, str], float] = {}
        self._submitted_here: set[int] = set()

    def ensure_image(self, image: str, progress: Progress) -> None:
        """See the port. There is no image; the interpreter must have what it would hold."""
        self._interpreter.require(self.name)
        python = self._interpreter.python
        progress(f"No image: {image} is not used by the slurm runner; jobs run in {python} of their nodes.")

    def reserve(self, job: str, hosts: Sequence[str]) -> str | None:
        """See the port. A controller that was there before is waited for."""
        try:
            return self._reserve(self._folder(job), job, hosts)
        except RunnerUnavailable as error:
            if not self._queue.known:
                raise
            return f"Training job waiting for Slurm: {error}"

    def start(self, plan: JobPlan) -> None:
        """See the port. Gives the hosts their orders, and returns once all run."""
        folder = self._folder(plan.job)
        if any(container.forward is not None for container in plan.containers):
            raise RunnerError(
                "ClientError: the slurm runner runs no job that calls the backend as its AWS: it listens on its own"
                " machine alone, which the nodes do not reach. Leave WINDTUNNEL_AWS_IN_JOBS at 0, or use"
                " WINDTUNNEL_RUNNER=docker."
            )
        here = {container.host: folder.here(container.host) for container in plan.containers}
        addresses = {host: place["address"] for host, place in here.items() if place is not None}
        if len(addresses) < len(here):
            raise RunnerError("InternalServerError: the job has no place in Slurm any more. Start it again.")
        for container in plan.containers:
            self._give_orders(folder, container, addresses)
        deadline = time.monotonic() + _START_PATIENCE_S
        for container in plan.containers:
            while folder.read(container.host, "run.json") == [None]:
                if time.monotonic() > deadline or self._settle(folder, container.host, None, _DECIDING_AGE_S):
                    raise RunnerError(
                        f"InternalServerError: host {container.host} did not start: Slurm job {folder.number}; see"
                        f" {folder.path}/slurm.out."
                    )
                time.sleep(_LEAST_PAUSE_S)

    def state(self, job: str, host: str) -> ContainerState:
        """See the port. Reads the files first, and asks Slurm if they do not say how the host ended."""
        folder = self._folder(job)
        run, ended = folder.read(host, "run.json", "exit.json")
        if run is None and not (folder.host(host) / "orders.json").exists():
            return ContainerState("absent")
        if leaves_open(ended):
            ended = self._settle(folder, host, ended, _USUAL_AGE_S if ended is None else _DECIDING_AGE_S)
        if ended is not None:
            return exited(run, ended)
        return ContainerState("running", started_at=moment(run["started"]) if run else None)

    def wait(self, job: str, host: str, timeout_s: float) -> ContainerState:
        deadline = time.monotonic() + timeout_s
        while True:
            state = self.state(job, host)
            left_s = deadline - time.monotonic()
            if state.status != "running" or left_s <= 0:
                return state
            time.sleep(min(_pause_s(state), left_s))

    def logs(self, job: str, host: str, cursor: str | None) -> Iterator[LogBatch]:
        """See the port. A line's time is when it was read: of a job that runs for long, half a second late."""
        state = self.state(job, host)

        def running() -> bool:
            nonlocal state
            state = self.state(job, host)
            return state.status == "running"

        output = self._folder(job).host(host) / "output.log"
        return follow_file(output, cursor, running, lambda: _pause_s(state))

    def terminate(self, job: str, host: str) -> None:
        """See the port. `train` gets the signal, as a container's first process would."""
        self._folder(job).ask(host, "terminate")

    def kill(self, job: str, host: str) -> None:
        """See the port. A supervisor that does not answer takes the whole Slurm job with it."""
        folder = self._folder(job)
        folder.ask(host, "kill")
        if self.wait(job, host, _KILL_PATIENCE_S).status == "running" and (number := folder.number):
            self._slurm.cancel(number, "--signal=KILL", "--full")

    def remove(self, job: str) -> None:
        folder = self._folder(job)
        if folder.made:
            self._cancel(folder)
        folder.remove()

    def close(self) -> None:
        """See the port. There is nothing to let go of."""

    def jobs(self) -> set[str]:
        """See the port. A reserved place without orders is not counted: it is no container yet."""
        return jobs_with("*/*/orders.json", self._home / FOLDER)

    def _folder(self, job: str) -> JobFolder:
        return JobFolder(self._home / FOLDER / job)

    # --- a place in Slurm -----------------------------------------------------

    def _reserve(self, folder: JobFolder, job: str, hosts: Sequence[str]) -> str | None:
        number = self._submitted(folder, job, hosts)
        deadline = time.monotonic() + _RESERVE_S
        while any(folder.here(host) is None for host in hosts):
            if time.monotonic() < deadline:
                time.sleep(_LEAST_PAUSE_S)
                continue
            found = self._find(folder, number, _DECIDING_AGE_S)
            if found is not None and not found.ended:
                self._check_shared(folder, found)
                return _waits_for(found)
            state = "unknown" if found is None else found.state
            # Nothing of the job is lost with it; and it may be of an earlier job of this name.
            if number not in self._submitted_here or (found is not None and taken_back(found)):
                self.remove(job)
                return f"Training job waiting for Slurm: job {number} ended as {state}; it is submitted again"
            raise RunnerError(
                ended_early(number, found)
                or f"InternalServerError: Slurm job {number} ended as {state} before the job ran."
                f" {_said(folder)}{self._not_shared()}"
            )
        return None

    def _submitted(self, folder: JobFolder, job: str, hosts: Sequence[str]) -> int:
        """The number of the job's Slurm job. Submits it, unless that was done before."""
        # A server that sweeps up what is left of jobs looks there: see `jobs`.
        (self._home / "jobs" / job).mkdir(parents=True, exist_ok=True)
        if folder.made and folder.hosts() != sorted(hosts):
            self.remove(job)  # of an earlier job of this name
        if not folder.made:
            folder.make(hosts)
        elif (number := folder.number) is not None:
            return number
        elif (unrecorded := self._of_mark(folder)) is not None:
            folder.write_number(unrecorded.number)
            return unrecorded.number
        count = str(len(hosts))
        arguments = [
            f"--job-name={job}",
            *self._arguments,
            f"--comment={_comment(folder)}",
            f"--nodes={count}-{count}",
            f"--ntasks={count}",
            "--ntasks-per-node=1",
            "--no-requeue",
            f"--output={folder.path}/slurm.out",
            "--chdir=/",
        ]
        number = self._slurm.submit(arguments, self._script(folder, hosts))
        self._submitted_here.add(number)
        folder.write_number(number)
        return number

    def _script(self, folder: JobFolder, hosts: Sequence[str]) -> str:
        """The batch script of the Slurm job. If a task is killed, the others end with it."""
        task = shlex.join([str(self._interpreter.python), "-I", f"{folder.path}/task.py", str(folder.path)])
        own = '"$SLURM_JOB_ID" "$SLURM_PROCID" "$SLURMD_NODENAME" "$SLURM_LAUNCH_NODE_IPADDR"'
        command = shlex.join(["sh", "-c", f'exec {task} {own} "$@"', "sh", *hosts])
        return (
            "#!/bin/sh\n"
            # srun does not take it from the job by itself, from Slurm 22.05 on.
            '[ -z "$SLURM_CPUS_PER_TASK" ] || export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"\n'
            f"exec srun --mpi=none --kill-on-bad-exit=1 --wait=0 {command}\n"
        )

    def _of_mark(self, folder: JobFolder) -> SlurmJob | None:
        """Find the folder's Slurm job by its mark, if its number was not written down."""
        comment = _comment(folder)
        return next((job for job in self._queue.look(0).values() if job.comment == comment), None)

    def _check_shared(self, folder: JobFolder, found: SlurmJob) -> None:
        """Raise if the tasks run, but their files do not appear here."""
        if found.state != "RUNNING":
            self._running_since.pop(found.number, None)
            return
        since = self._running_since.setdefault(found.number, time.monotonic())
        if time.monotonic() - since > _SHARED_PATIENCE_S:
            raise RunnerError(
                f"ClientError: Slurm job {found.number} runs on {found.nodes}, and after {_SHARED_PATIENCE_S:g} s"
                f" nothing that it writes is seen here. {_said(folder)}{self._not_shared()}"
            )

    def _not_shared(self) -> str:
        return (
            f"WINDTUNNEL_HOME ({self._home}) must be on a file system that all nodes mount at the same path, and"
            f" {self._interpreter.python} must run on them."
        )

    def _cancel(self, folder: JobFolder) -> None:
        """End the folder's Slurm job, unless all its tasks have ended by themselves."""
        hosts = folder.hosts()
        for host in hosts:
            folder.ask(host, "kill")
        deadline = time.monotonic() + _KILL_PATIENCE_S
        while begun := [h for h in hosts if _begun_and_not_ended(folder, h)]:
            if time.monotonic() > deadline or self._is_over(folder):
                break
            time.sleep(_LEAST_PAUSE_S)
        if begun or any(folder.read(host, "exit.json") == [None] for host in hosts):
            number = folder.number
            if number is None and (unrecorded := self._of_mark(folder)) is not None:
                number = unrecorded.number
            if number is not None:
                self._slurm.cancel(number)

    def _is_over(self, folder: JobFolder) -> bool:
        number = folder.number
        found = self._find(folder, number, _DECIDING_AGE_S) if number is not None else None
        return found is None or found.ended

    # --- a host ---------------------------------------------------------------

    def _give_orders(self, folder: JobFolder, plan: ContainerPlan, addresses: dict[str, str]) -> None:
        place = folder.host(plan.host)
        if (place / "orders.json").exists():
            return
        node = (folder.here(plan.host) or {}).get("node")
        banner = (
            f"the slurm runner gives no isolation: this job sees the whole node {node} as the user that submitted"
            f" it, with the limits that Slurm gives it, in {self._interpreter.python}."
        )
        orders = prepare(place, plan, self._interpreter, banner)
        several = len(addresses) > 1
        if several:
            lines = (f"{address} {host}\n" for host, address in addresses.items())
            (place / "names").write_text("".join(lines))
        write(place / "orders.json", {**orders, "shared": True, "names": several})

    def _settle(
        self, folder: JobFolder, host: str, ended: dict[str, object] | None, age_s: float
    ) -> dict[str, object] | None:
        """How a host ended, if exit.json leaves that open or is missing (``ended`` is None). None: it still runs.

        If the controller does not answer, nothing changes. The finding is written down, because Slurm forgets jobs.
        """
        (verdict,) = folder.read(host, "verdict.json")
        killed = ended is not None and not ended.get("told")
        number = folder.number
        if verdict is not None or number is None:
            return verdict or (ended if killed else None)
        try:
            if killed:  # an answer from before the kill may not know what brought it about
                now = time.monotonic()
                age_s = min(age_s, now - self._killed_since.setdefault((number, host), now))
            found = self._find(folder, number, age_s)
        except RunnerUnavailable:
            return ended if killed else None
        if found is None or found.ended:
            (ended,) = folder.read(host, "exit.json")  # again: it is written before Slurm learns of the end
            if not leaves_open(ended):
                return ended
            verdict = verdict_of(host, number, found, ended)
        elif ended is None or not killed or found.ending:
            return None
        else:
            verdict = ended  # the Slurm job goes on: the kill is the host's own
        write(folder.host(host) / "verdict.json", verdict)
        return verdict

    def _find(self, folder: JobFolder, number: int, age_s: float) -> SlurmJob | None:
        """squeue's line of the folder's job; None: Slurm does not know the job any more."""
        since, comment = self._known_since.setdefault(number, time.monotonic()), _comment(folder)
        for age in (age_s, min(age_s, _DECIDING_AGE_S)):
            found = self._queue.look(age).get(number)
            # A controller that has lost its record gives numbers away again.
            if found is not None and found.comment == comment:
                return found
        looked = self._queue.asked
        return SlurmJob(number, "SUBMITTED", comment, "", "") if looked is None or looked < since else None


def _begun_and_not_ended(folder: JobFolder, host: str) -> bool:
    run, ended = folder.read(host, "run.json", "exit.json")
    return run is not None and ended is None


def _comment(folder: JobFolder) -> str:
    return f"windtunnel:{folder.mark}"


def _waits_for(found: SlurmJob) -> str:
    state = f"{found.state}, {found.reason}" if found.reason not in ("None", "") else found.state
    return f"Training job waiting for capacity: Slurm job {found.number} is {state}"


def _said(folder: JobFolder) -> str:
    """The last lines that Slurm and the tasks printed."""
    try:
        lines = (folder.path / "slurm.out").read_text(errors="replace").split("\n")
    except OSError:
        return ""
    text = " ".join(line.strip() for line in lines[-5:] if line.strip())
    return f"It says: {text} " if text else ""


def _pause_s(state: ContainerState) -> float:
    began = state.started_at.timestamp() if state.started_at else time.time()
    return min(max(_PAUSE_SHARE * (time.time() - began), _LEAST_PAUSE_S), _MOST_PAUSE_S)
