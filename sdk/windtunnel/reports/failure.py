"""Why a job failed, in a line: what its script raised, and where.

SageMaker's FailureReason wraps the script's error message in the toolkit's own, and in the log it stands between
messages of the launcher, which fails because the script did. Pure; nothing here raises, whatever a script printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

_CODE = "/opt/ml/code/"
"""Where the user's files are in the container."""
OF_A_HOST = r"(?:\[algo-[0-9]{1,6}\] )?"
"""Pattern of the prefix that the SDK puts before each line of a log of several hosts: ``[algo-1] ``."""
_COLOUR = r"(?:(?:\\x1b|\x1b)\[[0-9]{1,3}m)?"
"""Pattern of a terminal's colour code, as the escape character or written out as text."""
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
"""Errors of the toolkit and the launcher, raised only because the script has failed."""
_MESSAGE = 'ErrorMessage "'
_COMMAND = '"\nCommand "'
"""Ends the message in a FailureReason: the command with which the toolkit started the script."""
_EXIT = re.compile(r", exit code: [0-9]{1,3}$", re.MULTILINE)
"""Ends what the script wrote, where no command follows."""
_MEMORY = re.compile(r"(?:The memory limit of host [\w-]{1,20} is .*|To fit: .*?\.(?=\s|$))")
"""The local backend's advice on memory: that of a host, and that of a NeuronCore."""
_BEGIN = "Traceback (most recent call last):"
_OF_A_LOADERS_WORKER = f"Original {_BEGIN}"
"""torch's heading for the traceback of a DataLoader's worker process, below that of the main process."""
_IN_A_THREAD = re.compile(r"Exception in thread (?!.*\(_loader_worker\))")
"""An error that ends a thread, but not the script. Not MpDeviceLoader's own thread: with it the loop ends early."""
# The toolkit strips each piece of output that it reads, so a frame may have lost its indentation.
_FRAME = re.compile(
    r' *File "(?P<file>[^"]{1,1000})", line (?P<line>[0-9]{1,7})(?:, in (?P<function>[^\s]{1,200}))?'
)
_MARKS = re.compile(r"[~^ ]+")
"""The marks (``^^^^``, ``~~~~``) that Python prints below a frame's line of code."""
_ACCOUNT = "neuron_sim: ChildProcessError: "
"""Begins the log line in which Windtunnel's launcher says how the ranks ended."""
_EXITED = re.compile(r"(ranks? [0-9, -]{1,200}?) exited")
_COMPARED = 60
"""Characters of an error's message that are compared: the launcher writes it on one line, and shortens it."""
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")


@dataclass(frozen=True)
class Raised:
    """What a script raised.

    ``what``: the error's line. ``place``: the last frame in the user's own files, as ``data.py:17``. ``function``: the
    function of that frame; empty at a module's top level.
    """

    what: str
    place: str
    function: str = ""


def in_short(reason: str) -> str:
    """The line of a FailureReason that says most: what the script raised, or its first line."""
    head, found, message = reason.partition(_MESSAGE)
    if not found:
        return reason.partition("\n")[0]
    message = _EXIT.sub("", message.partition(_COMMAND)[0])
    lines = [_plain(line).strip().removesuffix('"').strip() for line in message.split("\n")]
    raised = next((line for line in lines if _is_raised(line)), None)
    return (raised or next((line for line in lines if line), " ".join(head.split()))).removeprefix(_ACCOUNT)


def memory_advice(reason: str) -> str:
    """The local backend's advice for a host or core that ran out of memory, as its FailureReason has it; else empty."""
    found = _MEMORY.search(reason)
    return found[0] if found else ""


def cause(lines: Sequence[str], reason: str) -> str:
    """Where and how the script failed, as ``data.py:17 in __getitem__ (rank 1): KeyError: 'label'``, or how the ranks
    exited; empty where the log tells neither.
    """
    told = [_plain(line).removeprefix(_ACCOUNT) for line in lines if _plain(line).startswith(_ACCOUNT)]
    found = raised(lines, reason)
    if found is None:
        return told[-1] if told else ""
    function = f" in {found.function}" if found.function else ""
    return f"{found.place}{function}{_rank(told, found.what)}: {found.what}"


def _rank(told: Sequence[str], what: str) -> str:
    """Which ranks raised this, as `` (rank 0)``, by the launcher's account, which names errors without their module."""
    name, colon, said = what.partition(": ")
    start = f"({name.rpartition('.')[2]}{colon}{said}"[:_COMPARED].partition("; ")[0]
    parts = (part for text in told for part in text.split("; ") if start in part)
    exited = next((match for part in parts if (match := _EXITED.match(part))), None)
    return f" ({exited[1]})" if exited else ""


def each_once(lines: Sequence[str]) -> list[str]:
    """The lines without repeated tracebacks, as all ranks print the same: the last stays, with what follows it."""
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
    """The lines of the traceback that begins there, up to its error."""
    return tuple(map(_plain, lines[at : _traceback(lines, at + 1)[1]]))


def raised(lines: Iterable[str], reason: str) -> Raised | None:
    """The error that ended the script, from the tracebacks in its log; None where no traceback passes through the
    user's files.

    Of several errors, the first that the FailureReason contains, else the first: later ones follow from it.
    """
    found = [one for one in _tracebacks(list(lines)) if one.place]
    return next((one for one in found if one.what and one.what in reason), found[0] if found else None)


def _tracebacks(lines: Sequence[str]) -> list[Raised]:
    """The error of each traceback in the log; of chained exceptions only the last, of threads none."""
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
    """The traceback whose frames begin at a line, and the index of the line behind it; None where it breaks off."""
    place = function = ""
    code_is_next = False
    while at < len(lines):
        line = _plain(lines[at])
        at += 1
        frame = _FRAME.match(line)
        # Like a frame, its code line and marks may have lost their indentation; frames in <frozen os> have no code.
        beside = _MARKS.fullmatch(line) or (code_is_next and not _RAISED.fullmatch(line))
        code_is_next = frame is not None and not frame["file"].startswith("<")
        if frame and frame["file"].startswith(_CODE):
            place = f"{frame['file'].removeprefix(_CODE)}:{frame['line']}"
            function = "" if frame["function"] in (None, "<module>") else frame["function"]
        if line.strip() and not line.startswith(" ") and frame is None:
            if beside:
                continue
            if line.rstrip() == _BEGIN:  # another process's traceback cuts in
                return None, at - 1
            return Raised(line.strip(), place, function), at
    return None, at


def _is_unread(lines: Sequence[str], at: int) -> bool:
    """Whether Python reports there that the script itself cannot be parsed: a frame without a traceback's heading."""
    frame = _FRAME.match(_plain(lines[at]))
    within = at > 0 and _plain(lines[at - 1]).startswith(" ")
    return frame is not None and not frame["function"] and frame["file"].startswith(_CODE) and not within


def _plain(line: str) -> str:
    return _REPEATED.sub("", _RANK.sub("", line, count=1), count=1)


def _is_raised(line: str) -> bool:
    found = _RAISED.fullmatch(line)
    return found is not None and not found["name"].endswith(_WRAPPERS)
