"""``windtunnel describe``: all that is known of a job, as a table or as AWS's answer."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from windtunnel.cli import output
from windtunnel.cli.options import add_place, job_of
from windtunnel.rendering.format import given, local_time, one_line
from windtunnel.request.checks import SDK_PREFIX
from windtunnel.session.training_service import TERMINAL

if TYPE_CHECKING:
    from windtunnel.job.training_job import TrainingJob

Pair = tuple[str, str]


def add_parser(commands: Any) -> None:
    """Register the command."""
    describe = commands.add_parser(
        "describe", help="show a job: status, times, settings, output, why it failed"
    )
    describe.add_argument("name", help="the job's name")
    describe.add_argument("--json", action="store_true", help="print DescribeTrainingJob's answer")
    add_place(describe)
    describe.set_defaults(func=_describe)


def _describe(arguments: argparse.Namespace) -> None:
    job = job_of(arguments)
    description = job.describe()
    description.pop("ResponseMetadata", None)  # belongs to the call, not to the job
    if arguments.json:
        output.show_json(description)
        return
    pairs = [*_what_became_of_it(description), *_cost(job, description), *_what_was_asked_for(description)]
    output.show_table([pair for pair in pairs if pair[1]], whole=True)


def _what_became_of_it(description: Mapping[str, Any]) -> Iterator[Pair]:
    from windtunnel.job.metric_series import final_metrics
    from windtunnel.request.instance_groups import host_count

    yield "Name", description["TrainingJobName"]
    yield "Status", output.Status.of(description)
    yield "FailureReason", one_line(description.get("FailureReason", ""))
    for label, member in (
        ("Created", "CreationTime"),
        ("Started", "TrainingStartTime"),
        ("Ended", "TrainingEndTime"),
    ):
        yield label, local_time(description[member]) if member in description else ""
    for transition in description.get("SecondaryStatusTransitions", ()):
        begun, message = local_time(transition["StartTime"]), transition.get("StatusMessage", "")
        yield f"  {transition['Status']}", f"{begun}  {one_line(message)}"
    of_each = " of each instance" if host_count(description["ResourceConfig"]) > 1 else ""
    for label, member in (("Training", "TrainingTimeInSeconds"), ("Billable", "BillableTimeInSeconds")):
        yield label, f"{description[member]:,} s{of_each}" if member in description else ""
    yield "Model", description.get("ModelArtifacts", {}).get("S3ModelArtifacts", "")
    for name, value in final_metrics(description).items():
        yield f"Metric {name}", given(value)


def _what_was_asked_for(description: Mapping[str, Any]) -> Iterator[Pair]:
    resources = description["ResourceConfig"]
    groups = resources.get("InstanceGroups") or [resources]
    yield (
        "Instance",
        " + ".join(f"{one.get('InstanceType')} x {one.get('InstanceCount', 1)}" for one in groups),
    )
    yield "Spot", "managed spot training" if description.get("EnableManagedSpotTraining") else ""
    limit = description.get("StoppingCondition", {}).get("MaxRuntimeInSeconds")
    yield "Stops after", f"{limit:,} s" if limit else ""
    algorithm = description.get("AlgorithmSpecification", {})
    yield "Image", algorithm.get("TrainingImage") or algorithm.get("AlgorithmName", "")
    yield "Role", description.get("RoleArn", "")
    for channel in description.get("InputDataConfig", ()):
        source = channel.get("DataSource", {})
        place = source.get("S3DataSource", {}).get("S3Uri") or source.get("FileSystemDataSource", {})
        yield f"Channel {channel['ChannelName']}", one_line(place)
    yield "Output", description.get("OutputDataConfig", {}).get("S3OutputPath", "")
    yield "Checkpoints", description.get("CheckpointConfig", {}).get("S3Uri", "")
    hyperparameters: Mapping[str, str] = description.get("HyperParameters", {})
    yield "Script", hyperparameters.get(f"{SDK_PREFIX}program", "").strip('"')
    for name, value in hyperparameters.items():
        if not name.startswith(SDK_PREFIX):
            yield f"Hyperparameter {name}", one_line(value)
    for name, value in description.get("Environment", {}).items():
        yield f"Environment {name}", one_line(value)


def _cost(job: TrainingJob, description: Mapping[str, Any]) -> Iterator[Pair]:
    """The report's cost in one line; nothing where there is no report (yet)."""
    from windtunnel.errors import WindtunnelError

    if description["TrainingJobStatus"] not in TERMINAL:
        return
    try:
        report = job.report()
    except (WindtunnelError, ValueError):
        return  # windtunnel report says why
    line = report.cost_line(description["ResourceConfig"].get("InstanceType"))
    if line:
        yield "Cost", f"{line} (windtunnel report {job.name}{job.session.place})"
