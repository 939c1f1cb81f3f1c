"""The public names of `windtunnel.priceperf`."""

from __future__ import annotations

from .calibration.calibrations import CALIBRATIONS, Calibration, calibration_of, not_calibrated
from .calibration.corrections import Correction, Corrections, Evidence
from .errors import (
    InvalidCounters,
    InvalidInput,
    NotCalibrated,
    PricePerfError,
    PriceUnknown,
    UnknownInstance,
)
from .instances import CATALOG, NEURON_TYPES, Figure, InstanceType, instance_type
from .model.architectures import ARCHITECTURES, Architecture
from .model.counted_step import StepWork, step_time
from .model.described_step import training_step
from .model.fixed_costs import FixedCost
from .model.intervals import RangeCheck
from .model.precision import AUTO_CAST, BF16_AUTOCAST, FP32, TF32, Precision
from .model.step_time import StepTime
from .model.training_settings import Training
from .money.billing import (
    billable_seconds,
    cost_per_million,
    cost_usd,
    instance_seconds,
    spot_savings_percent,
)
from .money.comparison import Comparison, compare
from .money.decision import BreakEven, Decision, decisions
from .money.estimate import Cost, Estimate, estimate
from .money.flight_check import Flight, FlightCheck, check_flight, evidence_of
from .money.offerings import OFFERINGS, Claim, Discount, Offering
from .money.prices import Price, PriceBook
from .money.scaling import Scaling, ScalingRow, scaling
from .money.sensitivity import SensitivityRow, sensitivity
from .money.verdict import Verdict
from .money.winner import Answer, answers, by_offering
from .published.bert_jobs import PublishedComparison, published_comparison
from .published.inference import InferenceCost, InferenceTable, PublishedInference, published_inference
from .workload.cluster import BATCH_RULES, BatchRule, Cluster, PerDevice, Run
from .workload.full_scale import FullScale
from .workload.workload import CountedWorkload, DescribedWorkload, Workload

__all__ = [
    "ARCHITECTURES",
    "AUTO_CAST",
    "BATCH_RULES",
    "BF16_AUTOCAST",
    "CALIBRATIONS",
    "CATALOG",
    "FP32",
    "NEURON_TYPES",
    "OFFERINGS",
    "TF32",
    "Answer",
    "Architecture",
    "BatchRule",
    "BreakEven",
    "Calibration",
    "Claim",
    "Cluster",
    "Comparison",
    "Correction",
    "Corrections",
    "Cost",
    "CountedWorkload",
    "Decision",
    "DescribedWorkload",
    "Discount",
    "Estimate",
    "Evidence",
    "Figure",
    "FixedCost",
    "Flight",
    "FlightCheck",
    "FullScale",
    "InferenceCost",
    "InferenceTable",
    "InstanceType",
    "InvalidCounters",
    "InvalidInput",
    "NotCalibrated",
    "Offering",
    "PerDevice",
    "Precision",
    "Price",
    "PriceBook",
    "PricePerfError",
    "PriceUnknown",
    "PublishedComparison",
    "PublishedInference",
    "RangeCheck",
    "Run",
    "Scaling",
    "ScalingRow",
    "SensitivityRow",
    "StepTime",
    "StepWork",
    "Training",
    "UnknownInstance",
    "Verdict",
    "Workload",
    "answers",
    "billable_seconds",
    "by_offering",
    "calibration_of",
    "check_flight",
    "compare",
    "cost_per_million",
    "cost_usd",
    "decisions",
    "estimate",
    "evidence_of",
    "instance_seconds",
    "instance_type",
    "not_calibrated",
    "published_comparison",
    "published_inference",
    "scaling",
    "sensitivity",
    "spot_savings_percent",
    "step_time",
    "training_step",
]
