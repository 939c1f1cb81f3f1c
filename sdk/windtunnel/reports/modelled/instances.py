"""Which instances a report shows."""

from __future__ import annotations

from collections.abc import Sequence

from windtunnel.priceperf import Workload, instance_type
from windtunnel.priceperf.instances import instance_types, named_instance

GPU = "ml.p4d.24xlarge"
LARGEST_NEURON = "ml.trn1.32xlarge"


def shown_beside(own: str, asked: Sequence[str] | None) -> tuple[str, ...]:
    """The instances shown for a job: those asked for, or its own, the largest trn1 and p4d."""
    if asked:
        # A rehearsal is of a SageMaker job, so its prices are SageMaker's, with or without "ml." in the names.
        return tuple(one.name for one in instance_types(map(named_instance, asked)))
    return tuple(dict.fromkeys((own, _large_neuron(own), GPU)))


def default_instances(workload: Workload) -> tuple[str, ...]:
    """The instances of a comparison that names none: as for a job; for a description the largest trn1 and p4d."""
    rehearsed = workload.rehearsed
    return shown_beside(LARGEST_NEURON if rehearsed is None else rehearsed.instance_type, None)


def _large_neuron(own: str) -> str:
    """The largest trn1, or the job's own instance where that has as many of the same chips."""
    large = instance_type(LARGEST_NEURON)
    return own if instance_type(own).same_chips_as(large) else large.name
