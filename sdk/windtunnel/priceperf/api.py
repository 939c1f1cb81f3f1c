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
from .model.counted_step import StepTime, StepWork, step_time
from .model.described_step import TrainingStep, training_step
from .model.fixed_costs import FixedCost
from .model.intervals import RangeCheck
from .model.precision import AUTO_CAST, BF16_AUTOCAST, FP32, TF32, Precision
from .model.training_settings import Training
from .money.billing import (
    billable_seconds,
    cost_per_million,
    cost_usd,
    instance_seconds,
    spot_savings_percent,
)
from .money.comparison import Comparison, Cost, Estimate, Verdict, compare, estimate
from .money.decision import BreakEven, Decision, decisions
from .money.finished_job import Flight, FlightCheck, check_flight, evidence_of
from .money.offerings import OFFERINGS, Claim, Discount, Offering
from .money.prices import Price, PriceBook
from .money.scaling import Scaling, ScalingRow, scaling
from .money.sensitivity import SensitivityRow, sensitivity
from .published.bert_jobs import PublishedComparison, published_comparison
from .published.inference import InferenceCost, InferenceTable, PublishedInference, published_inference
from .workload.cluster import BATCH_RULES, BatchRule, Cluster, Run
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
    "TrainingStep",
    "UnknownInstance",
    "Verdict",
    "Workload",
    "billable_seconds",
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
