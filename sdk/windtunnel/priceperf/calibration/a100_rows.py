"""Published training throughputs on eight A100-SXM4-40GB, which is what a p4d.24xlarge has.

BERT: NVIDIA's scripts with mixed precision (fp32 storage, fp16 products) or TF32,
attention as products and a softmax. MPT: FSDP over the eight GPUs, bf16, FlashAttention;
whether a row recomputes its activations is in the column "Activation Checkpointing".
"""

from __future__ import annotations

from ..model.architectures import ARCHITECTURES
from ..model.training_settings import MASKED_PART, Training
from .trn1_rows import PublishedRow

_NVIDIA_PT = "NVIDIA/DeepLearningExamples@78ec6802 PyTorch/LanguageModeling/BERT/README.md (NGC 20.06)"
_NVIDIA_TF = "NVIDIA/DeepLearningExamples@729963dd TensorFlow/LanguageModeling/BERT/README.md (NGC 20.06)"
_MOSAIC = "mosaicml/llm-foundry@8c8dd48f scripts/train/benchmarking/README.md"
_GPUS = 8


def _bert(
    name: str, batch: tuple[int, int, int], matmul_dtype: str, published: float, source: str
) -> PublishedRow:
    microbatch, global_batch, sequence_length = batch
    training = Training(
        architecture=ARCHITECTURES["BERT-Large"],
        parameters=336_000_000,
        microbatch=microbatch,
        global_batch=global_batch,
        sequence_length=sequence_length,
        data_parallel=_GPUS,
        storage_dtype="fp32",
        matmul_dtype=matmul_dtype,
        gradient_bytes=2 if matmul_dtype == "fp16" else 4,
        mixed_precision=matmul_dtype == "fp16",
        head_part=MASKED_PART,
    )
    config = f"BERT-Large {name} s{sequence_length} {matmul_dtype} mb{microbatch}"
    return _on_p4d(config, "BERT-Large", training, published, source)


def _mpt(
    size: str,
    parameters: float,
    batch: tuple[int, int, int],
    published: float,
    checkpointing: bool = False,
) -> PublishedRow:
    microbatch, global_batch, sequence_length = batch
    training = Training(
        architecture=ARCHITECTURES[f"MPT-{size}"],
        parameters=parameters,
        microbatch=microbatch,
        global_batch=global_batch,
        sequence_length=sequence_length,
        data_parallel=_GPUS,
        storage_dtype="bf16",
        matmul_dtype="bf16",
        gradient_bytes=2,
        recompute="full" if checkpointing else "none",
        zero="full",
        attention="flash",
    )
    config = f"MPT-{size} llm-foundry FSDP FlashAttention s{sequence_length} bf16 mb{microbatch}"
    return _on_p4d(config, f"MPT-{size}", training, published, _MOSAIC)


def _on_p4d(
    config: str, architecture: str, training: Training, published: float, source: str
) -> PublishedRow:
    return PublishedRow(
        config, architecture, "ml.p4d.24xlarge", 1, training, published, (published, published), source
    )


A100_ROWS: tuple[PublishedRow, ...] = (
    _bert("PyTorch", (54, 65232, 128), "tf32", 1777, _NVIDIA_PT),
    _bert("PyTorch", (64, 65536, 128), "fp16", 3231, _NVIDIA_PT),
    _bert("PyTorch", (8, 32768, 512), "tf32", 318, _NVIDIA_PT),
    _bert("TensorFlow1+XLA", (64, 65536, 128), "fp16", 2871.89, _NVIDIA_TF),
    _bert("TensorFlow1+XLA", (16, 32768, 512), "fp16", 572.112, _NVIDIA_TF),
    _bert("TensorFlow1+XLA", (8, 32768, 512), "tf32", 316.51, _NVIDIA_TF),
    _mpt("7b", 6_717_579_264, (1, 32, 16384), 1.0985, checkpointing=True),
    _mpt("7b", 6_684_024_832, (3, 96, 8192), 2.8196, checkpointing=True),
    _mpt("7b", 6_667_247_616, (6, 192, 4096), 6.5747, checkpointing=True),
    _mpt("7b", 6_658_859_008, (12, 384, 2048), 14.373, checkpointing=True),
    _mpt("7b", 6_654_664_704, (24, 768, 1024), 30.1104, checkpointing=True),
    _mpt("7b", 6_652_567_552, (48, 1536, 512), 60.873, checkpointing=True),
    _mpt("3b", 2_730_480_640, (1, 32, 32768), 0.7214, checkpointing=True),
    _mpt("3b", 2_688_537_600, (2, 128, 16384), 2.1805, checkpointing=True),
    _mpt("3b", 2_667_566_080, (1, 64, 8192), 6.9816),
    _mpt("3b", 2_657_080_320, (2, 128, 4096), 17.1443),
    _mpt("3b", 2_651_837_440, (5, 320, 2048), 39.3164),
    _mpt("3b", 2_649_216_000, (10, 640, 1024), 83.8418),
    _mpt("3b", 2_647_905_280, (20, 1280, 512), 176.9453),
    _mpt("760m", 807_656_448, (1, 32, 32768), 1.7537, checkpointing=True),
    _mpt("760m", 782_490_624, (1, 32, 16384), 6.7942),
    _mpt("760m", 769_907_712, (3, 96, 8192), 19.6354),
    _mpt("760m", 763_616_256, (6, 192, 4096), 50.5149),
    _mpt("760m", 760_470_528, (12, 384, 2048), 117.8657),
    _mpt("760m", 758_897_664, (24, 768, 1024), 261.1094),
    _mpt("760m", 758_111_232, (48, 1536, 512), 545.9062),
    _mpt("350m", 387_442_688, (1, 32, 32768), 3.2754),
    _mpt("350m", 370_665_472, (2, 64, 16384), 11.1801),
    _mpt("350m", 362_276_864, (4, 128, 8192), 34.1145),
    _mpt("350m", 358_082_560, (8, 256, 4096), 91.4722),
    _mpt("350m", 355_985_408, (16, 512, 2048), 218.7319),
    _mpt("350m", 354_936_832, (32, 1024, 1024), 488.4609),
    _mpt("350m", 354_412_544, (64, 2048, 512), 1035.6973),
    _mpt("125m", 148_904_448, (1, 32, 32768), 7.9714),
    _mpt("125m", 136_321_536, (2, 48, 16384), 27.092),
    _mpt("125m", 130_030_080, (5, 120, 8192), 84.8228),
    _mpt("125m", 126_884_352, (13, 312, 4096), 224.926),
    _mpt("125m", 125_311_488, (26, 624, 2048), 532.5576),
    _mpt("125m", 124_525_056, (52, 1248, 1024), 1158.5098),
    _mpt("125m", 124_131_840, (104, 2496, 512), 2448.9961),
)  # fmt: skip
"""Throughputs in sequences per second."""
