"""Read a transformer's dimensions from its `config.json`, as models on the Hugging Face hub have one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..errors import InvalidInput, did_you_mean, quoted
from .architectures import ARCHITECTURES, Architecture, ModelFamily
from .architectures import architecture as architecture_named
from .hub_models import hub_config, hub_names, trained_length

_TYPES: Mapping[ModelFamily, tuple[str, ...]] = {
    "encoder": (
        "bert", "camembert", "deberta", "deberta-v2", "distilbert", "electra", "mpnet", "roberta", "xlm-roberta",
    ),
    "decoder": (
        "bloom", "codegen", "falcon", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gptj", "mpt", "opt", "phi",
        "starcoder2",
    ),
    "llama": (
        "cohere", "gemma", "gemma2", "gemma3_text", "granite", "llama", "mistral", "olmo", "olmo2", "phi3", "qwen2",
        "qwen3", "smollm3", "stablelm",
    ),
    "vision": ("beit", "deit", "dinov2", "vit", "vit_mae"),
}  # fmt: skip
"""Known model_types by family. Others are refused: they may be built differently (experts, states, local attention)."""
_NOT_DESCRIBED: Mapping[str, str] = {
    "an encoder-decoder": (
        r"(?<![a-z])((m|by|um|long)?t5|(m|x)?bart)(?![a-z])|pegasus|marian|whisper|m2m_?100|nllb|blenderbot"
    ),
    "a mixture of experts": (
        r"mixtral|moe(?![a-z])|\dx\d+b|dbrx|gpt[-_]oss|grok|deepseek[-_]?(v[23]|r1$)|llama[-_]?4"
    ),
    "built of states": r"mamba|rwkv|jamba",
}
"""What a name or a model_type shows to be built differently."""
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", "num_moe_experts")
REHEARSE = "Its script can be rehearsed: windtunnel run SCRIPT --rehearse 16"
"""The end of each message that a model is built differently."""
_TIED = ("cohere", "gemma", "gemma2", "gemma3_text", "smollm3")
_UNTIED = ("codegen", "gpt_neox", "gptj", "phi")
"""If a config has no tie_word_embeddings: models whose head shares the embedding (`_TIED`) or has its own weights
(`_UNTIED`), unlike others of their family."""
_NAMES: Mapping[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden_size": ("hidden_size", "n_embd", "n_embed", "d_model", "dim"),
    "attention_heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "ffn_hidden_size": ("intermediate_size", "n_inner", "ffn_dim", "hidden_dim"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads"),
    "head_size": ("head_dim",),
    "vocabulary": ("vocab_size",),
    "embedding": ("embedding_size", "word_embed_proj_dim"),
}
"""The names of each dimension in configs; the first one present counts."""
_LEARNED = (
    "bert", "camembert", "distilbert", "electra", "mpnet", "roberta", "xlm-roberta", "gpt2", "gpt_bigcode", "gpt_neo",
    "opt",
)  # fmt: skip
"""model_types with an embedding for each position: they take no longer sequences. Other positions can be stretched."""
_OFFSET = {"camembert": 2, "mpnet": 2, "roberta": 2, "xlm-roberta": 2}
"""model_types whose first positions stand for no token (padding)."""
_WINDOW_UNUSED = ("qwen2", "qwen3", "smollm3")
"""model_types whose sliding_window counts only with use_sliding_window."""
_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
_MOST = 10**9
_SOME = (
    "BERT-Large", "RoBERTa-Base", "GPT-2", "Llama-3.1-8B", "Mistral-7B", "Qwen3-8B", "Gemma-2-9B", "Phi-4", "ViT-Base",
)  # fmt: skip
NAMES_PAGE = "docs/how_to/compare_instances.md"
"""Has the names of all models that are known."""


def known_architecture(architecture: str | Architecture | Mapping[str, Any]) -> tuple[Architecture, int]:
    """The dimensions of a name, a configuration or an `Architecture`, and the number of weights.

    Raises:
        InvalidInput: the name is unknown (the message has near or some known ones), or as `from_config`.
    """
    if isinstance(architecture, Mapping):
        return from_config(architecture)
    if isinstance(architecture, Architecture):
        return architecture, architecture.parameters
    if not isinstance(architecture, str):
        raise InvalidInput(
            "architecture must be a model's name, the content of its config.json or an Architecture, not "
            f"{quoted(architecture)}"
        )
    config = hub_config(architecture)
    found = architecture_named(config["_name_or_path"] if config else architecture)
    if found is not None:
        return found, found.parameters
    if config is not None:
        return from_config(config)
    must_be_describable(architecture)
    known = list(dict.fromkeys((*ARCHITECTURES, *hub_names())))
    near = did_you_mean(architecture, known)
    some = "" if near else f", such as {', '.join(_SOME)}"
    raise InvalidInput(
        f"architecture {architecture!r} is not known.{near} Give the config.json of a Hugging Face model, an "
        f"Architecture with its dimensions, or a name that is known{some} (all {len(known)}: {NAMES_PAGE}). "
        "What is no transformer is modelled from its script: windtunnel run SCRIPT --rehearse 16."
    )


def must_be_describable(name: str) -> None:
    """Refuse a name that shows that the model is built otherwise. Raises `InvalidInput`."""
    if kind := _built_otherwise(name.rpartition("/")[2]):
        raise InvalidInput(
            f"{name!r} is {kind} by its name, which cannot be described. {REHEARSE}. If it is none, give its "
            "config.json"
        )


def _built_otherwise(name: str) -> str | None:
    """What a model of this name, or with this model_type, is instead of a plain transformer; None: it does not show."""
    return next((kind for kind, shown in _NOT_DESCRIBED.items() if re.search(shown, name.lower())), None)


def from_config(config: Mapping[str, Any]) -> tuple[Architecture, int]:
    """The dimensions in a configuration of the transformers library, and the number of weights.

    Args:
        config: the content of a `config.json`, or `AutoConfig.from_pretrained(...).to_dict()`.

    Raises:
        InvalidInput: an unknown model_type, experts, quantised weights, or dimensions that are missing or impossible.
    """
    kind = config.get("model_type")
    family = next((family for family, kinds in _TYPES.items() if kind in kinds), None)
    if family is None:
        if otherwise := _built_otherwise(str(kind)):
            raise InvalidInput(f"{kind!r} is {otherwise}, which cannot be described. {REHEARSE}")
        known = ", ".join(name for kinds in _TYPES.values() for name in kinds)
        raise InvalidInput(
            f"the model_type of a config must be one of {known}, not {quoted(kind)}. Give an Architecture with its "
            f"dimensions, if it is a plain encoder, decoder or vision transformer all the same. {REHEARSE}"
        )
    _must_be_plain(config)
    hidden, heads, kv_heads, head_size = _attention(config)
    model = Architecture(
        layers=_needed(config, "layers"),
        hidden_size=hidden,
        attention_heads=heads,
        ffn_hidden_size=_number(config, "ffn_hidden_size") or 4 * hidden,
        # Heads may together be wider or narrower than the hidden size; this value gives the right number of weights.
        kv_hidden_size=max(1, (kv_heads + heads) * head_size - hidden),
        vocabulary=0 if kind in _TYPES["vision"] else _needed(config, "vocabulary"),
        family=family,
    )
    name = str(config.get("_name_or_path") or kind)
    model = replace(
        model,
        trained_length=_length(config, model),
        name=name,
        positions=_learned_positions(kind, config),
        window=_window(config),
    )
    tables = 1 if _is_tied(config) else 2
    table = model.vocabulary * (_number(config, "embedding") or hidden)
    return model, model.layers * model.layer_weights + tables * table


def _must_be_plain(config: Mapping[str, Any]) -> None:
    """Refuse what a known model_type may have, and what would change its figures. Raises `InvalidInput`."""
    for name in _EXPERTS:
        if isinstance(experts := config.get(name), int) and experts > 1:
            raise InvalidInput(
                f"{name} of the config is {experts}, and a mixture of experts cannot be described. {REHEARSE}"
            )
    if config.get("quantization_config"):
        raise InvalidInput(
            "quantization_config of the config is not modelled: weights in 4 or 8 bits (QLoRA) have other times and "
            "memory. Without it, the config is that of a model whose weights are in bf16"
        )


def _length(config: Mapping[str, Any], model: Architecture) -> int:
    """Usual tokens of a sequence: those of the model with these dimensions in `hub_models`, else the family's, at most
    the model's positions. For images: patches and the class.
    """
    if isinstance(trained := config.get("trained_length"), int):
        return trained
    if not model.vocabulary:
        image, patch = config.get("image_size"), config.get("patch_size")
        if isinstance(image, int) and isinstance(patch, int) and 1 <= patch <= image:
            return (image // patch) ** 2 + 1
        return model.usual_length
    return min([trained_length(config) or model.usual_length, *_positions(config)])


def _learned_positions(kind: Any, config: Mapping[str, Any]) -> int | None:
    """The most tokens for which a model has an embedding of their positions; None: it has none."""
    found = min(_positions(config), default=None) if kind in _LEARNED else None
    return found and found - _OFFSET.get(kind, 0)


def _positions(config: Mapping[str, Any]) -> list[int]:
    named = (config.get(name) for name in _POSITIONS)
    return [each for each in named if isinstance(each, int) and each >= 1]


def _window(config: Mapping[str, Any]) -> int | None:
    """Tokens that a token sees in some layers, as transformers reads a configuration; None: all in each."""
    window, layers = config.get("sliding_window"), config.get("layer_types")
    used = config.get("use_sliding_window", config["model_type"] not in _WINDOW_UNUSED)
    if not used or (isinstance(layers, list) and "sliding_attention" not in layers):
        return None
    return window if isinstance(window, int) and window >= 1 else None


def _attention(config: Mapping[str, Any]) -> tuple[int, int, int, int]:
    """Hidden size, attention heads, key-value heads, and the size of a head."""
    hidden, heads = _needed(config, "hidden_size"), _needed(config, "attention_heads")
    head_size = _number(config, "head_size")
    if head_size is None and hidden % heads:
        raise InvalidInput(f"the config's {heads} attention heads do not divide its hidden size of {hidden}")
    # Falcon's newer models also set multi_query, but have a number of key-value heads.
    one = config.get("multi_query") and not config.get("new_decoder_architecture")
    kv_heads = 1 if one else _number(config, "kv_heads") or heads
    if heads % kv_heads:
        raise InvalidInput(
            f"the config's {kv_heads} key-value heads do not divide its {heads} attention heads"
        )
    return hidden, heads, kv_heads, head_size or hidden // heads


def _is_tied(config: Mapping[str, Any]) -> bool:
    """Whether the head shares the weights of the embedding."""
    kind, tied = config["model_type"], config.get("tie_word_embeddings")
    if tied is None:
        return kind in _TIED or kind not in (*_TYPES["llama"], *_UNTIED)
    if not isinstance(tied, bool):
        raise InvalidInput(f"tie_word_embeddings of the config must be true or false, not {quoted(tied)}")
    return tied


def _number(config: Mapping[str, Any], dimension: str) -> int | None:
    for name in _NAMES[dimension]:
        value = config.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST:
            raise InvalidInput(
                f"{name} of the config must be a whole number from 1 to {_MOST:,}, not {quoted(value)}"
            )
        return value
    return None


def _needed(config: Mapping[str, Any], dimension: str) -> int:
    value = _number(config, dimension)
    if value is None:
        raise InvalidInput(f"the config has none of {', '.join(_NAMES[dimension])}")
    return value
