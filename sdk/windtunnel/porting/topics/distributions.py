"""torch.distributions, which look at the values that they are given."""

from __future__ import annotations

from collections.abc import Iterator

from windtunnel.porting.finding import Edit, Finding
from windtunnel.porting.script import keyword
from windtunnel.porting.subject import Subject

_OTHERS = ("torch.distributions.kl", "torch.distributions.constraints", "torch.distributions.transforms")
"""Modules beside those of distributions; what `torch.distributions` has of the last ends in Transform."""
_SETTING = "set_default_validate_args"


def checked(subject: Subject) -> Iterator[Finding]:
    """Each that a program which trains makes of the device's tensors, unless it asks for no checks."""
    script = subject.script
    if not subject.trains or not (subject.cuda or subject.xla):
        return
    if any(one.script.calls_any(_SETTING) for one in subject.program):
        return
    for call, name in script.calls:
        package, _, made = name.rpartition(".")
        known = (
            package.startswith("torch.distributions")
            and made[:1].isupper()
            and not made.endswith("Transform")
        )
        if (
            not known
            or package in _OTHERS
            or keyword(call, "validate_args")
            or not (call.args or call.keywords)
        ):
            continue
        place = script.end_of_arguments(call)
        yield Finding(
            call.lineno,
            "host_read",
            f"{made} looks at what it is given, and the host waits for the device, here and where a value's "
            "probability is asked for: validate_args=False, or once "
            f"torch.distributions.Distribution.{_SETTING}(False).",
            (Edit(place, place, ", validate_args=False"),) if all(one.arg for one in call.keywords) else (),
        )
