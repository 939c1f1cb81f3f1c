"""Models that are known by name without the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from windtunnel.cli.options import architecture_of
from windtunnel.priceperf import ARCHITECTURES, InvalidInput, Workload
from windtunnel.priceperf.model.config_json import NAMES_PAGE, from_config, known_architecture
from windtunnel.priceperf.model.hub_models import hub_config, hub_names
from windtunnel.reports.plan.report import plan

CARDS = {
    "GPT-2": 0.1244, "GPT-2-Medium": 0.3548, "Llama2-7B": 6.74, "Llama2-13B": 13.0, "Llama2-70B": 69.0,
    "Llama-3.1-8B": 8.03, "Llama-3.1-70B": 70.6, "Llama-3.1-405B": 405.9,
    "BERT-Base-Cased": 0.1083, "BERT-Base-Uncased": 0.1095, "BERT-Large-Cased": 0.3336, "BERT-Large-Uncased": 0.3351,
    "DistilBERT-Base-Uncased": 0.0664, "ViT-Base-Patch16-224": 0.0866, "ViT-Large": 0.3043,
    "BLOOM-560M": 0.559, "BLOOM-7.1B": 7.07, "Falcon-40B": 41.3, "Falcon-7B": 6.92, "Gemma-2B": 2.51,
    "Gemma-7B": 8.54, "Gemma-2-2B": 2.61, "Gemma-2-9B": 9.24, "Gemma-2-27B": 27.2, "GPT-2-Large": 0.774,
    "GPT-2-XL": 1.558, "GPT-NeoX-20B": 20.6, "Pythia-160M": 0.1623, "Pythia-410M": 0.4053, "Pythia-1B": 1.012,
    "Pythia-1.4B": 1.415, "Pythia-2.8B": 2.775, "Pythia-6.9B": 6.857, "Pythia-12B": 11.846, "GPT-J-6B": 6.05,
    "CodeLlama-7B": 6.74, "CodeLlama-13B": 13.0, "CodeLlama-34B": 33.7, "Llama-3-8B": 8.03, "Llama-3-70B": 70.6,
    "Llama-3.2-1B": 1.24, "Llama-3.2-3B": 3.21, "Llama-3.3-70B": 70.6, "SmolLM2-135M": 0.1345,
    "SmolLM2-360M": 0.362, "SmolLM2-1.7B": 1.71, "TinyLlama-1.1B": 1.10, "Mistral-7B": 7.24,
    "Mistral-7B-v0.3": 7.25, "Mistral-Large": 122.6, "OLMo-2-7B": 7.30, "OLMo-2-13B": 13.7, "OPT-1.3B": 1.315,
    "OPT-6.7B": 6.66, "Phi-2": 2.78, "Phi-3-mini": 3.82, "Phi-4": 14.7, "Qwen2.5-0.5B": 0.494,
    "Qwen2.5-1.5B": 1.54, "Qwen2.5-3B": 3.09, "Qwen2.5-7B": 7.62, "Qwen2.5-14B": 14.8, "Qwen2.5-32B": 32.8,
    "Qwen2.5-72B": 72.7, "Qwen3-0.6B": 0.596, "Qwen3-1.7B": 1.72, "Qwen3-4B": 4.02, "Qwen3-8B": 8.19,
    "Qwen3-14B": 14.8, "Qwen3-32B": 32.8, "RoBERTa-Base": 0.1246, "RoBERTa-Large": 0.355,
    "XLM-RoBERTa-Base": 0.278, "XLM-RoBERTa-Large": 0.560,
}  # fmt: skip
"""Billions of weights, as the models' cards and papers state them."""


def test_each_has_as_many_weights_as_its_card_states() -> None:
    """To 2 %: positions, biases and norms are left out, and of a vision transformer how patches are embedded."""
    found = {name: known_architecture(name)[1] / 1e9 for name in hub_names()}
    assert found == pytest.approx(CARDS, rel=0.02)
    for name in CARDS.keys() & ARCHITECTURES.keys():
        config = hub_config(name)
        assert config is not None and from_config(config) == (
            ARCHITECTURES[name],
            ARCHITECTURES[name].parameters,
        )


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("llama3-8b", "Llama-3-8B"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "Llama-3-8B"),
        ("mistral_7b", "Mistral-7B"),
        ("Mistral-7B-v0.1", "Mistral-7B"),
        ("Qwen/Qwen2.5-7B-Instruct", "Qwen2.5-7B"),
        ("gemma-2-9b-it", "Gemma-2-9B"),
        ("roberta-base", "RoBERTa-Base"),
        ("gpt2-xl", "GPT-2-XL"),
        ("google-bert/bert-base-uncased", "BERT-Base-Uncased"),
        ("Mistral-7B-Instruct-v0.3", "Mistral-7B-v0.3"),
        ("meta-llama/Llama-2-7b-chat-hf", "Llama2-7B"),
        ("Llama-3.1-8B-Instruct", "Llama-3.1-8B"),
        ("openai-community/gpt2", "GPT-2"),
    ],
)
def test_spellings_of_a_name(given: str, name: str) -> None:
    """Short, as on the hub, without its organisation, and of a tuned one."""
    assert hub_config(given) == hub_config(name) is not None
    assert known_architecture(given) == known_architecture(name)


@pytest.mark.parametrize(
    ("length", "names"),
    [
        (512, "RoBERTa-Base"),
        (1024, "GPT-2-XL"),
        (2048, "TinyLlama-1.1B SmolLM2-1.7B Phi-2 Falcon-7B"),
        (4096, "Llama2-7B Qwen2.5-7B Qwen3-8B OLMo-2-7B Phi-4 CodeLlama-7B"),
        (8192, "Llama-3-8B meta-llama/Meta-Llama-3-70B-Instruct Llama-3.1-8B Llama-3.2-1B Llama-3.3-70B"),
        (8192, "Gemma-2B Gemma-7B Gemma-2-9B Mistral-7B Mistral-7B-v0.3"),
    ],
)
def test_a_sequence_is_as_long_as_those_it_was_trained_with(length: int, names: str) -> None:
    """As its paper or card says of pre-training: not as long as it may be, nor as those of Llama 2."""
    found = {name: known_architecture(name)[0].usual_length for name in names.split()}
    assert found == dict.fromkeys(names.split(), length)


def test_names_have_the_positions_and_the_window_of_their_configs() -> None:
    """Whichever of the two lists a name is in."""
    assert {known_architecture(name)[0].positions for name in ("BERT-Large", "BERT-Large-Cased")} == {512}
    assert {known_architecture(name)[0].positions for name in ("GPT-2", "GPT-2-XL")} == {1024}
    windows = {
        name: known_architecture(name)[0].window for name in ("Mistral-7B", "Mistral-7B-v0.3", "Gemma-2-9B")
    }
    assert windows == {"Mistral-7B": 4096, "Mistral-7B-v0.3": None, "Gemma-2-9B": 4096}


@pytest.mark.parametrize("given", ["", "it", "other/Llama-3-8B", "Llama-3-8B-pruned"])
def test_what_is_somebody_elses_is_not_known(given: str) -> None:
    """Its dimensions may be others."""
    assert hub_config(given) is None


def test_a_job_is_described_by_such_a_name() -> None:
    """As by its configuration; an unknown name is told the nearest ones of all."""
    how: dict[str, Any] = {"sequence_length": 2048, "global_batch": 64}
    config = hub_config("Llama-3.2-1B")
    assert config is not None
    named = Workload.transformer("Llama-3.2-1B", **how)
    assert named == Workload.transformer(config, **how)
    assert named.parameters == known_architecture("Llama-3.2-1B")[1]
    with pytest.raises(InvalidInput, match=r"Did you mean 'Mistral-7B'.* config.json .*how_to"):
        Workload.transformer("Mistral7", **how)


def test_an_unknown_name_gets_a_dozen_names_and_the_page_that_has_all() -> None:
    """About ninety in a line were read by nobody. A model of another kind is told what takes it."""
    with pytest.raises(
        InvalidInput, match=r"'resnet50' is not known.*windtunnel run SCRIPT --rehearse 16"
    ) as raised:
        known_architecture("resnet50")
    known = {*ARCHITECTURES, *hub_names()}
    assert f"(all {len(known)}: {NAMES_PAGE})" in str(raised.value)
    words = str(raised.value).replace(",", "").split()
    assert 5 <= len(known & set(words)) <= 12
    page = Path(__file__).parents[3].joinpath(NAMES_PAGE).read_text(encoding="utf-8")
    assert known == set(page.rstrip(".\n").rpartition("\n")[2].split(", "))


def out_of_reach(name: str) -> Path:
    """As `cli.hub.config_of` without a network."""
    raise InvalidInput(f"{name} cannot be had")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("t5-large", "an encoder-decoder"),
        ("google/flan-t5-xl", "an encoder-decoder"),
        ("facebook/bart-large", "an encoder-decoder"),
        ("whisper-large-v3", "an encoder-decoder"),
        ("Mixtral-8x7B-v0.1", "a mixture of experts"),
        ("deepseek-ai/DeepSeek-V3", "a mixture of experts"),
        ("mamba-130m", "built of states"),
    ],
)
def test_a_name_that_shows_another_kind_of_model_is_told_what_takes_it(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the hub does not say more: a config.json, which would be asked for, would be refused too."""
    message = (
        f"'{name}' is {kind} by its name, which cannot be described.*windtunnel run SCRIPT --rehearse 16"
    )
    with pytest.raises(InvalidInput, match=message):
        known_architecture(name)
    if "/" in name:
        monkeypatch.setattr("windtunnel.cli.options.config_of", out_of_reach)
        with pytest.raises(InvalidInput, match=message):
            architecture_of(name)


@pytest.mark.parametrize("name", ["bartowski/Our-Llama", "DeepSeek-R1-Distill-Llama-8B", "our-gpt5"])
def test_a_name_that_only_looks_like_one_is_just_unknown(name: str) -> None:
    """A model distilled from one with experts has none; an owner's name is not the model's."""
    with pytest.raises(InvalidInput, match="is not known"):
        known_architecture(name)


def test_heads_that_8_cores_do_not_share_alike_are_shared_by_two() -> None:
    """Qwen2.5 7B has 28. Degrees of the calibration's rows (1, 8, 32) leave one that others published: 2."""
    found = {one.training.tensor_parallel for one in plan("Qwen2.5-7B", ["trn1"]).plans.plans}
    assert 2 in found and not found & {4, 8, 32}
    usual = {one.training.tensor_parallel for one in plan("Llama-3.1-8B", ["trn1"]).plans.plans}
    assert 2 not in usual
