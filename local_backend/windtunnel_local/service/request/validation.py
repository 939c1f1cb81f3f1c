"""Checks of a CreateTrainingJob request, beyond those of botocore's model.

The API has checked types, patterns, enums and ranges against botocore's model before. Here
are AWS's further checks. `training_members` says which members are honoured; the others are
stored or refused, never ignored silently.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from windtunnel.priceperf.instances import NEURON_TYPES
from windtunnel_local.service.ground.errors import ValidationFailed
from windtunnel_local.service.ground.uris import member_s3
from windtunnel_local.service.request.channels import check_channels
from windtunnel_local.service.request.images import check_reference
from windtunnel_local.service.request.local_paths import check_local_paths
from windtunnel_local.service.request.requests import AWS_IN_JOBS, DEFAULT_MAX_RUNTIME_S
from windtunnel_local.service.request.training_members import TRAINING_JOB

Request = Mapping[str, Any]

MAX_RUNTIME_S = 28 * 86_400
MAX_TAGS = 50
MAX_HOSTS = 64
"""The most hosts of one job. Each is a container, whose name and folder are made before the queue limits anything."""

_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")


def validate(request: Request) -> None:
    """Check a CreateTrainingJob request.

    Raises:
        ValidationFailed: says which member, what was given and what is valid.
    """
    _name(request["TrainingJobName"])
    TRAINING_JOB.check(request)
    _algorithm(request.get("AlgorithmSpecification", {}))
    _resources(request.get("ResourceConfig", {}))
    _stopping_condition(request.get("StoppingCondition", {}), bool(request.get("EnableManagedSpotTraining")))
    member_s3("OutputDataConfig.S3OutputPath", request["OutputDataConfig"]["S3OutputPath"])
    _environment(request)
    for config, member in (("CheckpointConfig", "S3Uri"), ("TensorBoardOutputConfig", "S3OutputPath")):
        if config in request:
            member_s3(f"{config}.{member}", request[config][member])
    check_local_paths(request)
    check_channels(
        request.get("InputDataConfig", []),
        request["AlgorithmSpecification"]["TrainingInputMode"],
        _group_names(request["ResourceConfig"]),
    )
    tags(request.get("Tags", []))


def tags(given: Sequence[Mapping[str, str]]) -> None:
    """Check tags: at most 50, no key twice, and no key that begins with "aws:".

    Raises:
        ValidationFailed: says what is wrong.
    """
    keys = [tag["Key"] for tag in given]
    if len(keys) > MAX_TAGS:
        raise ValidationFailed(f"{len(keys)} tags were given; a resource has at most {MAX_TAGS}.")
    duplicates = sorted({key for key in keys if keys.count(key) > 1})
    if duplicates:
        raise ValidationFailed(f"Tag keys must be unique; given more than once: {', '.join(duplicates)}.")
    reserved = sorted(key for key in keys if key.lower().startswith("aws:"))
    if reserved:
        raise ValidationFailed(
            f"Tag keys must not begin with 'aws:', in any case of letters: AWS keeps it for itself. Given:"
            f" {', '.join(reserved)}."
        )


def _name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValidationFailed(
            f"1 validation error detected: Value '{name}' at 'trainingJobName' failed to satisfy constraint:"
            f" Member must satisfy regular expression pattern: {_NAME.pattern}"
        )


def _algorithm(algorithm: Request) -> None:
    if not algorithm.get("TrainingImage"):
        given = algorithm.get("AlgorithmName")
        raise ValidationFailed(
            "AlgorithmSpecification needs TrainingImage"
            + (f"; AlgorithmName ({given}) is not supported here." if given else ".")
        )
    check_reference("AlgorithmSpecification.TrainingImage", algorithm["TrainingImage"])
    access = algorithm.get("TrainingImageConfig", {}).get("TrainingRepositoryAccessMode", "Platform")
    if access != "Platform":
        raise ValidationFailed(
            f"TrainingImageConfig.TrainingRepositoryAccessMode {access!r} is not supported: images are taken"
            " from the local container engine. Pull the image there, and leave TrainingImageConfig out."
        )
    for metric in algorithm.get("MetricDefinitions", []):
        try:
            groups = re.compile(metric["Regex"]).groups
        except (re.error, OverflowError, RecursionError) as error:  # 'x{4294967296}' overflows
            raise ValidationFailed(
                f"MetricDefinitions: the Regex of {metric['Name']!r} does not compile: {error}. Given:"
                f" {metric['Regex']}"
            ) from None
        if groups < 1:
            raise ValidationFailed(
                f"MetricDefinitions: the Regex of {metric['Name']!r} has no group to capture the value;"
                rf" write for example 'loss: ([0-9\.]+)'. Given: {metric['Regex']}"
            )


def _resources(resources: Request) -> None:
    given = resources.get("InstanceGroups")
    if given:
        _groups(resources, given)
    else:
        _instances(resources, "ResourceConfig")
    hosts = sum(group["InstanceCount"] for group in given or [resources])
    if hosts > MAX_HOSTS:
        raise ValidationFailed(
            f"ResourceConfig asks for {hosts} instances; this machine rehearses at most {MAX_HOSTS}, each in a"
            " container of its own. Ask for fewer, or send the request to AWS."
        )


def _groups(resources: Request, given: Sequence[Request]) -> None:
    for member in ("InstanceType", "InstanceCount"):
        if resources.get(member):
            raise ValidationFailed(
                f"ResourceConfig.{member} and ResourceConfig.InstanceGroups exclude each other; given: both."
                " Each group names its own InstanceType and InstanceCount."
            )
    names = _group_names(resources) or []
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise ValidationFailed(
            "ResourceConfig.InstanceGroups: InstanceGroupName must be unique; given more than once:"
            f" {', '.join(duplicates)}."
        )
    for group in given:
        _instances(group, f"ResourceConfig.InstanceGroups[{group['InstanceGroupName']}]")


def _instances(resources: Request, where: str) -> None:
    """Check InstanceType and InstanceCount, of the job or of one group."""
    given = resources.get("InstanceType")
    if given not in NEURON_TYPES:
        raise ValidationFailed(
            f"{where}.InstanceType {given!r} is not simulated here. Valid: {', '.join(NEURON_TYPES)}."
            " The report of a rehearsal on trn1 models p4d (A100) beside it. For other instance types, send the"
            " request to AWS."
        )
    if resources.get("InstanceCount", 0) < 1:
        raise ValidationFailed(
            f"{where}.InstanceCount must be at least 1; given: {resources.get('InstanceCount')}."
        )


def _group_names(resources: Request) -> list[str] | None:
    groups = resources.get("InstanceGroups")
    return [group["InstanceGroupName"] for group in groups] if groups else None


def _stopping_condition(condition: Request, spot: bool) -> None:
    longest = condition.get("MaxRuntimeInSeconds", DEFAULT_MAX_RUNTIME_S)
    if not 1 <= longest <= MAX_RUNTIME_S:
        raise ValidationFailed(
            f"StoppingCondition.MaxRuntimeInSeconds must be between 1 and {MAX_RUNTIME_S} (28 days);"
            f" given: {longest}."
        )
    wait = condition.get("MaxWaitTimeInSeconds")
    if spot and (wait is None or wait < longest):
        raise ValidationFailed(
            "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to"
            f" MaxRuntimeInSeconds; given: {wait}, and MaxRuntimeInSeconds is {longest}."
        )
    if wait is not None and not spot:
        raise ValidationFailed(
            "StoppingCondition.MaxWaitTimeInSeconds is valid only with EnableManagedSpotTraining; leave it out,"
            f" or set EnableManagedSpotTraining to true. Given: {wait}."
        )


def _environment(request: Request) -> None:
    said = request.get("Environment", {}).get(AWS_IN_JOBS, "0")
    if said not in ("0", "1"):
        raise ValidationFailed(f"Environment.{AWS_IN_JOBS} must be 0 or 1; given: {said}.")
    if said == "1" and request.get("EnableNetworkIsolation"):
        raise ValidationFailed(
            f"Environment.{AWS_IN_JOBS}=1 and EnableNetworkIsolation exclude each other: an isolated job reaches"
            " no S3, here and on AWS. Leave one of them out."
        )
