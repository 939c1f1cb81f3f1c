"""The size of the whole job, of which a rehearsal ran only a few steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidInput, quoted
from ..instances import InstanceType

LARGEST = 1e15
"""Upper limit of every size: more samples than any data set has, and small enough for exact sums of floats."""
_FOUND = ("epochs", "evaluation_samples", "evaluation_split", "sequence_length")
"""What a rehearsal may find."""
_SLOWEST = 1e-6
"""Lower limit of samples a second: one in twelve days."""


@dataclass(frozen=True)
class FullScale:
    """The size of the whole job.

    ``epochs``, ``evaluation_samples``, ``evaluation_split`` and ``sequence_length`` are as the rehearsal found them,
    where you do not give them. If there is none, or it could not tell: 1 epoch, nothing evaluated, unknown length.

    Args:
        train_samples: samples of one epoch.
        epochs: passes over these samples. (A rehearsal that ran whole counts as one.)
        evaluation_samples: samples evaluated after each epoch; 0: none.
        dataset_gib: GiB that each instance downloads; None: not known, no download is counted.
        model_gib: GiB that each instance uploads; None: 4 bytes for each saved weight (only the adapters with LoRA),
            or nothing if their number is not known.
        preparation_s: seconds in which the job trains nothing (tokenising, unpacking, checkpoints), if you know them.
        evaluation_split: True: the workers share the evaluation samples. False: each worker evaluates all of them,
            as with a loader without a sampler. None: as the rehearsal's loaders showed; True if there are none.
        tokenised_samples: text samples that the script itself tokenises, in one process, before it trains;
            for when you do not know how long that takes.
        compile_cached: True if all graphs come from a compile cache.
        sequence_length: tokens of a sample; only compared with the calibrated range. For a described job
            it must be the job's own: `DescribedWorkload.changed` models another one.
        loader_samples_per_s: samples that one data loader process prepares (decodes, augments) a second while every
            vCPU runs one. Steps wait if the vCPUs of all instances prepare fewer samples than the steps train. None:
            not known, no step waits.

    Raises:
        InvalidInput: a number out of its range.
    """

    train_samples: int
    epochs: int | None = None
    evaluation_samples: int | None = None
    dataset_gib: float | None = None
    model_gib: float | None = None
    preparation_s: float = 0.0
    compile_cached: bool = False
    sequence_length: int | None = None
    tokenised_samples: int = 0
    evaluation_split: bool | None = None
    loader_samples_per_s: float | None = None

    def __post_init__(self) -> None:
        """Check every number."""
        for name in ("train_samples", "epochs", "evaluation_samples", "tokenised_samples", "sequence_length"):
            value = getattr(self, name)
            if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
                raise InvalidInput(f"FullScale: {name} must be a whole number, not {quoted(value)}")
        for name, least, needed in (
            ("train_samples", 1, True),
            ("epochs", 1, False),
            ("evaluation_samples", 0, False),
            ("preparation_s", 0, True),
            ("tokenised_samples", 0, True),
            ("dataset_gib", 0, False),
            ("model_gib", 0, False),
            ("sequence_length", 0, False),
            ("loader_samples_per_s", _SLOWEST, False),
        ):
            value = getattr(self, name)
            if not is_number(value, least) and (needed or value is not None):
                limit = f" (at most {LARGEST:g})" if is_number(value, LARGEST, math.inf) else ""
                none = "" if needed else ", or None"
                raise InvalidInput(
                    f"FullScale: {name} must be {least:g} or more{limit}{none}, not {quoted(value)}"
                )
        for name in ("evaluation_split", "compile_cached"):
            value = getattr(self, name)
            optional = name == "evaluation_split"
            if not isinstance(value, bool) and not (optional and value is None):
                valid = "True, False or None" if optional else "True or False"
                raise InvalidInput(f"FullScale: {name} must be {valid}, not {quoted(value)}")

    @property
    def epoch_count(self) -> int:
        """Passes over the samples; 1 if nothing says how many."""
        return 1 if self.epochs is None else self.epochs

    @property
    def evaluated(self) -> int:
        """Samples evaluated after each epoch; 0 if nothing says how many."""
        return self.evaluation_samples or 0

    def filled(self, found: FullScale) -> FullScale:
        """The same size; what is not given is as ``found``. Copied without checks: a comparison asks for each
        instance.
        """
        known = {name: getattr(found, name) for name in _FOUND if getattr(self, name) is None}
        told = object.__new__(type(self))
        told.__dict__.update(self.__dict__, **known)
        return told

    def loading_s(self, samples: float, instance: InstanceType, count: int) -> float:
        """Seconds in which the vCPUs of ``count`` instances prepare ``samples``; 0 if the rate is not known."""
        if self.loader_samples_per_s is None:
            return 0.0
        return samples / (self.loader_samples_per_s * instance.vcpus.value * count)


def is_number(value: object, least: float, most: float = LARGEST) -> bool:
    """Whether ``value`` is a number from ``least`` to ``most``. Comparing also works for ints beyond a float."""
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def is_whole(value: Any) -> bool:
    """Whether ``value`` is a whole number from 1 to `LARGEST`, as an int or a float."""
    return is_number(value, 1) and value == int(value)
