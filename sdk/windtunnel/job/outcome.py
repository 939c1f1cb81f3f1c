"""What is said when a job has ended: its seconds, the script's last words, and what to do next."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

from windtunnel.errors import JobNotFinished
from windtunnel.request.instance_groups import host_count
from windtunnel.session.training_service import TERMINAL

_KILLED = re.compile(r"\b[Ee]xit ?[Cc]ode:? (137|-9)\b")
_NO_SUCH_NAME = re.compile(
    r"module 'torch_xla[\w.]*' has no attribute '|cannot import name '\w+' from 'torch_xla"
)
# torch's words for `.cuda()`, and for the process group "nccl", where there is no GPU.
_CUDA = re.compile(r"no NVIDIA driver|not compiled with CUDA|no GPUs found")
# What follows a script's own last words: torchrun's account of them, then the toolkit's.
_AFTERMATH = ("torch/distributed/elastic/", "sagemaker-training-toolkit ")
# What the toolkit logs while the script starts already (without torchrun, behind the command's line).
_BESIDE = "INFO     Exceptions not imported for "


def next_step(reason: str) -> str:
    """What to do about a FailureReason."""
    if "OutOfMemory" in reason or "SIGKILL" in reason or _KILLED.search(reason):
        needed = "needed" if "OutOfMemory" in reason else "was killed, in most cases because it needed"
        return (
            f"the job {needed} more memory than its container had: lower the batch size or local_cores=, "
            "or raise WINDTUNNEL_MEMORY_GIB (after `windtunnel down`: a running backend keeps its settings)."
        )
    if _NO_SUCH_NAME.search(reason):
        return (
            "torch_xla has no such name in this framework_version. docs/reference/names.md says which versions "
            "have it, and what came after it. torch_xla 2.7 removed what torch_xla.runtime has as world_size(), "
            "global_ordinal() and local_ordinal(): use these, or framework_version='2.6'."
        )
    if "InstallRequirementsError" in reason:
        return (
            "pip could not install requirements.txt: the log has its messages. Ask for versions that have wheels "
            "for the image's Python (`windtunnel image contents` lists what is there), or leave those lines out."
        )
    if _CUDA.search(reason):
        return (
            "trn1 has no GPU, and the script asks for CUDA: `windtunnel check SCRIPT` names the lines, and with "
            "--diff prints the edits (docs/how_to/port_a_script.md)."
        )
    if reason.startswith("AlgorithmError"):
        return "the script failed: correct what the log's last lines show, and fit() again."
    return "correct what the reason names, and fit() again; `windtunnel doctor` checks this machine."


def print_end(description: dict[str, Any], out: TextIO, *, local: bool) -> None:
    """SDK v2's last lines: seconds are those of one instance times the number of instances."""
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
        out.write(
            f"Job ended as Stopped ({description.get('SecondaryStatus', 'Stopped')}), not Completed: "
            "it was stopped or reached max_run. Check whether its output is complete.\n"
        )
    out.flush()


def script_tail(lines: Iterable[str], count: int) -> list[str]:
    """The script's last ``count`` lines, without what launcher and toolkit print after them; if the script printed
    nothing, the log's last lines.
    """
    tail: deque[str] = deque(maxlen=count)
    script: deque[str] = deque(maxlen=count)
    over = True  # what the toolkit prints before it starts the script
    for line in lines:
        tail.append(line)
        if _BESIDE in line:
            continue
        if "Invoking script with the following command" in line:
            script.clear()
            over = False
        elif any(mark in line for mark in _AFTERMATH):
            over = True
        elif not over:
            script.append(line)
    return list(script) if any(line.strip() for line in script) else list(tail)


def not_finished(name: str, what: str, description: Mapping[str, Any]) -> JobNotFinished:
    """Why a job does not have something (yet), and what to do."""
    status = description["TrainingJobStatus"]
    if status not in TERMINAL:
        advice = (
            f"not until it has ended. Follow it with `windtunnel logs -f {name}`, or job.wait() in Python"
        )
    elif what == "counters":
        advice = "only jobs that ran on the local backend and reached their script have them"
    else:
        advice = f"the job ended as {status} without one; its log says why: windtunnel logs {name}"
    return JobNotFinished(f"Training job {name} has no {what} ({status}): {advice}.")
