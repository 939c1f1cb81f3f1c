"""Published training throughputs and the dimensions of the models in them, as Python data.

Copied from the pages named in each source; one row a configuration. The tables
say nothing of their own about time: `analytic` counts what a row computes,
`calibration` fits to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Architecture:
    """Dimensions of a transformer. ``vocabulary`` 0: it has none (vision)."""

    layers: int
    hidden_size: int
    attention_heads: int
    ffn_hidden_size: int
    kv_hidden_size: int
    vocabulary: int
    family: Literal["encoder", "decoder", "llama", "vision"]


ARCHITECTURES: Mapping[str, Architecture] = {
    "BERT-Large": Architecture(24, 1024, 16, 4096, 1024, 30522, "encoder"),
    "BERT-Base": Architecture(12, 768, 12, 3072, 768, 30522, "encoder"),
    "GPT3-6.7B": Architecture(32, 4096, 32, 16384, 4096, 50304, "decoder"),
    "GPT3-23B": Architecture(28, 8192, 64, 32768, 8192, 50304, "decoder"),
    "GPT3-175B": Architecture(96, 12288, 96, 49152, 12288, 50304, "decoder"),
    "Llama2-7B": Architecture(32, 4096, 32, 11008, 4096, 32000, "llama"),
    "Llama2-70B": Architecture(80, 8192, 64, 28672, 1024, 32000, "llama"),
    "Llama-3.1-8B": Architecture(32, 4096, 32, 14336, 1024, 128256, "llama"),
    "Llama-3.1-70B": Architecture(80, 8192, 64, 28672, 1024, 128256, "llama"),
    "ViT-Base": Architecture(12, 768, 12, 3072, 768, 0, "vision"),
    "MPT-125m": Architecture(12, 768, 12, 3072, 768, 50368, "decoder"),
    "MPT-350m": Architecture(24, 1024, 16, 4096, 1024, 50368, "decoder"),
    "MPT-760m": Architecture(24, 1536, 12, 6144, 1536, 50368, "decoder"),
    "MPT-3b": Architecture(32, 2560, 20, 10240, 2560, 50368, "decoder"),
    "MPT-7b": Architecture(32, 4096, 32, 16384, 4096, 50368, "decoder"),
}


@dataclass(frozen=True)
class PublishedRow:
    """One published throughput. Batches in sequences, throughput in sequences per second over all nodes.

    ``published_range``: lowest and highest over software versions, where several were published.
    """

    config: str
    architecture: str
    parameters: float
    nodes: int
    tensor_parallel: int
    pipeline_parallel: int
    data_parallel: int
    microbatch: int
    global_batch: int
    sequence_length: int
    storage_dtype: Literal["bf16", "fp16", "fp32"]
    matmul_dtype: Literal["bf16", "fp16", "tf32"]
    gradient_bytes: int
    """Bytes a parameter in the all-reduce of gradients."""
    sequences_per_second: float
    published_range: tuple[float, float]
    instance_type: str
    source: str

    @property
    def accumulation(self) -> float:
        """Microbatches per optimizer step."""
        return self.global_batch / (self.microbatch * self.data_parallel)

    @property
    def seconds_per_microbatch(self) -> float:
        """What the published throughput means for one worker's microbatch, optimizer included."""
        return self.microbatch * self.data_parallel / self.sequences_per_second


_NEURON = "AWS Neuron documentation, Trn1/Trn1n training performance pages, median over Neuron 2.3-2.26"
_NVIDIA_PT = "NVIDIA/DeepLearningExamples@78ec6802 PyTorch/LanguageModeling/BERT/README.md (NGC 20.06)"
_NVIDIA_TF = "NVIDIA/DeepLearningExamples@729963dd TensorFlow/LanguageModeling/BERT/README.md (NGC 20.06)"
_MOSAIC = "mosaicml/llm-foundry@8c8dd48f scripts/train/benchmarking/README.md"

TRN1_ROWS: tuple[PublishedRow, ...] = (
    PublishedRow(
        "BERT-L ph1 bf16 1n AdamW gbs16k", "BERT-Large", 336_000_000,
        1, 1, 1, 32, 16, 16384, 128,
        "bf16", "bf16", 2, 3614.49, (2845.7, 4379.6), "ml.trn1.32xlarge", _NEURON,
    ),
    PublishedRow(
        "BERT-L ph1 bf16 1n LAMB gbs64k", "BERT-Large", 336_000_000,
        1, 1, 1, 32, 16, 65536, 128,
        "bf16", "bf16", 2, 3669.8, (3400.96, 4538.5), "ml.trn1.32xlarge", _NEURON,
    ),
    PublishedRow(
        "BERT-L ph1 bf16 16n LAMB gbs1M", "BERT-Large", 336_000_000,
        16, 1, 1, 512, 16, 1_048_576, 128,
        "bf16", "bf16", 2, 53540.2, (52305.2, 61765.4), "ml.trn1.32xlarge", _NEURON,
    ),
    PublishedRow(
        "BERT-L ph1 bf16 16n Adam gbs256k", "BERT-Large", 336_000_000,
        16, 1, 1, 512, 16, 262_144, 128,
        "bf16", "bf16", 2, 48414, (42132, 49846), "ml.trn1.32xlarge", _NEURON,
    ),
    PublishedRow(
        "BERT-L ph1 AMP 16n AdamW gbs16k", "BERT-Large", 336_000_000,
        16, 1, 1, 512, 16, 16384, 128,
        "bf16", "bf16", 4, 25547.6, (24518, 26474), "ml.trn1.32xlarge", _NEURON,
    ),
    PublishedRow(
        "BERT-L ph1 fp32 16n LAMB gbs1M", "BERT-Large", 336_000_000,
        16, 1, 1, 512, 8, 1_048_576, 128,
        "fp32", "bf16", 4, 31174.2, (28378, 35144.6), "ml.trn1.32xlarge", _NEURON,
    ),
    PublishedRow(
        "BERT-L ph2 bf16 16n LAMB gbs512k", "BERT-Large", 336_000_000,
        16, 1, 1, 512, 2, 524_288, 512,
        "bf16", "bf16", 2, 7480, (6997.4, 8396.1), "ml.trn1.32xlarge", _NEURON,
    ),
    PublishedRow(
        "BERT-L ph2 fp32 1n gbs32k", "BERT-Large", 336_000_000,
        1, 1, 1, 32, 1, 32768, 512,
        "fp32", "bf16", 4, 247.2, (247, 247.4), "ml.trn1.32xlarge", _NEURON,
    ),
    PublishedRow(
        "BERT-L ph2 fp32 16n gbs512k", "BERT-Large", 336_000_000,
        16, 1, 1, 512, 1, 524_288, 512,
        "fp32", "bf16", 4, 3619, (3619, 3619.25), "ml.trn1.32xlarge", _NEURON,
    ),
    PublishedRow(
        "GPT3-6.7B 1n tp8", "GPT3-6.7B", 6_660_000_000,
        1, 8, 1, 4, 1, 64, 2048,
        "bf16", "bf16", 2, 7.3, (7, 8.23), "ml.trn1.32xlarge", _NEURON,
    ),
    PublishedRow(
        "GPT3-6.7B 16n tp8", "GPT3-6.7B", 6_660_000_000,
        16, 8, 1, 64, 1, 1024, 2048,
        "bf16", "bf16", 2, 131, (101, 143.75), "ml.trn1.32xlarge", _NEURON,
    ),
    PublishedRow(
        "GPT3-23B 32n tp8pp4", "GPT3-23B", 22_970_000_000,
        32, 8, 4, 32, 1, 1024, 2048,
        "bf16", "bf16", 2, 103, (100, 107.18), "ml.trn1.32xlarge", _NEURON,
    ),
    PublishedRow(
        "GPT3-175B 32n tp32pp8", "GPT3-175B", 174_600_000_000,
        32, 32, 8, 4, 1, 1024, 2048,
        "bf16", "bf16", 2, 13.9, (12.7, 14.6), "ml.trn1.32xlarge", _NEURON,
    ),
    PublishedRow(
        "Llama2-7B 16n tp8 nxd", "Llama2-7B", 6_740_000_000,
        16, 8, 1, 64, 1, 1024, 4096,
        "bf16", "bf16", 4, 94, (81, 101.3), "ml.trn1.32xlarge", _NEURON,
    ),
    PublishedRow(
        "Llama2-70B 32n tp32pp4", "Llama2-70B", 68_980_000_000,
        32, 32, 4, 8, 1, 1024, 4096,
        "bf16", "bf16", 4, 15.6, (15.34, 17.86), "ml.trn1.32xlarge", _NEURON,
    ),
    PublishedRow(
        "Llama3.1-8B 32n tp32", "Llama-3.1-8B", 8_030_000_000,
        32, 32, 1, 32, 1, 1024, 8192,
        "bf16", "bf16", 4, 48.71, (41.99, 53.51), "ml.trn1.32xlarge", _NEURON,
    ),
    PublishedRow(
        "Llama3.1-70B 32n tp32pp8", "Llama-3.1-70B", 70_550_000_000,
        32, 32, 8, 4, 1, 1024, 8192,
        "bf16", "bf16", 4, 7.77, (7.51, 7.97), "ml.trn1.32xlarge", _NEURON,
    ),
    PublishedRow(
        "ViT-B 1n mb64", "ViT-Base", 86_000_000,
        1, 1, 1, 32, 64, 2048, 197,
        "bf16", "bf16", 2, 5570.2, (5230.7, 6587.3), "ml.trn1.32xlarge", _NEURON,
    ),
)  # fmt: skip

A100_ROWS: tuple[PublishedRow, ...] = (
    PublishedRow(
        "BERT-Large PyTorch s128 tf32 mb54", "BERT-Large", 336_000_000,
        1, 1, 1, 8, 54, 65232, 128,
        "fp32", "tf32", 4, 1777, (1777, 1777), "ml.p4d.24xlarge", _NVIDIA_PT,
    ),
    PublishedRow(
        "BERT-Large PyTorch s128 fp16 mb64", "BERT-Large", 336_000_000,
        1, 1, 1, 8, 64, 65536, 128,
        "fp32", "fp16", 2, 3231, (3231, 3231), "ml.p4d.24xlarge", _NVIDIA_PT,
    ),
    PublishedRow(
        "BERT-Large PyTorch s512 tf32 mb8", "BERT-Large", 336_000_000,
        1, 1, 1, 8, 8, 32768, 512,
        "fp32", "tf32", 4, 318, (318, 318), "ml.p4d.24xlarge", _NVIDIA_PT,
    ),
    PublishedRow(
        "BERT-Large TensorFlow1+XLA s128 fp16 mb64", "BERT-Large", 336_000_000,
        1, 1, 1, 8, 64, 65536, 128,
        "fp32", "fp16", 2, 2871.89, (2871.89, 2871.89), "ml.p4d.24xlarge", _NVIDIA_TF,
    ),
    PublishedRow(
        "BERT-Large TensorFlow1+XLA s512 fp16 mb16", "BERT-Large", 336_000_000,
        1, 1, 1, 8, 16, 32768, 512,
        "fp32", "fp16", 2, 572.112, (572.112, 572.112), "ml.p4d.24xlarge", _NVIDIA_TF,
    ),
    PublishedRow(
        "BERT-Large TensorFlow1+XLA s512 tf32 mb8", "BERT-Large", 336_000_000,
        1, 1, 1, 8, 8, 32768, 512,
        "fp32", "tf32", 4, 316.51, (316.51, 316.51), "ml.p4d.24xlarge", _NVIDIA_TF,
    ),
    PublishedRow(
        "MPT-7b llm-foundry FSDP FlashAttention s16384 bf16 mb1", "MPT-7b", 6_717_579_264,
        1, 1, 1, 8, 1, 32, 16384,
        "bf16", "bf16", 2, 1.0985, (1.0985, 1.0985), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-7b llm-foundry FSDP FlashAttention s8192 bf16 mb3", "MPT-7b", 6_684_024_832,
        1, 1, 1, 8, 3, 96, 8192,
        "bf16", "bf16", 2, 2.8196, (2.8196, 2.8196), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-7b llm-foundry FSDP FlashAttention s4096 bf16 mb6", "MPT-7b", 6_667_247_616,
        1, 1, 1, 8, 6, 192, 4096,
        "bf16", "bf16", 2, 6.5747, (6.5747, 6.5747), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-7b llm-foundry FSDP FlashAttention s2048 bf16 mb12", "MPT-7b", 6_658_859_008,
        1, 1, 1, 8, 12, 384, 2048,
        "bf16", "bf16", 2, 14.373, (14.373, 14.373), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-7b llm-foundry FSDP FlashAttention s1024 bf16 mb24", "MPT-7b", 6_654_664_704,
        1, 1, 1, 8, 24, 768, 1024,
        "bf16", "bf16", 2, 30.1104, (30.1104, 30.1104), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-7b llm-foundry FSDP FlashAttention s512 bf16 mb48", "MPT-7b", 6_652_567_552,
        1, 1, 1, 8, 48, 1536, 512,
        "bf16", "bf16", 2, 60.873, (60.873, 60.873), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-3b llm-foundry FSDP FlashAttention s32768 bf16 mb1", "MPT-3b", 2_730_480_640,
        1, 1, 1, 8, 1, 32, 32768,
        "bf16", "bf16", 2, 0.7214, (0.7214, 0.7214), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-3b llm-foundry FSDP FlashAttention s16384 bf16 mb2", "MPT-3b", 2_688_537_600,
        1, 1, 1, 8, 2, 128, 16384,
        "bf16", "bf16", 2, 2.1805, (2.1805, 2.1805), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-3b llm-foundry FSDP FlashAttention s8192 bf16 mb1", "MPT-3b", 2_667_566_080,
        1, 1, 1, 8, 1, 64, 8192,
        "bf16", "bf16", 2, 6.9816, (6.9816, 6.9816), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-3b llm-foundry FSDP FlashAttention s4096 bf16 mb2", "MPT-3b", 2_657_080_320,
        1, 1, 1, 8, 2, 128, 4096,
        "bf16", "bf16", 2, 17.1443, (17.1443, 17.1443), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-3b llm-foundry FSDP FlashAttention s2048 bf16 mb5", "MPT-3b", 2_651_837_440,
        1, 1, 1, 8, 5, 320, 2048,
        "bf16", "bf16", 2, 39.3164, (39.3164, 39.3164), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-3b llm-foundry FSDP FlashAttention s1024 bf16 mb10", "MPT-3b", 2_649_216_000,
        1, 1, 1, 8, 10, 640, 1024,
        "bf16", "bf16", 2, 83.8418, (83.8418, 83.8418), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-3b llm-foundry FSDP FlashAttention s512 bf16 mb20", "MPT-3b", 2_647_905_280,
        1, 1, 1, 8, 20, 1280, 512,
        "bf16", "bf16", 2, 176.9453, (176.9453, 176.9453), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-760m llm-foundry FSDP FlashAttention s32768 bf16 mb1", "MPT-760m", 807_656_448,
        1, 1, 1, 8, 1, 32, 32768,
        "bf16", "bf16", 2, 1.7537, (1.7537, 1.7537), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-760m llm-foundry FSDP FlashAttention s16384 bf16 mb1", "MPT-760m", 782_490_624,
        1, 1, 1, 8, 1, 32, 16384,
        "bf16", "bf16", 2, 6.7942, (6.7942, 6.7942), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-760m llm-foundry FSDP FlashAttention s8192 bf16 mb3", "MPT-760m", 769_907_712,
        1, 1, 1, 8, 3, 96, 8192,
        "bf16", "bf16", 2, 19.6354, (19.6354, 19.6354), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-760m llm-foundry FSDP FlashAttention s4096 bf16 mb6", "MPT-760m", 763_616_256,
        1, 1, 1, 8, 6, 192, 4096,
        "bf16", "bf16", 2, 50.5149, (50.5149, 50.5149), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-760m llm-foundry FSDP FlashAttention s2048 bf16 mb12", "MPT-760m", 760_470_528,
        1, 1, 1, 8, 12, 384, 2048,
        "bf16", "bf16", 2, 117.8657, (117.8657, 117.8657), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-760m llm-foundry FSDP FlashAttention s1024 bf16 mb24", "MPT-760m", 758_897_664,
        1, 1, 1, 8, 24, 768, 1024,
        "bf16", "bf16", 2, 261.1094, (261.1094, 261.1094), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-760m llm-foundry FSDP FlashAttention s512 bf16 mb48", "MPT-760m", 758_111_232,
        1, 1, 1, 8, 48, 1536, 512,
        "bf16", "bf16", 2, 545.9062, (545.9062, 545.9062), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-350m llm-foundry FSDP FlashAttention s32768 bf16 mb1", "MPT-350m", 387_442_688,
        1, 1, 1, 8, 1, 32, 32768,
        "bf16", "bf16", 2, 3.2754, (3.2754, 3.2754), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-350m llm-foundry FSDP FlashAttention s16384 bf16 mb2", "MPT-350m", 370_665_472,
        1, 1, 1, 8, 2, 64, 16384,
        "bf16", "bf16", 2, 11.1801, (11.1801, 11.1801), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-350m llm-foundry FSDP FlashAttention s8192 bf16 mb4", "MPT-350m", 362_276_864,
        1, 1, 1, 8, 4, 128, 8192,
        "bf16", "bf16", 2, 34.1145, (34.1145, 34.1145), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-350m llm-foundry FSDP FlashAttention s4096 bf16 mb8", "MPT-350m", 358_082_560,
        1, 1, 1, 8, 8, 256, 4096,
        "bf16", "bf16", 2, 91.4722, (91.4722, 91.4722), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-350m llm-foundry FSDP FlashAttention s2048 bf16 mb16", "MPT-350m", 355_985_408,
        1, 1, 1, 8, 16, 512, 2048,
        "bf16", "bf16", 2, 218.7319, (218.7319, 218.7319), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-350m llm-foundry FSDP FlashAttention s1024 bf16 mb32", "MPT-350m", 354_936_832,
        1, 1, 1, 8, 32, 1024, 1024,
        "bf16", "bf16", 2, 488.4609, (488.4609, 488.4609), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-350m llm-foundry FSDP FlashAttention s512 bf16 mb64", "MPT-350m", 354_412_544,
        1, 1, 1, 8, 64, 2048, 512,
        "bf16", "bf16", 2, 1035.6973, (1035.6973, 1035.6973), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-125m llm-foundry FSDP FlashAttention s32768 bf16 mb1", "MPT-125m", 148_904_448,
        1, 1, 1, 8, 1, 32, 32768,
        "bf16", "bf16", 2, 7.9714, (7.9714, 7.9714), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-125m llm-foundry FSDP FlashAttention s16384 bf16 mb2", "MPT-125m", 136_321_536,
        1, 1, 1, 8, 2, 48, 16384,
        "bf16", "bf16", 2, 27.092, (27.092, 27.092), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-125m llm-foundry FSDP FlashAttention s8192 bf16 mb5", "MPT-125m", 130_030_080,
        1, 1, 1, 8, 5, 120, 8192,
        "bf16", "bf16", 2, 84.8228, (84.8228, 84.8228), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-125m llm-foundry FSDP FlashAttention s4096 bf16 mb13", "MPT-125m", 126_884_352,
        1, 1, 1, 8, 13, 312, 4096,
        "bf16", "bf16", 2, 224.926, (224.926, 224.926), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-125m llm-foundry FSDP FlashAttention s2048 bf16 mb26", "MPT-125m", 125_311_488,
        1, 1, 1, 8, 26, 624, 2048,
        "bf16", "bf16", 2, 532.5576, (532.5576, 532.5576), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-125m llm-foundry FSDP FlashAttention s1024 bf16 mb52", "MPT-125m", 124_525_056,
        1, 1, 1, 8, 52, 1248, 1024,
        "bf16", "bf16", 2, 1158.5098, (1158.5098, 1158.5098), "ml.p4d.24xlarge", _MOSAIC,
    ),
    PublishedRow(
        "MPT-125m llm-foundry FSDP FlashAttention s512 bf16 mb104", "MPT-125m", 124_131_840,
        1, 1, 1, 8, 104, 2496, 512,
        "bf16", "bf16", 2, 2448.9961, (2448.9961, 2448.9961), "ml.p4d.24xlarge", _MOSAIC,
    ),
)  # fmt: skip
