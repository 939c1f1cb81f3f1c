"""The cost that each job would have had on AWS, as its report has it. It is computed once for each ended job, and
again when the user has fetched prices or calibrated.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeAlias

from windtunnel_local.service.ground.job import TERMINAL
from windtunnel_local.service.ground.ports import ObjectStore
from windtunnel_local.ui.job_outputs import Ended, output_document

_MOST_KEPT = 100_000


@dataclass(frozen=True)
class Cost:
    """A modelled cost in US dollars, with its interval; ``on``: the date of the price."""

    usd: float
    low_usd: float
    high_usd: float
    on: date


Described: TypeAlias = Mapping[str, Any]
Costs: TypeAlias = dict[str, Cost | None]
"""The costs by job name. None: the job has ended, but its cost cannot be modelled. Missing: not computed yet."""


class CostBook:
    """Computes the costs of jobs, and remembers them. Thread-safe."""

    def __init__(self, objects: ObjectStore) -> None:
        """Compute and import nothing yet. ``objects``: where the jobs' counters are."""
        self._objects = objects
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[object, ...], Cost | None] = OrderedDict()
        self._imported = False

    def of(self, jobs: Iterable[Described], within_s: float) -> Costs:
        """The costs of the ended jobs among these, as far as they are known or can be computed within that time.

        The first call imports the reports (a third of a second); if there is less time, the import goes on in a thread.
        """
        until = time.monotonic() + within_s
        found: Costs = {}
        ended = [job for job in jobs if job["TrainingJobStatus"] in TERMINAL]
        if not ended or not self._ready(until):
            return found
        from windtunnel.reports.for_job import inputs_written

        given = inputs_written()
        for job in ended:
            key = (job["TrainingJobName"], job["CreationTime"], *given)
            with self._lock:
                known = key in self._known
                cost = self._known.get(key)
            if not known:
                if time.monotonic() > until:
                    continue
                cost = self._modelled(job)
                with self._lock:
                    self._known[key] = cost
                    if len(self._known) > _MOST_KEPT:
                        self._known.popitem(last=False)
            found[job["TrainingJobName"]] = cost
        return found

    def _ready(self, until: float) -> bool:
        if not self._imported:
            thread = threading.Thread(target=self._import, name="page-costs", daemon=True)
            thread.start()
            thread.join(max(0.0, until - time.monotonic()))
        return self._imported

    def _import(self) -> None:
        from windtunnel.reports import for_job  # noqa: F401  a third of a second

        self._imported = True

    def _modelled(self, job: Described) -> Cost | None:
        from windtunnel.priceperf import PricePerfError
        from windtunnel.reports.for_job import report_for_job

        counters = output_document(self._objects, job, "counters.json")
        if counters is None:
            return None
        try:
            report = report_for_job(Ended(job, counters), instances=(str(counters.get("instance_type")),))
        except (PricePerfError, ValueError, KeyError):
            # The instance type has no figures, or the job has instance groups; or the file was overwritten.
            return None
        if (
            report.comparison is None
            or not report.comparison.costs
            or not report.comparison.is_known
            or not report.comparison.estimates[0].fits
        ):
            return None
        on, (cost, *_) = report.comparison.costs[-1]
        return None if cost is None else Cost(cost.usd, cost.low_usd, cost.high_usd, on)
