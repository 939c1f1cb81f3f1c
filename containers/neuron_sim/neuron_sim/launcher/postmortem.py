"""After a failed launch: which rank ended how, and where each of the others was.

torch's agent ends the survivors within a tenth of a second, mostly before they can print
anything. The shared memory, which this process holds too, tells what they were doing.
"""

from __future__ import annotations

import contextlib
import resource
import signal
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping

from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

from neuron_sim import cgroup
from neuron_sim.interconnect import across_hosts, notes, region
from neuron_sim.interconnect.peers import how_ended, place
from neuron_sim.interconnect.region import FAILED, LEFT, Region, Seat

_MOST_ATTEMPTS = 100
_WORDS = 400
"""Characters of a script's own exception. FailureReason has room for 1,024."""
_NEARLY = 0.9
"""If a container's limit is why a process was killed, its peak was at least this share of the limit."""


@contextlib.contextmanager
def watching(
    workers: int, restarts: int, shared_memory_bytes: int, meeting_point: tuple[str, int] | None = None
) -> Iterator[None]:
    """Prepare the workers' shared memory; when they fail, print to stderr what it shows and raise the error again.

    ``meeting_point``: address and port where ranks of other hosts learn which ranks of this host have ended.
    """
    attempts = min(restarts + 1, _MOST_ATTEMPTS)
    if workers > 1:
        region.prepare(workers, shared_memory_bytes, attempts)
    kills = cgroup.oom_kills()
    try:
        yield
    except ChildFailedError as error:
        last = _last_used(attempts, workers)
        memory = _memory(error.failures, kills, cgroup.oom_kills())
        if last is not None or memory:
            print("\n".join(lines(error.failures, last, memory)), file=sys.stderr, flush=True)
        if meeting_point is not None:
            across_hosts.tell_ended(*meeting_point, restarts, _endings(error.failures, workers))
        raise


def _endings(failures: Mapping[int, ProcessFailure], workers: int) -> dict[int, str]:
    """How each rank of this host has ended. Ranks without a failure were ended by torch's agent."""
    first = min(rank - failure.local_rank for rank, failure in failures.items())
    how = {rank: how_ended(failure.exitcode) for rank, failure in failures.items()}
    cause = f"was ended because rank {min(how)} {how[min(how)]}"
    return {rank: how.get(rank, cause) for rank in range(first, first + workers)}


def _last_used(attempts: int, workers: int) -> Region | None:
    for attempt in reversed(range(attempts)):
        found = region.prepared(attempt, 0, workers)
        if found is not None and found.pids.any():
            return found
    return None


def _memory(failures: Mapping[int, ProcessFailure], before: int | None, kills: int | None) -> str:
    """How full memory was, if the kernel killed a process for it; else, if one got SIGKILL, that this was not why."""
    if kills is None or before is None:
        return ""
    if kills == before:
        killed = any(failure.exitcode == -signal.SIGKILL for failure in failures.values())
        return "no process was ended for memory" if killed else ""
    limit, peak = cgroup.memory_limit(), cgroup.memory_peak()
    if peak is not None and peak < _NEARLY * limit:
        return (
            "a process was ended because this machine's memory was full: all of this host's had "
            f"{peak / 2**30:.3g} of the {limit / 2**30:.3g} GiB that they may have"
        )
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 2**10
    return (
        "a process was ended because memory was full: all of this host's may have "
        f"{limit / 2**30:.3g} GiB together, and the largest had {largest / 2**30:.3g} GiB"
    )


def lines(failures: Mapping[int, ProcessFailure], last: Region | None, memory: str = "") -> list[str]:
    """``rank 17 exited with signal SIGKILL (9); rank 3 waited in all_reduce at train.py:88``, one line per group.

    The first line names ChildProcessError: the toolkit's ErrorMessage, which FailureReason shows, begins at a line with
    the name of one of Python's errors. After a signal or `sys.exit`, which print none, it would be empty.

    ``failures``: what torch's agent knows of each failed global rank. ``last``: the shared memory; None for one worker,
    which has none. ``memory``: the sentence about memory, or empty.
    """
    first = min(rank - failure.local_rank for rank, failure in failures.items())
    seats = {first + index: last.seat(index) for index in range(last.workers)} if last is not None else {}
    ended: dict[str, list[int]] = defaultdict(list)
    for rank, failure in failures.items():
        where = (_where(seats[rank]) if rank in seats else "") or _place(failure)
        ended[how_ended(failure.exitcode) + where + _words(failure)].append(rank)
    doing: dict[str, list[int]] = defaultdict(list)
    for rank, seat in seats.items():
        if rank not in failures:
            doing[_survivor(seat)].append(rank)
    # Most interesting first: who waited, and in the largest number.
    order = sorted(doing, key=lambda text: (not text.startswith("waited"), -len(doing[text])))
    parts = [f"{notes.ranks(ranks)} {text}" for text, ranks in ended.items()]
    parts += [memory] if memory else []
    of_first_line = len(parts) + 1
    parts += [f"{notes.ranks(doing[text])} {text}" for text in order]
    first_line = f"ChildProcessError: {'; '.join(parts[:of_first_line])}"
    return [f"neuron_sim: {part}" for part in (first_line, *parts[of_first_line:])]


def _where(seat: Seat) -> str:
    return f" in {place(seat.text)}" if seat.busy and seat.text else ""


def _place(failure: ProcessFailure) -> str:
    """Where in the script the worker failed, if it has written that (`failure.tell_launcher`)."""
    told = failure.message["extraInfo"] if isinstance(failure.message, dict) else {}
    return f" at {told['place']}" if told.get("place") else ""


def _words(failure: ProcessFailure) -> str:
    """The script's own exception, on one line: the first thing that a job's FailureReason shows."""
    if failure.error_file in ("", "<N/A>"):
        return ""
    said = failure.message["message"] if isinstance(failure.message, dict) else failure.message
    return f" ({textwrap.shorten(str(said), _WORDS, placeholder=' ...')})"


def _survivor(seat: Seat) -> str:
    if not seat.pid:
        return "had not yet become a core"
    if seat.busy and seat.text:
        return f"waited in {place(seat.text)}"
    if seat.pid in (LEFT, FAILED):
        return "had ended"
    return "took part in no collective" + (f" (the last: {place(seat.text)})" if seat.text else "")
