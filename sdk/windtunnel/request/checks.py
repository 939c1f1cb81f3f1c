"""The checks AWS makes when a job is created, made before anything is uploaded or started. Pure.

Limits are those of CreateTrainingJob in botocore's service model (2017-07-24) and of the SageMaker
developer guide; each message names the argument, the value, the limit and the way out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from windtunnel.errors import ConfigurationError, did_you_mean
from windtunnel.priceperf.instances import CATALOG, NEURON_TYPES
from windtunnel.request.argument_types import check_kind, check_kinds
from windtunnel.request.arguments import AnyPath, JobArguments, Tags, tag_list
from windtunnel.request.instance_groups import as_group, group_names

JOB_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
SDK_PREFIX = "sagemaker_"
"""Prefix of the hyperparameters that an SDK adds for AWS's toolkit."""
MAX_HYPERPARAMETERS = 100
MAX_HYPERPARAMETER_KEY = 256
MAX_HYPERPARAMETER_VALUE = 2500
MAX_ENVIRONMENT = 100
MAX_ENVIRONMENT_TEXT = 512
MAX_RUN_S = 28 * 24 * 60 * 60
MAX_KEEP_ALIVE_S = 21_600
MAX_CHANNELS = 20
MAX_METRICS = 40
MAX_TAGS = 50
MAX_GROUPS = 5

INSTANCE_TYPE = re.compile(r"ml\.[a-z][a-z0-9\-]*\.(\d+)?(nano|micro|small|medium|large|xlarge|metal)")
_BASE_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9-]*")
_ENVIRONMENT_KEY = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
# Their types are checked by `check_range` and `check_max_cost`, whose messages name the limits.
_RANGED = frozenset(
    {
        "instance_count",
        "keep_alive_period_in_seconds",
        "local_cores",
        "max_cost",
        "max_retry_attempts",
        "max_run",
        "volume_size",
    }
)
_INPUT_MODES = ("File", "FastFile", "Pipe")


def is_trainium(instance_type: str | None) -> bool:
    """Whether the instance has NeuronCores for training."""
    return instance_type in NEURON_TYPES


def check_job_name(name: str, argument: str = "job_name") -> None:
    """At most 63 letters, digits and hyphens, no hyphen at either end. Names of models and endpoints too."""
    check_kind(argument, name, str)
    if not JOB_NAME.fullmatch(name):
        raise ConfigurationError(
            f"{argument}={name!r} ({len(name)} characters): up to 63 letters, digits and hyphens, "
            "beginning and ending with a letter or digit."
        )


def check_arguments(arguments: JobArguments) -> None:
    """Check everything that can be judged from the shared arguments alone: first, that they have their types."""
    check_kinds(arguments, JobArguments, skip=_RANGED)
    _check_instances(arguments)
    _check_times(arguments)
    check_max_cost("max_cost", arguments.max_cost)
    check_environment(arguments.environment or {})
    check_range("volume_size", arguments.volume_size, 1, 16_384, "GB")
    if arguments.input_mode not in _INPUT_MODES:
        raise ConfigurationError(f"input_mode={arguments.input_mode!r}: one of {', '.join(_INPUT_MODES)}.")
    if (arguments.subnets is None) != (arguments.security_group_ids is None):
        raise ConfigurationError("subnets= and security_group_ids= go together: give both or neither.")
    for name in ("output_path", "code_location", "checkpoint_s3_uri"):
        uri = getattr(arguments, name)
        if uri is not None and not re.fullmatch(r"s3://[^/]+(/.*)?", str(uri)):
            instead = (
                "`LocalSession().default_bucket()` names a bucket that is there."
                if name == "checkpoint_s3_uri"
                else "Leave it out for the default bucket; TrainingJob.download_model(path) puts the model "
                "where you want it."
            )
            raise ConfigurationError(
                f"{name}={uri!r}: an s3://<bucket>/<prefix> is needed, locally too. {instead}"
            )
    check_tags(arguments.tags or [])
    if arguments.base_job_name and not _BASE_NAME.fullmatch(arguments.base_job_name):
        raise ConfigurationError(
            f"base_job_name={arguments.base_job_name!r}: letters, digits and hyphens, beginning with a letter "
            "or digit."
        )
    _check_metrics(arguments.metric_definitions or [])
    if is_trainium(arguments.instance_type) and arguments.profiler_config:
        raise ConfigurationError(
            "profiler_config= on Trainium: SageMaker's profiler does not support it. Leave it out."
        )


def check_hyperparameters(encoded: Mapping[str, str]) -> None:
    """Check number and lengths of the hyperparameters as they are sent: encoded, SageMaker's own included."""
    if len(encoded) > MAX_HYPERPARAMETERS:
        own = sum(key.startswith(SDK_PREFIX) for key in encoded)
        raise ConfigurationError(
            f"hyperparameters: {len(encoded)} ({own} of them set by the SDK), at most {MAX_HYPERPARAMETERS}. "
            "Put them into a file in source_dir."
        )
    for key, value in encoded.items():
        if len(key) > MAX_HYPERPARAMETER_KEY:
            raise ConfigurationError(
                f"hyperparameter {key[:40]!r}...: its name has {len(key)} characters, "
                f"at most {MAX_HYPERPARAMETER_KEY}. Shorten it."
            )
        if len(value) > MAX_HYPERPARAMETER_VALUE:
            raise ConfigurationError(
                f"hyperparameter {key!r}: {len(value)} characters after encoding, "
                f"at most {MAX_HYPERPARAMETER_VALUE}. Put it into a file in source_dir or a channel."
            )


def check_environment(environment: Mapping[str, str], longest: int = MAX_ENVIRONMENT_TEXT) -> None:
    """Check number, names and lengths of environment variables. ``longest``: characters of a name or a value."""
    if len(environment) > MAX_ENVIRONMENT:
        raise ConfigurationError(f"environment: {len(environment)} variables, at most {MAX_ENVIRONMENT}.")
    for key, value in environment.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise ConfigurationError(f"environment[{key!r}]={value!r}: names and values are strings.")
        if not _ENVIRONMENT_KEY.fullmatch(key):
            raise ConfigurationError(
                f"environment: the name {key!r} is not valid: letters, digits and _, no digit first."
            )
        if "\0" in value:
            raise ConfigurationError(
                f"environment[{key!r}]={value!r}: a variable cannot hold a null character."
            )
        for what, text in (("name", key), ("value", value)):
            if len(text) > longest:
                raise ConfigurationError(
                    f"environment {key[:40]!r}: its {what} has {len(text)} characters, at most {longest}."
                )


def check_distribution(
    distribution: Mapping[str, Any],
    instance_type: str | None,
    entry_point: AnyPath | None,
    groups: Sequence[Any] | None,
) -> None:
    """Trainium takes only torch_distributed, which starts only Python scripts.

    With instance ``groups``, ``distribution`` names the one in which torchrun starts workers.
    """
    fix = 'distribution={"torch_distributed": {"enabled": True}}'
    if is_trainium(instance_type) and (set(distribution) - {"torch_distributed"}):
        raise ConfigurationError(
            f"distribution={dict(distribution)!r} on {instance_type}: "
            f"Trainium instances take torch_distributed only. Use {fix}."
        )
    if set(distribution) - {"torch_distributed", "instance_groups"}:
        raise ConfigurationError(
            f"distribution={dict(distribution)!r}: only torch_distributed is supported here. Use {fix}."
        )
    option = distribution.get("torch_distributed", {})
    if not isinstance(option, Mapping):
        raise ConfigurationError(f"distribution={dict(distribution)!r}: use {fix}.")
    if option.get("enabled") and entry_point is not None and not str(entry_point).endswith(".py"):
        raise ConfigurationError(
            f"entry_point={str(entry_point)!r} with torch_distributed: torchrun starts .py scripts only. "
            "Give a .py entry point, or leave distribution= out and call torchrun in the script."
        )

    _check_distribution_groups(distribution, bool(option.get("enabled")), groups)


def _check_distribution_groups(
    distribution: Mapping[str, Any], distributed: bool, groups: Sequence[Any] | None
) -> None:
    """As in SDK v2, torchrun starts workers in exactly one of several groups."""
    chosen = distribution.get("instance_groups")
    names = group_names(groups or [])
    if chosen is not None:
        check_kind('distribution["instance_groups"]', chosen, list[Any])
        unknown = [name for name in group_names(chosen) if name not in names]
        if unknown or not distributed:
            raise ConfigurationError(
                f'distribution["instance_groups"]={group_names(chosen)}: groups out of instance_groups= '
                f"({', '.join(names) or 'none given'}), together with torch_distributed."
            )
    if distributed and len(names) > 1 and (chosen is None or len(chosen) != 1):
        raise ConfigurationError(
            f"torch_distributed with the instance groups {', '.join(names)}: name the one in which torchrun "
            'starts workers, distribution={"torch_distributed": {"enabled": True}, "instance_groups": [group]}.'
        )


def check_local_cores(cores: object, instance_type: str) -> None:
    """A number of NeuronCores that the instance has; None: all of them."""
    if cores is None:
        return
    known = CATALOG.get(instance_type)
    highest = known.core_count if known is not None else None
    check_range("local_cores", cores, 1, highest, f"(the NeuronCores of {instance_type})")


def check_rehearse(rehearse: object) -> None:
    """The batches of a short rehearsal, from 1 to 100,000; True, False or None are fine too."""
    if rehearse is not None and not isinstance(rehearse, bool):
        check_range("rehearse", rehearse, 1, 100_000, "batches of each loader, or True")


def check_offered(instance_type: str) -> None:
    """SageMaker must offer the instance for training jobs; a rehearsal takes any with NeuronCores."""
    known = CATALOG.get(instance_type)
    if known is not None and "training" not in known.sagemaker:
        offered = ", ".join(n for n, entry in NEURON_TYPES.items() if "training" in entry.sagemaker)
        uses = f"for {' and '.join(sorted(known.sagemaker))} use only" if known.sagemaker else "for nothing"
        raise ConfigurationError(
            f"instance_type={instance_type!r}: SageMaker offers it {uses}, not for training jobs. It can be "
            f"rehearsed here. Trainium for training jobs on AWS: {offered}."
        )


def check_serving_instance(instance_type: object) -> None:
    """Check only the form of the name; which instance types exist is left to AWS."""
    if not INSTANCE_TYPE.fullmatch(str(instance_type)):
        raise ConfigurationError(
            f"instance_type={instance_type!r} is no SageMaker instance type (ml.<family>.<size>), e.g. 'ml.c5.xlarge'."
        )


def check_max_cost(name: str, value: object) -> None:
    """US dollars above 0, or None."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and 0 < float(str(value)) < math.inf):
        raise ConfigurationError(f"{name}={value!r}: a number of US dollars above 0 is needed, e.g. 50.")


def check_channel_count(count: int) -> None:
    """At most 20 channels."""
    if count > MAX_CHANNELS:
        raise ConfigurationError(f"inputs: {count} channels, at most {MAX_CHANNELS}.")


def instance_types(arguments: JobArguments) -> list[str]:
    """The instance types of a job: one for each of its groups, or its only one."""
    if arguments.instance_groups:
        return [group.instance_type for group in arguments.instance_groups]
    return [str(arguments.instance_type)]


def _check_instances(arguments: JobArguments) -> None:
    kind = arguments.instance_type
    if arguments.instance_groups is not None:
        _check_groups(arguments)
        return
    if kind is None or arguments.instance_count is None:
        raise ConfigurationError(
            f"instance_type={kind!r}, instance_count={arguments.instance_count!r}: both are needed, "
            "e.g. instance_type='ml.trn1.2xlarge', instance_count=1. Or give instance_groups=."
        )
    _check_instance_type(kind)
    check_range("instance_count", arguments.instance_count, 1, None, "")


def _check_groups(arguments: JobArguments) -> None:
    given = arguments.instance_groups or []
    if arguments.instance_type is not None or arguments.instance_count is not None:
        raise ConfigurationError(
            f"instance_groups= with instance_type={arguments.instance_type!r}, "
            f"instance_count={arguments.instance_count!r}: each group has its own. Leave these out."
        )
    if not 1 <= len(given) <= MAX_GROUPS:
        raise ConfigurationError(f"instance_groups: {len(given)} given, from 1 to {MAX_GROUPS} are valid.")
    names = []
    for item in given:
        group = as_group(item)
        if group is None:
            raise ConfigurationError(
                f"instance_groups: {item!r} is no group. Give InstanceGroup('name', 'ml.trn1.2xlarge', 1)."
            )
        check_kind("instance_group_name", group.instance_group_name, str)
        check_kind("instance_type", group.instance_type, str)
        _check_instance_type(group.instance_type)
        check_range(f"instance_count of {group.instance_group_name!r}", group.instance_count, 1, None, "")
        names.append(group.instance_group_name)
    if len(set(names)) < len(names):
        raise ConfigurationError(f"instance_groups: the names {', '.join(names)} must differ. Rename one.")


def _check_instance_type(kind: str) -> None:
    if kind in ("local", "local_gpu"):
        raise ConfigurationError(
            f"instance_type={kind!r}: Windtunnel runs locally by default. Name the instance to rehearse, "
            "e.g. 'ml.trn1.2xlarge'."
        )
    if not INSTANCE_TYPE.fullmatch(kind):
        raise ConfigurationError(
            f"instance_type={kind!r} is no SageMaker instance type (ml.<family>.<size>)."
            f"{did_you_mean(kind, NEURON_TYPES)} Trainium: {', '.join(NEURON_TYPES)}."
        )
    if kind.startswith("ml.trn") and kind not in NEURON_TYPES:
        known = ", ".join(NEURON_TYPES)
        raise ConfigurationError(f"instance_type={kind!r} does not exist. Trainium: {known}.")


def _check_times(arguments: JobArguments) -> None:
    check_range("max_run", arguments.max_run, 1, MAX_RUN_S, "s (28 days)")
    if arguments.keep_alive_period_in_seconds is not None:
        period = arguments.keep_alive_period_in_seconds
        check_range("keep_alive_period_in_seconds", period, 0, MAX_KEEP_ALIVE_S, "s")
    if arguments.max_retry_attempts is not None:
        check_range("max_retry_attempts", arguments.max_retry_attempts, 1, 30, "")
    too_short = arguments.max_wait is None or arguments.max_wait < arguments.max_run
    if arguments.use_spot_instances and too_short:
        raise ConfigurationError(
            f"use_spot_instances=True with max_wait={arguments.max_wait!r}, max_run={arguments.max_run!r}: "
            "max_wait= is needed and at least max_run."
        )
    if arguments.max_wait is not None and not arguments.use_spot_instances:
        raise ConfigurationError(
            f"max_wait={arguments.max_wait!r} without use_spot_instances=True: "
            "only spot jobs wait. Leave one out or add the other."
        )


def check_tags(tags: Tags) -> None:
    """At most 50 tags, each with a key and a value."""
    if len(tags) > MAX_TAGS:
        raise ConfigurationError(f"tags: {len(tags)} given, at most {MAX_TAGS}.")
    wrong = [tag for tag in tag_list(tags) or [] if set(tag) != {"Key", "Value"}]
    if wrong:
        raise ConfigurationError(f"tags: {wrong[0]!r} needs exactly the keys 'Key' and 'Value'.")


def check_range(name: str, value: object, low: int, high: int | None, unit: str) -> None:
    """A whole number from ``low`` to ``high`` (None: no upper limit). ``unit``: for the message."""
    fits = isinstance(value, int) and not isinstance(value, bool)
    if fits and isinstance(value, int) and low <= value and (high is None or value <= high):
        return
    limits = f"a whole number from {low}" + (f" to {high}" if high is not None else "")
    raise ConfigurationError(f"{name}={value!r}: {limits} {unit}".rstrip() + " is needed.")


def _check_metrics(definitions: list[dict[str, str]]) -> None:
    if len(definitions) > MAX_METRICS:
        raise ConfigurationError(f"metric_definitions: {len(definitions)} given, at most {MAX_METRICS}.")
    for definition in definitions:
        if set(definition) != {"Name", "Regex"}:
            raise ConfigurationError(
                f"metric_definitions: {definition!r} needs exactly the keys 'Name' and 'Regex'."
            )
        if not all(isinstance(text, str) and text for text in definition.values()):
            raise ConfigurationError(
                f"metric_definitions: in {definition!r} both values must be texts, and not empty."
            )
        _check_regex(definition["Name"], definition["Regex"])


def _check_regex(name: str, regex: str) -> None:
    """The regular expression must compile, and have a group that captures the metric's value."""
    try:
        groups = re.compile(regex).groups
    except (re.error, OverflowError, RecursionError) as error:  # 'x{4294967296}' overflows
        raise ConfigurationError(
            f"metric_definitions: the Regex of {name!r} is not valid ({error}). Given: {regex}"
        ) from error
    if groups < 1:
        raise ConfigurationError(
            f"metric_definitions: the Regex of {name!r} has no group to capture the value; write for example "
            f"'loss: ([0-9.]+)'. Given: {regex}"
        )
