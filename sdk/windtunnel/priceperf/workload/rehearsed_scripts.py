"""Plain scripts that were rehearsed on simulated cores and also measured on a GPU: how wrong counts alone are.

`rehearsed.json` in `calibration` has the counters of one core (tests/benchmarks/gpu_transfer.py writes it),
`measured.csv` and `measured_other_models.csv` have the measured runs. Only the fit and its tests read them.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from ..calibration.data_files import text_of
from ..calibration.left_out import kind_of_run
from ..calibration.measured_scripts import Script, speed_and_width
from ..calibration.published_rows import OtherRun, measured, measured_others, published_others
from ..instances import InstanceType
from ..model.engines import Constants
from ..model.host_tracing import HOST_SPEED
from ..model.plain_script import is_compiled
from ..model.precision import AUTO_CAST, GPU_PRECISIONS, NO_CAST
from .cluster import Cluster, Run
from .workload import CountedWorkload


class Measured(NamedTuple):
    """One measured run on one GPU or NeuronCore of the instance. ``batch``: samples of a step; ``dtype``: in which
    fp32 products ran; ``reads``: see `OtherRun`.
    """

    name: str
    instance: InstanceType
    batch: float
    dtype: str
    step_s: float
    reads: float | None = None

    @property
    def run(self) -> Run:
        """The same run on every GPU or NeuronCore of the instance."""
        known = (NO_CAST, AUTO_CAST) if self.instance.is_neuron else GPU_PRECISIONS
        precision = next(one for one in known if one.ran_as("fp32") == self.dtype)
        return Run(Cluster(self.instance, 1), self.instance.core_count * self.batch, precision)

    def of(self, job: CountedWorkload) -> CountedWorkload:
        """The rehearsed job, with the host reads of this run's script."""
        if self.reads is None or job.step.host is None:
            return job
        return replace(job, step=replace(job.step, host=replace(job.step.host, reads=self.reads)))


@cache
def rehearsals() -> Mapping[str, CountedWorkload]:
    """The rehearsed jobs, by model."""
    found = json.loads(text_of("rehearsed.json"))
    return {model: CountedWorkload.from_counters(counters) for model, counters in found.items()}


def runs(model: str) -> Iterator[Measured]:
    """The measured runs of a model that use `scaled_dot_product_attention`, as the rehearsed scripts do, and are not
    compiled.
    """
    for row in measured():
        like = row.training.attention == "flash" and not is_compiled(row.stack)
        if like and f", {model} s" in row.config:
            yield Measured(
                row.config, row.instance, row.training.microbatch, row.training.matmul_dtype, row.step_s
            )
    yield from (_measured(other) for other in measured_others() if other.model == model)


def published(model: str) -> Iterator[Measured]:
    """The runs of a model that others published. No constant is fitted to them."""
    yield from (_measured(other) for other in published_others() if other.model == model)


def _measured(run: OtherRun) -> Measured:
    batch = float(run.batch)
    step_s = batch / float(run.samples_per_second)
    reads = float(run.reads) if run.reads else None
    return Measured(run.config, run.instance, batch, run.matmul_dtype, step_s, reads)


def compared(constants: Mapping[str, Constants], *, transformers: bool = True) -> dict[str, list[Script]]:
    """By kind (`kind_of_run`), all runs of transformers, or of other models. ``constants``: by calibration."""
    found: defaultdict[str, list[Script]] = defaultdict(list)
    for model, job in rehearsals().items():
        for run in runs(model) if job.is_transformer is transformers else ():
            key = run.instance.calibration or ""
            found[kind_of_run(key, 1)].append(_script(model, job, run, constants[key]))
    return dict(found)


def _script(model: str, job: CountedWorkload, measured: Measured, constants: Constants) -> Script:
    low, modelled, high = (
        job.step_with(constants, measured.run, host).total_s
        for host in (HOST_SPEED.low, HOST_SPEED.value, HOST_SPEED.high)
    )
    host = math.log(high / modelled if measured.step_s > modelled else modelled / low)
    return Script(model, measured.name, math.log(modelled / measured.step_s), host)


def widening(constants: Mapping[str, Constants]) -> float:
    """Log width that an interval gets in addition for a model that is no transformer, as measured on GPUs."""
    others = compared(constants, transformers=False)
    widths = [
        (speed_and_width(known)[1], speed_and_width(others[kind])[1])
        for kind, known in compared(constants).items()
        if kind in others
    ]
    return max((math.sqrt(max(0.0, other**2 - width**2)) for width, other in widths), default=0.0)
