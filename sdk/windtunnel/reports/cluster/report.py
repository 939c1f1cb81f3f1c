"""The bill and the report of one Slurm job on a cluster of this machine.

The first screen has the bill in two lines and the job on 1 to 64 real nodes; the rest comes with ``--full``. Measured
figures are the simulation's; what real nodes would take is modelled, with its interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Any

from windtunnel.priceperf import (
    FixedCost,
    FullScale,
    PriceBook,
    PricePerfError,
    Scaling,
    Workload,
    instance_type,
)
from windtunnel.priceperf.model import fixed_costs
from windtunnel.priceperf.workload.counted_graphs import compiled_graphs
from windtunnel.priceperf.workload.counters import Counters
from windtunnel.prices.cache import book_and_notes
from windtunnel.rendering.document import Document, Section
from windtunnel.rendering.plots.chart import Chart
from windtunnel.rendering.report import Report
from windtunnel.reports.cluster import answer
from windtunnel.reports.cluster import bill as bill_part
from windtunnel.reports.cluster import published as published_part
from windtunnel.reports.cluster.bill import Bill
from windtunnel.reports.cluster.modelled import Modelled, modelled
from windtunnel.reports.cluster.slurm_job import SlurmJob
from windtunnel.reports.comparison.data import scaling_data
from windtunnel.reports.comparison.scaling import scaling_section
from windtunnel.reports.comparison.scaling_chart import PublishedPoint, scaling_charts
from windtunnel.reports.diagnostics import Diagnostics, for_report
from windtunnel.reports.job import measured as measured_part
from windtunnel.reports.modelled.answer import TITLE
from windtunnel.reports.modelled.data import cost_data, rounded
from windtunnel.user_calibration import STORED, CalibrationStore, loaded

SCHEMA = "windtunnel.cluster_report/1"


@dataclass(eq=False, repr=False)
class ClusterReport(Report):
    """The report of one Slurm job.

    Attributes:
        job: the job as the backend describes it.
        bills: the bills of its nodes, one for each instance type.
        measured: figures of the run, by name with units; nothing modelled.
        modelled: the job on 1 to 64 real nodes; None where there is nothing to model from.
        compilation: for a job that only compiled: what neuronx-cc is modelled to take on each node.
        unavailable: why nothing is modelled.
        diagnostics: what to change in the script; None without counters.
        notes: what is read first.
        price_notes: the day of the prices.
    """

    job: SlurmJob
    bills: tuple[Bill, ...]
    measured: Mapping[str, Any]
    modelled: Modelled | None
    compilation: FixedCost | None
    unavailable: str | None
    diagnostics: Diagnostics | None
    notes: tuple[str, ...]
    price_notes: tuple[str, ...]

    def __repr__(self) -> str:
        """Which job, and its state."""
        return f"<ClusterReport of job {self.job.number} on {self.job.cluster}: {self.job.state}; print it to read it>"

    def document(self) -> Document:
        job, found = self.job, self.modelled
        headline = (*self.notes, bill_part.headline(job, self.bills))
        sections = [self._answer((self._subtitle(), *headline))]
        if self.diagnostics is not None and (change := for_report(self.diagnostics)) is not None:
            sections.append(change)
        if self.measured:
            sections.append(measured_part.section(self.measured))
        if job.counted:
            sections.append(answer.nodes_section(job))
        if self.bills:
            sections.append(bill_part.section(job, self.bills))
        if found is not None:
            for table in (found.strong, found.weak):
                shown = scaling_section(table)
                sections.append(replace(shown, notes=(*published_part.beside(found, table), *shown.notes)))
            if (published := published_part.section(found)) is not None:
                sections.append(published)
        if self.price_notes:
            sections.append(Section("Prices", "text", notes=self.price_notes))
        state = f"{job.state}, so far" if job.runs else job.state
        return Document(
            f"Windtunnel cluster report: {job.cluster}, job {job.number} ({job.name}), {state}",
            self._subtitle(),
            headline,
            tuple(sections),
            f"The rest: windtunnel cluster report {job.cluster} {job.number} --full",
        )

    def _subtitle(self) -> str:
        job = self.job
        kinds = " + ".join(f"{bill.nodes:,} x {bill.prices.instance_type}" for bill in self.bills)
        bought = ", ".join(dict.fromkeys(node.capacity_type for node in job.own_nodes))
        place = (
            f"{kinds or 'no nodes yet'}, queue {job.queue}{f' ({bought})' if bought else ''}, {job.region}"
        )
        used, whole = self.measured.get("cores_used"), self.measured.get("instance_cores")
        if used and whole and used < whole:
            place += f"; {used} of {whole} cores a node rehearsed"
        return place

    def _answer(self, above: Sequence[str]) -> Section:
        if self.modelled is not None:
            change = str(self.diagnostics[0]) if self.diagnostics else ""
            return answer.answer_section(self.modelled, self.job, above, change)
        if self.compilation is not None:
            return answer.compiled_section(self.compilation, self.job, self.bills)
        begins = "No answer yet" if self.job.began is None else "The bill only"
        return Section(TITLE, "modelled", notes=(f"{begins}: {self.unavailable}",), first=True)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: ``bill``, ``measured``, ``nodes``, ``modelled`` (None with ``unavailable`` saying why)."""
        job, found = self.job, self.modelled
        return {
            "schema": SCHEMA,
            "cluster": job.cluster,
            "region": job.region,
            "job": {
                "id": job.number,
                "name": job.name,
                "state": job.state,
                "queue": job.queue,
                "nodes": list(job.own),
                "seconds": None if job.began is None else rounded(job.began.seconds),
                "so_far": job.runs,
                "compiled_only": job.compiled_only,
            },
            "bill": [bill_part.data(bill) for bill in self.bills],
            "measured": self.measured or None,
            "nodes": [asdict(node) for node in job.counted],
            "modelled": None if found is None else _modelled_data(found),
            "compilation": None if self.compilation is None else self.compilation._asdict(),
            "unavailable": self.unavailable,
            "notes": list(self.notes),
            "price_notes": list(self.price_notes),
            "diagnostics": None if self.diagnostics is None else [asdict(item) for item in self.diagnostics],
        }

    def charts(self) -> tuple[Chart, ...]:
        """``strong`` and ``weak``: throughput and cost, with AWS's published figures for the configuration."""
        if self.modelled is None:
            return ()
        points = tuple(
            PublishedPoint(
                item.published.scaling,
                item.published.row.nodes,
                item.published.published,
                f"{item.published.optimizer}, batch {item.published.row.training.global_batch:,.0f}",
            )
            for item in self.modelled.same
        )
        return scaling_charts([self.modelled.strong, self.modelled.weak], published=points)

    def _no_charts(self) -> str:
        return str(self.unavailable)


def cluster_report(
    document: Mapping[str, Any],
    full_scale: FullScale | None = None,
    *,
    prices: PriceBook | None = None,
    on: date | None = None,
    user_calibration: CalibrationStore | None = STORED,
) -> ClusterReport:
    """The report of a job, from the document in which the backend describes it.

    Args:
        document: what ``windtunnel cluster job NAME JOBID`` prints.
        full_scale: the real job behind the rehearsed sample; None: exactly what was rehearsed.
        prices: another price book than the built-in one with what was fetched.
        on: the day at whose prices everything is priced; None: the newest.
        user_calibration: the calibration whose corrections of step times are used, and named first; None: none.

    Raises:
        ConfigurationError: the document is of another version.
        InvalidCounters: the counters are damaged.
    """
    job = SlurmJob.read(document)
    book, price_notes = book_and_notes(prices, on)
    bills, own = bill_part.bills(job, book, on), loaded(user_calibration)
    found, compiling, reason = None, None, _why_nothing(job)
    counters = job.counters
    if reason is None and counters is not None and job.compiled_only:
        compiling = _compilation(counters)
        reason = "the job compiled its script's graphs, and trained nothing."
    elif reason is None and counters is not None:
        try:
            found = modelled(Workload.from_counters(counters), full_scale, bills[0].prices, own.corrections)
        except PricePerfError as error:
            reason = str(error)
    return ClusterReport(
        job=job,
        bills=bills,
        measured={} if counters is None else measured_part.collect({}, counters),
        modelled=found,
        compilation=compiling,
        unavailable=reason,
        diagnostics=None if counters is None else Diagnostics(counters),
        notes=() if found is None else own.notes(found.estimates),
        price_notes=price_notes,
    )


def _why_nothing(job: SlurmJob) -> str | None:
    """Why nothing can be modelled, judging by the job's own data; None: nothing there forbids it."""
    if job.began is None:
        return f"the job has not begun ({job.state})."
    if job.counters is None:
        return "nothing of the job ran on a simulated device, so there is nothing to model."
    if len(job.instance_types) != 1:
        kinds = ", ".join(job.instance_types) or "unknown nodes"
        return f"the job ran on {kinds}, and only one type is modelled."
    return None


def _compilation(counters: Counters) -> FixedCost:
    """What neuronx-cc is modelled to take on one node."""
    graphs = counters.graphs
    return fixed_costs.compilation(
        instance_type(counters.instance_type),
        graphs.count,
        evaluates=False,
        cached=False,
        ledger=compiled_graphs(graphs),
    )


def _modelled_data(found: Modelled) -> dict[str, Any]:
    return {
        "full_scale": asdict(found.full_scale),
        "passes": found.passes,
        "samples_per_pass": found.samples_of_pass,
        "strong": _table_data(found, found.strong),
        "weak": _table_data(found, found.weak),
        "published": [published_part.data(item) for item in found.published],
    }


def _table_data(found: Modelled, table: Scaling) -> dict[str, Any]:
    """A scaling table as data, with each row's cost on SageMaker and AWS's published figure."""
    given = scaling_data(table)
    for row, item in zip(table.rows, given["rows"], strict=True):
        if row.estimate is None:
            continue
        cost, printed = found.sagemaker(row.estimate), found.published_at(row.instances, row.global_batch)
        item["sagemaker_cost"] = None if cost is None else cost_data(cost)
        item["published"] = None if printed is None else published_part.data(printed)
    return given
