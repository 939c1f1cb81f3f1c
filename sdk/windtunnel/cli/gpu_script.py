"""The option ``--gpu-script``: how a rehearsed script runs on GPUs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windtunnel.priceperf import Comparison
    from windtunnel.reports.job.report import Precisions


def add_gpu_script(parser: argparse.ArgumentParser) -> None:
    """Add ``--gpu-script``."""
    parser.add_argument(
        "--gpu-script",
        choices=("tf32", "fp32", "bf16", "compiled"),
        help=(
            "how a rehearsed script runs its fp32 products on GPUs: in TF32 (default), in fp32, in bf16 autocast, or "
            "in bf16 autocast with torch.compile"
        ),
    )


def precisions_of(args: argparse.Namespace) -> Precisions:
    """The precisions that the command line chooses."""
    from windtunnel.priceperf.model.precision import GPU_SCRIPTS
    from windtunnel.reports.job.report import Precisions

    return Precisions(gpu=GPU_SCRIPTS.get(args.gpu_script))


def has_effect(args: argparse.Namespace, comparison: Comparison) -> None:
    """Check that ``--gpu-script`` is what some GPU runs.

    Raises:
        InvalidInput: no instance has GPUs, or the job has no such setting there.
    """
    from windtunnel.priceperf import InvalidInput

    wanted = precisions_of(args).gpu
    on_gpus = [item for item in comparison.estimates if not item.instance.is_neuron]
    if wanted is None or any(
        item.precision == wanted or (wanted.compiled and item.precision.compiled) for item in on_gpus
    ):
        return
    if all(instance.is_neuron for instance in comparison.named.values()):
        why = f"no instance has GPUs ({', '.join(comparison.named)})"
    elif not on_gpus:
        return  # the report says why the job cannot run there
    elif any(item.training is not None for item in on_gpus):
        why = "the job is modelled by its description, for which windtunnel compare takes --gpu software=..."
    else:
        why = f"on GPUs the products of this job run in {on_gpus[0].precision.name}"
    raise InvalidInput(f"--gpu-script {args.gpu_script} has no effect: {why}")
