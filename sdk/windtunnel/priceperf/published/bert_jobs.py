"""AWS's own price/performance table of trn1 against p4d, recomputed. `bert_jobs_predicted` predicts it.

It is from the AWS blog "Maximize performance and reduce your deep learning training
cost with AWS Trainium and Amazon SageMaker": BERT base classifies Amazon
Polarity. Recomputed costs are price x billable seconds / 3600 and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from ..money.billing import cost_usd
from ..money.prices import Price, PriceBook

SOURCE = (
    "AWS blog, 'Maximize performance and reduce your deep learning training cost "
    "with AWS Trainium and Amazon SageMaker'"
)
TRAIN_SAMPLES = 3_600_000
GLOBAL_BATCH = 256
SEQUENCE_LENGTH = 128


@dataclass(frozen=True)
class PublishedJob:
    """One row as AWS printed it. ``decimals``: number of decimals of the printed cost."""

    instance_type: str
    usd_per_hour: float
    iterations_per_second: float
    validation_accuracy: float
    billable_seconds: int
    cost_usd: float
    decimals: int

    @property
    def recomputed_usd(self) -> float:
        """US dollars: price x billable seconds / 3600."""
        return cost_usd(self.usd_per_hour, self.billable_seconds)

    @property
    def agrees(self) -> bool:
        """Whether the printed cost equals the recomputed one, rounded to the printed decimals."""
        return round(self.recomputed_usd, self.decimals) == round(self.cost_usd, self.decimals)

    @property
    def off_percent(self) -> float:
        """By how much the printed cost is above the recomputed one, percent."""
        return (self.cost_usd / self.recomputed_usd - 1) * 100

    @property
    def step_seconds(self) -> float:
        """Seconds of one epoch's steps at the printed iterations per second (batch 8 a core, 256 in all)."""
        return TRAIN_SAMPLES / GLOBAL_BATCH / self.iterations_per_second

    @property
    def outside_steps(self) -> float:
        """The part of the billable time that is not training steps."""
        return 1 - self.step_seconds / self.billable_seconds


TRN1 = PublishedJob("ml.trn1.32xlarge", 24.725, 6.64, 0.984, 6033, 41.47, 2)
P4D = PublishedJob("ml.p4d.24xlarge", 37.69, 5.44, 0.984, 6553, 68.6, 1)

PUBLISHED_ON = date(2022, 10, 10)
"""The day of trn1's launch, from which the table's prices hold."""
REDUCED_ON = date(2025, 6, 1)
"""The day from which p4d costs less."""


@dataclass(frozen=True)
class PublishedComparison:
    """The table, its ratios (percent) as printed and as recomputed, and p4d's later price."""

    trn1: PublishedJob
    p4d: PublishedJob
    later_price: Price

    @property
    def faster_percent(self) -> float:
        """By how much trn1's iterations per second are above p4d's, percent."""
        return (self.trn1.iterations_per_second / self.p4d.iterations_per_second - 1) * 100

    @property
    def shorter_percent(self) -> float:
        """By how much trn1's billable seconds are below p4d's, percent."""
        return (1 - self.trn1.billable_seconds / self.p4d.billable_seconds) * 100

    @property
    def saving_printed_percent(self) -> float:
        """trn1's saving by the printed costs, percent."""
        return (1 - self.trn1.cost_usd / self.p4d.cost_usd) * 100

    @property
    def saving_recomputed_percent(self) -> float:
        """trn1's saving by the recomputed costs, percent."""
        return (1 - self.trn1.recomputed_usd / self.p4d.recomputed_usd) * 100

    @property
    def p4d_later_usd(self) -> float:
        """US dollars of the p4d job at its later price."""
        return cost_usd(self.later_price.usd_per_hour, self.p4d.billable_seconds)

    @property
    def saving_later_percent(self) -> float:
        """trn1's saving with p4d's later price and trn1's unchanged one, percent."""
        return (1 - self.trn1.recomputed_usd / self.p4d_later_usd) * 100


def published_comparison() -> PublishedComparison:
    """AWS's table, recomputed, with p4d's price since June 2025."""
    return PublishedComparison(TRN1, P4D, PriceBook().price(P4D.instance_type, REDUCED_ON))
