r"""Why a job failed, in a line: what its script raised, and where.

SageMaker's FailureReason wraps the script's own words in the toolkit's, and the log prints them between those of the
launcher, which fails because the script did. Pure; whatever a script printed, nothing here raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_CODE = "/opt/ml/code/"
"""Where the user's files are in the container."""
_RANK = re.compile(r"\[rank[0-9]{1,6}\]: |\[[^\]]{1,60}\]<\w{1,10}>:")
"""What torch and MPI put before the lines of a process: ``[rank1]: ``, ``[1,mpirank:0,algo-1]<stderr>:``."""
_RAISED = re.compile(
    r"(?P<name>[A-Za-z_][\w.]{0,200}(?:Error|Exception|Interrupt|Exit|Failure|Fault|Warning))(?:: .*|:?)"
)
_WRAPPERS = ("ExecuteUserScriptError", "ChildFailedError", "AlgorithmError")
"""What is raised because the script has failed."""
_MESSAGE = 'ErrorMessage "'
_BEGIN = "Traceback (most recent call last):"
_FRAME = re.compile(r'  File "(?P<file>[^"]{1,1000})", line (?P<line>[0-9]{1,7})')
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")


@dataclass(frozen=True)
class Raised:
    """What a script raised. ``place``: the last line of the user's own on the way there, as ``data.py:17``."""

    what: str
    place: str


def in_short(reason: str) -> str:
    """The line of a FailureReason that says most: what the script raised, or its first line."""
    first = reason.partition("\n")[0]
    _, found, message = reason.partition(_MESSAGE)
    if not found:
        return first
    lines = [_plain(line).strip().removesuffix('"').strip() for line in message.split("\n")]
    raised = next((line for line in lines if _is_raised(line)), None)
    return raised or next((line for line in lines if line), first)


def raised(lines: Iterable[str], reason: str) -> Raised | None:
    """What ended the script, by the tracebacks in its log; None: there is none that passes through the user's files.

    Of several it is the first that the FailureReason names, else the first: what others raise follows from it.
    """
    found = [one for one in _tracebacks(list(lines)) if one.place]
    return next((one for one in found if one.what and one.what in reason), found[0] if found else None)


def _tracebacks(lines: Sequence[str]) -> list[Raised]:
    """Each with what it ends in; of exceptions that were raised while others were handled, the last."""
    found: list[Raised] = []
    at, chained = 0, False
    while at < len(lines):
        line = _plain(lines[at])
        at += 1
        if line.startswith(_CHAINED):
            chained = True
        elif line.rstrip() == _BEGIN:
            one, at = _traceback(lines, at)
            if one is None:
                continue
            if chained and found:
                first = found.pop()
                one = Raised(one.what, one.place or first.place)
            found.append(one)
            chained = False
        elif line.strip():
            chained = False
    return found


def _traceback(lines: Sequence[str], at: int) -> tuple[Raised | None, int]:
    """The traceback whose frames begin there, and where it is over; None: it breaks off."""
    place = ""
    while at < len(lines):
        line = _plain(lines[at])
        at += 1
        frame = _FRAME.match(line)
        if frame and frame["file"].startswith(_CODE):
            place = f"{frame['file'].removeprefix(_CODE)}:{frame['line']}"
        if line.strip() and not line.startswith(" "):
            if line.rstrip() == _BEGIN:  # another process' words between them
                return None, at - 1
            return Raised(line.strip(), place), at
    return None, at


def _plain(line: str) -> str:
    mark = _RANK.match(line)
    return line[mark.end() :] if mark else line


def _is_raised(line: str) -> bool:
    found = _RAISED.fullmatch(line)
    return found is not None and not found["name"].endswith(_WRAPPERS)
