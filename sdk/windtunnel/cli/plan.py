"""``windtunnel plan``: the cheapest and the fastest instances and splits to train a model."""

from __future__ import annotations

import argparse
from typing import Any

from windtunnel.cli import output
from windtunnel.cli.amounts import count, dollars, hours, length, one_of_several
from windtunnel.cli.options import (
    add_instances,
    add_lora,
    architecture_of,
    day,
)
from windtunnel.cli.price_options import add_prices, all_priced, prices_of
from windtunnel.errors import ConfigurationError


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "plan",
        help="search for instances, their number and a split that fit a model, by cost and by time",
        epilog=output.MODELLED,
    )
    output.add_arguments(parser, full=True)
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument(
        "model",
        metavar="ARCHITECTURE",
        nargs="?",
        help="Llama-3.1-8B, ..., a Hugging Face model (Qwen/Qwen3-8B) or its config.json",
    )
    model.add_argument("--architecture", metavar="NAME", help="the same, as compare takes it")
    add_instances(
        parser,
        (
            "types or families, with blanks or commas between them (default: trn1,p4d,p5); trn1 is "
            "ml.trn1.32xlarge, priced as SageMaker training; trn1.32xlarge is priced as EC2"
        ),
    )
    size = parser.add_argument_group("the job")
    size.add_argument(
        "--tokens", type=count, metavar="N", help="tokens of the whole training: 15B, 300M (default 1B)"
    )
    size.add_argument(
        "--samples", "--full-scale-samples", type=count, metavar="N", help="sequences, instead of tokens"
    )
    size.add_argument("--steps", type=count, metavar="N", help="optimizer steps, instead of tokens")
    size.add_argument(
        "--global-batch", "--batch", type=count, metavar="N", help="sequences of a step (default 1024)"
    )
    size.add_argument(
        "--sequence-length", type=length, metavar="N", help="tokens of a sequence (default: the family's)"
    )
    size.add_argument(
        "--parameters", type=count, metavar="N", help="number of weights (default: the architecture's)"
    )
    add_lora(size)
    size.add_argument(
        "--software",
        nargs="+",
        default=(),
        metavar="NAME",
        help=(
            "the software that trains it, as published rows name it: neuronx-distributed nemo; each "
            "instance takes the first that is known for it"
        ),
    )
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--deadline",
        type=hours,
        metavar="TIME",
        help="48h, 30min or 2d, start included; a number alone is hours",
    )
    limits.add_argument("--budget", type=dollars, metavar="USD", help="US dollars")
    limits.add_argument(
        "--nodes",
        type=one_of_several,
        nargs="+",
        metavar="N",
        help=(
            "instances to try (default: those of 1 to 64 on which the copies of the model share the batch evenly: with "
            "1,024 sequences 1, 2, 4, ... 64, and these times a number of pipeline stages)"
        ),
    )
    limits.add_argument("--on", "--prices-on", type=day, metavar="DATE", help="prices in force on that day")
    add_prices(parser)
    fixed = parser.add_argument_group("fixed instead of searched")
    fixed.add_argument("--tensor-parallel", type=count, metavar="N")
    fixed.add_argument("--pipeline-parallel", type=count, metavar="N")
    fixed.add_argument("--microbatch", type=count, metavar="N", help="sequences of a pass")
    fixed.add_argument("--recompute", choices=("none", "selective", "full"))
    fixed.add_argument("--zero", choices=("none", "optimizer", "full"), help="full: ZeRO-3, FSDP")
    fixed.add_argument("--attention", choices=("eager", "flash"), help="default: what scripts have there")
    parser.set_defaults(func=run_plan)


def run_plan(args: argparse.Namespace) -> int:
    """Print the plans. Returns the exit code."""
    from windtunnel.reports.plan.report import INSTANCES, plan

    given = (
        "tokens", "samples", "steps", "global_batch", "sequence_length", "parameters", "nodes", "on",
        "tensor_parallel", "pipeline_parallel", "microbatch", "recompute", "zero", "attention", "software",
        "lora_rank", "lora_targets",
    )  # fmt: skip
    if numbered := [name for name in args.instances or () if "=" in name]:
        raise ConfigurationError(
            f"--instances {numbered[0]}: plan searches for the number. To fix it for all types: --nodes 4"
        )
    try:
        report = plan(
            architecture_of(args.model or args.architecture or ""),
            args.instances or INSTANCES,
            deadline_hours=args.deadline,
            budget_usd=args.budget,
            prices=prices_of(args, args.on),
            **{name: getattr(args, name) for name in given},
        )
        all_priced(args, (place.name for place in report.plans.places))
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    return output.show(report, args)
