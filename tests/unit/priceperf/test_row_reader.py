"""A table's line becomes a description, whatever it leaves away; what cannot be read says why."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from windtunnel.priceperf import ARCHITECTURES, CALIBRATIONS
from windtunnel.priceperf.calibration.accuracy import validate_rows
from windtunnel.priceperf.calibration.columns import ALIASES
from windtunnel.priceperf.calibration.row_reader import PublishedRow, read_rows

LLAMA = {
    "config": "Llama2-13B 16n", "architecture": "Llama2-13B", "instance_type": "trn1.32xlarge", "nodes": "16",
    "tensor_parallel": "8", "pipeline_parallel": "1", "data_parallel": "64", "microbatch": "1",
    "global_batch": "1024", "sequence_length": "4096", "recompute": "selective", "zero1": "True",
    "sequences_per_second": "45",
}  # fmt: skip


def cells(row: PublishedRow) -> dict[str, str]:
    """A built-in row as its line in the published file."""
    training = row.training
    model = training.architecture
    return {
        "config": row.config,
        "architecture": row.architecture,
        "layers": str(model.layers),
        "hidden_size": str(model.hidden_size),
        "attention_heads": str(model.attention_heads),
        "ffn_hidden_size": str(model.ffn_hidden_size),
        "kv_hidden_size": str(model.kv_hidden_size),
        "vocabulary": str(model.vocabulary),
        "family": model.family,
        "stack": row.stack,
        "network_gbps": str(row.network_gbps or ""),
        "pipeline_interleaving": str(training.interleaved),
        "attention": training.attention,
        "matmul_dtype": training.matmul_dtype,
        "parameters": f"{training.parameters:.0f}",
        "instance_type": row.instance_type.removeprefix("ml."),
        "nodes": str(row.nodes),
        "tensor_parallel": str(training.tensor_parallel),
        "pipeline_parallel": str(training.pipeline_parallel),
        "data_parallel": str(training.data_parallel),
        "microbatch": str(training.microbatch),
        "global_batch": str(training.global_batch),
        "sequence_length": str(training.sequence_length),
        "storage_dtype": training.storage_dtype,
        "gradient_allreduce_bytes_per_parameter": str(training.gradient_bytes),
        "optimizer": "AdamW",
        "recompute": "unknown" if row.lacks else training.recompute,
        "zero1": {"none": "False", "optimizer": "True", "full": "full"}[training.zero],
        "sequences_per_second": str(row.published),
        "published_min": str(row.published_range[0]) if row.published_range else "",
        "published_max": str(row.published_range[1]) if row.published_range else "",
        "source": row.source,
    }


def only(table: dict[str, Any]) -> PublishedRow:
    """The one row, read."""
    (read,) = read_rows([table])
    assert read.row is not None, read.reason
    return read.row


@pytest.mark.parametrize("family", CALIBRATIONS)
def test_the_published_files_give_the_built_in_rows(family: Any) -> None:
    """All, also those whose table does not say what was recomputed."""
    for row in CALIBRATIONS[family].rows:
        assert only(cells(row)) == row


def test_what_is_missing_is_taken_and_said() -> None:
    """Parameters, parallelism, dtypes and batch follow from the rest."""
    (read,) = read_rows(
        [{"Architecture": " llama2 13b ", "Instance Type": "ml.trn1n.32xlarge", "nodes": "2", "tp": "8",
          "micro_batch": "1", "seq_len": "4,096"}]
    )  # fmt: skip
    assert read.row is not None
    training = read.row.training
    assert (training.data_parallel, training.global_batch, read.published) == (8, 8, None)
    assert training.architecture == ARCHITECTURES["Llama2-13B"]
    assert training.parameters == pytest.approx(13e9, rel=0.02)
    assert (training.attention, training.recompute, training.storage_dtype) == ("flash", "selective", "bf16")
    assert len(read.notes) == 3


def test_a_model_may_come_with_its_dimensions() -> None:
    """A name that nobody knows is fine where layers and sizes are given."""
    table = {
        **LLAMA, "architecture": "GPT-NeoX-20B", "layers": "44", "hidden_size": "6144",
        "attention_heads": "64", "vocab_size": "50432", "parameters": "20.6B",
    }  # fmt: skip
    training = only(table).training
    assert training.architecture.ffn_hidden_size == 4 * 6144
    assert training.architecture.family == "decoder"
    assert training.parameters == pytest.approx(20.6e9)
    assert training.attention == "eager"


def test_a_model_of_the_hub_needs_no_dimensions() -> None:
    """Its weights are those of its card, with one table where head and embedding share it."""
    training = only({**LLAMA, "architecture": "meta-llama/Llama-3.2-1B", "parameters": ""}).training
    assert (training.architecture.layers, training.architecture.hidden_size) == (16, 2048)
    assert training.parameters == pytest.approx(1.24e9, rel=0.005)


def test_a_model_of_the_hub_is_no_smaller_one_whose_name_is_part_of_its_own() -> None:
    """GPT-2-XL is not GPT-2 with 1.5 billion weights."""
    training = only({**LLAMA, "architecture": "GPT-2-XL", "parameters": ""}).training
    assert (training.architecture.layers, training.architecture.hidden_size) == (48, 1600)


def test_a_known_name_in_a_longer_one_is_found() -> None:
    """As the Neuron pages write it; the longest name wins, and a note says so."""
    (read,) = read_rows(
        [{**LLAMA, "architecture": "Llama-3.1-70B pre-training", "dtype": "Autocast:BF16+SR"}]
    )
    assert read.row is not None
    assert read.row.architecture == "Llama-3.1-70B"
    assert any("is taken as Llama-3.1-70B" in note for note in read.notes)


def test_how_attention_is_taken_where_it_is_not_given() -> None:
    """Language models on A100 are flash, others eager unless 16,384 tokens of scores would not fit."""
    table = {"architecture": "BERT-Large", "instance_type": "p4d.24xlarge", "microbatch": "4",
             "sequence_length": "512"}  # fmt: skip
    assert only(table).training.attention == "eager"
    assert only({**table, "architecture": "MPT-1b"}).training.attention == "flash"
    assert only({**table, "architecture": "MPT-1b", "attention": "eager"}).training.attention == "eager"
    assert only({**table, "sequence_length": "16384"}).training.attention == "flash"
    assert only({**table, "config": "x FlashAttention"}).training.attention == "flash"
    assert only({**LLAMA, "architecture": "GPT3-46B"}).training.attention == "eager"
    assert only({**table, "config": "x FSDP"}).training.zero == "full"


@pytest.mark.parametrize(
    ("replaced", "reason"),
    [
        ({"architecture": "Perceiver"}, "'Perceiver' is not known, and the row does not give its layers"),
        ({"architecture": ""}, "architecture is missing"),
        ({"instance_type": ""}, "instance_type is missing"),
        ({"instance_type": "g5.xlarge"}, "No figures for instance type 'g5.xlarge'"),
        ({"microbatch": ""}, "microbatch is missing"),
        (
            {"sequence_length": "224x224px"},
            "sequence_length must be a number, as 1234.5 or 1,234.5, not '224x224px'",
        ),
        ({"microbatch": "1.5"}, "microbatch must be a whole number, not 1.5"),
        ({"microbatch": "-1"}, "microbatch must be 1 or more, not -1"),
        ({"nodes": "inf"}, "nodes must be a number"),
        ({"nodes": "2"}, "512 workers, but 2 x ml.trn1.32xlarge have 64 NeuronCores"),
        ({"sequences_per_second": "0"}, "sequences_per_second must be above 0"),
        ({"storage_dtype": "int4"}, "storage_dtype must be one of bf16"),
        ({"matmul_dtype": "int4"}, "matmul_dtype must be one of bf16"),
        ({"recompute": "some"}, "recompute must be one of none, selective, full"),
        ({"attention": "fast"}, "attention must be eager or flash"),
        ({"zero1": "maybe"}, "zero1 must be True or False"),
        ({"global_batch": "3"}, "a global batch of 3 is less"),
        ({"network_gbps": "-1"}, "network_gbps must be above 0"),
        ({"network_gbps": "100G"}, "network_gbps must be above 0 and at most 100,000, as 400 is, not 100G"),
        ({"sequences_per_second": "12,5"}, "sequences_per_second must be a number, as 1234.5 or 1,234.5"),
        ({"sequences_per_second": "1e-320"}, "sequences_per_second must be at most 1e+15 and at least"),
    ],
)
def test_a_row_that_cannot_be_read_says_why(replaced: dict[str, str], reason: str) -> None:
    """The reason names the column; the rows around it are read."""
    first, broken, last = read_rows([LLAMA, {**LLAMA, **replaced}, LLAMA])
    assert first.row == last.row is not None
    assert broken.row is None
    assert broken.reason is not None
    assert reason in broken.reason


@pytest.mark.parametrize(
    ("replaced", "copies", "note"),
    [
        ({"accelerators": "64", "tensor_parallel": "8"}, 8, "data_parallel not given: taken as 8"),
        ({"accelerators": "2"}, 2, "nodes not given: taken as 1"),
        (
            {"nodes": "1", "accelerators": "16"},
            32,
            "accelerators 16 are taken as the chips of 1 x ml.trn1.32xlarge",
        ),
        (
            {"nodes": "1", "accelerators": "8", "data_parallel": "4"},
            4,
            "accelerators 8 are not tensor x pipeline",
        ),
        ({"nodes": "1", "accelerators": "32", "data_parallel": "32"}, 32, ""),
    ],
)
def test_accelerators_are_the_workers(replaced: dict[str, str], copies: int, note: str) -> None:
    """They tell the copies of the model where nothing else does, and are held against what does."""
    row = {"architecture": "BERT-Large", "instance_type": "trn1.32xlarge", "microbatch": "16",
           "global_batch": "16384", "sequence_length": "128", **replaced}  # fmt: skip
    (read,) = read_rows([row])
    assert read.row is not None
    assert read.row.training.data_parallel == copies
    assert (
        any(note in said for said in read.notes) if note else not any("accel" in said for said in read.notes)
    )


def test_what_of_a_row_is_not_used_is_said() -> None:
    """A range that holds no figure, and dimensions of a model that is known."""
    (read,) = read_rows(
        [{**LLAMA, "published_min": "3000", "published_max": "2000", "layers": "48", "vocabulary": "n/a"}]
    )
    assert read.row is not None and read.row.published_range is None
    assert "layers of the row are not used: Llama2-13B is known" in read.notes
    assert any("no range that holds the published figure" in note for note in read.notes)


CELL = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["0", "1", "-1", "2.5", "1e300", "nan", "8", "4096", "True", "full", "flash", "bf16", "7B"]
    ),
)


@example({"network_gbps": "0"})
@given(st.dictionaries(st.sampled_from([*ALIASES, "recompute", "attention", "matmul_dtype"]), CELL))
def test_whatever_a_cell_holds_the_row_is_answered(replaced: dict[str, str]) -> None:
    """A prediction that is a number, or a reason; never a crash."""
    (check,) = validate_rows(read_rows([{**LLAMA, **replaced}])).rows
    if check.predicted is None:
        assert check.reason
    else:
        assert 0 < check.predicted < float("inf")


@pytest.mark.parametrize(
    ("replaced", "recompute"),
    [
        ({}, "selective"),
        ({"stack": "NeMo Megatron for Neuron"}, "full"),
        ({"neuron_version": "2.13.1"}, "full"),
        ({"neuron_version": "2.14"}, "selective"),
        ({"stack": "NeMo Megatron for Neuron", "recompute": "selective"}, "selective"),
        ({"stack": "NeMo Megatron for Neuron", "architecture": "GPT3-23B"}, "selective"),
    ],
)
def test_llama_by_nemo_recomputes_whole_layers(replaced: dict[str, str], recompute: str) -> None:
    """Where nothing else is stated; before Neuron 2.14 nothing but NeMo trained Llama."""
    (read,) = read_rows([{**LLAMA, "recompute": "", **replaced}])
    assert read.row is not None
    assert read.row.training.recompute == recompute
    assert ("recompute" in read.row.lacks) == ("recompute" not in replaced)
