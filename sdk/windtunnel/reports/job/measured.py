"""The measured part of a report: what DescribeTrainingJob and the counters say. Nothing here is modelled."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import date, datetime, timezone
from typing import Any

from windtunnel.priceperf import (
    CATALOG,
    Price,
    PriceBook,
    PricePerfError,
    PriceUnknown,
    cost_usd,
    spot_savings_percent,
)
from windtunnel.priceperf.money.prices import HOME_REGION
from windtunnel.priceperf.workload.counters import Counters, Steps
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Row, Section
from windtunnel.reports.failure import in_short
from windtunnel.session.training_service import LOCAL_ACCOUNT


def ran_here(describe: Mapping[str, Any]) -> bool:
    """Whether the job ran on a local server: its ARN has the account number that the local server uses."""
    return f":{LOCAL_ACCOUNT}:" in str(describe.get("TrainingJobArn"))


def collect(describe: Mapping[str, Any], counters: Counters | None) -> dict[str, Any]:
    """The measured figures by name, with units in the names; a figure that was not measured is absent."""
    facts = {**({} if counters is None else _counted(counters)), **_described(describe)}
    facts["where"] = "local" if counters is not None or ran_here(describe) else "aws"
    return facts


def _described(describe: Mapping[str, Any]) -> dict[str, Any]:
    """The figures from DescribeTrainingJob."""
    resources = describe.get("ResourceConfig") or {}
    reason = describe.get("FailureReason") or ""
    job, started = describe.get("TrainingJobName"), describe.get("TrainingStartTime")
    facts = {
        "job": job and fmt.name(job),
        "status": describe.get("TrainingJobStatus"),
        "failure_reason": fmt.one_line(reason) or None,
        "failure": fmt.one_line(in_short(reason)) or None,
        "region": _region(str(describe.get("TrainingJobArn", ""))),
        "instance_type": resources.get("InstanceType"),
        "instance_count": resources.get("InstanceCount"),
        "instance_groups": [
            {"instance_type": group["InstanceType"], "instance_count": group["InstanceCount"]}
            for group in resources.get("InstanceGroups") or []
        ]
        or None,
        "training_plan": resources.get("TrainingPlanArn"),
        "training_seconds": describe.get("TrainingTimeInSeconds") or None,
        "billable_seconds": describe.get("BillableTimeInSeconds"),
        "retained_billable_seconds": (describe.get("WarmPoolStatus") or {}).get(
            "ResourceRetainedBillableTimeInSeconds"
        ),
        "training_start": _day(started) if isinstance(started, datetime) else None,
        "spot": bool(describe.get("EnableManagedSpotTraining", False)),
    }
    return {key: value for key, value in facts.items() if value is not None}


def _day(moment: datetime) -> str:
    """The day in UTC, as in AWS's prices and `aws_job.description`: boto3 gives the time of this machine's zone."""
    return moment.astimezone(timezone.utc).date().isoformat()


def _counted(counters: Counters) -> dict[str, Any]:
    """The figures that the simulator counted."""
    groups = [asdict(group) for group in counters.instance_groups or ()]
    facts = {
        "job": counters.job and fmt.name(counters.job),
        "instance_type": counters.instance_type,
        "instance_count": counters.instance_count,
        "instance_groups": [group for group in groups if all(group.values())] or None,
        "instance_cores": counters.instance_cores,
        "programs": [asdict(program) for program in counters.programs or ()] or None,
        "cores_used": counters.cores_used,
        "local_cores": counters.local_cores,
        "training_seconds": counters.seconds.training_total,
        "attempts": counters.attempts,
        "spot_simulated": counters.spot
        and {key: value for key, value in asdict(counters.spot).items() if value is not None},
        **({} if counters.train is None else _trained(counters.train)),
        "graphs": counters.graphs.count,
        "graphs_cached": counters.graphs.cached,
        "compile_seconds": counters.graphs.compile_seconds,
        "first_step_after_seconds": counters.seconds.first_step_after,
        "device_memory_peak_bytes": counters.device_memory_peak_bytes,
    }
    return {key: value for key, value in facts.items() if value is not None}


def _trained(train: Steps) -> dict[str, Any]:
    """The figures of the training steps."""
    flops = sum(train.flops.values())
    return {
        "steps": train.steps,
        **({} if train.updates is None else {"optimizer_steps": train.updates.steps}),
        "samples": train.samples,
        "samples_per_step_per_core": train.samples_per_step_per_core,
        "samples_per_second": train.samples / train.seconds if train.samples and train.seconds else None,
        "median_step_seconds": train.median_step_seconds,
        "step_seconds_total": train.seconds,
        "collective_seconds_total": train.collective_seconds,
        "input_wait_seconds_total": train.input_wait_seconds,
        "flops_per_step_per_core": flops / train.steps if flops else None,
        "collective_bytes_per_step_per_core": sum(use.bytes for use in train.collectives.values())
        / train.steps,
    }


def section(facts: Mapping[str, Any]) -> Section:
    """What ran, as rows of a label and a value."""
    local = facts["where"] == "local"
    rows = [*_run_rows(facts), *_step_rows(facts), *_machine_rows(facts)]
    notes = []
    if local and "billable_seconds" in facts:
        notes.append(
            "Nothing was charged: billable seconds follow AWS's rule by this machine's clock, and do not "
            "show trn1's speed."
        )
    discount = facts.get("spot_simulated", {}).get("discount_assumed")
    if discount is not None:
        notes.append(
            "Managed spot training is simulated: billable seconds assume that spot capacity saves "
            f"{fmt.percent(discount)} of the on-demand price."
        )
    if facts.get("attempts", 1) > 1:
        notes.append(
            "Each attempt is billed from its download to its end; the time between attempts is not. The "
            "modelled part has the steps of all attempts and one start: on AWS each further attempt "
            "downloads again, and compiles again unless a compile cache is in S3."
        )
    programs = facts.get("programs") or []
    if len(programs) > 1:
        first, *others = map(_program, programs)
        notes.append(
            f"The job ran {len(others) + 1} programs. Steps, graphs and modelled figures are those of "
            f"{first}; not included: {', '.join(others)}."
        )
    if not local:
        notes.append("The job ran on AWS and left no counters of steps and graphs: only the bill is known.")
    return Section(
        "Measured here" if local else "Measured on AWS",
        "measured",
        "simulated NeuronCores on this machine" if local else "from DescribeTrainingJob",
        rows=tuple(rows),
        notes=tuple(notes),
    )


def _program(found: Mapping[str, Any]) -> str:
    """One program of a job, as ``train.py (2 cores, 120 training steps)``."""
    cores, steps = found["world_size"], found["training_steps"] or found["steps"]
    many = f"{cores or '?'} {'core' if cores == 1 else 'cores'}"
    kind = "training step" if found["training_steps"] else "step"
    what = f"{found['script'] or 'a program'}{' under neuron_parallel_compile' if found['trial'] else ''}"
    return f"{what} ({many}, {fmt.many(steps, kind)})"


def bill(facts: Mapping[str, Any], prices: PriceBook) -> Section | None:
    """What AWS charged for a job that ran there: billable seconds at the price then in force."""
    if facts["where"] != "aws" or "billable_seconds" not in facts:
        return None
    billable, groups = float(facts["billable_seconds"]), _groups(facts)
    count = sum(number for _, number in groups)
    rows = [Row("Billable seconds", (f"{billable:,.0f} s x {fmt.many(count, 'instance')}",))]
    if "training_plan" in facts:
        note = "The job ran on a training plan, which is paid in advance: its seconds were not charged."
        return Section("Bill", "measured", rows=tuple(rows), notes=(note,))
    started = facts.get("training_start")
    day = date.fromisoformat(started) if started else None
    try:
        prices_of = [
            (listed_price(prices, kind, day, facts.get("region")), number) for kind, number in groups
        ]
    except PricePerfError as error:
        return Section("Bill", "measured", rows=tuple(rows), notes=(str(error),))
    for listed, _ in prices_of:
        label = "Price of an hour" if len(groups) == 1 else f"Price of an hour, {listed.instance_type}"
        bought = listed.offering if listed.status == "assumed" else "on-demand"
        price = f"{fmt.price(listed.usd_per_hour)} {bought}, {listed.status}, since {listed.effective_from}"
        rows.append(Row(label, (price,)))
    training = facts.get("training_seconds")
    if facts.get("spot") and training and billable <= training:
        rows.append(Row("Spot saving", (f"{spot_savings_percent(training, billable):.0f} % of the seconds",)))
    kept = float(facts.get("retained_billable_seconds", 0))
    if kept:
        rows.append(Row("Warm pool after the job", (f"{kept:,.0f} s x {count:,}, billed too",)))
    cost = sum(cost_usd(listed.usd_per_hour, billable + kept, number) for listed, number in prices_of)
    rows.append(Row("Cost", (f"${cost:,.2f}",), "total"))
    return Section(
        "Bill", "measured", "seconds as AWS counted them x list price", rows=tuple(rows),
        notes=tuple(
            dict.fromkeys(f"Price: {p.region}, {p.offering}; {p.source}." for p, _ in prices_of)
        ),
    )  # fmt: skip


def listed_price(prices: PriceBook, kind: str, day: date | None, region: str | None) -> Price:
    """The price in the job's region; where the book has none, the home region's. The price names its region."""
    if region not in (None, HOME_REGION):
        with suppress(PriceUnknown):
            return prices.price(kind, day, region)
    return prices.price(kind, day)


def instances(facts: Mapping[str, Any]) -> str:
    """The instances of a job, as ``ml.trn1.32xlarge x 2``; those of several groups are joined with a plus sign."""
    return " + ".join(f"{kind} x {count}" for kind, count in _groups(facts))


def _region(arn: str) -> str | None:
    """The region in an ARN, arn:aws:sagemaker:REGION:ACCOUNT:training-job/NAME; None for what is no ARN."""
    parts = arn.split(":")
    return parts[3] or None if len(parts) > 4 else None


def _groups(facts: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Instance types and how many of each."""
    if facts.get("instance_groups"):
        return [(str(g["instance_type"]), int(g["instance_count"])) for g in facts["instance_groups"]]
    return [(str(facts.get("instance_type", "unknown instance")), int(facts.get("instance_count", 1)))]


def _run_rows(facts: Mapping[str, Any]) -> list[Row]:
    count = sum(number for _, number in _groups(facts))
    rows = [Row("Why it failed", (facts["failure_reason"],))] if "failure_reason" in facts else []
    rows.append(Row("Instance asked for", (instances(facts),)))
    if "cores_used" in facts:
        text = f"{facts['cores_used']:,} of {facts.get('instance_cores', '?')} NeuronCores"
        if count != 1:
            text += " an instance"
        if 0 < (facts.get("local_cores") or 0) < facts.get("instance_cores", 0):
            text += " (local_cores: a rehearsal with fewer cores than the instance has)"
        rows.append(Row("Cores simulated", (text,)))
    for key, label in (("training_seconds", "Training time"), ("billable_seconds", "Billable")):
        if key in facts:
            of_each = " of each instance" if count > 1 else ""
            rows.append(Row(label, (f"{facts[key]:,.0f} s{of_each}",)))
    if facts.get("attempts", 1) > 1:
        rows.append(Row("Attempts", (f"{facts['attempts']:,}",)))
    spot = facts.get("spot_simulated") or {}
    if "interruptions_simulated" in spot:
        text = f"{spot['interruptions_simulated']:,}"
        if "interruptions_asked" in spot:
            text += f" of {spot['interruptions_asked']:,} asked for"
        rows.append(Row("Spot interruptions", (f"{text}, simulated",)))
    return rows


def _step_rows(facts: Mapping[str, Any]) -> list[Row]:
    rows = []
    if "steps" in facts:
        text = f"{facts['steps']:,.0f}"
        if "optimizer_steps" in facts:
            text += f" passes for {fmt.many(facts['optimizer_steps'], 'step')} of the optimizer"
        if "median_step_seconds" in facts:
            text += f", median {fmt.seconds(facts['median_step_seconds'])}"
        rows.append(Row("Training steps", (text,)))
    if facts.get("samples"):
        text = f"{facts['samples']:,.0f}"
        if "samples_per_step_per_core" in facts:
            text += f", {fmt.plain(facts['samples_per_step_per_core'])} a step and core"
        rows.append(Row("Samples trained", (text,)))
    if "samples_per_second" in facts:
        rows.append(Row("Throughput here", (f"{fmt.significant(facts['samples_per_second'], 3)} samples/s",)))
    if "flops_per_step_per_core" in facts:
        rows.append(Row("Work of a step", (fmt.quantity(facts["flops_per_step_per_core"], "FLOP a core"),)))
    if "collective_bytes_per_step_per_core" in facts:
        payload = fmt.quantity(facts["collective_bytes_per_step_per_core"], "B a step and core")
        rows.append(Row("Collectives", (payload,)))
    return rows


def _machine_rows(facts: Mapping[str, Any]) -> list[Row]:
    rows = []
    total = facts.get("step_seconds_total")
    for key, label in (
        ("collective_seconds_total", "Time in collectives"),
        ("input_wait_seconds_total", "Waiting for input"),
    ):
        if key in facts and total:
            share = fmt.percent(facts[key] / total)
            rows.append(Row(label, (f"{fmt.seconds(facts[key])}, {share} of the steps' time",)))
    if "graphs" in facts:
        compiled = fmt.seconds(facts.get("compile_seconds", 0.0))
        rows.append(Row("Graphs compiled", (f"{facts['graphs']:,.0f} in {compiled} (XLA on this machine)",)))
    if "graphs_cached" in facts:
        cached = f"{facts['graphs_cached']:,.0f} of {facts.get('graphs', 0):,.0f} graphs"
        rows.append(Row("Found in the Neuron cache", (cached,)))
    if "first_step_after_seconds" in facts:
        rows.append(Row("First step after", (fmt.seconds(facts["first_step_after_seconds"]),)))
    if "device_memory_peak_bytes" in facts:
        peak = fmt.gibibytes(facts["device_memory_peak_bytes"])
        rows.append(Row("Device memory peak", (f"{peak}{_of_core_memory(facts)}",)))
    return rows


def _of_core_memory(facts: Mapping[str, Any]) -> str:
    """A core's memory, as `` of 16 GiB a core``; empty where the cores differ, or the instance is not known."""
    known = {CATALOG[kind].core_memory_gib if kind in CATALOG else None for kind, _ in _groups(facts)}
    (memory, *others) = known
    return "" if others or memory is None else f" of {memory:g} GiB a core"


def subtitle(facts: Mapping[str, Any]) -> str:
    """Where the job ran, and on which instances."""
    instance = instances(facts)
    if facts["where"] == "aws":
        return f"{instance}, ran on AWS"
    used, whole = facts.get("cores_used"), facts.get("instance_cores")
    if used and whole and used < whole:
        return f"{instance}, rehearsed here with {used} of its {whole} cores"
    return f"{instance}, rehearsed here"
