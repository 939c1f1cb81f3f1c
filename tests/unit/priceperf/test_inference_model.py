"""The inference model: its constants are what the rows give, its errors are stated as they are."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.priceperf import ARCHITECTURES, CATALOG, InvalidInput, NotCalibrated, instance_type
from windtunnel.priceperf.calibration import inference_calibration as calibration
from windtunnel.priceperf.calibration.inference_fitting import fit, predicted
from windtunnel.priceperf.calibration.inference_rows import inference_rows
from windtunnel.priceperf.calibration.left_out import fitted
from windtunnel.priceperf.model.inference_call import Inference, call_time, misfit, served

TRN1, INF2 = instance_type("trn1.2xlarge"), instance_type("inf2.xlarge")
BERT = Inference(ARCHITECTURES["BERT-Base"], 8, 128)


def total_s(inference: Inference, instance: Any = TRN1) -> float:
    """One call by the shipped constants."""
    return call_time(inference, instance, calibration.constants()).total_s


def test_fit_reproduces_the_constants() -> None:
    """No constant without the rows it comes from; leaving a family out gives what the file has."""
    rows = inference_rows()
    assert asdict(fit(rows)) == pytest.approx(asdict(calibration.constants()), rel=1e-3)
    without = fit([row for row in rows if row.architecture != "DistilBERT"])
    assert asdict(without) == pytest.approx(
        fitted()["inference"]["without"]["family"]["DistilBERT"], rel=1e-3
    )


def test_rows_that_were_set_aside_set_nothing() -> None:
    """No model and no figure is on both sides."""
    kept, aside = inference_rows(), inference_rows("test")
    assert not {row.model for row in kept} & {row.model for row in aside}
    assert {row.model for row in aside} == {"gpt2", "gpt2-medium", "google/electra-base-discriminator"}
    assert set(fitted()["inference"]["without"]["alone"]) == {row.model for row in kept}


def test_no_figure_contradicts_itself() -> None:
    """Throughput times latency is a number of calls that a benchmark can have had in flight (Little's law)."""
    for row in (*inference_rows(), *inference_rows("test")):
        calls = row.throughput_per_s * row.latency_p50_ms / 1e3 / row.inference.batch_size
        assert calls == pytest.approx(row.in_flight, rel=0.1)
        assert row.source and row.neuron_version >= (2, 8)


def test_the_model_is_as_near_as_promised() -> None:
    """Mean errors of throughput and P50 of left-out models and of left-out dimensions, and what covers them."""
    promised = {"alone": 0.04, "family": 0.05}
    left_out = [summary for summary in calibration.summaries() if summary.level in promised]
    assert len(left_out) == 4
    for summary in left_out:
        assert summary.errors.mean <= promised[summary.level] and summary.errors.rows == 563
        assert summary.coverage is not None and summary.coverage >= 0.8


def test_a_group_takes_no_part_in_the_width_that_judges_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """However wrong its rows are."""
    before = calibration.width("alone", "throughput", "roberta-base")
    errors = {**calibration._errors("alone", "throughput"), "roberta-base": [100.0]}
    monkeypatch.setattr(calibration, "_errors", lambda *_: errors)
    calibration.width.cache_clear()
    assert calibration.width("alone", "throughput", "roberta-base") == before
    assert calibration.width("alone", "throughput") > before
    calibration.width.cache_clear()


@given(
    batch=st.integers(1, 64),
    length=st.integers(8, 1024),
    name=st.sampled_from(["BERT-Base", "DistilBERT", "ViT-Base"]),
)
def test_more_work_never_takes_less_time(batch: int, length: int, name: str) -> None:
    """A larger batch takes longer and answers more a second; a longer sequence takes longer; the parts are positive."""
    one = Inference(ARCHITECTURES[name], batch, length)
    more, longer = replace(one, batch_size=2 * batch), replace(one, sequence_length=2 * length)
    assert total_s(one) < total_s(more) < 2 * total_s(one)
    assert total_s(one) < total_s(longer)
    assert total_s(one) < total_s(replace(one, hidden_output=True))
    assert min(call_time(one, TRN1, calibration.constants()).parts.values()) >= 0


def test_calls_wait_for_each_other_on_busy_cores() -> None:
    """Cores answer side by side; what is more than cores waits; fewer leave cores idle."""
    full, twice, one = (served(BERT, 0.002, 2, calls) for calls in (None, 4, 1))
    assert (full.throughput_per_s, full.latency_p50_s) == (8000, 0.002)
    assert (twice.throughput_per_s, twice.latency_p50_s) == (8000, 0.004)
    assert (one.throughput_per_s, one.latency_p50_s) == (4000, 0.002)


def test_the_newest_version_is_predicted_unless_another_is_named() -> None:
    """What ran on an early version is predicted as slow as it was."""
    constants = calibration.constants()
    early, middle, newest = (
        call_time(BERT, TRN1, constants, version).total_s for version in ((2, 8), (2, 15), None)
    )
    assert early > middle > newest
    rows = [row for row in inference_rows() if row.neuron_version == (2, 8)]
    off = [predicted(row, constants).throughput_per_s / row.throughput_per_s - 1 for row in rows]
    assert len(rows) == 12 and max(map(abs, off)) < 0.12


def test_what_lies_outside_the_rows_has_a_wider_interval() -> None:
    """Other dimensions, longer sequences, larger batches, more cores; and each is said."""

    def width(inference: Inference, name: str = "trn1.2xlarge") -> float:
        return calibration.interval(inference, instance_type(name), "throughput").log_slow

    known = width(BERT)
    assert width(replace(BERT, architecture=ARCHITECTURES["MPT-760m"])) > known
    assert width(replace(BERT, sequence_length=512)) > known
    assert width(replace(BERT, batch_size=512)) > known
    assert width(BERT, "trn1.32xlarge") > known
    assert (
        "sequence length"
        in calibration.interval(replace(BERT, sequence_length=512), TRN1, "throughput").outside[0]
    )


def test_what_cannot_be_modelled_is_refused_by_name() -> None:
    """Models that generate, models larger than a core, chips without a row, nonsense."""
    with pytest.raises(NotCalibrated, match="encoder, vision, decoder, not for llama"):
        Inference(ARCHITECTURES["Llama2-7B"], 1, 128)
    with pytest.raises(InvalidInput, match="a model that is split over cores is not modelled"):
        total_s(Inference(ARCHITECTURES["GPT3-6.7B"], 1, 128))
    with pytest.raises(InvalidInput, match=r"one layer need 128\.0 GiB .* 16 GiB: batches of up to 7 fit"):
        total_s(Inference(ARCHITECTURES["BERT-Large"], 64, 8192))
    with pytest.raises(InvalidInput, match="GiB: take shorter sequences"):
        total_s(Inference(ARCHITECTURES["BERT-Large"], 1, 100_000))
    with pytest.raises(NotCalibrated, match=r"no published throughput of A100.*ml\.trn1\.2xlarge"):
        calibration.interval(BERT, CATALOG["ml.p4d.24xlarge"], "throughput")
    with pytest.raises(InvalidInput, match="batch_size must be from 1"):
        replace(BERT, batch_size=0)


def test_the_activations_of_a_layer_are_scores_or_the_feed_forward_network() -> None:
    """Whichever is larger, in 16 bits; all published rows fit with them, and the largest batch that is named fits."""
    assert BERT.activation_bytes == 2 * 8 * 128 * 3072
    longer = replace(BERT, sequence_length=8192)
    assert longer.activation_bytes == 2 * 8 * 12 * 8192**2
    assert "batches of up to 10 fit" in (misfit(replace(longer, batch_size=64), TRN1) or "")
    assert misfit(replace(longer, batch_size=10), TRN1) is None
    assert misfit(replace(longer, batch_size=11), TRN1) is not None
    for row in (*inference_rows(), *inference_rows("test")):
        assert misfit(row.inference, row.instance) is None


def test_inferentia2_is_a_little_slower_than_trainium1() -> None:
    """As the rows have it: the same cores in a chip of less power."""
    assert 1 < total_s(BERT, INF2) / total_s(BERT) < 1.1
