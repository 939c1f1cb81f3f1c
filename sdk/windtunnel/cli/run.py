"""`windtunnel run SCRIPT`: a training job from the command line."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from typing import TYPE_CHECKING, Any

from windtunnel.cli.jobs import add_place, session_of
from windtunnel.cli.printable import complain
from windtunnel.errors import BudgetWarning, ConfigurationError

if TYPE_CHECKING:
    from windtunnel.estimator.estimators import PyTorch

_EPILOG = """\
What follows -- are hyperparameters as the script takes them. --channel, --hp, --env repeat.

examples:
  windtunnel run train.py --channel train=data/train --hp epochs=3
  windtunnel run train.py --source-dir src --instance-type ml.trn1.32xlarge --local-cores 4
  windtunnel run train.py -- --epochs 3 --lr 1e-3     (the same as --hp epochs=3 --hp lr=1e-3)
"""


def add_parsers(commands: Any) -> None:
    """Register the command."""
    run = commands.add_parser(
        "run",
        help="run a script as a training job and follow it",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_script_arguments(run)
    run.add_argument("--channel", action="append", default=[], metavar="NAME=PATH", help="input data")
    run.add_argument("--job-name", help="default: the script's image and the time")
    run.add_argument("--max-run", type=int, default=24 * 60 * 60, metavar="S", help="stop after S seconds")
    run.add_argument("--max-cost", type=float, metavar="USD", help="on AWS, lower --max-run to keep this")
    run.add_argument("--output-path", metavar="s3://...", help="default: the session's bucket")
    run.add_argument("--role", help="IAM role; needed with --aws")
    run.add_argument("--no-wait", action="store_true", help="start the job and return")
    run.add_argument("--dry-run", action="store_true", help="print the request and start nothing")
    add_place(run)
    run.set_defaults(func=_run)


def add_script_arguments(parser: argparse.ArgumentParser) -> None:
    """What `run` and `check` have in common."""
    parser.add_argument("script", help="the entry point, inside --source-dir if that is given")
    parser.add_argument("--source-dir", help="directory with the code (default: the script alone)")
    parser.add_argument("--dependency", action="append", default=[], metavar="PATH", help="packed too")
    parser.add_argument("--instance-type", default="ml.trn1.2xlarge", help="default: ml.trn1.2xlarge")
    parser.add_argument("--instance-count", type=int, default=1, help="default: 1")
    parser.add_argument("--local-cores", type=int, help="rehearse with this many NeuronCores a host")
    parser.add_argument("--framework-version", default="2.9", help="of PyTorch (default: 2.9)")
    parser.add_argument("--image-uri", help="another training image")
    parser.add_argument("--no-torch-distributed", action="store_true", help="start it without torchrun")
    parser.add_argument("--hp", action="append", default=[], metavar="KEY=VALUE", help="hyperparameter")
    parser.add_argument("--env", action="append", default=[], metavar="KEY=VALUE", help="environment")


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


def pairs(given: list[str], option: str, form: str = "KEY=VALUE") -> dict[str, str]:
    """``["a=1", ...]`` -> ``{"a": "1"}``."""
    found: dict[str, str] = {}
    for text in given:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise ConfigurationError(f"{option} {text!r}: {form} is needed.")
        found[key] = value
    return found


def typed(text: str) -> Any:
    """A number, true/false, null or JSON structure as such; everything else as text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def script_arguments(words: list[str]) -> dict[str, str]:
    """``["--epochs", "3", "--lr=0.1"]`` -> ``{"epochs": "3", "lr": "0.1"}``; a flag alone is "true"."""
    found: dict[str, str] = {}
    waiting: str | None = None
    for word in words:
        if word.startswith("--"):
            if waiting is not None:
                found[waiting] = "true"
            key, separator, value = word[2:].partition("=")
            waiting = None if separator else key
            if separator:
                found[key] = value
        elif waiting is None:
            raise ConfigurationError(
                f"argument {word!r}: training jobs take named arguments only. Write --name {word}."
            )
        else:
            found[waiting] = word
            waiting = None
    if waiting is not None:
        found[waiting] = "true"
    return found


def hyperparameters_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Those of ``--hp`` and those behind ``--``."""
    values = {**script_arguments(arguments.words), **pairs(arguments.hp, "--hp")}
    return {key: typed(value) for key, value in values.items()}


def _run(arguments: argparse.Namespace) -> int:
    estimator = estimator_of(
        arguments,
        hyperparameters=hyperparameters_of(arguments),
        session=session_of(arguments),
        role=arguments.role,
        max_run=arguments.max_run,
        output_path=arguments.output_path,
        max_cost=arguments.max_cost,
    )
    with warnings.catch_warnings():
        # A warning is for the terminal, without the line of code that raised it.
        warnings.simplefilter("always", BudgetWarning)
        warnings.showwarning = lambda message, *_, **__: complain(f"warning: {message}")
        return _start(estimator, arguments)


def _start(estimator: PyTorch, arguments: argparse.Namespace) -> int:
    inputs = pairs(arguments.channel, "--channel", "NAME=PATH") or None
    if arguments.dry_run:
        print(estimator.fit(inputs, job_name=arguments.job_name, dry_run=True))
        return 0
    job = estimator.fit(inputs, wait=False, job_name=arguments.job_name)
    print(f"Training job {job.name}", flush=True)
    if arguments.no_wait:
        place = " --aws" if arguments.aws else ""
        print(f"It goes on by itself. Follow it: windtunnel logs -f {job.name}{place}", file=sys.stderr)
    else:
        job.wait()
        print(f"What it would take and cost on Trainium: windtunnel report {job.name}")
    return 0
