"""How far to trust an answer, and what it leaves out: a sentence each."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from windtunnel.priceperf import Comparison, CountedWorkload, Estimate, FullScale, Workload
from windtunnel.priceperf.calibration.measured_scripts import errors_of_scripts
from windtunnel.priceperf.model.memory_need import usable_bytes
from windtunnel.priceperf.model.precision import is_fp32_on_neuron
from windtunnel.rendering import format as fmt
from windtunnel.reports.modelled.labels import MAY_NOT_FIT, label
from windtunnel.reports.modelled.sections import unseen_error, used_calibrations

STATE_LOADER = "--loader-samples-per-second"
"""The option that states the loader's rate, without which waiting for input is not modelled."""


def trust(comparison: Comparison, workload: Workload) -> str:
    """The model's errors on published rows that it never saw."""
    estimates = comparison.estimates
    is_outside = any(item.range_check.outside for item in estimates)
    found = []
    if specified := [item for item in estimates if item.instance.from_specification]:
        names = list(dict.fromkeys(item.instance.name.split(".")[1] for item in specified))
        whose = "their specifications" if len(names) > 1 else "its specification"
        found.append(f"{', '.join(names)} by {whose} alone, so with a wide interval.")
    if errors := _errors(comparison, workload):
        inside = " in range; outside of it no error is known" if is_outside else ""
        errors = errors[0].upper() + errors[1:] if found else errors
        found.append(f"{errors} on average{inside}.")
    if any(is_fp32_on_neuron(item.instance, item.precision) for item in estimates):
        # Outside the range, wider intervals are mentioned already, and two lines hold no more.
        wider = "" if is_outside else ": by the peak, so the interval is wider"
        found.append(f"Few in fp32 on NeuronCores{wider}.")
    return " ".join(found)


def _errors(comparison: Comparison, workload: Workload) -> str:
    """The model's errors on the published rows of each accelerator; empty where none has rows of its own."""
    estimates = comparison.estimates
    own_rows = {item.calibration.key for item in estimates if not item.instance.from_specification}
    scripts = {item.calibration.key for item in estimates if _is_script(item)}
    known = {
        item.calibration.key: item.calibration.unseen_family_error
        if item.software_speed is None
        else item.calibration.by_software_error
        for item in estimates
        if item.range_check.by_known_software
    }
    strange: list[str] = []
    familiar: list[str] = []
    plain: list[str] = []
    for item in used_calibrations(comparison):
        if item.key not in own_rows:
            continue
        if item.key in scripts and (errors := errors_of_scripts(item.key, workload.known_as)) is not None:
            kind, error = plain, errors["mean_error"]
        elif (by_family := known.get(item.key)) is not None:
            kind, error = familiar, by_family
        else:
            kind, error = strange, unseen_error(comparison, item)
        kind.append(f"{fmt.percent(error)} on {item.label}")
    parts = [f"of software new to the model are off by {', '.join(strange)}"] if strange else []
    if familiar:
        verb = "by" if strange else "are off by"
        parts.append(f"of new models by its software {verb} {', '.join(familiar)}")
    sentences = []
    if parts:
        adapters = any(item.training is not None and item.training.lora for item in estimates)
        less_sure = " (with all weights trained; adapters are less sure)" if adapters else ""
        sentences.append(f"published throughputs{less_sure} {'; '.join(parts)}")
    if plain:
        sentences.append(f"plain scripts that the project measured are off by {', '.join(plain)}")
    return "; ".join(sentences)


def left_out(
    comparison: Comparison, workload: Workload, full_scale: FullScale | None, found: Collection[str] = ()
) -> str:
    """What the bill leaves out; empty: nothing. ``found``: the kinds of the rehearsal's findings."""
    lacks = _lacks(comparison, workload, full_scale)
    if "input_bound" in found and (full_scale is None or full_scale.loader_samples_per_s is None):
        lacks.insert(0, f"waiting for input ({STATE_LOADER})")
    stated = f"Not included, as not stated: {', '.join(lacks)}." if lacks else ""
    on_the_host = "Not included: what trn1 leaves to the CPU." if "cpu_fallback" in found else ""
    return f"{on_the_host} {stated}".strip()


def memory(estimates: Sequence[Estimate], workload: Workload) -> str:
    """Where the memory may be too small. What a counted job's fullest core held grows at most with the batch."""
    if not isinstance(workload, CountedWorkload):
        tight = [
            f"{label(item)} ({fmt.percent(need.part)})"
            for item in estimates
            if (need := item.memory) is not None and need.is_tight
        ]
        return f"{MAY_NOT_FIT}: {', '.join(tight)}." if tight else ""
    tried = workload.step.samples * workload.passes
    unknown = [
        label(item)
        for item in estimates
        if item.samples_per_core > tried
        and not (workload.accumulation and item.instance.is_neuron)  # more passes of the rehearsed samples
        and workload.peak_bytes * item.samples_per_core / tried > usable_bytes(item.instance)
    ]
    if not unknown:
        return ""
    return f"Not known: whether a batch that was not rehearsed fits {' and '.join(dict.fromkeys(unknown))}."


def _is_script(item: Estimate) -> bool:
    """Whether an estimate is modelled as a plain script: a rehearsed script on a GPU, or software named so."""
    return not item.instance.is_neuron if item.training is None else item.training.plain


def _lacks(comparison: Comparison, workload: Workload, full_scale: FullScale | None) -> list[str]:
    lacks = []
    if full_scale is None or not (full_scale.preparation_s or full_scale.tokenised_samples):
        # Batches of token numbers are made from texts; what other batches are made from is not known.
        sizes = [
            workload.sized(full_scale),
            *([workload.rehearsed.full_scale()] if workload.rehearsed else []),
        ]
        of_texts = any(size.sequence_length is not None for size in sizes)
        lacks.append(f"preparation of the data{' (tokenising)' if of_texts else ''}")
    evaluation_stated = full_scale is not None and full_scale.evaluation_samples is not None
    if not evaluation_stated and not any(
        cost.seconds for item in comparison.estimates for cost in item.fixed if cost.name == "evaluation"
    ):
        lacks.append("evaluation")
    return lacks
