"""Interpret the end of a Slurm job. Pure, except that it reads the clock."""

from __future__ import annotations

import time
from collections.abc import Mapping

from windtunnel_local.runner.slurm.commands import SlurmJob

_KILLED = 137
_TAKEN_BACK = {
    "NODE_FAIL": "a node went down",
    "BOOT_FAIL": "a node did not boot",
    "PREEMPTED": "a job of higher priority took its nodes",
}
"""States that are the platform's fault."""
_LIMITS = {
    "TIMEOUT": "its time was over: raise WINDTUNNEL_SLURM_TIME, or the partition's limit",
    "DEADLINE": "its deadline had come: see WINDTUNNEL_SLURM_ARGUMENTS",
}
"""States of jobs that a rule of the cluster has ended."""


def taken_back(found: SlurmJob) -> bool:
    """Whether the cluster took the nodes away: the same job may run on others."""
    return found.state in _TAKEN_BACK


def ended_early(number: int, found: SlurmJob | None) -> str | None:
    """Why a Slurm job ended before our job ran, if a person or a rule ended it; None: something is wrong."""
    if found is not None and found.state == "CANCELLED":
        return f"ClientError: Slurm job {number} was cancelled in Slurm (scancel) before the job ran."
    if found is not None and found.state in _LIMITS:
        return f"ClientError: Slurm job {number} ended as {found.state} before the job ran: {_LIMITS[found.state]}."
    return None


def leaves_open(ended: Mapping[str, object] | None) -> bool:
    """Whether a host's exit.json (None: it wrote none) leaves open who ended the host.

    Slurm kills a step's processes one by one: the script may go before the supervisor, which writes that down.
    """
    return ended is None or bool(ended.get("told")) or ended["exit_code"] == _KILLED


def verdict_of(
    host: str, number: int, found: SlurmJob | None, ended: Mapping[str, object] | None
) -> dict[str, object]:
    """Make an exit.json for a host whose own leaves that open.

    Args:
        host: whose.
        number: of the Slurm job.
        found: squeue's line of the ended Slurm job; None: Slurm does not know the job any more.
        ended: the exit.json that the host wrote.
    """
    killed: dict[str, object] = {"exit_code": _KILLED, "finished": time.time()}
    whose = f"host {host}, Slurm job {number}"
    if found is None:
        why = f"{whose}, is gone: Slurm does not know how it ended. Start the job again."
        return dict(ended) if ended is not None else {**killed, "lost": True, "why": why}
    reasons = _TAKEN_BACK | _LIMITS
    if found.state in reasons:
        why = f"{whose}, ended as {found.state} ({reasons[found.state]})."
        return {**killed, "lost": True, "why": why}
    if found.state == "CANCELLED":
        return {**killed, "why": f"{whose}, was cancelled in Slurm (scancel)."}
    if found.state == "OUT_OF_MEMORY":
        return {**killed, "oom_killed": True}
    if ended is not None:  # Slurm had no part in it
        return dict(ended)
    return {**killed, "why": f"{whose}, ended as {found.state}: its processes on {found.nodes} were killed."}
