"""Published training throughputs on trn1, as Python data; `published_a100_rows` has those of the A100.

Copied from the pages named in each source; one row a configuration. The tables
say nothing of their own about time: `description` says what a row computes,
`calibration` fits to it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..model.architectures import ARCHITECTURES, Architecture
from ..model.training_settings import Attention, Recompute, Training, ZeroStage


@dataclass(frozen=True)
class PublishedRow:
    """One published throughput. Batches in sequences, throughput in sequences per second over all nodes.

    ``published``: None where only a prediction is wanted. ``published_range``: lowest and highest
    over software versions, where several were published.
    """

    config: str
    architecture: str
    instance_type: str
    nodes: int
    training: Training
    published: float | None
    published_range: tuple[float, float] | None
    source: str

    @property
    def family(self) -> str:
        """The family of the model: what a leave-one-family-out leaves out."""
        return self.training.architecture.family

    @property
    def step_s(self) -> float:
        """What the published throughput means for one optimizer step, seconds."""
        if self.published is None:
            raise ValueError(f"{self.config}: nothing was published")
        return self.training.global_batch / self.published


_SOURCE = "AWS Neuron documentation, Trn1/Trn1n training performance pages, median over Neuron 2.3-2.26"
_CORES = 32


def _row(
    config: str,
    architecture: str,
    parameters: float,
    nodes: int,
    parallel: tuple[int, int],
    batch: tuple[int, int, int],
    storage_dtype: str,
    gradient_bytes: int,
    recompute: Recompute,
    zero: ZeroStage,
    published: tuple[float, float, float],
) -> PublishedRow:
    tensor, pipeline = parallel
    microbatch, global_batch, sequence_length = batch
    dimensions: Architecture = ARCHITECTURES[architecture]
    attention: Attention = "flash" if dimensions.flash_on_neuron else "eager"
    training = Training(
        architecture=dimensions,
        parameters=parameters,
        microbatch=microbatch,
        global_batch=global_batch,
        sequence_length=sequence_length,
        data_parallel=nodes * _CORES // (tensor * pipeline),
        tensor_parallel=tensor,
        pipeline_parallel=pipeline,
        storage_dtype=storage_dtype,
        matmul_dtype="bf16",  # the compiler's auto-cast, also where storage is fp32
        gradient_bytes=gradient_bytes,
        recompute=recompute,
        zero=zero,
        attention=attention,
    )
    value, low, high = published
    return PublishedRow(
        config, architecture, "ml.trn1.32xlarge", nodes, training, value, (low, high), _SOURCE
    )


TRN1_ROWS: tuple[PublishedRow, ...] = (
    _row("BERT-L ph1 bf16 1n AdamW gbs16k", "BERT-Large", 336_000_000, 1,
         (1, 1), (16, 16384, 128), "bf16", 2, "none", "none",
         (3614.49, 2845.7, 4379.6)),
    _row("BERT-L ph1 bf16 1n LAMB gbs64k", "BERT-Large", 336_000_000, 1,
         (1, 1), (16, 65536, 128), "bf16", 2, "none", "none",
         (3669.8, 3400.96, 4538.5)),
    _row("BERT-L ph1 bf16 16n LAMB gbs1M", "BERT-Large", 336_000_000, 16,
         (1, 1), (16, 1_048_576, 128), "bf16", 2, "none", "none",
         (53540.2, 52305.2, 61765.4)),
    _row("BERT-L ph1 bf16 16n Adam gbs256k", "BERT-Large", 336_000_000, 16,
         (1, 1), (16, 262_144, 128), "bf16", 2, "none", "none",
         (48414.0, 42132.0, 49846.0)),
    _row("BERT-L ph1 AMP 16n AdamW gbs16k", "BERT-Large", 336_000_000, 16,
         (1, 1), (16, 16384, 128), "bf16", 4, "none", "none",
         (25547.6, 24518.0, 26474.0)),
    _row("BERT-L ph1 fp32 16n LAMB gbs1M", "BERT-Large", 336_000_000, 16,
         (1, 1), (8, 1_048_576, 128), "fp32", 4, "none", "none",
         (31174.2, 28378.0, 35144.6)),
    _row("BERT-L ph2 bf16 16n LAMB gbs512k", "BERT-Large", 336_000_000, 16,
         (1, 1), (2, 524_288, 512), "bf16", 2, "none", "none",
         (7480.0, 6997.4, 8396.1)),
    _row("BERT-L ph2 fp32 1n gbs32k", "BERT-Large", 336_000_000, 1,
         (1, 1), (1, 32768, 512), "fp32", 4, "none", "none",
         (247.2, 247.0, 247.4)),
    _row("BERT-L ph2 fp32 16n gbs512k", "BERT-Large", 336_000_000, 16,
         (1, 1), (1, 524_288, 512), "fp32", 4, "none", "none",
         (3619.0, 3619.0, 3619.25)),
    _row("GPT3-6.7B 1n tp8", "GPT3-6.7B", 6_660_000_000, 1,
         (8, 1), (1, 64, 2048), "bf16", 2, "none", "none",
         (7.3, 7.0, 8.23)),
    _row("GPT3-6.7B 16n tp8", "GPT3-6.7B", 6_660_000_000, 16,
         (8, 1), (1, 1024, 2048), "bf16", 2, "none", "none",
         (131.0, 101.0, 143.75)),
    _row("GPT3-23B 32n tp8pp4", "GPT3-23B", 22_970_000_000, 32,
         (8, 4), (1, 1024, 2048), "bf16", 2, "selective", "optimizer",
         (103.0, 100.0, 107.18)),
    _row("GPT3-175B 32n tp32pp8", "GPT3-175B", 174_600_000_000, 32,
         (32, 8), (1, 1024, 2048), "bf16", 2, "selective", "optimizer",
         (13.9, 12.7, 14.6)),
    _row("Llama2-7B 16n tp8 nxd", "Llama2-7B", 6_740_000_000, 16,
         (8, 1), (1, 1024, 4096), "bf16", 4, "selective", "optimizer",
         (94.0, 81.0, 101.3)),
    _row("Llama2-70B 32n tp32pp4", "Llama2-70B", 68_980_000_000, 32,
         (32, 4), (1, 1024, 4096), "bf16", 4, "selective", "optimizer",
         (15.6, 15.34, 17.86)),
    _row("Llama3.1-8B 32n tp32", "Llama-3.1-8B", 8_030_000_000, 32,
         (32, 1), (1, 1024, 8192), "bf16", 4, "selective", "optimizer",
         (48.71, 41.99, 53.51)),
    _row("Llama3.1-70B 32n tp32pp8", "Llama-3.1-70B", 70_550_000_000, 32,
         (32, 8), (1, 1024, 8192), "bf16", 4, "selective", "optimizer",
         (7.77, 7.51, 7.97)),
    _row("ViT-B 1n mb64", "ViT-Base", 86_000_000, 1,
         (1, 1), (64, 2048, 197), "bf16", 2, "none", "none",
         (5570.2, 5230.7, 6587.3)),
)  # fmt: skip
"""Throughputs in sequences per second: median, lowest and highest over Neuron versions."""
