"""Where and how to train a model: every plan that fits, cheapest first, fastest first, and the Pareto front.

windtunnel.plan("Llama-3.1-8B", ["trn1", "p4d"], tokens=15e9, deadline_hours=48, budget_usd=2_000)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from windtunnel.priceperf import Architecture, FullScale, InvalidInput, PriceBook
from windtunnel.priceperf.errors import quoted
from windtunnel.priceperf.model.config_json import known_architecture
from windtunnel.priceperf.model.lora import LoraTargets, lora_of
from windtunnel.priceperf.model.training_settings import Attention, Recompute, ZeroStage
from windtunnel.priceperf.money.plan import Plans, plans
from windtunnel.priceperf.workload.full_scale import LARGEST
from windtunnel.priceperf.workload.splits import OpenSplit
from windtunnel.priceperf.workload.stated_model import weights_of
from windtunnel.prices.cache import book_and_notes
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Document
from windtunnel.rendering.plots.chart import Chart
from windtunnel.rendering.report import Report
from windtunnel.reports.assumed import GLOBAL_BATCH, of_the_model, sequences_a_step, sequences_of
from windtunnel.reports.plan import labels
from windtunnel.reports.plan.chart import plan_charts
from windtunnel.reports.plan.data import plans_data
from windtunnel.reports.plan.sections import FRONT, headline, sections

SCHEMA = "windtunnel.plan/1"
INSTANCES = ("trn1", "p4d", "p5")
TOKENS = 10**9
"""Size of the job where none is given: cost and time of other sizes are in proportion, except for the fixed costs."""


@dataclass(eq=False, repr=False)
class PlanReport(Report):
    """Plans for a job.

    Attributes:
        plans: all plans with times, costs and intervals; the Pareto front; what could not be planned, and why.
        assumed: what the caller did not give, in words.
        price_notes: the day of the prices.
        on: the day whose prices were asked for; None: the newest.
    """

    title: str
    plans: Plans
    assumed: tuple[str, ...] = ()
    size_assumed: bool = False
    price_notes: tuple[str, ...] = ()
    on: date | None = None

    def __repr__(self) -> str:
        """What was planned."""
        return f"<PlanReport of {self.title}: {len(self.plans.plans):,} plans; print it to read it>"

    def document(self) -> Document:
        """As `Report.document`. Sentences of the headline have a third line where nothing else gives way to it."""
        tight, roomy = self._document(2), self._document(3)
        return roomy if roomy.sections[:1] == tight.sections[:1] else tight

    def _document(self, headline_lines: int) -> Document:
        job, samples = self.plans.job, self.plans.size.train_samples
        steps = "one step, not full, of" if samples < job.global_batch else "steps of"
        above = Document(
            f"Windtunnel plan: {self.title}",
            f"modelled, not measured; {labels.tokens(samples * job.sequence_length)} in {steps} "
            f"{fmt.many(job.global_batch, 'sequence')} of {job.sequence_length:,}, bf16, AdamW"
            f"{'' if job.lora is None else f', {job.lora.words}'}",
            headline(self.plans, self.assumed),
            (),
            "The rest: --full, report.to_text(full=True)",
            headline_lines,
        )
        parts = sections(
            self.plans, above, size_assumed=self.size_assumed, price_notes=self.price_notes, on=self.on
        )
        return replace(above, sections=parts, more=above.more if len(parts) > 1 else "")

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "title": self.title,
            **plans_data(self.plans),
            "assumed": list(self.assumed),
            "price_notes": list(self.price_notes),
        }

    def charts(self) -> tuple[Chart, ...]:
        """``pareto``: time against cost."""
        return plan_charts(self.plans, FRONT if self.plans.pareto else "")

    def _no_charts(self) -> str:
        return "no plan has a price."


def plan(
    architecture: str | Architecture | Mapping[str, Any],
    instances: Sequence[str] = INSTANCES,
    *,
    tokens: float | None = None,
    samples: int | None = None,
    steps: int | None = None,
    global_batch: int | None = None,
    sequence_length: int | None = None,
    parameters: float | None = None,
    deadline_hours: float | None = None,
    budget_usd: float | None = None,
    nodes: int | Sequence[int] | None = None,
    tensor_parallel: int | None = None,
    pipeline_parallel: int | None = None,
    microbatch: int | None = None,
    recompute: Recompute | None = None,
    zero: ZeroStage | None = None,
    attention: Attention | None = None,
    software: str | Sequence[str] = (),
    lora_rank: int | None = None,
    lora_targets: LoraTargets | None = None,
    prices: PriceBook | None = None,
    on: date | None = None,
) -> PlanReport:
    """Search the splits, micro-batches, recomputation and numbers of instances that fit the memory.

    Blocks for a second or two; idempotent. Trains in bf16 with AdamW. An argument that is None is searched, or assumed
    and named in the report.

    Args:
        architecture: as `Workload.transformer` takes it.
        instances: types or families (``trn1`` is ml.trn1.32xlarge, its largest); ``ml.`` names and families are priced
            as SageMaker training, others as EC2. What cannot be modelled is named in the report.
        tokens: size of the whole job. None, without another size: 1e9.
        samples: the size in sequences.
        steps: the size in optimizer steps.
        global_batch: sequences of an optimizer step. None: 1,024.
        sequence_length: tokens of a sequence. None: what the model, or its family, was trained with.
        parameters: weights of the model. None: the architecture's.
        deadline_hours: the most hours from the request to the trained model.
        budget_usd: the most that the job may cost, in US dollars.
        nodes: the number of instances, or several to try. None: 1 to 64.
        tensor_parallel: workers that share a layer, fixed instead of searched; so are the next four.
        pipeline_parallel: stages of layers.
        microbatch: sequences of one pass.
        recompute: ``none``, ``selective`` or ``full``.
        zero: ``none``, ``optimizer`` (ZeRO-1) or ``full`` (ZeRO-3, FSDP).
        attention: ``eager`` or ``flash`` on all instances. None: what today's scripts of such a model have there, and
            the report says so where it costs time.
        software: the training software, as in `Workload.transformer`; of several, each instance takes the first with
            published rows on its chip.
        lora_rank: as in `Workload.transformer`, like the next.
        lora_targets: which matrices have adapters.
        prices: another price book than the built-in one with what `windtunnel prices refresh` has fetched.
        on: prices in force on that day. None: the newest.

    Raises:
        UnknownInstance: a name that is no instance's.
        NotCalibrated: no calibration models any of them.
        InvalidInput: an argument out of its range, or more than one size.
    """
    model, own = known_architecture(architecture)
    weights = weights_of(own, parameters)
    length = model.usual_length if sequence_length is None else sequence_length
    batch = GLOBAL_BATCH if global_batch is None else global_batch
    job = OpenSplit(
        model,
        weights,
        length,
        batch,
        tensor_parallel,
        pipeline_parallel,
        microbatch,
        recompute,
        zero,
        lora_of(lora_rank, lora_targets, model),
        attention=attention,
    )
    job.check()
    size_assumed = tokens is samples is steps is None
    size = FullScale(
        _samples(TOKENS if size_assumed else tokens, samples, steps, job),
        compile_cached=True,
        sequence_length=length,
    )
    book, price_notes = book_and_notes(prices, on)
    found = plans(
        job,
        [instances] if isinstance(instances, str) else instances,
        size,
        nodes=nodes,
        software=[software] if isinstance(software, str) else software,
        deadline_hours=deadline_hours,
        budget_usd=budget_usd,
        prices=book,
        on=on,
    )
    assumed = [labels.tokens(TOKENS)] if size_assumed else []
    assumed += [sequences_of(length)] if sequence_length is None else []
    assumed += [sequences_a_step(batch)] if global_batch is None else []
    assumed += of_the_model(model, length)
    title = architecture if isinstance(architecture, str) else fmt.one_line(model.name, 40)
    title = title or f"{weights / 1e9:.1f} B {model.family}"
    return PlanReport(title, found, tuple(assumed), size_assumed, price_notes, on)


def _samples(tokens: float | None, samples: int | None, steps: int | None, job: OpenSplit) -> int:
    given = {"tokens": tokens, "samples": samples, "steps": steps}
    (name, value), *more = ((name, value) for name, value in given.items() if value is not None)
    if more:
        raise InvalidInput(
            f"give one size of the job, not {name} and {' and '.join(name for name, _ in more)}"
        )
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= LARGEST:
        raise InvalidInput(f"{name} must be 1 or more, at most {LARGEST:g}, not {quoted(value)}")
    sequences = {"tokens": value / job.sequence_length, "samples": value, "steps": value * job.global_batch}
    return math.ceil(sequences[name])
