"""Arguments that only local jobs have: how many cores, and how much of the job a short rehearsal runs."""

from __future__ import annotations

from windtunnel import settings
from windtunnel.errors import UnsupportedArgument
from windtunnel.priceperf.instances import CATALOG
from windtunnel.request import checks
from windtunnel.request.arguments import ARGUMENT_NAMES, JobArguments
from windtunnel.session.session import Session

SHORT = 7
"""Batches of a short rehearsal: two steps compile, five are timed, and the least disturbed of the five counts."""
SHORT_CORES = 2
"""NeuronCores of a short rehearsal: enough to count what cores exchange."""


def for_place(given: JobArguments, session: Session, rehearse: int | bool | None) -> JobArguments:
    """The arguments as the request needs them, checked for AWS or completed for a local session.

    ``rehearse``: batches of each pass in a short rehearsal; True: `SHORT`.

    WINDTUNNEL_LOCAL_CORES is the default of ``local_cores``; in a short rehearsal it is `SHORT_CORES`.

    Raises:
        ConfigurationError: a number is out of range, or ``local_cores`` or ``rehearse`` was given on AWS.
    """
    values = {name: getattr(given, name) for name in ARGUMENT_NAMES}
    checks.check_rehearse(rehearse)
    if not session.local:
        if given.local_cores is not None:
            raise UnsupportedArgument("local_cores= is for rehearsals; on AWS all cores are there.")
        if rehearse:
            raise UnsupportedArgument("rehearse= is for local sessions; on AWS the whole job runs.")
        return JobArguments(**values)
    kinds = checks.instance_types(given)
    if given.local_cores is None:
        values["local_cores"] = settings.local_cores()
    if rehearse:
        steps = str(SHORT if rehearse is True else rehearse)
        values["environment"] = {**(given.environment or {}), settings.REHEARSE_VARIABLE: steps}
        if values["local_cores"] is None:
            values["local_cores"] = min(
                [SHORT_CORES, *(CATALOG[kind].core_count for kind in kinds if kind in CATALOG)]
            )
    for kind in kinds:
        checks.check_local_cores(values["local_cores"], kind)
    return JobArguments(**values)
