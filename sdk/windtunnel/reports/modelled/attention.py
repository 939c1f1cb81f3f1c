"""Where eager attention is assumed on NeuronCores, and what a flash kernel would change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from windtunnel.priceperf import Estimate
from windtunnel.priceperf.model.described_step import training_step
from windtunnel.rendering import format as fmt
from windtunnel.reports.modelled.labels import place

_WORTH_SAYING = 0.9
"""A step with the kernel takes at most this part of the time."""


def eager_words(estimates: Iterable[Estimate]) -> str:
    """How much longer steps on NeuronCores are because attention, which was not stated, is taken as eager there.

    Empty where it is not, or where a flash kernel would save little.
    """
    parts: dict[str, str] = {}
    for item in estimates:
        training, name = item.training, place(item)
        if training is None or not item.instance.is_neuron or training.attention != "eager" or name in parts:
            continue
        eager, flash = (
            training_step(way, item.instance, item.calibration.constants, item.instance_count).total_s
            for way in (training, replace(training, attention="flash"))
        )
        if flash <= _WORTH_SAYING * eager:
            parts[name] = f"{fmt.percent(flash / eager)} of the time on {name}"
    each = ", ".join(parts.values())
    return each and f"EAGER ATTENTION assumed. With a flash kernel (--attention flash) a step takes {each}."
