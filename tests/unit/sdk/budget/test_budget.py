"""max_cost: AWS itself stops the job in time, what is too dear is not started, and a rehearsal is never refused."""

from __future__ import annotations

import json
import warnings
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.counters import counters
from tests.unit.conftest import Invoke
from tests.unit.sdk.fake_service import FakeService
from windtunnel import (
    AwsSession,
    BudgetExceeded,
    BudgetWarning,
    ConfigurationError,
    FullScale,
    InstanceGroup,
    LocalSession,
    PyTorch,
)
from windtunnel.budget.budget import Budget
from windtunnel.budget.plan import plan
from windtunnel.priceperf.money.offerings import TRAINING_ON_DEMAND
from windtunnel.priceperf.money.prices import BUILT_IN, Price, PriceBook
from windtunnel.request.training_request import TrainingRequest
from windtunnel.session import resolve

__all__ = ["counters"]

HOURLY = 24.725
"""ml.trn1.32xlarge, us-east-1, as AWS printed it."""
MARGIN_S = 120 + 60 + 120 + 120
FULL = FullScale(3_600_000, 1, 400_000, dataset_gib=1.7)


@pytest.fixture(autouse=True)
def _no_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WINDTUNNEL_MAX_COST", raising=False)


@pytest.fixture
def trained(project: Path) -> Any:
    """An estimator of ml.trn1.32xlarge in a session."""

    def build(where: Any, **more: Any) -> PyTorch:
        if "instance_groups" not in more:
            more = {"instance_type": "ml.trn1.32xlarge", "instance_count": 1, **more}
        role = "arn:aws:iam::123456789012:role/r"
        return PyTorch("src/train.py", "2.9", session=where, role=role, **more)

    return build


def limits(request: TrainingRequest) -> dict[str, int]:
    """The stopping condition that is sent."""
    return dict(request.to_dict()["StoppingCondition"])


def budget(request: TrainingRequest) -> Budget:
    """The request's budget, which it has."""
    assert request.budget is not None
    return request.budget


def test_aws_gets_the_limit_and_keeps_it_alone(
    aws: AwsSession, service: FakeService, trained: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The request that was sent stops the job in time; price, date, bound and what happens are printed first."""
    trained(aws, max_cost=50).fit("s3://b/data", job_name="j", wait=False)
    seconds = service.requests["j"]["StoppingCondition"]["MaxRuntimeInSeconds"]
    assert seconds == int(50 * 3600 / HOURLY) - MARGIN_S
    out = capsys.readouterr().out
    for said in ("$24.725 an hour", "us-east-1", "2022-10-10", f"{seconds:,} s", "was 86,400", "SIGTERM"):
        assert said in out, said
    assert "no rehearsal to model from" in out


def test_the_call_beats_the_estimator_and_that_the_environment(
    aws: AwsSession, trained: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An administrator's default holds where nobody gave another."""
    monkeypatch.setenv("WINDTUNNEL_MAX_COST", "30")
    assert budget(trained(aws).fit(dry_run=True)).max_cost == 30
    estimator = trained(aws, max_cost=40)
    assert budget(estimator.request()).max_cost == 40
    assert budget(estimator.fit(max_cost=20, dry_run=True)).max_cost == 20
    monkeypatch.setenv("WINDTUNNEL_MAX_COST", "cheap")
    with pytest.raises(ConfigurationError, match="WINDTUNNEL_MAX_COST='cheap'"):
        trained(aws).request()


def test_without_a_budget_nothing_changes_and_the_most_it_may_cost_is_said(
    aws: AwsSession, local: LocalSession, trained: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """max_run is as it was; on AWS one line, where the price is known; here none."""
    request = trained(aws).fit(dry_run=True)
    assert limits(request) == {"MaxRuntimeInSeconds": 86_400} and request.budget is None
    trained(aws).fit("s3://b/d", wait=False, job_name="a")
    out = capsys.readouterr().out
    assert out.startswith(
        f"No max_cost: by max_run=86,400 s the instances may cost up to about $"
        f"{HOURLY * (86_400 + MARGIN_S) / 3600:,.2f}"
    )
    unpriced = trained(aws, instance_groups=[InstanceGroup("g", "ml.trn2.48xlarge", 1)])
    unpriced.fit("s3://b/d", wait=False, job_name="b")
    trained(local).fit("s3://b/d", wait=False, job_name="c")
    assert capsys.readouterr().out == ""


def test_dry_run_shows_the_lowered_request(aws: AwsSession, trained: Any) -> None:
    """What is printed is what would be sent, and why."""
    shown = repr(trained(aws).fit("s3://b/d", max_cost=50, dry_run=True))
    assert f'"MaxRuntimeInSeconds": {int(50 * 3600 / HOURLY) - MARGIN_S}' in shown
    assert "Budget $50.00" in shown


def test_a_max_run_that_is_short_enough_stays(aws: AwsSession, trained: Any) -> None:
    """A budget never makes a job longer."""
    request = trained(aws, max_run=600, max_cost=50).request()
    assert limits(request) == {"MaxRuntimeInSeconds": 600}
    assert budget(request).bound_usd == pytest.approx(HOURLY * (600 + 120 + 60 + 120) / 3600)  # no channels


def test_a_spot_job_may_wait_as_long_as_before(aws: AwsSession, trained: Any) -> None:
    """Waiting is not billed, and max_wait stays at least max_run."""
    spot = trained(aws, max_cost=50, use_spot_instances=True, max_wait=90_000).request("s3://b/d")
    assert limits(spot)["MaxWaitTimeInSeconds"] == 90_000
    assert limits(spot)["MaxRuntimeInSeconds"] < 86_400


def test_groups_are_summed_and_a_warm_pool_is_billed(aws: AwsSession, trained: Any) -> None:
    """Every instance counts, and so does the time that instances are kept."""
    groups = [InstanceGroup("a", "ml.trn1.32xlarge", 2), InstanceGroup("b", "ml.p4d.24xlarge", 1)]
    both = budget(trained(aws, instance_groups=groups, max_cost=100, max_run=600).request())
    assert both.usd_per_hour == pytest.approx(2 * HOURLY + 37.69)
    warm = budget(trained(aws, keep_alive_period_in_seconds=600, max_cost=50).request("s3://b/d"))
    assert warm.max_run_s == int(50 * 3600 / HOURLY) - MARGIN_S - 600


@pytest.mark.parametrize("cost", [2, 3.29])
def test_too_little_money_is_refused_with_the_sum_that_would_do(
    aws: AwsSession, service: FakeService, trained: Any, cost: float
) -> None:
    """Price, count and seconds are named; nothing is uploaded. The sum named is enough."""
    with pytest.raises(BudgetExceeded, match=r"x 1 at \$24\.725 an hour.*max_cost=3\.30 or more"):
        trained(aws, max_cost=cost).fit("s3://b/d")
    assert service.objects == {} and service.requests == {}
    assert limits(trained(aws, max_cost=3.30).request("s3://b/d"))["MaxRuntimeInSeconds"] == 60


def test_an_instance_without_a_price_is_refused_until_it_has_one(aws: AwsSession, trained: Any) -> None:
    """A budget cannot be kept without a price; the error says how to give it."""
    estimator = trained(aws, max_cost=50)
    estimator.instance_type = "ml.g5.xlarge"
    estimator.image_uri = "i"
    estimator.distribution = {}
    with pytest.raises(ConfigurationError, match=r"no price of ml\.g5\.xlarge in us-east-1.*PriceBook"):
        estimator.request()
    mine = Price("ml.g5.xlarge", 2.0, "us-east-1", TRAINING_ON_DEMAND, date(2020, 1, 1), "seen", "mine")
    request = estimator.request(prices=PriceBook([*BUILT_IN, mine]))
    assert budget(request).usd_per_hour == 2.0


def test_a_training_plan_is_paid_for_already(aws: AwsSession, trained: Any) -> None:
    """Its price is not by the second."""
    with pytest.raises(ConfigurationError, match="paid for in advance"):
        trained(
            aws, max_cost=50, training_plan="arn:aws:sagemaker:us-east-1:123456789012:training-plan/p"
        ).request()


def test_a_job_modelled_above_the_budget_is_not_started(
    aws: AwsSession, service: FakeService, trained: Any, counters: Any
) -> None:
    """Refused when even the low end is too dear, warned of when a part of the interval is."""
    estimator = trained(aws)
    modelled = budget(
        trained(aws).request("s3://b/d", max_cost=1e6, rehearsal=counters(), full_scale=FULL)
    ).cost
    assert modelled is not None and modelled.low_usd < modelled.usd < modelled.high_usd
    with pytest.raises(BudgetExceeded, match="from rehearsal bert"):
        estimator.fit("s3://b/d", max_cost=modelled.low_usd * 0.9, rehearsal=counters(), full_scale=FULL)
    assert service.objects == {} and service.requests == {}
    for cost, words in (
        ((modelled.low_usd + modelled.usd) / 2, "probably be stopped before its end"),
        ((modelled.usd + modelled.high_usd) / 2 + 5, "may be stopped"),
    ):
        with pytest.warns(BudgetWarning, match=words):
            estimator.fit("s3://b/d", max_cost=cost, rehearsal=counters(), full_scale=FULL, dry_run=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        enough = modelled.high_usd * 1.5
        estimator.fit("s3://b/d", max_cost=enough, rehearsal=counters(), full_scale=FULL, dry_run=True)


def test_a_max_run_that_cuts_the_modelled_job_short_is_warned_of(
    aws: AwsSession, trained: Any, counters: Any
) -> None:
    """Money enough, but max_run lies inside the interval, or below its middle."""
    modelled = budget(trained(aws).request(max_cost=1e6, rehearsal=counters(), full_scale=FULL)).estimate
    assert modelled is not None
    low, high = modelled.billable_interval_s
    for seconds, words in (
        ((modelled.billable_s + high) // 2, "may be stopped"),
        ((low + modelled.billable_s) // 2, "probably be stopped"),
    ):
        with pytest.warns(BudgetWarning, match=words):
            trained(aws, max_run=seconds).request(max_cost=1e6, rehearsal=counters(), full_scale=FULL)


def test_a_rehearsal_comes_in_any_form(aws: AwsSession, trained: Any, counters: Any, tmp_path: Path) -> None:
    """Counters, their file, a workload and a job give the same cost."""
    from windtunnel.priceperf import Workload

    class Job:
        name = "bert"

        def counters(self) -> Any:
            return counters()

    file = tmp_path / "counters.json"
    file.write_text(json.dumps(counters()))
    forms = (counters(), file, str(file), Workload.from_counters(counters()), Job())
    costs = {
        budget(trained(aws).request(max_cost=1e4, rehearsal=form, full_scale=FULL)).cost for form in forms
    }
    assert len(costs) == 1 and None not in costs
    for wrong, words in (
        (7, "a job that ran here"),
        ({"schema": "x"}, "schema"),
        ("/nowhere", "cannot read"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            trained(aws).request(max_cost=1e4, rehearsal=wrong)
    with pytest.raises(ConfigurationError, match="Give max_cost= too"):
        trained(aws).request(full_scale=FULL)


def test_a_model_too_large_to_rehearse_is_described(aws: AwsSession, trained: Any) -> None:
    """A Workload's description is enough; without a size the line says what is missing."""
    from windtunnel.priceperf import Workload

    model = Workload.transformer("Llama2-7B", microbatch=1, sequence_length=4096, tensor_parallel=8)
    sized = trained(aws).request(max_cost=1e6, rehearsal=model, full_scale=FullScale(1000))
    assert "from the workload given" in repr(sized) and budget(sized).cost is not None
    unsized = budget(trained(aws).request(max_cost=1e6, rehearsal=model))
    assert unsized.cost is None and "full_scale=" in unsized.unmodelled
    whole = Workload.transformer(
        "Llama2-7B", microbatch=1, sequence_length=4096, tensor_parallel=1, zero="none"
    )
    large = budget(trained(aws).request(max_cost=1e6, rehearsal=whole, full_scale=FullScale(1000)))
    assert large.cost is None and "does not fit the memory of ml.trn1.32xlarge" in large.unmodelled
    adapters = model.changed(lora_rank=8)
    for saves in (model, adapters):
        found = budget(trained(aws).request(max_cost=1e6, rehearsal=saves, full_scale=FullScale(1000)))
        assert found.estimate is not None
        # Both are of the files that the script is taken to save.
        assert found.margin.upload_s == found.estimate.fixed_cost("upload").high_s


def test_a_short_rehearsal_tells_the_size_of_the_job_or_that_it_could_not(
    aws: AwsSession, trained: Any, counters: Any
) -> None:
    """What it found is said as that; its few steps are not taken for the job."""
    loader = {
        "line": "t.py:3",
        "batches": 9,
        "samples": 8,
        "passes": 1,
        "planned": 1,
        "taken": 9,
        "trains": True,
    }
    short = counters(input={"rehearsed_steps": 16, "loaders": [loader]})
    told = budget(trained(aws).request(max_cost=1e6, rehearsal=short)).lines()[-1]
    assert "rehearsed" not in told and " samples x 1" in told
    endless = counters(input={"rehearsed_steps": 16, "loaders": [{**loader, "batches": None}]})
    unknown = budget(trained(aws).request(max_cost=1e6, rehearsal=endless))
    assert unknown.cost is None and "the loader of t.py:3 does not tell its length" in unknown.lines()[-1]
    assert budget(trained(aws).request(max_cost=1e6, rehearsal=endless, full_scale=FULL)).cost is not None


def test_here_nothing_is_refused_or_shortened(
    local: LocalSession, service: FakeService, trained: Any, counters: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """A rehearsal costs nothing: what AWS would do is a warning, before the job starts."""
    with pytest.warns(BudgetWarning, match="AWS would not start this job"):
        trained(local, max_cost=1).fit("s3://b/d", job_name="a", wait=False)
    with pytest.warns(BudgetWarning, match="the whole interval is above it") as seen:
        trained(local, max_cost=4).fit(
            "s3://b/d", job_name="b", wait=False, rehearsal=counters(), full_scale=FullScale(36_000_000)
        )
    assert seen[0].filename == __file__
    for name in ("a", "b"):
        assert service.requests[name]["StoppingCondition"] == {"MaxRuntimeInSeconds": 86_400}
    assert "nothing is charged here" in capsys.readouterr().out


def test_the_next_job_is_modelled_from_the_last_one(
    local: LocalSession, service: FakeService, trained: Any, counters: Any
) -> None:
    """Without rehearsal= the estimator's own latest job is taken, if it left counters."""
    estimator = trained(local)
    estimator.fit(job_name="first")
    assert budget(estimator.request(max_cost=50)).cost is None
    service.store("first", "windtunnel/counters.json", json.dumps(counters()).encode())
    found = budget(estimator.request(max_cost=5000, full_scale=FULL))
    assert found.source == "rehearsal bert" and found.cost is not None


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), True, "50"])
def test_a_budget_is_a_number_above_0(local: LocalSession, trained: Any, wrong: Any) -> None:
    """Said for the estimator and for the call."""
    with pytest.raises(ConfigurationError, match="US dollars above 0"):
        trained(local, max_cost=wrong)
    with pytest.raises(ConfigurationError, match="US dollars above 0"):
        trained(local).fit(max_cost=wrong)


def test_run_takes_max_cost(
    local: LocalSession, service: FakeService, monkeypatch: pytest.MonkeyPatch, project: Path,
    invoke: Invoke,
) -> None:  # fmt: skip
    """The line on stdout, the warning on stderr, without a line of code."""
    monkeypatch.setattr(resolve, "shared_local_session", lambda: local)
    line = "run src/train.py --instance-type ml.trn1.32xlarge --job-name j --no-wait --max-cost"
    assert "Budget $50.00" in invoke(*line.split(), "50").out
    error = invoke(*line.replace("j --no", "k --no").split(), "1").err
    assert error.startswith("windtunnel: warning: Nothing is charged here") and ".py:" not in error
    assert set(service.requests) == {"j", "k"}
    invoke(*line.split(), "-3", exits=2)


def _request(count: int, asked: int, keep: int) -> TrainingRequest:
    resources = {"InstanceType": "ml.trn1.32xlarge", "InstanceCount": count, "KeepAlivePeriodInSeconds": keep}
    return TrainingRequest(
        {
            "ResourceConfig": resources,
            "StoppingCondition": {"MaxRuntimeInSeconds": asked},
            "InputDataConfig": [{}],
        }
    )


@given(
    max_cost=st.floats(0.01, 1e6) | st.floats(1e6, allow_infinity=False),
    hourly=st.floats(0.05, 500),
    count=st.integers(1, 64),
    asked=st.integers(1, 28 * 86_400),
    keep=st.integers(0, 21_600),
)
def test_the_bound_never_exceeds_the_budget(
    max_cost: float, hourly: float, count: int, asked: int, keep: int
) -> None:
    """Whatever the price, the count and the budget: the longest run and the margin stay within it."""
    price = Price(
        "ml.trn1.32xlarge", hourly, "us-east-1", TRAINING_ON_DEMAND, date(2020, 1, 1), "seen", "any"
    )
    try:
        found = plan(
            _request(count, asked, keep).parameters, max_cost, enforced=True, region=None,
            on=date(2024, 1, 1), prices=PriceBook([price]),
        )  # fmt: skip
    except BudgetExceeded:
        least = hourly * count * (min(60, asked) + MARGIN_S + keep) / 3600
        assert max_cost < least * (1 + 1e-9)
        return
    assert found.bound_usd <= max_cost * (1 + 1e-9)
    assert min(60, asked) <= found.max_run_s <= asked
