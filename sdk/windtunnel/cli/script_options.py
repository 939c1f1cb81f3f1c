"""Options that `run` and `check` share: a script and its arguments."""

from __future__ import annotations

import argparse
import json
import math
import shlex
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from windtunnel.cli.amounts import whole
from windtunnel.cli.parser import Parser
from windtunnel.errors import ConfigurationError

if TYPE_CHECKING:
    from windtunnel.estimator.estimators import PyTorch


def add_script_arguments(parser: Parser) -> None:
    """Add the script, the files and hyperparameters that go with it, and the instance it would run on."""
    parser.explain = partial(_of_the_script, parser)
    parser.add_argument("script", help="the entry point, inside --source-dir if that is given")
    parser.add_argument("--source-dir", help="directory with the code (default: the script alone)")
    parser.add_argument("--dependency", action="append", default=[], metavar="PATH", help="packed too")
    parser.add_argument("--instance-type", default="ml.trn1.2xlarge", help="default: ml.trn1.2xlarge")
    parser.add_argument("--instance-count", type=whole, default=1, help="default: 1")
    parser.add_argument("--local-cores", type=whole, help="rehearse with this many NeuronCores a host")
    parser.add_argument("--framework-version", default="2.9", help="of PyTorch (default: 2.9)")
    parser.add_argument("--image-uri", help="another training image")
    parser.add_argument("--no-torch-distributed", action="store_true", help="start it without torchrun")
    parser.add_argument("--hp", action="append", default=[], metavar="KEY=VALUE", help="hyperparameter")
    parser.add_argument("--env", action="append", default=[], metavar="KEY=VALUE", help="environment")


def _of_the_script(parser: Parser, given: Sequence[str], unknown: Sequence[str]) -> str:
    """What to write if unknown arguments are the script's."""
    if unknown[0].startswith("-"):
        # Not of others: an option of theirs, such as --epochs, is most likely the script's here.
        if other := parser.of_another_command(given, unknown, "run", "check"):
            return other
        return f" Options of the script come after it and --: {parser.prog} {_script_first(parser, given)}"
    data = f" Data is a channel: --channel train={unknown[0]}." if parser.has("--channel") else ""
    return f"{data} Arguments of the script need a name: {parser.prog} SCRIPT -- --name {unknown[0]}"


def _script_first(parser: Parser, given: Sequence[str]) -> str:
    """The words with the script first, and what this parser does not know behind ``--``."""
    script, own, others = "", [], []
    for before, word in zip(("", *given), given, strict=False):
        is_value = before.startswith("--") and "=" not in before and not parser.has(before)
        if parser.has(word) or parser.takes_value(before):
            own.append(word)
        elif word.startswith("-") or script or is_value:
            others.append(word)
        else:
            script = word
    if not script:  # as in --debug train.py
        script = next((word for word in others if word.endswith(".py")), "SCRIPT")
        others = [word for word in others if word != script]
    return shlex.join([script, *own, "--", *others])


def estimator_of(arguments: argparse.Namespace, **more: Any) -> PyTorch:
    """The estimator that the command line describes."""
    from windtunnel.estimator.estimators import PyTorch

    distribution = None if arguments.no_torch_distributed else {"torch_distributed": {"enabled": True}}
    return PyTorch(
        arguments.script,
        None if arguments.image_uri else arguments.framework_version,
        source_dir=arguments.source_dir,
        dependencies=arguments.dependency,
        image_uri=arguments.image_uri,
        instance_type=arguments.instance_type,
        instance_count=arguments.instance_count,
        local_cores=arguments.local_cores,
        distribution=distribution,
        environment=pairs(arguments.env, "--env") or None,
        **more,
    )


def pairs(given: list[str], option: str, form: str = "KEY=VALUE", *, once: bool = False) -> dict[str, str]:
    """``["a=1", ...]`` -> ``{"a": "1"}``. If a key comes twice, the last counts; with ``once`` that is an error."""
    found: dict[str, str] = {}
    for text in given:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise ConfigurationError(f"{option} {text!r}: {form} is needed.")
        if once and key in found:
            raise ConfigurationError(
                f"{option} gives {key} twice: leave one, or give the other another name."
            )
        found[key] = value
    return found


def typed(text: str) -> Any:
    """Read a value as JSON (number, true, false, null, list, dict), else as text. 1e6 is a whole number.

    A number that JSON would write differently stays text: 1.10 may be a version, and must not become 1.1. A text with
    an exponent can only be a number.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if type(value) not in (int, float):
        return value
    if "e" in text.lower() and math.isfinite(value):
        return int(value) if "." not in text and value.is_integer() else value
    return value if str(value) == text else text


def script_arguments(words: list[str]) -> dict[str, str]:
    """``["--epochs", "3", "--lr=0.1"]`` -> ``{"epochs": "3", "lr": "0.1"}``; a flag without a value gets "true".

    On SageMaker each hyperparameter has a value: see `porting.flags`.
    """
    found: dict[str, str] = {}
    waiting: str | None = None
    for word in words:
        if word.startswith("--"):
            key, separator, value = word[2:].partition("=")
            found[key] = value if separator else "true"
            waiting = None if separator else key
        elif waiting is None:
            raise ConfigurationError(
                f"argument {word!r}: training jobs take named arguments only. Write --name {word}."
            )
        else:
            found[waiting] = word
            waiting = None
    return found


def hyperparameters_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The hyperparameters of ``--hp`` and those after ``--``."""
    values = {**script_arguments(arguments.words), **pairs(arguments.hp, "--hp")}
    return {key: typed(value) for key, value in values.items()}


def only_rehearsed(estimator: PyTorch) -> list[str]:
    """For each instance type of the job that SageMaker does not offer for training: that, and which it offers."""
    from windtunnel.request import checks

    found = []
    for kind in checks.instance_types(estimator):
        try:
            checks.check_offered(kind)
        except ConfigurationError as error:
            found.append(str(error))
    return found
