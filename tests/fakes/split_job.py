"""A counters.json of a job whose cores share one copy of the model: Llama-2-7B on 8 of the 32 cores of a trn1."""

from __future__ import annotations

from typing import Any

CONFIG = {
    "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32,
    "intermediate_size": 11008, "vocab_size": 32000, "tie_word_embeddings": False, "pad_token_id": -1,
    "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16",
}  # fmt: skip
WEIGHTS = 6_738_415_616


def split_counters(
    tensor: int = 8, pipeline: int = 1, config: dict[str, Any] | None = CONFIG, **parameters: Any
) -> dict[str, Any]:
    """Three passes of 64 were rehearsed of each epoch; ``parameters``: members that are others."""
    cores = tensor * pipeline
    split = {"tensor_parallel": tensor, "pipeline_parallel": pipeline, "zero1": True, "config": config}
    loader = {
        "line": "train.py:9", "batches": 5000, "samples": 1, "passes": 1, "planned": 2, "taken": 3,
        "trains": True, "split": True, "sequence_length": 4096,
    }  # fmt: skip
    return {
        "schema": "windtunnel.counters/1",
        "job": "llama",
        "instance_type": "ml.trn1.32xlarge",
        "instance_count": 1,
        "instance_cores": 32,
        "cores_used": cores,
        "local_cores": cores,
        "world_size": cores,
        "framework_version": "2.9",
        "parameters": {
            "count": WEIGHTS / cores,
            "model": WEIGHTS,
            "frozen": 0,
            "cores": cores,
            "split": split,
            "parameter_bytes": 2 * WEIGHTS / cores,
            "dtypes": {"parameters": {"bf16": 2 * WEIGHTS / cores, "fp32": 64}},
            **parameters,
        },
        "train": {
            "steps": 192,
            "samples": 192,
            "samples_per_step_per_core": 1,
            "flops": {"bf16": 1e15, "fp32": 1e9},
            "bytes_accessed": 1e12,
            "collectives": {"all_reduce": {"count": 192, "bytes": 1e9}},
            "updates": {"steps": 3, "passes": 64},
        },
        "other": None,
        "input": {"rehearsed_steps": 3, "loaders": [loader]},
        "graphs": {"count": 4, "compile_seconds": 20.0},
    }
