"""``windtunnel compare``: time and cost of a job, its counters or a described model on several instances."""

from __future__ import annotations

import argparse
import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from windtunnel.cli import output
from windtunnel.cli.amounts import count, nodes, number, whole
from windtunnel.cli.gpu_script import add_gpu_script, has_effect, precisions_of
from windtunnel.cli.options import (
    add_batch,
    add_instances,
    add_lora,
    add_sizes,
    add_user_calibration,
    architecture_of,
    batch_of,
    day,
    full_scale_of,
    rehearsal_of,
    user_calibration_of,
)
from windtunnel.cli.price_options import add_prices, all_priced, prices_of
from windtunnel.cli.wording import option
from windtunnel.errors import ConfigurationError

if TYPE_CHECKING:
    from windtunnel.priceperf import Comparison, Workload

_DESCRIPTION_ONLY = (
    "microbatch", "global_batch", "gradient_accumulation", "tensor_parallel", "pipeline_parallel",
    "dtype", "matmul_dtype", "optimizer", "recompute", "zero", "attention", "head_part", "neuron_version", "software",
    "lora_rank", "lora_targets", "gpu",
)  # fmt: skip


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "compare",
        help="model a job, its counters or a described model on several instance types",
        epilog=output.MODELLED,
    )
    parser.add_argument(
        "job", metavar="COUNTERS.json|JOB", nargs="?", help="counters of a rehearsed job, or its name"
    )
    output.add_arguments(parser, full=True)
    add_instances(
        parser,
        (
            "instance types, each with its number if it differs from --nodes (default: the job's, "
            "ml.trn1.32xlarge, ml.p4d.24xlarge); ml.trn1.32xlarge is priced as SageMaker training, "
            "trn1.32xlarge as EC2; trn1 is the family's largest, as SageMaker training"
        ),
        metavar="TYPE[=N]",
    )
    parser.add_argument("--nodes", type=nodes, metavar="N", help="instances of each type")
    add_batch(parser)
    add_gpu_script(parser)
    parser.add_argument("--scaling", choices=("strong", "weak"), help="also a table over 1 to 64 instances")
    parser.add_argument(
        "--on", "--prices-on", type=day, metavar="DATE", help="only prices in force on that day (2025-06-01)"
    )
    add_prices(parser)
    add_user_calibration(parser)
    add_sizes(parser)
    _add_description(parser)
    parser.set_defaults(func=run_compare)


def _add_description(parser: argparse.ArgumentParser) -> None:
    """Add the options that describe a model without a rehearsal."""
    model = parser.add_argument_group("a described model, or changes to a job whose cores share one model")
    model.add_argument(
        "--architecture",
        metavar="NAME",
        help="BERT-Large, Llama-3.1-8B, ..., a Hugging Face model (Qwen/Qwen3-8B) or its config.json",
    )
    model.add_argument(
        "--tokens", type=count, metavar="N", help="tokens of an epoch, instead of --samples: 15B, 300M"
    )
    model.add_argument(
        "--microbatch",
        type=whole,
        metavar="N",
        help="sequences of a pass (default: the fastest that fits the memory)",
    )
    model.add_argument(
        "--global-batch",
        type=whole,
        metavar="N",
        help="sequences of an optimizer step (default 1024)",
    )
    model.add_argument(
        "--gradient-accumulation",
        type=whole,
        metavar="N",
        help="passes of an optimizer step, each of --microbatch or --batch-per-device sequences",
    )
    model.add_argument("--tensor-parallel", type=whole, metavar="N")
    model.add_argument("--pipeline-parallel", type=whole, metavar="N")
    model.add_argument(
        "--dtype", choices=("bf16", "fp16", "fp32"), help="of weights and activations (default bf16)"
    )
    model.add_argument(
        "--matmul-dtype", choices=("bf16", "fp16", "tf32", "fp32", "fp8"), help="in which products run"
    )
    model.add_argument("--optimizer", choices=("adamw", "lamb", "sgd"))
    model.add_argument("--recompute", choices=("auto", "none", "selective", "full"))
    model.add_argument("--zero", choices=("none", "optimizer", "full"))
    model.add_argument("--attention", choices=("auto", "eager", "flash"))
    model.add_argument(
        "--head-part",
        type=number,
        metavar="PART",
        help=(
            "part of the positions that reach the vocabulary head (default 1; masked language models "
            "0.15, a classifier 0)"
        ),
    )
    add_lora(model)
    model.add_argument(
        "--neuron-version", metavar="VERSION", help="version of trn1's Neuron software, such as 2.21"
    )
    model.add_argument(
        "--software",
        metavar="NAME",
        help="the software that trains it, as a published row names it: llm-foundry",
    )
    model.add_argument(
        "--gpu",
        action="append",
        metavar="NAME=VALUE",
        help="a setting that differs on GPUs: tensor_parallel=1",
    )


def run_compare(args: argparse.Namespace) -> int:
    """Print the comparison. Returns the exit code."""
    from windtunnel.reports.assumed import GLOBAL_BATCH, sequences_a_step, sequences_of
    from windtunnel.reports.comparison.report import compare

    if args.architecture and args.batch_per_device and args.gradient_accumulation and args.microbatch is None:
        # With accumulation, the batch of a device is that of a pass, as in transformers' Trainer.
        args.microbatch, args.batch_per_device = args.batch_per_device, None
    described = args.architecture is not None and not args.job
    batch_assumed = described and _no_batch(args)
    if batch_assumed:
        args.global_batch = GLOBAL_BATCH
    try:
        job = _described(args) if described else _rehearsed(args)
        report = compare(
            job,
            [_instance(text) for text in args.instances] if args.instances else None,
            full_scale_of(args, job),
            instance_count=args.nodes,
            batch=batch_of(args),
            prices=prices_of(args, args.on),
            on=args.on,
            scaling=args.scaling,
            user_calibration=user_calibration_of(args),
            precisions=precisions_of(args),
        )
        has_effect(args, report.comparison)
        all_priced(args, report.comparison.named)
        _all_used(args, report.comparison)
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    length = report.workload.tokens_per_sample if described and args.sequence_length is None else None
    assumed = [] if length is None else [sequences_of(length)]
    assumed += [sequences_a_step(GLOBAL_BATCH)] if batch_assumed else []
    return output.show(replace(report, assumed=(*assumed, *report.assumed)), args)


def _all_used(args: argparse.Namespace, comparison: Comparison) -> None:
    """Refuse an option that changes nothing: none of the instances has what it is about."""
    # A rehearsed job's own global batch is that of --nodes instances.
    if (
        args.nodes is not None
        and (args.batch != "global" or not args.job)
        and all("=" in text for text in args.instances or ("",))
    ):
        raise ValueError(
            f"--nodes has no effect: each instance has its own number ({', '.join(args.instances)})"
        )
    with_neuron = {name: instance.is_neuron for name, instance in comparison.named.items()}
    for name, about, there in (
        ("gpu", "GPUs", not all(with_neuron.values())),
        ("neuron_version", "NeuronCores", any(with_neuron.values())),
    ):
        if getattr(args, name) is not None and not there:
            instances = ", ".join(with_neuron)
            raise ValueError(f"{option(name)} has no effect: no instance has {about} ({instances})")


def _no_batch(args: argparse.Namespace) -> bool:
    """Whether no option says how large a step is. The sequences of a pass do not: nothing says how many passes."""
    of_a_step = (args.batch, args.global_batch, args.gradient_accumulation, args.batch_per_device)
    return of_a_step == (None,) * 4


def _rehearsed(args: argparse.Namespace) -> Any:
    """The counters in a file, or of the job of that name; a job that is modelled by a description may be changed."""
    given = [name for name in ("architecture", *_DESCRIPTION_ONLY) if getattr(args, name) is not None]
    if not args.job:
        if given:
            raise ValueError(f"{option(given[0])} describes a model: give --architecture NAME too")
        raise ValueError("name a COUNTERS.json or a JOB, or describe a model with --architecture NAME")
    if args.tokens is not None and args.architecture:
        raise ValueError(
            f"{args.job!r} would be a job, but --tokens is of a model. A number is one word: 15B"
        )
    if args.tokens is not None:
        raise ValueError(
            "--tokens needs a model (--architecture NAME). For a job, state its samples: --samples N"
        )
    from windtunnel.priceperf import DescribedWorkload
    from windtunnel.rehearsal import read_counters, rehearsed

    named = rehearsal_of(args.job)
    # A job's counters are fetched once: the options of its size and the comparison both read them.
    found = read_counters(named) if isinstance(named, str) else {**named.counters(), "job": args.job}
    if not given and args.sequence_length is None:
        return found
    job = rehearsed(found).workload
    if not isinstance(job, DescribedWorkload):
        if not given:
            return found
        raise ValueError(
            f"{option(given[0])} describes a model, but {args.job} is modelled from the counts of its "
            "rehearsal: give one of the two. (Only a job whose cores share one copy of the model takes "
            "both)"
        )
    model = architecture_of(args.architecture) if args.architecture else None
    if args.global_batch is not None:  # the batch of all instances together, which is --batch's meaning
        if args.batch_per_device or args.batch is not None:
            raise ValueError("--global-batch and --batch both say how large a step is: give one")
        args.batch, args.global_batch = str(args.global_batch), None
    changed = job.changed(model, **_settings(args))
    args.sequence_length = None  # now part of the workload; not to be given again as part of its size
    return changed


def _described(args: argparse.Namespace) -> Workload:
    from windtunnel.priceperf import Workload

    if args.full_scale_samples is not None and args.tokens is not None:
        raise ValueError("--samples and --tokens both say the size of an epoch: give one")
    if args.full_scale_samples is None and args.tokens is None:
        raise ValueError("--architecture needs the size of an epoch: --samples N (sequences) or --tokens N")
    if args.batch == "rehearsed":
        raise ValueError(
            "--batch rehearsed has no effect: a described model has no rehearsal. State its batch: --batch 256"
        )
    for name in ("global_batch", "gradient_accumulation"):
        if getattr(args, name) is not None and (args.batch_per_device or (args.batch or "")[:1].isdigit()):
            stated = "--batch-per-device" if args.batch_per_device else "--batch"
            raise ValueError(f"{stated} and {option(name)} both say how large a step is: give one")
    job = Workload.transformer(architecture_of(args.architecture), **_settings(args))
    if args.tokens is not None:
        args.full_scale_samples = math.ceil(args.tokens / job.sequence_length)
    return job


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    """The description's settings that the command line gives."""
    names = ("sequence_length", *(name for name in _DESCRIPTION_ONLY if name != "gpu"))
    found = {name: value for name in names if (value := getattr(args, name)) is not None}
    on_gpu: dict[str, str | int] = {}
    for text in args.gpu or ():
        name, value = _setting(text)
        if name in on_gpu:
            raise ValueError(f"--gpu gives {name} twice: leave one")
        on_gpu[name] = value
    return {**found, "on_gpu": on_gpu}


def _setting(text: str) -> tuple[str, str | int]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--gpu takes NAME=VALUE, such as tensor_parallel=1, not {text!r}")
    return name.strip().replace("-", "_"), int(value) if value.isdecimal() else value.strip()


def _instance(text: str) -> str | tuple[str, int]:
    name, equals, count = text.partition("=")
    if not re.fullmatch(r"[a-z][\w.-]*", name) or (equals and not count.isdecimal()):
        raise ValueError(f"--instances takes TYPE or TYPE=N, such as ml.trn1.32xlarge=4, not {text!r}")
    return (name, int(count)) if equals else name
