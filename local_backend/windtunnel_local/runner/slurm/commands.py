"""Slurm through its own commands: sbatch, squeue, scancel."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, fields

from windtunnel_local.runner.without_container.interpreter import Interpreter
from windtunnel_local.service.ground.errors import RunnerError, RunnerUnavailable

_PATIENCE_S = 60
_OF_THE_USER = ("PATH", "HOME", "USER", "LOGNAME", "SLURM_CONF", "SLURM_JWT")
_AWAY = re.compile(
    r"contact slurm controller|timed out|[Zz]ero [Bb]ytes|standby mode|[Cc]onnection refused|[Mm]unge|"
    r"configuration source|[Cc]ommunication|[Tt]emporarily|address family"
)
"""Messages of the commands that do not mean that the request is wrong."""
_NOT_THERE = re.compile(r"Invalid job id|already completing or completed")
_ENDED = {
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "REVOKED",
    "TIMEOUT",
}
_ENDING = {"COMPLETING", "STAGE_OUT"}
_FORMAT = "%i|%T|%k|%N|%r"


@dataclass(frozen=True)
class SlurmJob:
    """One line of squeue."""

    number: int
    state: str
    """As squeue writes it: PENDING, RUNNING, NODE_FAIL, ..."""
    comment: str
    nodes: str
    reason: str
    """squeue's reason: why the job is pending, or how it ended."""

    @property
    def ended(self) -> bool:
        """Whether it has ended for good: nothing of it runs or will run."""
        return self.state in _ENDED

    @property
    def ending(self) -> bool:
        """Whether Slurm is ending its processes and does not say yet why."""
        return self.state in _ENDING


class Slurm:
    """The commands, as the user whom the server runs as. All calls block, a minute at most.

    All raise ``RunnerUnavailable`` when Slurm is not installed here or does not answer.
    """

    def __init__(self, interpreter: Interpreter) -> None:
        given = interpreter.environment
        own = {name: given[name] for name in _OF_THE_USER if name in given}
        defaults = {name: value for name, value in given.items() if name.startswith("SBATCH_")}
        # sbatch hands its environment on to the job: no credentials of the server are in it.
        self._environment = {"PATH": os.defpath, **interpreter.inherited(), **own, **defaults}

    def submit(self, arguments: Sequence[str], script: str) -> int:
        """The new job's number. Raises ``RunnerError`` if Slurm does not take it.

        Where it raises ``RunnerUnavailable``, the job may have been submitted.
        """
        done = self._call(["sbatch", "--parsable", *arguments], script)
        if done.returncode:
            said = done.stderr.strip()
            raise RunnerError(
                f"Slurm does not take the job: {said} It was submitted with `sbatch {' '.join(arguments)}`; look at"
                " the WINDTUNNEL_SLURM_ settings of the backend, and at what `sinfo` says."
            )
        return int(done.stdout.strip().splitlines()[-1].partition(";")[0])

    def jobs(self) -> list[SlurmJob]:
        """All jobs of the user that Slurm still knows. It forgets ended jobs after a while."""
        done = self._call(["squeue", "--me", "--noheader", "--states=all", f"--format={_FORMAT}"])
        if done.returncode:
            raise RunnerUnavailable(f"squeue does not answer: {done.stderr.strip()}")
        lines = (line.split("|", 4) for line in done.stdout.splitlines())
        # A job array has other numbers, a comment of several lines is cut off: neither is ours.
        ours = (line for line in lines if line[0].isdecimal() and len(line) == len(fields(SlurmJob)))
        return [SlurmJob(int(number), *rest) for number, *rest in ours]

    def cancel(self, number: int, *options: str) -> None:
        """Cancel a job; one that has ended is no error."""
        done = self._call(["scancel", *options, str(number)])
        if done.returncode and not _NOT_THERE.search(done.stderr):
            raise RunnerUnavailable(f"scancel does not answer: {done.stderr.strip()}")

    def _call(self, command: list[str], text: str | None = None) -> subprocess.CompletedProcess[str]:
        try:
            done = subprocess.run(
                command,
                input=text,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_PATIENCE_S,
                check=False,
                env=self._environment,
                cwd="/",
            )
        except FileNotFoundError as error:
            raise RunnerUnavailable(
                f"{command[0]} is not installed: WINDTUNNEL_RUNNER=slurm needs the commands of a Slurm cluster"
                " (Debian: apt-get install slurm-client) on the machine where the backend runs."
            ) from error
        except subprocess.TimeoutExpired as error:
            raise RunnerUnavailable(f"{command[0]} did not answer within {_PATIENCE_S} s.") from error
        if done.returncode and _AWAY.search(done.stderr):
            raise RunnerUnavailable(
                f"Slurm's controller does not answer: {done.stderr.strip()} Look whether slurmctld runs"
                " (`scontrol ping`), and at SLURM_CONF; WINDTUNNEL_RUNNER=docker needs no Slurm."
            )
        return done
