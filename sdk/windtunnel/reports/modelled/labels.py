"""The names of estimates, and the warnings that go with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from windtunnel.priceperf import (
    Comparison,
    Cost,
    DescribedWorkload,
    Estimate,
    PerDevice,
    Price,
    Training,
    Workload,
)
from windtunnel.rendering import format as fmt

MAY_NOT_FIT = "TIGHT MEMORY, try it before you rely on it"
_RULES = {
    "rehearsed": "as rehearsed on each NeuronCore",
    "global": "all instances have the job's own global batch",
    "of a split job": "the job's own global batch, of as many instances",
    "per_device": "all workers have as many samples as a core had",
}


def rule_words(comparison: Comparison, workload: Workload) -> str:
    """In words, which batch each instance gets."""
    rule = comparison.batch_rule
    if isinstance(workload, DescribedWorkload) and isinstance(rule, str):
        if workload.rehearsed is None and workload.global_batch is None:
            number = workload.gradient_accumulation or 1
            passes = "one pass" if number == 1 else f"{number:,} passes"
            is_open = {workload.there(item.instance).is_split_open for item in comparison.estimates}
            of = "for each worker" if is_open == {True} else "of each copy of the model"
            of += " (for each worker where no split is stated)" if len(is_open) > 1 else ""
            return f"{passes} {of}, so instances differ (--global-batch N gives all the same)"
        if workload.rehearsed is None:
            return "as described"
        return _RULES["of a split job" if rule == "rehearsed" else rule]
    if isinstance(rule, PerDevice):
        return f"{fmt.many(rule.samples, 'sample')} on each worker, as stated"
    if rule == "rehearsed":
        return _RULES[rule] + _of_gpus(comparison.estimates)
    return (
        _RULES[rule]
        if isinstance(rule, str)
        else f"{fmt.many(rule, 'sample')} on all workers of each together, as stated"
    )


def _of_gpus(estimates: Sequence[Estimate]) -> str:
    """What GPUs have where NeuronCores have the rehearsed batch: as much each, or the job's batch together."""
    cores = {item.samples_per_core for item in estimates if item.instance.is_neuron}
    alike = {item.samples_per_core in cores for item in estimates if not item.instance.is_neuron}
    if not (cores and alike):
        return ""
    if alike == {True}:
        return "; each GPU has as much"
    some = ", or each has a core's" if True in alike else ""
    return f"; GPUs share the job's batch{some}"


def label(item: Estimate) -> str:
    """An estimate's name, as ``trn1.32xlarge`` or ``trn1.32xlarge x 4``; one priced on EC2 says so."""
    return f"{place(item)} x {item.instance_count}" if item.instance_count > 1 else place(item)


def place(item: Estimate) -> str:
    """The instance without ``ml.``; one priced on EC2 says so."""
    return priced(item.name)


def priced(name: str) -> str:
    """`place` for the name of an instance in the price book."""
    return name.removeprefix("ml.") if name.startswith("ml.") else f"{name} on EC2"


def bought(price: Price) -> str:
    """The offering of a price in short: ``SageMaker on-demand``."""
    return price.offering.replace("SageMaker training", "SageMaker")


def whose_prices(costs: Iterable[Cost | None]) -> str:
    """``SageMaker prices``, ``EC2 prices``; empty if there are both, as `place` then says which are EC2's."""
    whose = {cost.price.offering.partition(" ")[0] for cost in costs if cost is not None}
    return f"{whose.pop()} prices" if len(whose) == 1 else ""


def machine(item: Estimate) -> str:
    """The instances however their hour is bought, as ``trn1.32xlarge x 4``."""
    name = item.instance.name.removeprefix("ml.")
    return f"{name} x {item.instance_count}" if item.instance_count > 1 else name


def machines(estimates: Sequence[Estimate]) -> list[Estimate]:
    """One estimate of each `machine`, though one may be listed with several ways to buy its hour."""
    return list({machine(item): item for item in estimates}.values())


def numbers(counts: Sequence[int]) -> str:
    """Numbers of instances, as ``1 instance`` or ``1, 2, 4 instances``."""
    each = ", ".join(f"{count:,}" for count in counts)
    return f"{each} instance{'' if list(counts) == [1] else 's'}"


def degrees(training: Training) -> str:
    """The degrees of tensor, pipeline and data parallelism, as ``tp8 pp1 dp16``."""
    return f"tp{training.tensor_parallel} pp{training.pipeline_parallel} dp{training.data_parallel}"


def sharing(training: Training) -> str:
    """What data-parallel workers share, as launchers name it, as in ``, ZeRO-1``; empty where they share nothing."""
    return {"none": "", "optimizer": ", ZeRO-1", "full": ", FSDP"}[training.zero]


def outside_quantity(reason: str) -> str:
    """The quantity of a sentence of `RangeCheck.outside`."""
    return re.split(r" \d", reason)[0]


def outside_words(items: Iterable[Estimate]) -> str:
    """What lies outside the calibrated range: the farthest quantity with its range, the others by their names."""
    first, *others = (reason for item in items for reason in item.range_check.outside)
    names = dict.fromkeys(map(outside_quantity, others))
    names.pop(outside_quantity(first), None)
    return f"{first}; also {', '.join(names)}" if names else first


def caveats(estimates: Iterable[Estimate]) -> tuple[str, ...]:
    """A sentence each for estimates changed by a user's calibration, outside the calibrated range, or too large."""
    items = tuple(estimates)
    found = (
        ("YOUR CALIBRATION changes the steps", [label(item) for item in items if item.correction]),
        (
            "Outside the calibrated range, interval widened",
            [label(item) for item in items if item.range_check.outside],
        ),
        (
            "Does not fit the memory as described",
            [label(item) for item in items if not item.fits],
        ),
    )
    return tuple(f"{what}: {', '.join(dict.fromkeys(names))}." for what, names in found if names)


def plain_scripts(named: Iterable[tuple[str, bool]]) -> Iterator[tuple[list[str], str]]:
    """What names are modelled as, with each such group of names: ``a plain script, with torch.compile``.

    ``named``: each with whether its script is compiled.
    """
    found = list(named)
    for compiled, how in ((False, "which launches each kernel by itself"), (True, "with torch.compile")):
        if its := [name for name, is_compiled in found if is_compiled is compiled]:
            yield its, f"a plain script, {how}"
