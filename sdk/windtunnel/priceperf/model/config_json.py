"""A transformer's dimensions out of the `config.json` that Hugging Face keeps beside its weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import InvalidInput, quoted
from .architectures import Architecture, ModelFamily

_NAMES: Mapping[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden_size": ("hidden_size", "n_embd", "n_embed", "d_model", "dim"),
    "attention_heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "ffn_hidden_size": ("intermediate_size", "n_inner", "ffn_dim", "hidden_dim"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads"),
    "head_size": ("head_dim",),
    "vocabulary": ("vocab_size",),
}
"""What each dimension is called, by model type; the first that is there counts."""
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
_ENCODERS = frozenset(
    {"bert", "camembert", "deberta", "deberta-v2", "distilbert", "electra", "modernbert", "mpnet", "roberta",
     "xlm-roberta"}
)  # fmt: skip
_DECODERS = frozenset(
    {"bloom", "codegen", "falcon", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gptj", "mpt", "opt", "phi",
     "starcoder2"}
)  # fmt: skip
_GATED = ("silu", "swish")
"""Activations of the models with three matrices in the feed-forward network; Gemma, which has them too, says gelu."""


def from_config(config: Mapping[str, Any]) -> tuple[Architecture, int]:
    """The dimensions that a configuration of transformers states, and how many weights they make.

    Args:
        config: the content of a `config.json`, or `AutoConfig.from_pretrained(...).to_dict()`.

    Raises:
        InvalidInput: a dimension is missing, or it is no plain encoder, decoder or vision transformer (mixtures of
            experts, encoder-decoders).
    """
    kind = str(config.get("model_type", ""))
    if config.get("is_encoder_decoder") or any(config.get(name) for name in _EXPERTS):
        raise InvalidInput(
            f"model_type {kind!r} is an encoder-decoder or a mixture of experts, which are not modelled: only plain "
            "encoders, decoders and vision transformers are"
        )
    layers, hidden, heads = (_needed(config, name) for name in ("layers", "hidden_size", "attention_heads"))
    head_size = _number(config, "head_size") or hidden // heads
    # Falcon says multi_query of its older models and of its newer ones, which name a number all the same.
    one = config.get("multi_query") and not config.get("new_decoder_architecture")
    kv_heads = 1 if one else _number(config, "kv_heads") or heads
    family = _family(config, kind)
    model = Architecture(
        layers=layers,
        hidden_size=hidden,
        attention_heads=heads,
        ffn_hidden_size=_number(config, "ffn_hidden_size") or 4 * hidden,
        kv_hidden_size=kv_heads * head_size,
        vocabulary=0 if family == "vision" else _needed(config, "vocabulary"),
        family=family,
    )
    tables = 1 if config.get("tie_word_embeddings", family != "llama") else 2
    return model, model.layers * model.layer_weights + tables * model.vocabulary * hidden


def _family(config: Mapping[str, Any], kind: str) -> ModelFamily:
    classes = config.get("architectures")
    heads = [str(name) for name in classes] if isinstance(classes, list) else []
    if "image_size" in config and "patch_size" in config:
        return "vision"
    if kind in _ENCODERS or any("ForMaskedLM" in name for name in heads):
        return "encoder"
    if kind.startswith("gemma") or config.get("hidden_act") in _GATED:
        return "llama"
    if kind in _DECODERS or any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in heads):
        return "decoder"
    raise InvalidInput(
        f"neither model_type {quoted(kind)} nor architectures {quoted(heads)} of the config tells whether it is an "
        "encoder or a decoder: give an Architecture with its dimensions and its family"
    )


def _number(config: Mapping[str, Any], dimension: str) -> int | None:
    for name in _NAMES[dimension]:
        value = config.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidInput(
                f"{name} of the config must be a whole number of 1 or more, not {quoted(value)}"
            )
        return value
    return None


def _needed(config: Mapping[str, Any], dimension: str) -> int:
    value = _number(config, dimension)
    if value is None:
        raise InvalidInput(f"the config has none of {', '.join(_NAMES[dimension])}")
    return value
