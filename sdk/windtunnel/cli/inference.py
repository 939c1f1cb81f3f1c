"""``windtunnel inference``: time and cost of inference: modelled, recomputed, or measured on an endpoint."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.cli import output
from windtunnel.cli.amounts import count, dollars, length, number, one_of_several, seconds
from windtunnel.cli.invoke import JSON_TYPE, question_of
from windtunnel.cli.options import add_instances, add_place, day, given_of, session_of
from windtunnel.cli.parser import Parser
from windtunnel.cli.wording import option
from windtunnel.errors import ConfigurationError
from windtunnel.priceperf.errors import PricePerfError

if TYPE_CHECKING:
    from windtunnel.rendering.report import Report
    from windtunnel.reports.inference.modelled import InferenceEstimateReport

_EPILOG = """\
windtunnel inference BERT-Base                                     modelled: latency, throughput, cost
windtunnel inference roberta-base --batch-size 1 8 --rate 2000     and instances for 2,000 requests/s
windtunnel inference --validate                                    how right that model is
windtunnel inference                                               AWS's published costs, recomputed
windtunnel inference --throughput 2693 --instance trn1.2xlarge     the same for your own figure
windtunnel inference --endpoint NAME --json '[[1, 2]]' --rate 50   measured on an endpoint, under load
"""
_DURATION_S = 10.0


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "inference",
        help="latency, throughput and cost of inference on trn1 and inf2, modelled; AWS's costs recomputed",
        description="What inference takes and costs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        conflict_handler="resolve",  # output's --json is replaced by one that may hold a request
    )
    parser.add_argument(
        "architecture", nargs="?", metavar="ARCHITECTURE", help="BERT-Base, ViT-Base, roberta-base, ..."
    )
    _add_modelled(parser)
    own = parser.add_argument_group("your own figure")
    own.add_argument(
        "--throughput", type=number, metavar="N", help="inferences per second of a whole instance"
    )
    own.add_argument("--instance", metavar="TYPE", help="e.g. trn1.2xlarge (EC2 price)")
    own.add_argument(
        "--usd-per-hour", type=dollars, metavar="USD", help="a price of your own, also without --instance"
    )
    _add_load(parser)
    add_place(parser)
    parser.add_argument("--on", type=day, metavar="DATE", help="use that day's price (default: the newest)")
    output.add_arguments(parser, charts=False)
    parser.add_argument(
        "--json", nargs="?", const=True, metavar="JSON", help="print JSON; with --endpoint, the question"
    )
    parser.set_defaults(func=run_inference)


def _add_modelled(parser: Parser) -> None:
    model = parser.add_argument_group("modelled")
    model.add_argument(
        "--batch-size",
        type=one_of_several,
        nargs="+",
        metavar="N",
        help="sequences of a call (default 1 to 64)",
    )
    model.add_argument(
        "--sequence-length", type=length, metavar="N", help="tokens (default 128; for vision models 197)"
    )
    add_instances(
        parser,
        "default: trn1.2xlarge inf2.xlarge, at EC2's price; with ml. at the price of a SageMaker endpoint",
        group=model,
    )
    model.add_argument(
        "--rate", type=number, metavar="N", help="requests a second: how many instances, and their cost"
    )
    model.add_argument(
        "--hidden-output", action="store_true", help="the answer is the hidden states, as AutoModel's"
    )
    model.add_argument("--validate", action="store_true", help="compare the model with published figures")


def _add_load(parser: argparse.ArgumentParser) -> None:
    load = parser.add_argument_group("measure an endpoint, with --rate or as fast as it answers")
    load.add_argument(
        "--endpoint",
        metavar="NAME",
        help="ask this endpoint; with ARCHITECTURE also show the modelled figures",
    )
    load.add_argument(
        "--file", type=Path, metavar="PATH", help="a file that is sent as it is, instead of --json"
    )
    load.add_argument("--content-type", metavar="TYPE", help=f"of the question; default: {JSON_TYPE}")
    load.add_argument(
        "--clients",
        type=count,
        metavar="N",
        help="clients that ask at the same time (with --rate: at most)",
    )
    load.add_argument("--duration", type=seconds, metavar="S", help=f"seconds (default {_DURATION_S:g})")


_OF_MODEL = ("batch_size", "sequence_length", "instances", "rate", "hidden_output")
_OF_FIGURE = ("throughput", "instance", "usd_per_hour")
_OF_LOAD = ("file", "content_type", "clients", "duration", "aws")


def run_inference(arguments: argparse.Namespace) -> int:
    """Print the report that the options ask for. Returns the exit code."""
    try:
        return _run(arguments)
    except PricePerfError as error:  # an argument is wrong, as in compare and plan
        raise ConfigurationError(str(error)) from error


def _run(arguments: argparse.Namespace) -> int:
    if arguments.endpoint is not None:
        report = _measured(arguments)
        arguments.json = False  # it held the request, and does not ask for JSON output
        return output.show(report, arguments)
    _refuse(arguments, _OF_LOAD, "a load needs --endpoint NAME")
    if isinstance(arguments.json, str):
        raise ConfigurationError(
            f"--json {arguments.json!r:.80} is a question, which needs --endpoint NAME. To print JSON, put --json last."
        )
    return output.show(_report(arguments), arguments)


def _measured(arguments: argparse.Namespace) -> Report:
    from windtunnel.reports.inference import measured
    from windtunnel.reports.inference.load import Load
    from windtunnel.session.boto3_calls import RUNTIME_CONNECTIONS

    _refuse(arguments, ("validate", *_OF_FIGURE), "--endpoint measures")
    if arguments.architecture is None:
        asked_of_a_model = tuple(name for name in (*_OF_MODEL, "on") if name != "rate")
        _refuse(arguments, asked_of_a_model, "modelled figures beside --endpoint need an ARCHITECTURE")
    if isinstance(arguments.json, str) == (arguments.file is not None):
        raise ConfigurationError("--endpoint NAME needs a question: --json '[[1, 2]]' or --file PATH")
    clients = arguments.clients or (1 if arguments.rate is None else RUNTIME_CONNECTIONS)
    if clients > RUNTIME_CONNECTIONS:
        raise ConfigurationError(f"--clients must be from 1 to {RUNTIME_CONNECTIONS}, not {clients}")
    duration_s = _DURATION_S if arguments.duration is None else arguments.duration
    load = Load(duration_s, arguments.rate, clients)
    question = {
        "EndpointName": arguments.endpoint,
        "ContentType": arguments.content_type or JSON_TYPE,
        "Accept": JSON_TYPE,
        "Body": question_of(arguments),
    }
    beside = None if arguments.architecture is None else _modelled(arguments)
    session = session_of(arguments)
    return measured.measured(
        arguments.endpoint,
        lambda: session.endpoints.invoke(question),
        load,
        local=session.local,
        modelled=beside,
    )


def _report(arguments: argparse.Namespace) -> Report:
    if arguments.validate:
        from windtunnel.reports.inference import validation

        _refuse(
            arguments,
            ("architecture", "on", *_OF_MODEL, *_OF_FIGURE),
            "--validate takes only --json and --html",
        )
        return validation.validated()
    if arguments.architecture is not None:
        _refuse(arguments, _OF_FIGURE, "a figure of your own needs no ARCHITECTURE")
        return _modelled(arguments)
    _refuse(
        arguments, _OF_MODEL, "modelled figures need an ARCHITECTURE, e.g. windtunnel inference BERT-Base"
    )
    return _costs(arguments)


def _refuse(arguments: argparse.Namespace, names: tuple[str, ...], why: str) -> None:
    if given := [*map(option, given_of(arguments, names))]:
        raise ConfigurationError(f"{why}; given: {', '.join(given)}")


def _modelled(arguments: argparse.Namespace) -> InferenceEstimateReport:
    from windtunnel.reports.inference import modelled

    return modelled.modelled(
        arguments.architecture,
        arguments.instances or modelled.INSTANCES,
        batch_sizes=arguments.batch_size or modelled.BATCH_SIZES,
        sequence_length=arguments.sequence_length,
        hidden_output=arguments.hidden_output,
        rate_per_s=arguments.rate,
        on=arguments.on,
    )


def _costs(arguments: argparse.Namespace) -> Report:
    from windtunnel.reports.inference import costs

    priced = (arguments.instance, arguments.usd_per_hour) != (None, None)
    if priced != (arguments.throughput is not None):
        raise ConfigurationError(
            "a figure of your own needs --throughput N and --instance TYPE or --usd-per-hour USD (e.g. --throughput "
            "2693 --instance trn1.2xlarge); without them, AWS's published table is shown."
        )
    if arguments.throughput is None:
        return costs.published(arguments.on)
    return costs.inference(
        arguments.throughput, arguments.instance, arguments.on, usd_per_hour=arguments.usd_per_hour
    )
