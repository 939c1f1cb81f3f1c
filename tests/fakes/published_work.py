"""AWS's published job from its dimensions alone, for tests that need a plausible step."""

from __future__ import annotations

from windtunnel.priceperf import ARCHITECTURES, StepWork, Training
from windtunnel.priceperf.model.described_as_counted import step_work
from windtunnel.priceperf.published.bert_jobs import SEQUENCE_LENGTH

_PARAMETERS = 109_482_240  # bert-base-uncased


def benchmark_work(samples: int) -> StepWork:
    """One worker's step of that job as a rehearsal would count it, from BERT base's dimensions, all in fp32."""
    return step_work(
        Training(
            ARCHITECTURES["BERT-Base"],
            _PARAMETERS,
            microbatch=samples,
            global_batch=samples,
            sequence_length=SEQUENCE_LENGTH,
            data_parallel=1,
            storage_dtype="fp32",
            matmul_dtype="fp32",
            gradient_bytes=4,
            head_part=0.0,  # a classifier reads one position, and has no vocabulary
        )
    )
