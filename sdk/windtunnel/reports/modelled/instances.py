"""Which instances a report shows."""

from __future__ import annotations

from collections.abc import Sequence

from windtunnel.priceperf import CountedWorkload, Workload, instance_type

GPU = "ml.p4d.24xlarge"
LARGEST_NEURON = "ml.trn1.32xlarge"
_IN_PLACE_OF_IT = "ml.trn1n.32xlarge"
"""The same NeuronCores with another network: who uses it does not want to see the other too."""


def shown_beside(own: str, asked: Sequence[str] | None) -> tuple[str, ...]:
    """For a job: what was asked for, or its own instance, the largest trn1 and p4d."""
    if asked:
        # A rehearsal is of a SageMaker job, so its prices are SageMaker's, with or without "ml." in the names.
        return tuple(instance_type(name).name for name in asked)
    return (own, GPU) if own == _IN_PLACE_OF_IT else (own, LARGEST_NEURON, GPU)


def default_instances(workload: Workload) -> tuple[str, ...]:
    """For a comparison that names none: the largest trn1 and p4d."""
    if isinstance(workload, CountedWorkload) and workload.instance_type == _IN_PLACE_OF_IT:
        return (_IN_PLACE_OF_IT, GPU)
    return (LARGEST_NEURON, GPU)
