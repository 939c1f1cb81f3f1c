"""Seconds and dollars of a training job, from counters, published figures and stated assumptions.

Pure: no input or output, no clock, no environment; nothing but the standard
library. The same numbers in give the same numbers out.
"""

from __future__ import annotations

from .architectures import ARCHITECTURES, Architecture
from .billing import billable_seconds, cost_per_million, cost_usd, instance_seconds, spot_savings_percent
from .calibration import CALIBRATIONS, Calibration
from .catalog import CATALOG, Figure, InstanceType, instance_type
from .compare import Comparison, Cost, Estimate, Verdict, compare, estimate
from .compute import AUTO_CAST, BF16_AUTOCAST, FP32, TF32, Precision
from .corrections import Correction, Corrections, Evidence
from .decision import BreakEven, Decision, decisions
from .described import DescribedWorkload
from .errors import InvalidCounters, InvalidInput, PricePerfError, PriceUnknown, UnknownInstance
from .fixed_costs import FixedCost
from .flight import Flight, FlightCheck, check_flight, evidence_of
from .full_scale import FullScale
from .intervals import RangeCheck
from .job import BATCH_RULES, BatchRule, Cluster, Run, Workload
from .offerings import OFFERINGS, Claim, Discount, Offering
from .predict import TrainingStep, training_step
from .prices import Price, PriceBook
from .published import PublishedComparison, published_comparison
from .published_inference import InferenceCost, InferenceTable, PublishedInference, published_inference
from .scaling import Scaling, ScalingRow, scaling
from .sensitivity import SensitivityRow, sensitivity
from .step import StepTime, StepWork, step_time
from .training import Training
from .workload import CountedWorkload

__all__ = [
    "ARCHITECTURES",
    "AUTO_CAST",
    "BATCH_RULES",
    "BF16_AUTOCAST",
    "CALIBRATIONS",
    "CATALOG",
    "FP32",
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
    "check_flight",
    "compare",
    "cost_per_million",
    "cost_usd",
    "decisions",
    "estimate",
    "evidence_of",
    "instance_seconds",
    "instance_type",
    "published_comparison",
    "published_inference",
    "scaling",
    "sensitivity",
    "spot_savings_percent",
    "step_time",
    "training_step",
]
