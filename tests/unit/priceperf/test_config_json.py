"""Dimensions out of a Hugging Face model's config.json."""

from __future__ import annotations

from typing import Any

import pytest

from windtunnel.priceperf import ARCHITECTURES, InvalidInput, Workload
from windtunnel.priceperf.model.config_json import from_config

BERT: dict[str, Any] = {
    "model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_size": 768, "num_hidden_layers": 12,
    "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 30522, "hidden_act": "gelu",
}  # fmt: skip
GPT2: dict[str, Any] = {
    "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 768, "n_layer": 12, "n_head": 12,
    "n_inner": None, "vocab_size": 50257, "activation_function": "gelu_new",
}  # fmt: skip
LLAMA: dict[str, Any] = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
    "hidden_act": "silu", "tie_word_embeddings": False,
}  # fmt: skip
VIT: dict[str, Any] = {
    "model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
    "intermediate_size": 3072, "image_size": 224, "patch_size": 16, "num_channels": 3,
}  # fmt: skip
DISTIL: dict[str, Any] = {
    "model_type": "distilbert", "dim": 768, "hidden_dim": 3072, "n_layers": 6, "n_heads": 12, "vocab_size": 30522,
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (BERT, "BERT-Base"),
        (GPT2, "GPT-2"),
        (LLAMA, "Llama-3.1-8B"),
        (VIT, "ViT-Base"),
        (DISTIL, "DistilBERT"),
    ],
)
def test_a_configuration_is_the_model_of_that_name(config: dict[str, Any], name: str) -> None:
    """By whichever names its kind has for them; a description of one is that of the other."""
    known = ARCHITECTURES[name]
    assert from_config(config) == (known, known.parameters)
    how: dict[str, Any] = {"sequence_length": 128, "global_batch": 64}
    assert Workload.transformer(config, **how) == Workload.transformer(name, **how)


@pytest.mark.parametrize(
    ("config", "length"),
    [
        (BERT, 512),
        (LLAMA, 8192),
        ({**LLAMA, "_name_or_path": "our-model", "vocab_size": 32_000}, 4096),
        ({**LLAMA, "max_position_embeddings": 2048}, 2048),
        ({**LLAMA, "max_position_embeddings": 131072}, 8192),
        ({**GPT2, "n_positions": 1024}, 1024),
        ({**GPT2, "n_positions": "many"}, 2048),
        (VIT, 197),
        ({**VIT, "image_size": 384}, 577),
        ({**VIT, "image_size": [384, 384]}, 197),
    ],
)
def test_where_nothing_is_said_sequences_are_the_familys_if_there_are_positions(
    config: dict[str, Any], length: int
) -> None:
    """Or those of a known model with the same dimensions; of images, a token for each patch, and one for the class."""
    assert from_config(config)[0].usual_length == length


def test_a_tied_head_has_no_weights_of_its_own() -> None:
    """Llama 3.2 1B: 1.24 billion parameters, as its model card has them."""
    small = {**LLAMA, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "head_dim": 64}
    assert from_config({**small, "tie_word_embeddings": True})[1] == pytest.approx(1.24e9, rel=0.005)
    assert from_config(small)[1] == pytest.approx(1.24e9 + 128256 * 2048, rel=0.005)
    pythia = {"model_type": "gpt_neox", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
              "intermediate_size": 3072, "vocab_size": 50304, "tie_word_embeddings": False}  # fmt: skip
    assert from_config(pythia)[1] == pytest.approx(162.3e6, rel=0.005)


@pytest.mark.parametrize(
    ("kind", "layers", "hidden", "heads", "kv_heads", "ffn", "vocabulary", "tied", "billions"),
    [
        ("qwen3", 36, 2560, (32, 128), 8, 9728, 151936, True, 4.02),  # Qwen3-4B
        ("gemma2", 26, 2304, (8, 256), 4, 9216, 256000, None, 2.61),  # gemma-2-2b
        ("mistral", 40, 5120, (32, 128), 8, 14336, 131072, False, 12.25),  # Mistral-Nemo
    ],
)
def test_heads_need_not_make_the_hidden_size(
    kind: str, layers: int, hidden: int, heads: tuple[int, int], kv_heads: int, ffn: int, vocabulary: int,
    tied: bool | None, billions: float,
) -> None:  # fmt: skip
    """Weights as their model cards have them."""
    config = {"model_type": kind, "num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads[0],
              "head_dim": heads[1], "num_key_value_heads": kv_heads, "intermediate_size": ffn,
              "vocab_size": vocabulary, "tie_word_embeddings": tied}  # fmt: skip
    assert from_config(config)[1] == pytest.approx(billions * 1e9, rel=0.01)


def test_shared_heads_of_falcon() -> None:
    """One of all in the 7B, as its config says; 8 in the 40B, which says the same and names them."""
    falcon = {"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
              "vocab_size": 65024, "multi_query": True, "new_decoder_architecture": False}  # fmt: skip
    assert from_config(falcon)[0].kv_hidden_size == 64
    large = {**falcon, "hidden_size": 8192, "num_attention_heads": 128, "num_kv_heads": 8}
    assert from_config({**large, "new_decoder_architecture": True})[0].kv_hidden_size == 512


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"model_type": "ibert"},
            "model_type of a config must be one of bert, .*, not 'ibert'.*run SCRIPT --rehearse",
        ),
        (
            {"model_type": "t5"},
            "'t5' is an encoder-decoder, .* rehearsed: windtunnel run SCRIPT --rehearse 16",
        ),
        ({"model_type": "qwen3_moe"}, "'qwen3_moe' is a mixture of experts"),
        ({"num_local_experts": 8}, "num_local_experts of the config is 8, .*run SCRIPT --rehearse 16"),
        ({"n_routed_experts": 64}, "n_routed_experts of the config is 64"),
        (
            {"quantization_config": {"load_in_4bit": True}},
            "quantization_config of the config is not modelled",
        ),
        ({"model_type": ["bert"]}, r"not \['bert'\]"),
        ({"num_key_value_heads": 100}, "100 key-value heads do not divide its 12"),
        ({"hidden_size": 769}, "12 attention heads do not divide its hidden size of 769"),
        ({"tie_word_embeddings": "false"}, "must be true or false, not 'false'"),
        ({"hidden_size": None}, "none of hidden_size, n_embd"),
        ({"num_hidden_layers": "12"}, "num_hidden_layers of the config must be a whole number"),
        ({"vocab_size": None}, "none of vocab_size"),
    ],
)
def test_what_is_not_modelled_is_told(change: dict[str, Any], message: str) -> None:
    """With what is missing, or what would do."""
    with pytest.raises(InvalidInput, match=message):
        from_config({**BERT, **change})


@pytest.mark.parametrize(
    ("kind", "said", "window"),
    [
        ("mistral", {"sliding_window": 4096}, 4096),
        ("mistral", {"sliding_window": None}, None),
        ("mistral", {}, None),
        ("qwen2", {"sliding_window": 4096}, None),
        ("qwen2", {"sliding_window": 4096, "use_sliding_window": False}, None),
        ("qwen2", {"sliding_window": 4096, "use_sliding_window": True}, 4096),
        ("gemma2", {"sliding_window": 4096, "layer_types": ["sliding_attention", "full_attention"]}, 4096),
        (
            "qwen3",
            {"sliding_window": 4096, "use_sliding_window": True, "layer_types": ["full_attention"]},
            None,
        ),
    ],
)
def test_a_window_is_that_which_transformers_uses(
    kind: str, said: dict[str, Any], window: int | None
) -> None:
    """In some layers at least; a config may have one that no layer uses."""
    assert from_config({**LLAMA, "model_type": kind, **said})[0].window == window


def test_learned_positions_have_an_end() -> None:
    """Those of rotary models can be stretched, so no number of them is kept."""
    assert from_config({**BERT, "max_position_embeddings": 512})[0].positions == 512
    assert from_config({**GPT2, "n_positions": 1024})[0].positions == 1024
    assert from_config(GPT2)[0].positions is None
    assert from_config({**LLAMA, "max_position_embeddings": 2048})[0].positions is None


def test_a_config_may_say_that_there_are_no_experts_and_nothing_is_quantised() -> None:
    """As some tools write them for a dense model."""
    said = {"num_experts": 0, "num_local_experts": 1, "n_routed_experts": None, "quantization_config": None}
    assert from_config({**LLAMA, **said}) == from_config(LLAMA)
