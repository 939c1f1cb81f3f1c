r"""Why a job failed, in a line: what its script raised, and where.

SageMaker's FailureReason wraps the script's own words in the toolkit's, and the log prints them between those of the
launcher, which fails because the script did. Pure; whatever a script printed, nothing here raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

_CODE = "/opt/ml/code/"
"""Where the user's files are in the container."""
OF_A_HOST = r"(?:\[algo-[0-9]{1,6}\] )?"
"""What the SDK puts before each line of a log of several hosts: ``[algo-1] ``. As a pattern."""
_COLOUR = r"(?:(?:\\x1b|\x1b)\[[0-9]{1,3}m)?"
"""Of a terminal, as it is or as it is written out."""
_OF_RAY = rf"{_COLOUR}\(\w{{1,60}} pid=[0-9]{{1,10}}(?:, ip=[^)]{{1,60}})?\){_COLOUR} "
_RANK = re.compile(OF_A_HOST + rf"(?:\[rank[0-9]{{1,6}}\]: |\[[^\]]{{1,60}}\]<\w{{1,10}}>:|{_OF_RAY})?")
"""What torch, MPI and Ray put before the lines of a process: ``[rank1]: ``, ``[1,mpirank:0,algo-1]<stderr>:``,
``(RayTrainWorker pid=363) ``.
"""
_REPEATED = re.compile(rf"{_COLOUR} \[repeated [0-9]{{1,6}}x across cluster\].*")
"""What Ray puts behind a line that several processes have printed."""
_RAISED = re.compile(
    r"(?P<name>[A-Za-z_][\w.]{0,200}(?:Error|Exception|Interrupt|Exit|Failure|Fault|Warning))(?:: .*|:?)"
)
_WRAPPERS = ("ExecuteUserScriptError", "ChildFailedError", "AlgorithmError")
"""What is raised because the script has failed."""
_MESSAGE = 'ErrorMessage "'
_COMMAND = '"\nCommand "'
"""Behind the message: how the toolkit started the script."""
_MEMORY = re.compile(r"(?:The memory limit of host [\w-]{1,20} is .*|To fit: .*?\.(?=\s|$))")
"""Of a host, and of a core."""
_BEGIN = "Traceback (most recent call last):"
_OF_A_LOADERS_WORKER = f"Original {_BEGIN}"
"""What torch puts behind the error of a DataLoader's worker process: what was raised there."""
_IN_A_THREAD = re.compile(r"Exception in thread (?!.*\(_loader_worker\))")
"""An error that ends a thread and not the script; but without MpDeviceLoader's own the loop ends early."""
# The toolkit strips each piece of output that it reads, so a frame may have lost its indentation.
_FRAME = re.compile(
    r' *File "(?P<file>[^"]{1,1000})", line (?P<line>[0-9]{1,7})(?:, in (?P<function>[^\s]{1,200}))?'
)
_MARKS = re.compile(r"[~^ ]+")
"""Below a frame's line of code: where in it."""
_ACCOUNT = "neuron_sim: ChildProcessError: "
"""Before what Windtunnel's launcher says of how the ranks have ended."""
_EXITED = re.compile(r"(ranks? [0-9, -]{1,200}?) exited")
_COMPARED = 60
"""Characters of what was raised: the launcher puts it on one line, and shortens it."""
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")


@dataclass(frozen=True)
class Raised:
    """What a script raised. ``place``: the last line of the user's own on the way there, as ``data.py:17``; in
    ``function``, empty where it is in none.
    """

    what: str
    place: str
    function: str = ""


def in_short(reason: str) -> str:
    """The line of a FailureReason that says most: what the script raised, or its first line."""
    head, found, message = reason.partition(_MESSAGE)
    if not found:
        return reason.partition("\n")[0]
    message = message.partition(_COMMAND)[0]
    lines = [_plain(line).strip().removesuffix('"').strip() for line in message.split("\n")]
    raised = next((line for line in lines if _is_raised(line)), None)
    return (raised or next((line for line in lines if line), " ".join(head.split()))).removeprefix(_ACCOUNT)


def memory_advice(reason: str) -> str:
    """What the local backend says of a host or core that ran out of memory, and what to do; else empty."""
    found = _MEMORY.search(reason)
    return found[0] if found else ""


def cause(lines: Sequence[str], reason: str) -> str:
    """``data.py:17 in __getitem__ (rank 1): KeyError: 'label'``, or how the ranks exited; empty: the log tells
    neither.
    """
    told = [_plain(line).removeprefix(_ACCOUNT) for line in lines if _plain(line).startswith(_ACCOUNT)]
    found = raised(lines, reason)
    if found is None:
        return told[-1] if told else ""
    function = f" in {found.function}" if found.function else ""
    return f"{found.place}{function}{_rank(told, found.what)}: {found.what}"


def _rank(told: Sequence[str], what: str) -> str:
    """`` (rank 0)``: who raised this, by the launcher's account; it names errors without their module."""
    name, colon, said = what.partition(": ")
    start = f"({name.rpartition('.')[2]}{colon}{said}"[:_COMPARED].partition("; ")[0]
    parts = (part for text in told for part in text.split("; ") if start in part)
    exited = next((match for part in parts if (match := _EXITED.match(part))), None)
    return f" ({exited[1]})" if exited else ""


def each_once(lines: Sequence[str]) -> list[str]:
    """Without the tracebacks that come again, as ranks print the same: the last stays, with what follows it."""
    last: dict[tuple[str, ...], int] = {}
    begins = [at for at, line in enumerate(lines) if _plain(line).rstrip() == _BEGIN or _is_unread(lines, at)]
    for at in begins:
        last[_block(lines, at)] = at
    again: set[int] = set()
    for at in begins:
        if (kept := last[_block(lines, at)]) != at:
            pairs = zip(lines[at:kept], lines[kept:], strict=False)
            same = takewhile(lambda pair: _plain(pair[0]) == _plain(pair[1]), pairs)
            again.update(range(at, at + sum(1 for _ in same)))
    return [line for at, line in enumerate(lines) if at not in again]


def _block(lines: Sequence[str], at: int) -> tuple[str, ...]:
    """The traceback that begins there, to the line that it ends in."""
    return tuple(map(_plain, lines[at : _traceback(lines, at + 1)[1]]))


def raised(lines: Iterable[str], reason: str) -> Raised | None:
    """What ended the script, by the tracebacks in its log; None: there is none that passes through the user's files.

    Of several it is the first that the FailureReason names, else the first: what others raise follows from it.
    """
    found = [one for one in _tracebacks(list(lines)) if one.place]
    return next((one for one in found if one.what and one.what in reason), found[0] if found else None)


def _tracebacks(lines: Sequence[str]) -> list[Raised]:
    """Each with what it ends in; of exceptions that were raised while others were handled, the last."""
    found: list[Raised] = []
    at, chained, in_a_thread = 0, False, False
    while at < len(lines):
        line = _plain(lines[at])
        at += 1
        if line.startswith(_CHAINED):
            chained = True
        elif _IN_A_THREAD.match(line):
            in_a_thread = True
        elif line.rstrip() in (_BEGIN, _OF_A_LOADERS_WORKER):
            one, at = _traceback(lines, at)
            if one is None:
                continue
            if (chained or line.startswith(_OF_A_LOADERS_WORKER)) and found:
                first = found.pop()
                one = one if one.place else replace(first, what=one.what)
            if not in_a_thread:
                found.append(one)
            chained = in_a_thread = False
        elif _is_unread(lines, at - 1):
            one, at = _traceback(lines, at - 1)
            found += [one] if one else []
        elif line.strip():
            chained = False
    return found


def _traceback(lines: Sequence[str], at: int) -> tuple[Raised | None, int]:
    """The traceback whose frames begin there, and where it is over; None: it breaks off."""
    place = function = ""
    code_is_next = False
    while at < len(lines):
        line = _plain(lines[at])
        at += 1
        frame = _FRAME.match(line)
        # As a frame, its code and the marks below may have lost their indentation; Python has no code of <frozen os>.
        beside = _MARKS.fullmatch(line) or (code_is_next and not _RAISED.fullmatch(line))
        code_is_next = frame is not None and not frame["file"].startswith("<")
        if frame and frame["file"].startswith(_CODE):
            place = f"{frame['file'].removeprefix(_CODE)}:{frame['line']}"
            function = "" if frame["function"] in (None, "<module>") else frame["function"]
        if line.strip() and not line.startswith(" ") and frame is None:
            if beside:
                continue
            if line.rstrip() == _BEGIN:  # another process' words between them
                return None, at - 1
            return Raised(line.strip(), place, function), at
    return None, at


def _is_unread(lines: Sequence[str], at: int) -> bool:
    """Whether Python begins there to say of the script itself that it is no Python: a frame without a traceback."""
    frame = _FRAME.match(_plain(lines[at]))
    within = at > 0 and _plain(lines[at - 1]).startswith(" ")
    return frame is not None and not frame["function"] and frame["file"].startswith(_CODE) and not within


def _plain(line: str) -> str:
    return _REPEATED.sub("", _RANK.sub("", line, count=1), count=1)


def _is_raised(line: str) -> bool:
    found = _RAISED.fullmatch(line)
    return found is not None and not found["name"].endswith(_WRAPPERS)
