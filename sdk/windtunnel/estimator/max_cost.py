"""The estimator's ``max_cost``: a request that stays within it, and a warning when it may not be enough."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from datetime import date

from windtunnel.budget.budget import Budget
from windtunnel.budget.plan import plan
from windtunnel.errors import BudgetWarning, ConfigurationError, WindtunnelError
from windtunnel.job.training_job import TrainingJob
from windtunnel.priceperf import FullScale, PriceBook
from windtunnel.prices.cache import load
from windtunnel.rehearsal import Rehearsal, Rehearsed, rehearsed
from windtunnel.request.training_request import PathUpload, TrainingRequest
from windtunnel.session.session import Session
from windtunnel.user_calibration import STORED

_BYTES_PER_GIB = 2**30
_WARN_AT = 5
"""Frames from here to the caller of ``fit``: _warn, limited, request, fit."""


def limited(
    request: TrainingRequest,
    max_cost: float,
    session: Session,
    latest: TrainingJob | None,
    *,
    full_scale: FullScale | None = None,
    rehearsal: Rehearsal | None = None,
    prices: PriceBook | None = None,
) -> TrainingRequest:
    """The request within ``max_cost`` US dollars. Starts nothing.

    Without ``rehearsal`` the cost is modelled from ``latest``, if that job ran here and left counters.

    Raises:
        ConfigurationError: the budget cannot be kept on AWS. In a local session: a `BudgetWarning` instead.
    """
    basis = rehearsed(rehearsal) if rehearsal is not None else _rehearsed_before(latest)
    # Nobody pays the prices of the region that the local backend plays, so those of any region do.
    region = None if session.local else session.region
    try:
        budget = plan(
            request.parameters,
            max_cost,
            enforced=not session.local,
            region=region,
            on=date.today(),
            prices=prices or load().book,
            uploaded_gib=_uploaded_gib(request),
            full_scale=full_scale,
            rehearsed=basis,
            corrections=None if basis is None else STORED.load().corrections,
        )
    except ConfigurationError as error:
        if not session.local:
            raise
        _warn(f"Nothing is charged here, but AWS would not start this job within the budget. {error}")
        return request
    if (warning := budget.warning()) is not None:
        _warn(warning)
    return _keep(request, budget)


def exposure(request: TrainingRequest, session: Session, prices: PriceBook | None) -> str | None:
    """A line: what a job on AWS costs at most, if it runs until its own max_run. None where no price is known.

    Users want to see this before a job starts, also without a limit.
    """
    try:
        budget = plan(
            request.parameters,
            math.inf,
            enforced=True,
            region=session.region,
            on=date.today(),
            prices=prices or load().book,
            uploaded_gib=_uploaded_gib(request),
        )
    except ConfigurationError:
        return None
    return budget.unlimited_line()


def _keep(request: TrainingRequest, budget: Budget) -> TrainingRequest:
    """The request with the budget; on AWS with the lower MaxRuntimeInSeconds.

    MaxWaitTimeInSeconds of a spot job stays: waiting is not billed, and it may not be below MaxRuntimeInSeconds.
    """
    if not budget.enforced:
        return replace(request, budget=budget)
    stopping = {**request.parameters["StoppingCondition"], "MaxRuntimeInSeconds": budget.max_run_s}
    return replace(request, parameters={**request.parameters, "StoppingCondition": stopping}, budget=budget)


def _uploaded_gib(request: TrainingRequest) -> float | None:
    """GiB of the channels' data, if all of it is uploaded from here; else None."""
    folders = [upload.path for upload in request.uploads if isinstance(upload, PathUpload)]
    if len(folders) < len(request.parameters.get("InputDataConfig") or []):
        return None
    found = 0
    for folder in folders:
        files = [folder] if folder.is_file() else folder.rglob("*")
        found += sum(file.stat().st_size for file in files if file.is_file())
    return found / _BYTES_PER_GIB


def _rehearsed_before(latest: TrainingJob | None) -> Rehearsed | None:
    """The estimator's last job, if it ran here and left counters; else None, and the next job starts all the same."""
    if latest is None or not latest.session.local:
        return None
    try:
        return rehearsed(latest)
    except WindtunnelError:
        return None


def _warn(message: str) -> None:
    warnings.warn(message, BudgetWarning, stacklevel=_WARN_AT)
