"""After the flight: the bill beside what was predicted, and a calibration that is never used silently."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.descriptions import START, described
from tests.fakes.reports import report_for_counters, screen_of, text_of
from tests.fakes.split_job import split_counters
from tests.unit.conftest import Invoke
from windtunnel import ConfigurationError, JobNotFinished, ServiceCallFailed
from windtunnel.cli.main import main
from windtunnel.priceperf import AUTO_CAST, FullScale
from windtunnel.reports.aws_job.description import DescribedJob, flight_of
from windtunnel.reports.aws_job.report import FlightReport, evidence_for
from windtunnel.reports.comparison.report import compare
from windtunnel.reports.comparison.scaling import scaling
from windtunnel.reports.for_job import report_for_job as report_of
from windtunnel.reports.job.report import Precisions
from windtunnel.user_calibration import STORED, CalibrationStore


def report_for_job(*given: Any, **more: Any) -> FlightReport:
    """A report with a prediction."""
    found = report_of(*given, **more)
    assert isinstance(found, FlightReport)
    return found


FULL = FullScale(3_600_000, 1, 400_000, dataset_gib=1.7, preparation_s=2400)
SIZES = (
    *("--full-scale-samples", "3600000", "--evaluation-samples", "400000"),
    *("--dataset-gib", "1.7", "--preparation-seconds", "2400"),
)


@pytest.fixture
def files(tmp_path: Path, counters: Any) -> tuple[str, str]:
    """A saved description and the counters of the rehearsal."""
    job, rehearsal = tmp_path / "job.json", tmp_path / "counters.json"
    job.write_text(json.dumps(described()))
    rehearsal.write_text(json.dumps(counters()))
    return str(job), str(rehearsal)


@pytest.mark.parametrize("form", ["iso", "zulu", "seconds", "datetime"])
def test_dates_come_in_any_form(form: str) -> None:
    """As boto3 gives them, and as both versions of the AWS CLI print them."""
    turns: dict[str, Callable[[str], Any]] = {
        "iso": str,
        "zulu": lambda text: text.replace("+00:00", "Z"),
        "seconds": lambda text: datetime.fromisoformat(text).timestamp(),
        "datetime": datetime.fromisoformat,
    }
    turn = turns[form]
    given = described()
    for name in ("CreationTime", "TrainingStartTime", "TrainingEndTime"):
        given[name] = turn(given[name])
    for step in given["SecondaryStatusTransitions"]:
        step.update(StartTime=turn(step["StartTime"]), EndTime=turn(step["EndTime"]))
    found = flight_of(given)
    assert found.started == START.date()
    assert found.phases == {"Starting": 600, "Downloading": 60, "Training": 5940, "Uploading": 33}


def test_phases_are_summed_and_end_with_the_next_one() -> None:
    """A spot job trains in several phases; a phase without an end lasts until the next."""
    steps = [("Training", 0), ("Interrupted", 100), ("Starting", 110), ("Training", 200), ("Completed", 500)]
    given = described(
        SecondaryStatusTransitions=[
            {"Status": name, "StartTime": START.timestamp() + second} for name, second in steps
        ],
        EnableManagedSpotTraining=True,
        BillableTimeInSeconds=1800,
    )
    found = flight_of(given)
    assert found.phases == {"Training": 400, "Interrupted": 10, "Starting": 90}
    assert found.spot and found.interrupted and (found.training_s, found.billable_s) == (6033, 1800)


def test_a_phase_ends_when_it_says() -> None:
    """Not when the next one begins."""
    given = described()
    given["SecondaryStatusTransitions"][1]["EndTime"] = START.timestamp() + 20
    assert flight_of(given).phases["Downloading"] == 20


def test_every_instance_of_the_job_is_in_its_prediction(counters: Any) -> None:
    """Four of them train an epoch in a quarter of the steps, and are all paid."""
    four = {"InstanceType": "ml.trn1.32xlarge", "InstanceCount": 4}
    for resources in (four, {"InstanceGroups": [{"InstanceGroupName": "g", **four}]}):
        report = report_for_job(DescribedJob(described(ResourceConfig=resources)), FULL, rehearsal=counters())
        data = report.to_dict()
        assert data["modelled"]["estimates"][0]["instance_count"] == 4
        assert data["modelled"]["estimates"][0]["steps"] == -(-3_600_000 // (8 * 32 * 4))
        assert data["flight"]["cost_usd"]["real"] == pytest.approx(4 * 24.725 * 6033 / 3600, abs=1e-3)
        predicted = data["modelled"]["estimates"][0]["billable_s"]
        assert data["flight"]["cost_usd"]["predicted"] == pytest.approx(
            4 * 24.725 * predicted / 3600, abs=1e-3
        )


def test_the_rest_of_a_job_on_aws_needs_what_was_given(counters: Any) -> None:
    """The name alone would be looked for on this machine, and beside --describe it is one too many."""
    text = screen_of(report_for_job(DescribedJob(described()), rehearsal=counters()))
    assert "The rest: windtunnel report --full, with what else was given here; " in text


def test_a_job_is_named_once(files: tuple[str, str], invoke: Invoke) -> None:
    """By its name, or by what described it."""
    said = invoke("report", "bert-real", "--describe", files[0], "--rehearsal", files[1], exits=2).err
    assert "name a job once: JOB (bert-real), or --describe FILE.json" in said


def test_a_file_that_begins_with_a_byte_order_mark_is_read(files: tuple[str, str]) -> None:
    """As Windows writes UTF-8: `windtunnel validate` takes such a table, too."""
    for name in files:
        Path(name).write_bytes(b"\xef\xbb\xbf" + Path(name).read_bytes())
    assert main(["report", "--describe", files[0], "--rehearsal", files[1], *SIZES, "--json"]) == 0
    config = Path(files[0]).with_name("config.json")
    layers = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 256}
    text = json.dumps({"model_type": "bert", "vocab_size": 1000, "max_position_embeddings": 128, **layers})
    config.write_text(text, encoding="utf-8-sig")
    assert main(["compare", "--architecture", str(config), "--samples", "1000", "--json"]) == 0


def test_a_price_of_ones_own_is_that_of_the_bill(files: tuple[str, str], invoke: Invoke) -> None:
    """It stands in place of the book's, and the job ran before today."""
    text = invoke("report", "--describe", files[0], "--price", "ml.trn1.32xlarge=12").out
    assert "$12.00 on-demand, stated, since 2023-01-01" in text and "$20.11" in text


def test_seconds_on_a_training_plan_have_no_cost(counters: Any) -> None:
    """Its capacity is paid for in advance, as `max_cost=` says too: the price of on-demand is nobody's bill."""
    resources = {"InstanceType": "ml.trn1.32xlarge", "InstanceCount": 1, "TrainingPlanArn": "arn:aws:plan"}
    report = report_of(DescribedJob(described(ResourceConfig=resources)))
    text = text_of(report)
    assert "The job ran on a training plan, which is paid in advance" in text
    assert "$" not in text and report.cost_line("ml.trn1.32xlarge") is None
    held = report_for_job(DescribedJob(described(ResourceConfig=resources)), FULL, rehearsal=counters())
    assert held.to_dict()["flight"]["cost_usd"] is None


def test_the_bill_is_of_the_day_in_utc_wherever_it_is_read() -> None:
    """boto3 gives times of this machine's zone; a job of the evening before a price changed has the earlier one."""
    resources = {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 1}
    job = described(ResourceConfig=resources, TrainingStartTime="2025-06-01T05:00:00+09:00")
    report = report_of(DescribedJob(job))
    assert report.measured["training_start"] == "2025-05-31"
    assert "$37.69 on-demand" in report.to_text(full=True)


def test_a_report_with_a_rehearsal_ignores_nothing(counters: Any) -> None:
    """The bill's instances and their on-demand price are what is compared: others are refused."""
    job = DescribedJob(described())
    options: tuple[dict[str, Any], ...] = (
        {"instance_count": 2},
        {"offering": "EC2 on-demand"},
        {"discount": 0.3},
    )
    for given in options:
        with pytest.raises(ConfigurationError, match=f"{next(iter(given))}= .*rehearsal="):
            report_of(job, FULL, rehearsal=counters(), **given)
    with pytest.raises(ConfigurationError, match="precisions="):
        report_of(job, FULL, rehearsal=counters(), precisions=Precisions(trn=AUTO_CAST))


def test_a_spot_jobs_seconds_are_called_what_they_are(counters: Any) -> None:
    """Those from start to end are compared: what the discount left of them, nothing predicts."""
    spot = described(EnableManagedSpotTraining=True, BillableTimeInSeconds=1800)
    report = report_for_job(DescribedJob(spot), FULL, rehearsal=counters())
    data = report.to_dict()
    assert data["flight"]["start_to_end_s"]["real"] == 6033 and data["measured"]["billable_seconds"] == 1800
    assert "Predicted and real: start to end " in " ".join(report.document().headline)
    plain = report_for_job(DescribedJob(described()), FULL, rehearsal=counters())
    assert plain.to_dict()["flight"]["start_to_end_s"] is None
    assert "Predicted and real: billable " in " ".join(plain.document().headline)


@pytest.mark.parametrize(
    ("replaced", "error", "words"),
    [
        ({"TrainingJobStatus": "InProgress"}, JobNotFinished, "still runs"),
        ({"BillableTimeInSeconds": None}, ConfigurationError, "no BillableTimeInSeconds"),
        ({"TrainingStartTime": "soon"}, ConfigurationError, "TrainingStartTime='soon'"),
        ({"TrainingJobArn": "arn:aws:sagemaker:us-east-1:000000000000:training-job/x"}, ConfigurationError,
         "ran on the local backend"),
        ({"ResourceConfig": {"InstanceGroups": [
            {"InstanceGroupName": n, "InstanceType": k, "InstanceCount": 1}
            for n, k in (("a", "ml.trn1.32xlarge"), ("b", "ml.p4d.24xlarge"))
        ]}}, ConfigurationError, "several types"),
        ({"ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1}}, ValueError, "ml.g5.xlarge"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_says_why(
    counters: Any, replaced: dict[str, Any], error: type[Exception], words: str
) -> None:
    """A job that runs, was not billed, ran here, or on what is not modelled."""
    with pytest.raises(error, match=words):
        report_for_job(DescribedJob(described(**replaced)), FULL, rehearsal=counters())


def test_a_model_that_cores_share_is_no_evidence() -> None:
    """It is modelled by its description: that is said, not that counters are missing."""
    with pytest.raises(ConfigurationError, match="the cores of llama share one copy of the model"):
        report_for_job(DescribedJob(described()), FULL, rehearsal=split_counters())


def test_a_file_that_is_no_description_is_refused(tmp_path: Path, files: tuple[str, str]) -> None:
    """Counters instead of a description, no JSON, no file."""
    with pytest.raises(ConfigurationError, match="describe-training-job"):
        DescribedJob.load(files[1])
    (tmp_path / "x.json").write_text("[")
    with pytest.raises(ConfigurationError, match="is not JSON"):
        DescribedJob.load(tmp_path / "x.json")
    with pytest.raises(ConfigurationError, match="cannot read"):
        DescribedJob.load(tmp_path / "nowhere.json")


def test_the_report_sets_the_real_job_beside_the_prediction(counters: Any) -> None:
    """Bill, prediction, error, and whether the interval holds it; the modelled part follows."""
    report = report_for_job(DescribedJob(described()), FULL, rehearsal=counters())
    text = report.to_text(full=True)
    for needed in (
        "MEASURED ON AWS",
        "$41.43",
        "PREDICTED AND REAL",
        "6,033 s",
        "inside",
        "from rehearsal bert",
    ):
        assert needed in text, needed
    assert text.index("PREDICTED AND REAL") < text.index("MODELLED")
    flown = report.to_dict()["flight"]
    own = report.to_dict()["modelled"]["estimates"][0]
    assert flown["billable_s"]["predicted"] == own["billable_s"]
    assert flown["billable_s"]["error_percent"] == pytest.approx(
        (own["billable_s"] / 6033 - 1) * 100, abs=0.01
    )
    assert flown["cost_usd"]["real"] == pytest.approx(24.725 * 6033 / 3600, abs=1e-3)
    assert flown["training_phase_s"]["real"] == 5940 and flown["phases_s"]["Downloading"]["real"] == 60
    assert flown["billable_s"]["inside_interval"] is True


def test_sizes_that_were_not_stated_are_no_prediction(counters: Any) -> None:
    """A rehearsed sample beside a whole job, and a download of unknown size, are named as that."""
    unstated = text_of(report_for_job(DescribedJob(described()), rehearsal=counters()))
    assert "The size of the job on AWS was not stated" in unstated
    assert "Downloading not stated 60 s - -" in unstated
    assert "--dataset-gib" in unstated
    stated = text_of(report_for_job(DescribedJob(described()), FULL, rehearsal=counters()))
    assert "not stated" not in stated


def test_the_report_keeps_to_its_width(counters: Any) -> None:
    """Also with the new table, of which no cell is broken at 80 columns."""
    text = report_for_job(DescribedJob(described()), FULL, rehearsal=counters()).to_text(80, full=True)
    assert max(map(len, text.splitlines())) <= 80
    assert not [line for line in text.splitlines() if line.strip() in ("s", "evaluation")]


def test_a_job_that_did_not_complete_is_not_judged(counters: Any) -> None:
    """Its seconds are not those of the whole job; its bill is shown all the same."""
    stopped = DescribedJob(described(TrainingJobStatus="Stopped"))
    assert "ended as Stopped" in report_for_job(stopped, FULL, rehearsal=counters()).to_text(full=True)


def test_a_bucket_that_may_not_be_read_is_no_obstacle() -> None:
    """The bill needs DescribeTrainingJob alone; on the local backend a refusal is an error all the same."""

    class Closed(DescribedJob):
        def counters(self) -> None:
            raise ServiceCallFailed("GetObject", "AccessDenied", "no")

    assert "$41.43" in report_of(Closed(described())).to_text(full=True)
    with pytest.raises(ServiceCallFailed):
        report_for_job(
            Closed(described(TrainingJobArn="arn:aws:sagemaker:us-east-1:000000000000:training-job/x"))
        )


def test_a_warm_pool_is_on_the_bill() -> None:
    """What is kept after the job is charged too."""
    pool = {"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": 1800}
    text = report_of(DescribedJob(described(WarmPoolStatus=pool))).to_text(full=True)
    assert "1,800 s x 1, billed too" in text
    assert f"${24.725 * (6033 + 1800) / 3600:,.2f}" in text


def test_another_job_moves_the_prediction_and_says_so_first(counters: Any, tmp_path: Path) -> None:
    """Factor and jobs are the first lines; user_calibration=None leaves all as it was."""
    store = CalibrationStore(tmp_path / "own" / "calibration.json")
    job = DescribedJob(described())
    before = report_for_job(job, FULL, rehearsal=counters(), user_calibration=store)
    other = described(TrainingJobName="other")
    store.add(evidence_for(other, counters(), FULL))
    after = report_for_job(job, FULL, rehearsal=counters(), user_calibration=store)
    factor = store.load().corrections["trn1"].factor
    assert after.flight.steps is not None and before.flight.steps is not None
    assert after.flight.steps.predicted == pytest.approx(before.flight.steps.predicted * factor)
    assert after.document().headline[0].startswith(f"YOUR CALIBRATION: step times of trn1 are x {factor:.2f}")
    assert "(other)" in after.document().headline[0] and after.to_dict()["notes"]
    plain = report_for_job(job, FULL, rehearsal=counters(), user_calibration=None)
    assert plain.to_json() == before.to_json()
    figure = after.plot()
    assert "YOUR CALIBRATION" in figure.get_suptitle() and "YOUR CALIBRATION" in figure.get_supxlabel()
    assert "YOUR CALIBRATION" in after.charts()[1].caption
    local = report_for_counters(counters(), FULL, user_calibration=store)
    assert local.document().headline[0].startswith("YOUR CALIBRATION")


def test_comparisons_and_scaling_tables_use_it_alike(counters: Any, tmp_path: Path) -> None:
    """Also where one thing at a time is changed; each says so first, none of them with None."""
    store = CalibrationStore(tmp_path / "calibration.json")
    store.add(evidence_for(described(), counters(), FULL))
    factor = store.load().corrections["trn1"].factor
    assert factor > 1
    own, plain = (compare(counters(), None, FULL, user_calibration=given) for given in (store, None))
    assert own.document().headline[0].startswith("YOUR CALIBRATION") and own.to_dict()["notes"]
    assert plain.to_dict()["notes"] == []
    for mine, models in zip(own.sensitivity, plain.sensitivity, strict=True):
        if mine.costs[0] is not None and models.costs[0] is not None:
            assert mine.costs[0].usd > models.costs[0].usd, mine.change
    tables = [scaling(counters(), full_scale=FULL, user_calibration=given) for given in (store, None)]
    assert tables[0].document().headline[0].startswith("YOUR CALIBRATION")
    assert tables[1].document().headline == ()
    for row, as_modelled in zip(tables[0].scaling.rows, tables[1].scaling.rows, strict=True):
        if row.estimate is not None and as_modelled.estimate is not None:
            assert row.estimate.train_s == pytest.approx(as_modelled.estimate.train_s * factor)


def test_a_job_does_not_predict_itself(counters: Any, tmp_path: Path) -> None:
    """What was calibrated with it would flatter the error."""
    store = CalibrationStore(tmp_path / "calibration.json")
    job = DescribedJob(described())
    before = report_for_job(job, FULL, rehearsal=counters(), user_calibration=store)
    store.add(evidence_for(job.describe(), counters(), FULL))
    after = report_for_job(job, FULL, rehearsal=counters(), user_calibration=store)
    assert after.to_dict()["flight"] == before.to_dict()["flight"]
    assert "is left out here" in after.document().headline[0]


def test_a_calibration_of_another_model_is_kept_and_not_used(counters: Any, tmp_path: Path) -> None:
    """And the report says which jobs to give again."""
    store = CalibrationStore(tmp_path / "calibration.json")
    store.add(evidence_for(described(), counters(), FULL))
    stored = json.loads(store.path.read_text())
    stored["jobs"][0]["model"] = "tensor=1"
    store.path.write_text(json.dumps(stored))
    report = report_for_counters(counters(), FULL, user_calibration=store)
    assert "Not used of your calibration: bert-real" in report.document().headline[0]
    plain = report_for_counters(counters(), FULL, user_calibration=None)
    assert report.to_dict()["modelled"] == plain.to_dict()["modelled"]


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"schema": "x"}', '{"schema": "windtunnel.user_calibration/1"}']
)
def test_a_broken_file_names_the_way_out(counters: Any, tmp_path: Path, text: str) -> None:
    """It is never taken for no calibration; to forget it all works."""
    store = CalibrationStore(tmp_path / "calibration.json")
    store.path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"--forget.*--no-user-calibration"):
        report_for_counters(counters(), FULL, user_calibration=store)
    store.forget()
    assert store.load().evidence == ()


def test_report_command(files: tuple[str, str], invoke: Invoke) -> None:
    """A saved description and the counters of the rehearsal are enough."""
    said = invoke("report", "--describe", files[0], "--rehearsal", files[1], *SIZES, "--json").out
    assert json.loads(said)["flight"]["billable_s"]["real"] == 6033
    assert "$41.43" in invoke("report", "--describe", files[0]).out


def test_calibrate_command(files: tuple[str, str], invoke: Invoke) -> None:
    """A dry run keeps nothing; then it is kept, shown, used, left out, forgotten."""
    given = ["calibrate", "--describe", files[0], "--rehearsal", files[1], *SIZES]
    assert "nothing was stored" in invoke(*given, "--dry-run").out and not STORED.path.exists()
    assert "bert-real: 2023-01-01" in invoke(*given).out
    shown = json.loads(invoke("calibrate", "--show", "--json").out)
    assert shown["jobs"][0]["job"] == "bert-real" and shown["jobs"][0]["used"]
    low, high = shown["corrections"][0]["interval"]
    assert low < shown["corrections"][0]["factor"] < high
    used = invoke("compare", files[1], *SIZES).out
    assert "YOUR CALIBRATION" in "".join(used.splitlines()[:4])
    assert "YOUR CALIBRATION" not in invoke("compare", files[1], *SIZES, "--no-user-calibration").out
    assert "It has: bert-real" in invoke("calibrate", "--forget", "nobody", exits=2).err
    invoke("calibrate", "--forget", "bert-real")
    assert "No calibration of your own" in invoke("calibrate", "--show").out


def test_forget_removes_no_more_than_was_asked_for(files: tuple[str, str], invoke: Invoke) -> None:
    """Neither all for a name that is empty, as of a shell's unset variable, nor anything in a dry run."""
    invoke("calibrate", "--describe", files[0], "--rehearsal", files[1], *SIZES)
    for words in (["--forget", ""], ["--forget", "--dry-run"], ["--forget", "bert-real", "--json"]):
        invoke("calibrate", *words, exits=2)
    assert [item.job for item in STORED.load().evidence] == ["bert-real"]
    invoke("calibrate", "--show", "--dry-run", exits=2)
    assert invoke("calibrate", "--forget").out == "Forgotten: bert-real.\n" and not STORED.path.exists()


def test_a_wrong_size_of_a_job_to_calibrate_with_is_a_wrong_argument(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, as that of `windtunnel report`."""
    for words in (["--epochs", "2"], ["--full-scale-samples", "0"]):
        given = ["--describe", files[0], "--rehearsal", files[1], *words]
        assert main(["calibrate", *given]) == main(["report", *given]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_calibrate_needs_sizes_and_doubts_wrong_ones(files: tuple[str, str], invoke: Invoke) -> None:
    """A job of other size than stated gives a ratio that is far from all rows: said, with what to check."""
    said = invoke("calibrate", "--describe", files[0], "--rehearsal", files[1], exits=2).err
    assert "--full-scale-samples" in said
    wrong = ["--full-scale-samples", "36000"]
    said = invoke("calibrate", "--describe", files[0], "--rehearsal", files[1], *wrong, "--dry-run").err
    assert "--full-scale-samples and --epochs those of the job" in said


def test_from_job_asks_aws(files: tuple[str, str], monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    """The job's description comes through an AWS session."""
    from windtunnel.session import aws

    class Service:
        def describe_job(self, name: str) -> dict[str, Any]:
            found = described(TrainingJobName=name)
            found["TrainingStartTime"] = datetime(2024, 2, 3, tzinfo=timezone.utc)
            return found

    class Aws(aws.AwsSession):
        def __init__(self) -> None:
            super().__init__(service=Service())  # type: ignore[arg-type]

    monkeypatch.setattr(aws, "AwsSession", Aws)
    said = invoke("calibrate", "--from-job", "far-away", "--rehearsal", files[1], *SIZES).out
    assert "far-away: 2024-02-03" in said
    said = invoke("report", "far-away", "--aws", "--rehearsal", files[1], *SIZES).out
    assert "is left out here" in " ".join(said.split())


def test_the_file_is_the_owners_and_written_whole(tmp_path: Path, counters: Any) -> None:
    """No half-written calibration, no other user's eyes."""
    store = CalibrationStore(tmp_path / "home" / "calibration.json")
    store.add(evidence_for(described(), counters(), FULL))
    assert store.path.stat().st_mode & 0o777 == 0o600
    assert store.path.parent.stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in store.path.parent.iterdir()) == [
        "calibration.json",
        "calibration.lock",
    ]
    assert store.load() == store.load().with_job(evidence_for(described(), counters(), FULL))
