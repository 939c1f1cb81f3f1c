"""What a table may say beside its configuration: Neuron version, network, software; and what each changes."""

from __future__ import annotations

import math
from statistics import mean

import pytest

from windtunnel.priceperf import CALIBRATIONS, FullScale, InvalidInput, Workload, estimate
from windtunnel.priceperf.calibration.accuracy import RowCheck, validate_rows
from windtunnel.priceperf.calibration.described_range import widenings
from windtunnel.priceperf.calibration.fitting import step_s
from windtunnel.priceperf.calibration.published_rows import rows_of
from windtunnel.priceperf.calibration.row_reader import read_rows
from windtunnel.priceperf.calibration.versions import figures, log_speed, log_speed_of_row
from windtunnel.priceperf.instances import instance_type
from windtunnel.priceperf.model.described_step import training_step
from windtunnel.priceperf.model.precision import AUTO_CAST
from windtunnel.priceperf.workload.cluster import Cluster, Run

from .test_row_reader import LLAMA, cells

CLUSTER = {"architecture": "MPT-7b", "instance_type": "p4d.24xlarge", "nodes": "8", "microbatch": "2",
           "sequence_length": "2048", "zero1": "full", "attention": "flash", "recompute": "full",
           "sequences_per_second": "100"}  # fmt: skip


def checked(**changed: str) -> RowCheck:
    """The row of Llama on trn1 with other cells."""
    (check,) = validate_rows(read_rows([{**LLAMA, **changed}])).rows
    return check


def width(check: RowCheck) -> float:
    """Log width of its interval."""
    assert check.low is not None
    assert check.high is not None
    return math.log(check.high / check.low)


def test_eras_of_neuron_are_nearer_than_the_median_on_other_models() -> None:
    """Each single figure, by the eras as the other families of models have them; older ones are slower."""
    without = [abs(figure.log_ratio) for figure in figures()]
    within = [
        abs(figure.log_ratio - log_speed(".".join(map(str, figure.version)), figure.model_family))
        for figure in figures()
    ]
    assert mean(within) < mean(without)
    assert log_speed("2.3") < log_speed("2.10.0") < log_speed("2.21.0")


def test_a_row_is_fitted_at_the_speed_of_its_versions() -> None:
    """Llama 3.1 was published from 2.20 on alone; BERT in two eras; a row that is not in the file has no version."""
    newest = log_speed("2.21", but_family="llama")
    assert log_speed_of_row("Llama3.1-70B 32n tp32pp8", None) == pytest.approx(newest)
    assert 0 < log_speed_of_row("BERT-L ph1 bf16 16n LAMB gbs1M", None) < newest
    assert log_speed_of_row("another", None) == 0
    assert log_speed_of_row("another", "2.4") == log_speed("2.4")
    row = next(row for row in rows_of("trn1") if row.config == "Llama3.1-70B 32n tp32pp8")
    constants = CALIBRATIONS["trn1"].constants
    usual = training_step(row.training, row.instance, constants, row.nodes).total_s
    assert step_s(row, constants) == pytest.approx(usual / math.exp(newest))


def test_a_neuron_version_moves_the_prediction() -> None:
    """Without one the usual speed is predicted, and said; what is no version is refused."""
    none, old, new = checked(), checked(neuron_version="2.4.0"), checked(neuron_version="2.22")
    assert none.predicted and old.predicted and new.predicted
    assert old.predicted < none.predicted < new.predicted
    assert any("neuron_version not given" in note for note in none.notes)
    assert not any("neuron_version" in note for note in new.notes)
    for wrong in ("newest", "2.²"):
        assert "neuron_version must be a number as 2.21" in (checked(neuron_version=wrong).reason or "")


def test_a_described_job_may_name_its_neuron_version() -> None:
    """As a row of a table: its speed, and a narrower interval; a GPU has none of it."""

    def step(version: str | None, name: str = "trn1.32xlarge") -> tuple[float, float]:
        llama = Workload.transformer(
            "Llama2-7B", microbatch=1, sequence_length=4096, global_batch=1024, tensor_parallel=8,
            neuron_version=version,
        )  # fmt: skip
        run = Run(Cluster(instance_type(name), 4), 1024, AUTO_CAST)
        found = estimate(llama, run, FullScale(10_000))
        return found.step.total_s, found.range_check.log_fast

    (usual, wide), (new, narrow) = step(None), step("2.22")
    assert new == pytest.approx(usual * math.exp(-log_speed("2.22"))) and new < usual
    assert narrow < wide
    assert step("2.22", "p4d.24xlarge") == step(None, "p4d.24xlarge")
    for wrong in ("newest", 2.2):
        with pytest.raises(InvalidInput, match=r"neuron_version must be a number as 2\.21"):
            step(wrong)  # type: ignore[arg-type]
    for never in ("0.0", "1.19", "2.2", "3.0", "99.9"):
        with pytest.raises(InvalidInput, match=r"2\.3, the first on trn1, or a later 2\.x, not '"):
            step(never)
    assert step("2.99") == step("2.29")  # newer than all that are known


def test_a_network_that_is_not_given_is_assumed_and_widens() -> None:
    """InfiniBand, as all published clusters of A100s have; p4d's own network is slower where gathers show."""
    rows = [CLUSTER, {**CLUSTER, "network_gbps": "1600"}, {**CLUSTER, "network_gbps": "400"}]
    unsaid, fast, slow = validate_rows(read_rows(rows)).rows
    assert unsaid.predicted == fast.predicted
    assert fast.predicted and slow.predicted and slow.predicted < fast.predicted
    assert any("network_gbps not given: taken as 1,600" in note for note in unsaid.notes)
    assert width(unsaid) > width(fast)


@pytest.mark.parametrize("column", ["recompute", "attention"])
def test_what_a_row_leaves_open_widens_its_interval(column: str) -> None:
    """By what leaving it open does to rows that state it."""
    row = next(row for row in rows_of("a100") if row.nodes == 1 and row.training.attention == "flash")
    table = {**cells(row), "stack": "", "config": "a row"}
    stated, open_ = validate_rows(read_rows([table, {**table, column: ""}])).rows
    assert width(open_) == pytest.approx(2 * math.hypot(width(stated) / 2, widenings()[column]), rel=1e-6)
