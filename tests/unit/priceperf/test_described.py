"""Jobs too large to rehearse: split as asked, told when they cannot run, priced as named."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.priceperf import (
    ARCHITECTURES,
    AUTO_CAST,
    CALIBRATIONS,
    CATALOG,
    Cluster,
    DescribedWorkload,
    FullScale,
    InvalidInput,
    PerDevice,
    PriceBook,
    Run,
    Workload,
    calibration_of,
    compare,
    decisions,
    estimate,
    scaling,
    sensitivity,
    training_step,
)
from windtunnel.priceperf.calibration.accuracy import validate_rows
from windtunnel.priceperf.calibration.data_files import table
from windtunnel.priceperf.calibration.described_range import most_tokens
from windtunnel.priceperf.calibration.published_rows import measured as measured_rows
from windtunnel.priceperf.calibration.published_rows import rows_of
from windtunnel.priceperf.calibration.row_reader import read_rows
from windtunnel.priceperf.model.host_tracing import HOST_SPEED
from windtunnel.priceperf.model.memory_need import memory_need, usual_recompute
from windtunnel.priceperf.model.precision import BF16_AUTOCAST
from windtunnel.priceperf.model.training_settings import Training
from windtunnel.priceperf.money.plan import plans
from windtunnel.priceperf.workload.splits import OpenSplit, search

from .test_row_reader import cells

PAIR = ("ml.trn1.32xlarge", "ml.p4d.24xlarge")
SIZE = FullScale(100_000)


def llama(**changed: Any) -> DescribedWorkload:
    """Llama 2 7B as AWS trains it, or with other settings."""
    settings: dict[str, Any] = {
        "microbatch": 1, "sequence_length": 4096, "global_batch": 1024, "tensor_parallel": 8,
        "zero": "optimizer",
    }  # fmt: skip
    return Workload.transformer("Llama2-7B", **{**settings, **changed})


def split_of(job: Workload, run: Run) -> Training:
    """The step as it is modelled, split over the cluster."""
    found = estimate(job, run, SIZE).training
    assert found is not None
    return found


def test_a_description_is_predicted_as_the_published_rows_are() -> None:
    """The same step, and the same interval, as `windtunnel validate` has for that row."""
    row = next(row for row in rows_of("trn1") if "7B" in row.architecture and "lama" in row.architecture)
    training = row.training
    job = Workload.transformer(
        training.architecture,
        microbatch=int(training.microbatch),
        sequence_length=training.sequence_length,
        global_batch=int(training.global_batch),
        tensor_parallel=training.tensor_parallel,
        recompute=training.recompute,
        zero=training.zero,
        attention=training.attention,
        parameters=training.parameters,
        gradient_bytes=training.gradient_bytes,
        dtype=training.storage_dtype,  # type: ignore[arg-type]
        matmul_dtype=training.matmul_dtype,
    )
    cluster = Cluster(CATALOG[row.instance_type], row.nodes)
    run = Run(cluster, training.global_batch, job.precisions(cluster.instance, AUTO_CAST)[0])
    item = estimate(job, run, SIZE)
    expected = training_step(training, cluster.instance, CALIBRATIONS["trn1"].constants, row.nodes)
    assert item.step.total_s == pytest.approx(expected.total_s)
    (check,) = validate_rows(read_rows([{**cells(row), "stack": "", "config": "a job"}])).rows
    assert check.low is not None
    assert training.global_batch / item.step_interval_s[1] == pytest.approx(check.low)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"architecture": "GPT-9"},
            "architecture 'GPT-9' is not known. Did you mean 'GPT-2'?",
        ),
        ({"microbatch": 0}, "microbatch must be a whole number of 1 or more, at most 1e.15, not 0"),
        ({"global_batch": 1.5}, "global_batch must be a whole number"),
        ({"gradient_accumulation": 4}, "not both"),
        ({"tensor_parallel": 5}, "not divide the 32 attention heads; 1, 2, 4, 8, 16, 32 do"),
        ({"pipeline_parallel": 64}, "more than the 32 layers"),
        ({"dtype": "int8"}, "dtype must be one of bf16, fp16, fp32, not 'int8'"),
        ({"optimizer": "adam9"}, "optimizer must be one of adamw, lamb, sgd"),
        ({"recompute": "some"}, "recompute must be one of auto, none, selective, full"),
        ({"on_gpu": {"layers": 3}}, "on_gpu knows microbatch, tensor_parallel"),
        ({"on_gpu": {"tensor_parallel": 5}}, "tensor_parallel 5 does not divide"),
        ({"architecture": None}, "architecture must be a model's name, .* or an Architecture, not None"),
        ({"parameters": "7B"}, "parameters must be about .* 6.74 billion, not '7B': 8 billion are 8e9"),
        ({"parameters": 1e12}, "parameters must be about .*, not 1000000000000.0"),
        ({"head_part": 1.5}, "head_part must be a number from 0 to 1"),
        ({"head_part": None}, "head_part must be a number from 0 to 1"),
    ],
)
def test_wrong_settings_are_named(wrong: dict[str, Any], message: str) -> None:
    """What was given, and what is valid."""
    settings: dict[str, Any] = {"architecture": "Llama2-7B", "microbatch": 1, "sequence_length": 4096}
    if "gradient_accumulation" in wrong:
        settings["global_batch"] = 64
    with pytest.raises(InvalidInput, match=message):
        Workload.transformer(**{**settings, **wrong})


def test_workers_that_do_not_divide_are_told_with_numbers() -> None:
    """How many there are, how many a copy needs, how many instances would do."""
    with pytest.raises(InvalidInput, match=r"= 24 workers do not divide the 64 .* multiple of 3 instances"):
        compare(llama(pipeline_parallel=3), ["ml.trn1.32xlarge"], SIZE, instance_count=2)
    with pytest.raises(InvalidInput, match=r"less than one sequence for each of 4000 data-parallel"):
        compare(llama(), [("ml.trn1.32xlarge", 1000)], SIZE)
    with pytest.raises(InvalidInput, match="FullScale"):
        compare(llama(), PAIR)
    with pytest.raises(InvalidInput, match="whole number of instances, as 4, not '2'"):
        compare(llama(), PAIR, SIZE, instance_count="2")  # type: ignore[arg-type]


def test_the_size_of_a_job_does_not_change_its_sequences() -> None:
    """Another length there would leave the step as it is, so it is refused, with what does it."""
    with pytest.raises(
        InvalidInput, match=r"sequences of 4,096 tokens.*Workload\.transformer\(sequence_length=N\)"
    ):
        compare(llama(), PAIR, replace(SIZE, sequence_length=2048))
    assert llama().sized(replace(SIZE, sequence_length=4096)).sequence_length == 4096


@given(
    sequences=st.integers(1, 512),
    name=st.sampled_from(["ml.trn1.32xlarge", "ml.p4d.24xlarge"]),
    model=st.sampled_from(["BERT-Base", "BERT-Large", "Llama2-7B"]),
    length=st.sampled_from([128, 512, 2048]),
    split=st.sampled_from([(1, 1), (4, 1), (4, 2)]),
)
def test_nothing_that_fits_is_faster_than_what_is_not_given(
    sequences: int, name: str, model: str, length: int, split: tuple[int, int]
) -> None:
    """No other pass or recomputation; none is larger than any row's, or makes fewer than there are stages."""
    instance, (tp, pp) = CATALOG[name], split
    batch = sequences * instance.core_count // (tp * pp)

    def training_of(**more: Any) -> Training:
        job = Workload.transformer(
            model,
            sequence_length=length,
            tensor_parallel=tp,
            pipeline_parallel=pp,
            global_batch=batch,
            **more,
        )
        precision = job.precisions(instance, AUTO_CAST)[0]
        return split_of(job, Run(Cluster(instance, 1), batch, precision))

    found = training_of()
    assert found.global_batch == pytest.approx(batch)
    assert found.microbatch * round(found.microbatches) == pytest.approx(sequences)
    largest = max(length, most_tokens(calibration_of(instance)))
    assert found.tokens <= largest
    assert sequences < pp or found.microbatches >= pp

    def seconds(training: Training) -> float:
        return training_step(training, instance, calibration_of(instance).constants, 1).total_s

    for passes in (2**doubled for doubled in range(10)):
        size, rest = divmod(sequences, passes)
        if rest or size * length > largest or passes < pp:
            continue
        for recompute in (usual_recompute(tp, found.attention, instance), "full"):
            other = training_of(microbatch=size, recompute=recompute)
            if memory_need(other, instance).fits:
                assert memory_need(found, instance).fits
                assert seconds(found) <= seconds(other) * (1 + 1e-9)


@pytest.mark.parametrize("modelled", [compare, scaling])
@pytest.mark.parametrize("size", [{"train_samples": 1000}, 1000])
def test_what_is_no_size_is_told(modelled: Any, size: Any) -> None:
    """With what would be one."""
    with pytest.raises(InvalidInput, match=r"full_scale is FullScale\(train_samples=...\) or None, not "):
        modelled(llama(), "ml.trn1.32xlarge" if modelled is scaling else PAIR, full_scale=size)


def test_another_network_is_that_of_the_instance() -> None:
    """Clusters of A100s with InfiniBand exchange faster; on GPUs alone, where it is said of these."""
    plain, other = (
        compare(
            llama(tensor_parallel=1, zero="full", on_gpu=on_gpu), [(name, 16) for name in PAIR], SIZE
        ).estimates
        for on_gpu in ({}, {"network_gbps": 1600})
    )
    assert plain[0].step.total_s == other[0].step.total_s
    assert plain[1].step.weights_gathered_s > other[1].step.weights_gathered_s
    with pytest.raises(InvalidInput, match="network_gbps must be a number from 1"):
        llama(network_gbps=0)


def test_a_step_of_unknown_size_is_asked_for() -> None:
    """Neither a batch nor a pass: one sequence a worker would be nobody's job."""
    job = Workload.transformer("BERT-Large", sequence_length=512)
    with pytest.raises(InvalidInput, match="--global-batch 256"):
        compare(job, PAIR, SIZE)
    assert compare(job, PAIR, SIZE, batch=256).estimates[0].global_batch == 256


def test_what_does_not_fit_is_said() -> None:
    """175 billion parameters fit no single instance; the larger A100 holds what the smaller does not."""
    giant = Workload.transformer("GPT3-175B", microbatch=1, sequence_length=2048, tensor_parallel=8)
    for item in compare(giant, [("ml.trn1.32xlarge", 1), ("ml.p4de.24xlarge", 1)], SIZE).estimates:
        assert item.memory is not None
        assert not item.memory.fits
    middle = Workload.transformer(
        "GPT3-23B", microbatch=1, sequence_length=2048, tensor_parallel=8, recompute="full"
    )
    small, large = (item.memory for item in compare(middle, (PAIR[1], "ml.p4de.24xlarge"), SIZE).estimates)
    assert small is not None
    assert large is not None
    assert (small.fits, large.fits) == (False, True)
    assert small.needed_bytes == large.needed_bytes > 23e9 * 16 / 8


def test_what_does_not_fit_cannot_win() -> None:
    """However cheap it would be."""
    job = Workload.transformer(
        "GPT3-6.7B", microbatch=1, sequence_length=2048, tensor_parallel=2, global_batch=64,
        on_gpu={"zero": "full"},
    )  # fmt: skip
    comparison = compare(job, ["ml.trn1.2xlarge", "ml.p4d.24xlarge"], SIZE, on=date(2025, 6, 1))
    assert [item.fits for item in comparison.estimates] == [False, True]
    (decision,) = decisions(comparison)
    assert decision.cheapest == 1
    assert decision.probabilities == (None, 1.0)
    assert not decision.clear
    assert sensitivity(job, comparison, SIZE)[0].cheapest == 1


def test_instances_are_names_or_pairs() -> None:
    """One name is a list of one; half an instance is none."""
    assert len(compare(llama(), "ml.trn1.32xlarge", SIZE).estimates) == 1
    with pytest.raises(InvalidInput, match="a name with a number"):
        compare(llama(), [("ml.trn1.32xlarge",)], SIZE)  # type: ignore[list-item]
    with pytest.raises(InvalidInput, match=r"whole number of instances, not 1\.5"):
        compare(llama(), [("ml.trn1.32xlarge", 1.5)], SIZE)  # type: ignore[list-item]


def test_what_was_published_fits() -> None:
    """Every published row ran, so none may be called too large."""
    rows = [row for calibration in CALIBRATIONS.values() for row in calibration.rows]
    assert len(rows) == len(table("published_fitted"))
    assert [
        row.config for row in rows if not memory_need(row.training, CATALOG[row.instance_type]).fits
    ] == []


def test_memory_follows_the_settings() -> None:
    """Sharing, splitting, recomputing and a smaller optimizer each need less."""

    def need(**changed: Any) -> float:
        run = Run(Cluster(CATALOG["ml.trn1.32xlarge"], 2), 1024.0, AUTO_CAST)
        training = split_of(llama(**{"recompute": "none", **changed}), run)
        return memory_need(training, CATALOG["ml.trn1.32xlarge"]).needed_bytes

    assert need(recompute="full") < need()
    assert need(zero="full") < need(zero="optimizer") < need(zero="none")
    assert need(tensor_parallel=16) < need()
    assert need(optimizer="sgd") < need(optimizer="lamb") == need(optimizer="adamw")
    weights = ARCHITECTURES["Llama2-7B"].parameters
    assert need(zero="none", recompute="full") > weights * 12 / 8


def test_settings_of_gpus_are_theirs_alone() -> None:
    """Tensor parallelism on trn1, FSDP on GPUs, the same global batch."""
    job = llama(on_gpu={"tensor_parallel": 1, "zero": "full", "microbatch": 4})
    trn1, p4d = (item.training for item in compare(job, PAIR, SIZE, instance_count=4).estimates)
    assert trn1 is not None
    assert p4d is not None
    assert (trn1.tensor_parallel, trn1.data_parallel, trn1.microbatch) == (8, 16, 1)
    assert (p4d.tensor_parallel, p4d.data_parallel, p4d.microbatch) == (1, 32, 4)
    assert trn1.global_batch == p4d.global_batch == 1024


def test_batch_rules() -> None:
    """As described: each cluster accumulates its own, or all have the global batch; or so many, as stated."""
    job = llama(global_batch=None, gradient_accumulation=4)
    assert [e.global_batch for e in compare(job, PAIR, SIZE).estimates] == [16, 4]
    assert [e.global_batch for e in compare(job, PAIR, SIZE, batch="per_device").estimates] == [16, 4]
    assert compare(job, [(PAIR[0], 8)], SIZE).estimates[0].global_batch == 128
    wide = llama(global_batch=None, on_gpu={"tensor_parallel": 1, "zero": "full"})
    assert [e.global_batch for e in compare(wide, PAIR, SIZE).estimates] == [4, 8]
    assert [e.global_batch for e in compare(wide, PAIR, SIZE, batch=256).estimates] == [256, 256]
    assert [e.global_batch for e in compare(wide, PAIR, SIZE, batch=PerDevice(3)).estimates] == [12, 24]
    with pytest.raises(InvalidInput, match="global batch is not described"):
        compare(wide, PAIR, SIZE, batch="global")
    with pytest.raises(InvalidInput, match="gradient_accumulation"):
        compare(llama(), PAIR, SIZE, batch="per_device")
    with pytest.raises(InvalidInput, match="batch must be one of rehearsed, global, per_device"):
        compare(job, PAIR, SIZE, batch="local")  # type: ignore[arg-type]


def test_fp32_storage_leaves_the_products_open() -> None:
    """bf16 is what was described; fp32 has the settings of compiler and GPU script as alternatives."""
    assert compare(llama(), PAIR, SIZE).alternatives == ()
    names = [e.precision.name for e in compare(llama(dtype="fp32"), PAIR, SIZE).estimates]
    assert names == ["fp32", "TF32"]
    others = compare(llama(dtype="fp32"), PAIR, SIZE).alternatives
    assert [e.precision.name for e in others] == ["auto-cast bf16", "fp32", "bf16 autocast"]
    exact = compare(llama(dtype="fp32", matmul_dtype="fp32"), PAIR[:1], SIZE).estimates[0]
    assert exact.step == compare(llama(dtype="fp32"), PAIR[:1], SIZE).estimates[0].step
    assert exact.step.compute_s > others[0].step.compute_s


@pytest.mark.parametrize("software", [None, "PyTorch script"])
def test_autocast_is_one_however_it_is_said(software: str | None) -> None:
    """fp32 in memory and products of 16 bits are autocast on GPUs, and no other step where both are stated."""
    job = Workload.transformer("BERT-Large", microbatch=8, global_batch=1024, dtype="fp32", software=software)
    others = compare(job, ["ml.p4d.24xlarge"], SIZE).alternatives
    (offered,) = (item for item in others if item.precision == BF16_AUTOCAST)
    (stated,) = compare(job.changed(matmul_dtype="bf16"), ["ml.p4d.24xlarge"], SIZE).estimates
    assert (stated.training, stated.step) == (offered.training, offered.step)
    assert stated.billable_interval_s == offered.billable_interval_s


@pytest.mark.parametrize(("version", "products"), [("2.26", "bf16"), ("2.27.1", "fp32"), (None, "fp32")])
def test_the_compilers_version_decides_what_becomes_of_fp32(version: str | None, products: str) -> None:
    """Up to 2.26 it casts unasked. Products of fp32 were never published: their interval is the wider."""
    job = llama(dtype="fp32", neuron_version=version)
    (found,) = compare(job, PAIR[:1], SIZE).estimates
    assert found.precision.fp32_matmul == products
    cast = compare(llama(dtype="fp32", neuron_version="2.26"), PAIR[:1], SIZE).estimates[0]
    assert (found.range_check.log_slow > cast.range_check.log_slow + 0.1) == (products == "fp32")


def test_a_name_without_ml_is_priced_on_ec2() -> None:
    """The same time, AWS's two prices, at the day asked for; before a first price there is none."""
    pair = ["ml.trn1.32xlarge", "trn1.32xlarge"]
    comparison = compare(llama(), pair, SIZE, on=date(2024, 1, 1))
    ((day, costs),) = comparison.costs
    first, second = costs
    assert day == date(2024, 1, 1)
    assert first is not None
    assert second is not None
    assert first.usd / second.usd == pytest.approx(24.725 / 21.50)
    assert second.price.offering == "EC2 on-demand"
    early = compare(llama(), [*pair, "p4d.24xlarge"], SIZE, on=date(2021, 1, 1)).costs[0][1]
    assert [cost is None for cost in early] == [True, True, False]


def test_the_same_instances_under_two_prices_are_told_apart_by_the_price() -> None:
    """They err together, so the dearer one is never the cheapest."""
    comparison = compare(llama(), ["ml.trn1.32xlarge", "trn1.32xlarge", "ml.p4d.24xlarge"], SIZE)
    newest = decisions(comparison)[-1]
    chances = [chance or 0.0 for chance in newest.probabilities]
    assert chances[0] == 0
    assert sum(chances) == pytest.approx(1)
    pair = decisions(compare(llama(), ["trn1.32xlarge", "ml.p4d.24xlarge"], SIZE, on=newest.on))[0]
    assert pair.probabilities == pytest.approx(chances[1:])


def test_sensitivity_changes_one_thing() -> None:
    """A cut of a third is a third off; the cache takes the compiler's time; halves need two."""
    comparison = compare(llama(), PAIR, SIZE, on=date(2025, 6, 1))
    rows = {row.change: row for row in sensitivity(llama(), comparison, SIZE, on=date(2025, 6, 1))}
    base = rows["as compared"]
    assert base.costs == comparison.costs[0][1]
    cut = rows["ml.p4d.24xlarge -33 %"].costs
    assert cut[0] == base.costs[0]
    assert cut[1] is not None
    assert base.costs[1] is not None
    assert cut[1].usd == pytest.approx(0.67 * base.costs[1].usd)
    cached = rows["compile cached"].costs[0]
    assert cached is not None
    assert base.costs[0] is not None
    assert cached.usd < base.costs[0].usd
    half = rows["instances x 0.5"]
    assert (half.costs, half.cheapest) == ((None, None), None)
    assert half.reasons == ("1 instance cannot be halved",)
    spot = rows["ml.trn1.32xlarge spot"]
    assert spot.assumed
    assert spot.costs[0] is not None
    assert spot.costs[0].low_usd == pytest.approx(0.3 * base.costs[0].low_usd)


def test_scaling_keeps_or_grows_the_batch() -> None:
    """Strong keeps it until a worker has none; weak has the same samples a worker throughout."""
    strong = scaling(llama(), "ml.trn1.32xlarge", (1, 4, 256, 512), "strong", SIZE)
    assert [row.global_batch for row in strong.rows] == [1024] * 4
    assert [row.estimate is not None for row in strong.rows] == [True, True, True, False]
    assert "less than one sequence for each of 2048" in (strong.rows[3].reason or "")
    weak = scaling(llama(), "ml.trn1.32xlarge", (1, 4, 256, 512), "weak", SIZE)
    assert [row.global_batch for row in weak.rows] == [1024, 4096, 1024 * 256, 1024 * 512]
    base = strong.base
    assert base is not None
    assert (base.instances, base.speed_up, base.efficiency) == (1, 1.0, 1.0)


def test_scaling_keeps_rows_that_cannot_run() -> None:
    """32 workers a copy need 4 p4d: fewer have a reason, and the first that runs is the base."""
    table = scaling(llama(tensor_parallel=32), "ml.p4d.24xlarge", (1, 2, 4, 8), "strong", FullScale(1000))
    assert [row.estimate is None for row in table.rows] == [True, True, False, False]
    assert "multiple of 4 instances" in (table.rows[0].reason or "")
    assert table.base is table.rows[2]


def test_scaling_is_beside_the_first_that_fits() -> None:
    """What fills the memory cannot run, however cheap it would be."""
    job = Workload.transformer(
        "Llama-3.1-70B", microbatch=1, sequence_length=4096, global_batch=1024, tensor_parallel=8, zero="full"
    )
    table = scaling(job, "ml.p4d.24xlarge", (1, 2, 4, 8), "strong", SIZE)
    assert [row.fits for row in table.rows] == [False, False, True, True]
    assert table.base is table.rows[2]
    assert (table.base.speed_up, table.base.efficiency) == (1.0, 1.0)
    assert table.rows[3].efficiency and table.rows[3].efficiency <= 1


def test_what_does_not_fit_wins_nothing() -> None:
    """No verdict on it, and it is marked where one thing is different."""
    job = Workload.transformer("Llama2-13B", sequence_length=4096, global_batch=1024, zero="none")
    comparison = compare(job, PAIR, SIZE)
    assert not any(item.fits for item in comparison.estimates)
    assert {(verdict.winner, verdict.obstacle) for verdict in comparison.verdicts} == {(None, "does not fit")}
    rows = sensitivity(job, comparison, SIZE)
    assert {row.fits for row in rows} == {(False, False)}
    assert {row.cheapest for row in rows} == {None}


def split_on(job: DescribedWorkload, name: str, batch: float = 256.0, count: int = 1) -> Training:
    """How it is split over so many instances."""
    cluster = Cluster(CATALOG[name], count)
    return split_of(job, Run(cluster, batch, job.precisions(cluster.instance, AUTO_CAST)[0]))


@pytest.mark.parametrize("name", PAIR)
@pytest.mark.parametrize("model", ["BERT-Large", "Llama2-7B", "Llama-3.1-8B", "Llama2-13B"])
def test_an_open_split_is_whole_copies_or_the_fastest_that_fits(model: str, name: str) -> None:
    """Of an 8B model no copy fits a worker: the search's best is taken, whatever the number formats are."""
    job = Workload.transformer(model, global_batch=256, optimizer="lamb", gradient_bytes=4)
    chosen, instance = split_on(job, name), CATALOG[name]
    copies = split_on(replace(job, zero="none"), name)
    assert memory_need(chosen, instance).fits
    if memory_need(copies, instance).fits:
        assert chosen == copies
        return
    assert (chosen.moments, chosen.gradient_bytes, chosen.workers) == (2, 4, instance.core_count)
    split = OpenSplit(
        job.architecture,
        job.parameters,
        job.sequence_length,
        256,
        gradient_bytes=4,
        attention=chosen.attention,
    )
    assert chosen == search(split, Cluster(instance, 1)).best[0][1]


def test_a_split_that_is_stated_in_part_is_not_open() -> None:
    """A user who says `zero` means it; on GPUs alone, too. A stated pass is kept."""
    open_job = Workload.transformer("Llama-3.1-8B", microbatch=1, sequence_length=2048)
    assert split_on(open_job, PAIR[0]).tensor_parallel > 1
    assert split_on(open_job, PAIR[0]).microbatch == 1
    for stated in ({"zero": "none"}, {"tensor_parallel": 1}, {"pipeline_parallel": 1}):
        kept = replace(open_job, **stated)
        assert (split_on(kept, PAIR[0]).data_parallel, split_on(kept, PAIR[0]).zero) == (32, "none")
    on_gpu = Workload.transformer("Llama-3.1-8B", on_gpu={"zero": "optimizer"})
    assert split_on(on_gpu, PAIR[1]).zero == "optimizer"
    assert split_on(on_gpu, PAIR[0]).tensor_parallel > 1


def test_sharing_the_state_is_taken_where_copies_would_recompute_all() -> None:
    """If it is faster, and recomputation is not described. Small models are copies otherwise."""
    job = Workload.transformer("MPT-760m", sequence_length=32768)
    assert split_on(replace(job, zero="none"), PAIR[1]).recompute == "full"
    assert (split_on(job, PAIR[1]).zero, split_on(job, PAIR[1]).recompute) == ("optimizer", "none")
    assert split_on(replace(job, recompute="full"), PAIR[1]).zero == "none"


@pytest.mark.parametrize("name", ["Llama-3.2-1B", "MPT-3b", "Mistral-7B"])
@pytest.mark.parametrize("nodes", [1, 4, 16])
@pytest.mark.parametrize(
    ("smaller", "larger"), [("ml.p5.48xlarge", "ml.p5en.48xlarge"), (PAIR[1], "ml.p4de.24xlarge")]
)
def test_more_memory_makes_no_step_longer(name: str, nodes: int, smaller: str, larger: str) -> None:
    """Where whole copies fit only the larger memory, they may be slower than a split."""
    for length, batch in ((512, 512), (2048, 256), (4096, 128)):
        job = Workload.transformer(name, sequence_length=length, global_batch=batch)
        first, second = compare(job, [smaller, larger], FullScale(10**6), instance_count=nodes).estimates
        assert not first.fits or second.step.total_s <= first.step.total_s * 1.001


def test_an_open_split_runs_where_copies_get_no_sequence() -> None:
    """A batch of 8 for 32 workers: they share the model instead, also where it is no whole number of any copies."""
    job = Workload.transformer("Llama2-7B", sequence_length=4096, global_batch=8)
    assert split_on(job, PAIR[0], 8.0).data_parallel <= 8
    with pytest.raises(InvalidInput, match="less than one sequence"):
        split_on(replace(job, zero="none"), PAIR[0], 8.0)
    assert split_on(job, PAIR[0], 7.5).data_parallel == split_on(job, PAIR[0], 7.0).data_parallel == 4


@pytest.mark.parametrize("name", PAIR)
def test_stated_passes_that_are_more_than_some_copies_have_end_no_search(name: str) -> None:
    """8 sequences for 4 copies are no passes of 4; for 2 copies they are."""
    job = Workload.transformer("Llama2-7B", sequence_length=4096, global_batch=8, microbatch=4)
    found = split_on(job, name, 8.0)
    assert found.microbatch == 4 and found.data_parallel <= 2
    assert memory_need(found, CATALOG[name]).fits


@pytest.mark.parametrize("model", ["BERT-Large", "BERT-Base", "ViT-Base"])
@pytest.mark.parametrize("name", ["ml.p4d.24xlarge", "ml.p5.48xlarge", "ml.g6e.48xlarge"])
def test_a_token_more_costs_no_less(model: str, name: str) -> None:
    """Scripts of today have torch's attention on GPUs, of whatever length: those that the project measured, too."""

    def step_s(length: int, software: str | None = None) -> float:
        job = Workload.transformer(model, sequence_length=length, global_batch=256, software=software)
        return compare(job, [name], SIZE).estimates[0].step.total_s

    for length in (197, 384, 512, 640):
        assert step_s(length) <= step_s(length + 1) <= 1.02 * step_s(length)
    trained = {row.training.attention for row in measured_rows() if row.stack == "Hugging Face Trainer"}
    trainer = Workload.transformer(model, software="Hugging Face Trainer")
    assert trained == {split_on(trainer, name).attention}


def test_software_has_the_attention_of_its_published_rows() -> None:
    """Its speed is of those. Of models that it has none of, that of today."""
    for software, expected in (("DeepLearningExamples PyTorch", "eager"), ("torchtitan", "flash")):
        job = Workload.transformer("BERT-Large", software=software)
        assert split_on(job, PAIR[1]).attention == expected
        assert split_on(replace(job, attention="flash"), PAIR[1]).attention == "flash"
        open_split = OpenSplit(job.architecture, job.parameters, 512, 256)
        (plan, *_) = plans(open_split, [PAIR[1]], SIZE, nodes=(1,), software=[software]).plans
        assert plan.training.attention == expected


def test_no_pass_has_less_than_a_sequence() -> None:
    """513 sequences for 512 copies are passes of half a sequence in the mean: memory holds whole ones."""
    job = Workload.transformer("MPT-1b", sequence_length=2048, global_batch=513, zero="none")
    whole = replace(job, global_batch=1024)
    runs = [
        split_on(each, "ml.trn2.48xlarge", float(each.global_batch or 0), count=8) for each in (job, whole)
    ]
    assert [memory_need(run, CATALOG["ml.trn2.48xlarge"]).fits for run in runs] == [True, True]
    assert [run.recompute for run in runs] == ["full", "full"]


def test_what_fits_in_no_split_needs_what_the_best_would() -> None:
    """As `plan` says it."""
    job = Workload.transformer("Llama2-70B", sequence_length=4096, global_batch=1024)
    item = compare(job, PAIR, SIZE).estimates[0]
    least = search(
        OpenSplit(job.architecture, job.parameters, 4096, 1024), Cluster(CATALOG[PAIR[0]], 1)
    ).least
    assert not item.fits and item.training == least


def test_the_same_at_the_same_price_is_no_answer() -> None:
    """Two names of one price: each is as likely the cheapest, whichever is named first."""
    comparison = compare(
        llama(), ["ml.trn1.32xlarge", "trn1.32xlarge"], SIZE, prices=PriceBook().buying("EC2 on-demand")
    )
    newest = decisions(comparison)[-1]
    assert newest.probabilities == (0.5, 0.5)
    assert not newest.clear


@given(st.floats(1e-6, 1e6), st.booleans())
def test_no_step_is_shorter_than_its_samples_take_to_prepare(rate: float, split: bool) -> None:
    """Nor is its interval, which has the speed of another host in it; where the loader keeps up, nothing changes."""
    job = Workload.transformer("ViT-Base", sequence_length=197, microbatch=64)
    widths = (1.0, HOST_SPEED.low, HOST_SPEED.high)
    size = FullScale(1_281_167, evaluation_samples=50_000, evaluation_split=split)
    for name in PAIR:
        for count in (1, 4):
            run = Run(Cluster(CATALOG[name], count), 4096.0, AUTO_CAST)
            free, bound = (
                estimate(job, run, each) for each in (size, replace(size, loader_samples_per_s=rate))
            )
            least = 4096 / (rate * CATALOG[name].vcpus.value * count)
            steps = [(each.step.total_s, *each.step_interval_s) for each in (free, bound)]
            assert sum(bound.step.parts.values()) == pytest.approx(bound.step.total_s)
            evaluations = [each.fixed_cost("evaluation") for each in (free, bound)]
            seconds = [(each.seconds, each.low_s, each.high_s) for each in evaluations]
            prepared = least * 50_000 * (1 if split else run.cluster.workers) / 4096
            for (before, after), samples_s in ((steps, least), (seconds, prepared)):
                ends = [max(end, samples_s * width) for end, width in zip(before, widths, strict=True)]
                assert after == pytest.approx(ends)
            million = bound.cost_per_million(PriceBook().price("ml.p4d.24xlarge"))
            usd = (million.low_usd / million.usd, million.high_usd / million.usd)
            assert usd == pytest.approx([end / bound.step.total_s for end in bound.step_interval_s])


@pytest.mark.parametrize("name", ["p5.48xlarge", "trn1.32xlarge"])
def test_a_row_of_scaling_is_the_estimate_of_that_cluster(name: str) -> None:
    """Split, micro-batch and recomputation are searched for each: one cluster has one time and one cost."""
    job = Workload.transformer("Llama-3.1-70B", sequence_length=8192, global_batch=1024)
    for row in scaling(job, name, (2, 4, 64), "strong", SIZE).rows:
        (alone,) = compare(job, [(name, row.instances)], SIZE).estimates
        assert row.estimate is not None
        assert (row.estimate.training, row.estimate.billable_s) == (alone.training, alone.billable_s)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mode": "both"}, "strong or weak"),
        ({"counts": ()}, "at least one"),
        ({"counts": (0,)}, "at least 1"),
    ],
)
def test_wrong_scaling_is_refused(wrong: dict[str, Any], message: str) -> None:
    """The message names what is wrong."""
    with pytest.raises(InvalidInput, match=message):
        scaling(llama(), "ml.trn1.32xlarge", full_scale=SIZE, **wrong)


def test_an_architecture_has_the_parameters_that_aws_prints() -> None:
    """Within 1.5 %, from its dimensions alone: what biases, norms and positions add."""
    for row in rows_of("trn1"):
        own = row.training.architecture.parameters
        assert own == pytest.approx(row.training.parameters, rel=0.015), row.config


def test_a_batch_that_does_not_divide_gets_no_slow_split() -> None:
    """1,024 sequences on 24 GPUs take about as long each as 1,020: each split is tried with its own passes."""
    job = Workload.transformer("Llama2-13B", sequence_length=4096)
    seconds = [
        compare(job, [PAIR[1]], FullScale(10**6), instance_count=3, batch=batch).estimates[0].step.total_s
        / batch
        for batch in (1020, 1024)
    ]
    assert seconds[1] < 1.05 * seconds[0]
