"""What a job's nodes would have cost on AWS, had they been real for as long as they were simulated.

EC2 bills every second of a node, idle or not. SageMaker has no nodes that wait: it would have billed the job's own
seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Any

from windtunnel.priceperf import Offering, Price, PriceBook, PriceUnknown, cost_usd
from windtunnel.priceperf.money.node_seconds import ClusterSeconds, JobSeconds, of_cluster, of_job
from windtunnel.priceperf.money.offerings import CAPACITY_BLOCK, EC2_ON_DEMAND, TRAINING_ON_DEMAND
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Row, Section
from windtunnel.reports.cluster.slurm_job import SlurmJob
from windtunnel.reports.modelled.data import maybe, rounded
from windtunnel.reports.prices import price_data

_SPOT = "SPOT"
_OFFERINGS: dict[str, Offering] = {"ONDEMAND": EC2_ON_DEMAND, "CAPACITY_BLOCK": CAPACITY_BLOCK}


@dataclass(frozen=True)
class Prices:
    """The prices of an hour of one instance type. None: not in the book. ``notes``: what is assumed of them."""

    instance_type: str
    ec2: Price | None
    sagemaker: Price | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Bill:
    """The bill of one instance type's nodes, in dollars, as if they had been real for these seconds."""

    prices: Prices
    nodes: int
    job: JobSeconds
    cluster: ClusterSeconds

    @property
    def ec2_job_usd(self) -> float | None:
        """The job's own seconds at EC2's price."""
        return _usd(self.prices.ec2, self.job.job)

    @property
    def ec2_idle_usd(self) -> float | None:
        """The idle seconds of the job's nodes at EC2's price."""
        return _usd(self.prices.ec2, self.job.idle)

    @property
    def sagemaker_usd(self) -> float | None:
        """The job's own seconds at SageMaker's price, as a training job of as many instances."""
        return _usd(self.prices.sagemaker, self.job.job)

    @property
    def ec2_cluster_usd(self) -> float | None:
        """The seconds of all nodes of this type until now, at EC2's price."""
        return _usd(self.prices.ec2, self.cluster.up)


def bills(job: SlurmJob, book: PriceBook, on: date | None) -> tuple[Bill, ...]:
    """One bill for each instance type of the job's nodes."""
    found = []
    for kind in job.instance_types:
        nodes = [node for node in job.nodes if node.instance_type == kind]
        own = [node for node in job.own_nodes if node.instance_type == kind]
        prices = prices_of(kind, own[0].capacity_type, job.region, book, on)
        found.append(Bill(prices, len(own), of_job(nodes, job.number), of_cluster(nodes)))
    return tuple(found)


def prices_of(kind: str, capacity_type: str, region: str, book: PriceBook, on: date | None) -> Prices:
    """The prices in the cluster's region, or in one that the book has, which is noted. ``kind``: EC2's name."""
    notes: list[str] = []
    if capacity_type == _SPOT:
        notes.append(
            "Spot capacity has no list price: EC2's on-demand price is taken, which is the most it costs."
        )
    ec2 = _price(book, kind, region, on, _OFFERINGS.get(capacity_type, EC2_ON_DEMAND), notes)
    if ec2 is None and capacity_type == "CAPACITY_BLOCK":
        ec2 = _price(book, kind, region, on, EC2_ON_DEMAND, notes)
        notes.append("No price of a Capacity Block is known: EC2's on-demand price is taken.")
    sagemaker = _price(book, f"ml.{kind}", region, on, TRAINING_ON_DEMAND, notes)
    missing = [name for name, price in (("EC2", ec2), ("SageMaker", sagemaker)) if price is None]
    if missing:
        notes.append(f"No price of {kind} on {' and '.join(missing)} is in the book (windtunnel prices).")
    return Prices(kind, ec2, sagemaker, tuple(dict.fromkeys(notes)))


def _price(
    book: PriceBook, name: str, region: str, on: date | None, offering: Offering, notes: list[str]
) -> Price | None:
    with suppress(PriceUnknown):
        return book.price(name, on, region, offering)
    with suppress(PriceUnknown):
        found = book.price(name, on, offering=offering)
        notes.append(f"The book has no price of {region}: {found.region}'s is taken.")
        return found
    return None


def _usd(price: Price | None, seconds: float) -> float | None:
    return None if price is None else cost_usd(price.usd_per_hour, seconds)


def headline(job: SlurmJob, found: Sequence[Bill]) -> str:
    """The bill in two lines."""
    if job.began is None:
        return f"The job has not begun ({job.state}): nothing is billed yet."
    seconds, idle = sum(bill.job.job for bill in found), sum(bill.job.idle for bill in found)
    nodes = fmt.many(len(job.own), "node")
    so_far = " so far" if job.runs else ""
    text = f"Here{so_far}: {nodes} x {job.began.seconds:,.0f} s = {seconds:,.0f} node-seconds, {idle:,.0f} more idle."
    ec2, waited = _sum(found, "ec2_job_usd"), _sum(found, "ec2_idle_usd")
    parts = []
    if ec2 is not None and waited is not None:
        parts.append(f"EC2 {_dollars(ec2)} + {_dollars(waited)} idle")
    sagemaker = _sum(found, "sagemaker_usd")
    if sagemaker is not None:
        parts.append(f"SageMaker {_dollars(sagemaker)}")
    if not parts:
        return text
    return f"{text} Real nodes for as long: {', '.join(parts)}. But a simulation's seconds say nothing of trn1's."


def _sum(found: Sequence[Bill], name: str) -> float | None:
    values = [getattr(bill, name) for bill in found]
    return None if not values or None in values else float(sum(values))


def section(job: SlurmJob, found: Sequence[Bill]) -> Section:
    """Node-seconds and dollars, the job's and the cluster's."""
    rows: list[Row] = []
    for bill in found:
        rows += _rows(bill, job, several=len(found) > 1)
    notes = [note for bill in found for note in bill.prices.notes]
    notes += [
        f"{price.instance_type}: {fmt.price(price.usd_per_hour)} an hour, {price.offering}, {price.region}, "
        f"{price.status}, since {price.days}; {price.source}."
        for bill in found
        for price in (bill.prices.ec2, bill.prices.sagemaker)
        if price is not None
    ]
    notes.append(
        "EC2 bills a node while it comes, works, waits and leaves; SageMaker a training job's own seconds. Not in it: "
        f"the head node ({job.head_instance_type}), file systems, traffic."
    )
    if any(not node.up for node in job.own_nodes):
        notes.append("When these nodes came and went was not noted: their idle time is not known.")
    return Section(
        "Bill, had these nodes been real for that time",
        "measured",
        "seconds of this simulation x list price; for real nodes' seconds see what is modelled",
        ("node-seconds", "EC2", "SageMaker"),
        tuple(rows),
        tuple(dict.fromkeys(notes)),
    )


def _rows(bill: Bill, job: SlurmJob, *, several: bool) -> list[Row]:
    price, kind = bill.prices.ec2, f", {bill.prices.instance_type}" if several else ""
    parts = [
        (f"The job's own{kind}", bill.job.job, bill.sagemaker_usd, "total"),
        ("nodes coming for it", bill.job.coming, 0.0, "detail"),
        ("idle after it, until they left" if not job.runs else "idle after it", bill.job.leaving, 0.0, "detail"),
        (f"Cluster until now{kind}", bill.cluster.up, None, "total"),
        ("with jobs", bill.cluster.busy, None, "detail"),
        ("static nodes, idle", bill.cluster.idle_static, None, "detail"),
        ("dynamic nodes, idle", bill.cluster.idle_dynamic, None, "detail"),
    ]  # fmt: skip
    return [
        Row(
            label,
            (
                f"{seconds:,.0f}",
                _money(_usd(price, seconds)),
                _money(other) if other is not None else "",
            ),
            style,  # type: ignore[arg-type]  # one of its literals
        )
        for label, seconds, other, style in parts
    ]


def data(bill: Bill) -> dict[str, Any]:
    """The bill as data for JSON."""
    prices = bill.prices
    return {
        "instance_type": prices.instance_type,
        "nodes": bill.nodes,
        "node_seconds": {
            "job": rounded(bill.job.job),
            "coming": rounded(bill.job.coming),
            "leaving": rounded(bill.job.leaving),
            "cluster_up": rounded(bill.cluster.up),
            "cluster_busy": rounded(bill.cluster.busy),
            "cluster_idle_static": rounded(bill.cluster.idle_static),
            "cluster_idle_dynamic": rounded(bill.cluster.idle_dynamic),
        },
        "ec2_usd": {
            "job": maybe(bill.ec2_job_usd),
            "idle": maybe(bill.ec2_idle_usd),
            "cluster": maybe(bill.ec2_cluster_usd),
        },
        "sagemaker_usd": {"job": maybe(bill.sagemaker_usd)},
        "prices": {
            "ec2": None if prices.ec2 is None else price_data(prices.ec2),
            "sagemaker": None if prices.sagemaker is None else price_data(prices.sagemaker),
        },
        "notes": list(prices.notes),
    }


def _money(value: float | None) -> str:
    return "no price" if value is None else _dollars(value)


def _dollars(value: float) -> str:
    """Dollars and cents: seconds are measured, and the price is a list price."""
    return f"${value:,.2f}"
