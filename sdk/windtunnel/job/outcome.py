"""Messages about a job that has ended: its seconds, the script's last lines, and what to do next."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TextIO

from windtunnel.errors import JobNotFinished, TrainingJobFailed
from windtunnel.job.next_step import next_step
from windtunnel.reports.failure import OF_A_HOST, cause, each_once
from windtunnel.request.instance_groups import host_count
from windtunnel.session.training_service import TERMINAL

# Lines after a script's own last ones: torchrun's report of the failure, then the toolkit's.
_AFTERMATH = re.compile(
    r"[EWI][0-9]{4} .*torch/(?:distributed/elastic|multiprocessing)/|"
    rf"^{OF_A_HOST}neuron_sim: ChildProcessError: |sagemaker-training-toolkit "
)
# Lines among a script's own: the toolkit's log at the start (without torchrun it comes after the command's line),
# torchrun's note on threads, the simulator's on itself, and the compile cache's.
_BESIDE = re.compile(
    r"INFO     Exceptions not imported for |torch/distributed/run\.py:|\|\|NEURON_CACHE\|\||"
    rf"^{OF_A_HOST}(?:Windtunnel: (?!warning)|Compiler status PASS$)"
)
_ARGPARSE = re.compile(r"\S+\.py: error: ")
_OUT_OF_MEMORY = "a process was ended because memory was full"
_READ_LINES = 2000
"""Last lines of a log that are searched: enough for a traceback of each of 32 ranks."""


def print_end(description: dict[str, Any], out: TextIO, *, local: bool) -> None:
    """Print SDK v2's last lines. As there, seconds are those of one instance times the number of instances."""
    count = host_count(description["ResourceConfig"])
    training = description.get("TrainingTimeInSeconds")
    billable = description.get("BillableTimeInSeconds")
    if training is not None:
        out.write(f"Training seconds: {training * count}\n")
    if billable is not None:
        out.write(f"Billable seconds: {billable * count}\n")
        if description.get("EnableManagedSpotTraining") and training:
            out.write(f"Managed Spot Training savings: {(1 - billable / training) * 100:.1f}%\n")
    if local and (training is not None or billable is not None):
        out.write("(Seconds measured here, not on Trainium; job.report() models that.)\n")
    if description["TrainingJobStatus"] == "Stopped":
        why = why_stopped(description)
        out.write(f"Job ended as Stopped, not Completed: {why}. Check whether its output is complete.\n")
    out.flush()


def why_stopped(description: Mapping[str, Any]) -> str:
    """Why a job has the status Stopped, e.g. ``it reached max_run (30 s)``."""
    limits = description.get("StoppingCondition", {})
    argument, member = {
        "MaxRuntimeExceeded": ("max_run", "MaxRuntimeInSeconds"),
        "MaxWaitTimeExceeded": ("max_wait", "MaxWaitTimeInSeconds"),
    }.get(description.get("SecondaryStatus", ""), ("", ""))
    if not argument:
        return "it was stopped"
    return f"it reached {argument}" + (f" ({limits[member]:,} s)" if member in limits else "")


def script_tail(lines: Iterable[str], count: int) -> list[str]:
    """The script's last ``count`` lines, without those of launcher and toolkit; a line that several ranks print is
    shown once. If the script printed nothing: the log's last lines.
    """
    tail: deque[str] = deque(maxlen=count)
    script: deque[str] = deque(maxlen=_READ_LINES)
    over = True  # at first come the toolkit's lines, before it starts the script
    command_is_next = False
    for line in lines:
        tail.append(line)
        if "Invoking script with the following command" in line:
            script.clear()
            over, command_is_next = False, True
        elif not line.strip() or _BESIDE.search(line):
            continue
        elif command_is_next:
            command_is_next = False
        elif _AFTERMATH.search(line):
            over = True
        elif not over:
            script.append(line)
    return each_once(list(script))[-count:] or list(tail)


def failed(
    name: str,
    description: Mapping[str, Any],
    lines: Iterable[str],
    where: str,
    count: int,
    *,
    rehearsed: bool = False,
) -> TrainingJobFailed:
    """The error for a failed job. ``lines``: its whole log, of which the script's last ``count`` lines are shown;
    ``where``: where the log is; ``rehearsed``: it was a short rehearsal that trained before it failed.
    """
    reason = description.get("FailureReason") or ""
    recent: deque[str] = deque(maxlen=_READ_LINES)

    def seen() -> Iterator[str]:
        for line in lines:
            recent.append(line)
            yield line

    tail = script_tail(seen(), count)
    why = cause(list(recent), reason) or (_OUT_OF_MEMORY if "\nOutOfMemory: " in reason else "")
    # argparse exits without a traceback: without torchrun its message is the last line.
    if not why and tail and _ARGPARSE.match(tail[-1]):
        why = tail[-1]
    step = next_step(reason, description, why)
    if rehearsed:
        # A rehearsal that fails when it saves has already counted all that its report needs.
        step += f" What it rehearsed before it failed: `windtunnel report {name}`, job.report()."
    return TrainingJobFailed(
        name, reason or "(none given)", cause=why, log_tail=tail, logs_location=where, next_step=step
    )


def not_finished(name: str, what: str, description: Mapping[str, Any], place: str) -> JobNotFinished:
    """Why a job does not have ``what`` (yet), and what to do. ``place``: `Session.place`."""
    status = description["TrainingJobStatus"]
    if status not in TERMINAL:
        advice = f"not until it has ended. Follow it with `windtunnel logs -f {name}{place}`, or job.wait() in Python"
    elif what == "counters":
        advice = "only jobs that ran on the local backend and reached their script have them"
    else:
        advice = f"the job ended as {status} without one; its log says why: windtunnel logs {name}{place}"
    return JobNotFinished(f"Training job {name} has no {what} ({status}): {advice}.")
