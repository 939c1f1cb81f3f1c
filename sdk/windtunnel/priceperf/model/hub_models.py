"""Models that are known by name without access to the Hugging Face hub: the dimensions in their `config.json`.

`hub_models.csv` has one line for each model: a short name, its name on the hub, and members of its configuration under
their own names (dimensions as in Lightning-AI/litgpt's config.py, commit 2685705, and in the models' own papers). A
test compares each with the number of weights that its model card states. ``trained_length``, which no configuration
has: tokens of a sequence of its pre-training, if other than its family's (by the cards or papers of Llama 3, Gemma,
Mistral 7B and SmolLM2).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from .architectures import name_key

_TUNED = re.compile(r"[-_ ](instruct|chat|it|base|hf)(?=[-_ ]|$)", re.IGNORECASE)
"""Parts of a model's name that do not change its dimensions."""
_DIMENSIONS = (
    "model_type", "num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads",
    "intermediate_size", "vocab_size",
)  # fmt: skip
"""By which a configuration is that of a model in the file, whatever its name."""


def hub_config(name: str) -> Mapping[str, Any] | None:
    """The configuration of a model, by its short name or its name on the hub; None: it is not in the file."""
    return _by_key().get(name_key(name)) or _by_key().get(name_key(_TUNED.sub("", name)))


def hub_names() -> list[str]:
    """The short names of all models in the file."""
    return list(dict.fromkeys(config["_name_or_path"] for config in _by_key().values()))


def trained_length(config: Mapping[str, Any]) -> int | None:
    """Tokens of a sequence of the pre-training of the known model with a configuration's dimensions; None: it is as its
    family's, or no such model is known.
    """
    same = (
        each for each in _by_key().values() if all(each.get(name) == config.get(name) for name in _DIMENSIONS)
    )
    return next(same, {}).get("trained_length")


@cache
def _by_key() -> Mapping[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    text = files(__package__).joinpath("hub_models.csv").read_text(encoding="utf-8")
    for line in csv.DictReader(text.splitlines()):
        short, hub = line.pop("name"), line.pop("hub")
        numbers = {member: int(value) for member, value in line.items() if value.isdecimal()}
        tied = {"tie_word_embeddings": line["tie_word_embeddings"] == "true"}
        config = {"_name_or_path": short, "model_type": line["model_type"], **numbers, **tied}
        last = hub.rpartition("/")[2]
        found |= {
            name_key(each): config for each in (_TUNED.sub("", hub), _TUNED.sub("", last), hub, last, short)
        }
    return found
