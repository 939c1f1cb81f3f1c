"""The names of a table's columns, and the other names that published tables use for them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

ALIASES: Mapping[str, tuple[str, ...]] = {
    "architecture": ("model", "model_name"),
    "parameters": ("params", "num_params", "num_parameters"),
    "instance_type": ("instance",),
    "nodes": ("instances", "instance_count", "num_nodes"),
    "accelerators": ("workers", "cores", "gpus"),
    "tensor_parallel": ("tp", "tensor_parallel_size"),
    "pipeline_parallel": ("pp", "pipeline_parallel_size"),
    "data_parallel": ("dp", "data_parallel_size"),
    "pipeline_interleaving": ("interleaved", "virtual_pipeline"),
    "microbatch": ("micro_batch", "microbatch_size", "micro_batch_size", "batch_per_core"),
    "global_batch": ("globalbatch", "global_batch_size"),
    "sequence_length": ("seq_len", "sequence", "seq_length", "tokens"),
    "storage_dtype": ("dtype",),
    "gradient_allreduce_bytes_per_parameter": ("gradient_bytes",),
    "zero1": ("zero",),
    "sequences_per_second": ("value", "throughput", "published"),
    "layers": ("num_layers", "num_hidden_layers"),
    "hidden_size": ("hidden", "d_model"),
    "attention_heads": ("heads", "num_attention_heads", "n_heads"),
    "ffn_hidden_size": ("ffn", "intermediate_size"),
    "kv_hidden_size": ("kv_hidden",),
    "vocabulary": ("vocab", "vocab_size", "vocabulary_size"),
    "family": ("model_family",),
    "network_gbps": ("network", "interconnect_gbps"),
    "neuron_version": ("neuron_sdk", "neuron_sdk_version"),
    "lora_rank": ("lora_r",),
}
_ALIASED = {other: column for column, others in ALIASES.items() for other in others}


def named_cells(raw: Mapping[str, Any]) -> dict[str, str]:
    """The cells of a row as stripped text, by the columns' own names. Headers may be aliases, in any case."""
    given = {
        _column(str(key)): str(value).strip()
        for key, value in raw.items()
        if key is not None and value is not None
    }
    for other, column in _ALIASED.items():
        if other in given and not given.get(column):
            given[column] = given[other]
    return given


@lru_cache(maxsize=1024)
def _column(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_")
