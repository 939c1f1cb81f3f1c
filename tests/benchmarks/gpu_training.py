"""Plain training scripts on a GPU: what the price model says of p5 is held against these.

    python tests/benchmarks/gpu_training.py [--seconds 560] [--only eager] [--unseen | --others] [--done FILE]
        [--lines FILE]

Needs a CUDA GPU, PyTorch and transformers, and nothing of this project; nothing depends on it. BERT, GPT-2, ViT and
Llama with random weights and random data train as a plain script trains them (a loop over batches that are moved to
the device, `AdamW`, no read of a value), in fp32, TF32 and bf16 autocast, eager and compiled, with scaled dot product
attention as transformers takes it and with its eager attention, and by Hugging Face's Trainer. Each result is a line of
``--lines``; what ``--done`` has already is not measured again; after ``--seconds`` nothing new is begun. Prints one
JSON object:

    gpu, processor, versions, date    where and when
    results                           one for each configuration:
        step_s      median over windows of steps, each from synchronisation to synchronisation
        spread      longest / shortest window
        device_s    of one step, all kernels together, by PyTorch's profiler (eager loops alone)
        kernels     of one step
        peak_gib    allocated at most
    refused                           configurations that failed, and how

Windows that wait for the host alone have ``batch`` 1 and the shortest sequence (``host`` true): what launching costs.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
import transformers
from other_models import LATER, OTHERS

WINDOWS, WINDOW_S = 3, 0.7
GIB = 2**30


_SIZES = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size")


@dataclass(frozen=True)
class Kind:
    """How transformers calls a kind of model, its task and its sizes. ``family``: the price model's."""

    family: str
    config: str
    task: str
    sizes: tuple[str, str, str, str] = _SIZES
    more: Mapping[str, Any] = field(default_factory=dict)


KINDS = {
    "bert": Kind("encoder", "BertConfig", "MaskedLM"),
    "bert_classifier": Kind("encoder", "BertConfig", "SequenceClassification"),
    "distilbert": Kind(
        "encoder", "DistilBertConfig", "MaskedLM", ("n_layers", "dim", "n_heads", "hidden_dim")
    ),
    "roberta": Kind("encoder", "RobertaConfig", "MaskedLM", more={"max_position_embeddings": 514}),
    "gpt2": Kind("decoder", "GPT2Config", "CausalLM", ("n_layer", "n_embd", "n_head", "n_inner")),
    "opt": Kind("decoder", "OPTConfig", "CausalLM", (*_SIZES[:3], "ffn_dim"), {"word_embed_proj_dim": 768}),
    "gpt_neox": Kind("decoder", "GPTNeoXConfig", "CausalLM"),
    "vit": Kind("vision", "ViTConfig", "ImageClassification", more={"num_labels": 1000}),
    "llama": Kind("llama", "LlamaConfig", "CausalLM"),
    "qwen2": Kind("llama", "Qwen2Config", "CausalLM", more={"tie_word_embeddings": True}),
}


@dataclass(frozen=True)
class Shape:
    """A model of a size that tables publish, and its usual sequence length."""

    kind: str
    layers: int
    hidden: int
    heads: int
    ffn: int
    length: int
    vocabulary: int = 0
    kv_heads: int = 0


SHAPES = {
    "BERT-Base": Shape("bert", 12, 768, 12, 3072, 128, 30522),
    "BERT-Base classifier": Shape("bert_classifier", 12, 768, 12, 3072, 128, 30522),
    "BERT-Large": Shape("bert", 24, 1024, 16, 4096, 128, 30522),
    "GPT-2": Shape("gpt2", 12, 768, 12, 3072, 1024, 50257),
    "GPT-2-Medium": Shape("gpt2", 24, 1024, 16, 4096, 1024, 50257),
    "ViT-Base": Shape("vit", 12, 768, 12, 3072, 197),
    "ViT-Large": Shape("vit", 24, 1024, 16, 4096, 197),
    "Llama-1B": Shape("llama", 16, 2048, 32, 8192, 2048, 32000, 8),
    "DistilBERT": Shape("distilbert", 6, 768, 12, 3072, 256, 30522),
    "RoBERTa-Base": Shape("roberta", 12, 768, 12, 3072, 256, 50265),
    "OPT-125M": Shape("opt", 12, 768, 12, 3072, 1024, 50272),
    "Pythia-410M": Shape("gpt_neox", 24, 1024, 16, 4096, 1024, 50304),
    "Qwen2-0.5B": Shape("qwen2", 24, 896, 14, 4864, 1024, 151936, 2),
    "ViT-Small": Shape("vit", 12, 384, 6, 1536, 197),
}
PRECISIONS = ("fp32", "tf32", "bf16")
STACKS = {
    "eager": "PyTorch script",
    "compiled": "PyTorch script with torch.compile",
    "trainer": "Hugging Face Trainer",
}
"""What the price model calls the three loops."""


@dataclass(frozen=True)
class Configuration:
    """One thing to measure. ``loop``: a name in `STACKS`. ``host``: so little that only launching takes time."""

    model: str
    batch: int
    precision: str
    loop: str = "eager"
    attention: str = "sdpa"
    length: int = 0
    host: bool = False


def configurations() -> Iterator[Configuration]:
    """The most telling first: device time is short."""
    batches = {
        "BERT-Base": (8, 32, 64), "BERT-Large": (8, 32), "GPT-2": (8, 16), "ViT-Base": (8, 32, 64), "Llama-1B": (2, 4),
        "BERT-Base classifier": (8, 64), "GPT-2-Medium": (8,), "ViT-Large": (32,),
    }  # fmt: skip
    for name in batches:
        for precision in PRECISIONS[1:]:
            yield Configuration(name, 1, precision, length=8, host=True)
    for precision in ("bf16", "tf32", "fp32"):
        for name, sizes in batches.items():
            for size in sizes:
                yield Configuration(name, size, precision)
    for name, size in (("BERT-Base", 8), ("BERT-Base", 64), ("GPT-2", 8), ("ViT-Base", 64)):
        for precision in ("bf16", "tf32"):
            yield Configuration(name, size, precision, "trainer")
    for name, size in (
        ("BERT-Base", 32),
        ("BERT-Large", 32),
        ("GPT-2", 8),
        ("ViT-Base", 32),
        ("Llama-1B", 2),
    ):
        for precision in ("bf16", "tf32"):
            yield Configuration(name, size, precision, attention="eager")
    yield Configuration("BERT-Large", 8, "bf16", length=512)
    yield Configuration("BERT-Large", 8, "tf32", length=512)
    for name, size in (("BERT-Base", 8), ("BERT-Base", 64), ("GPT-2", 8), ("ViT-Base", 64), ("Llama-1B", 4)):
        yield Configuration(name, size, "bf16", "compiled")
    yield Configuration("BERT-Base", 64, "tf32", "compiled")


def unseen() -> Iterator[Configuration]:
    """Models that were measured after the price model of plain scripts stood, and some of the others again."""
    batches = {
        "DistilBERT": (8, 64), "RoBERTa-Base": (4, 32), "OPT-125M": (2, 16), "Pythia-410M": (2, 8),
        "Qwen2-0.5B": (1, 8), "ViT-Small": (16, 128),
    }  # fmt: skip
    for name, sizes in batches.items():
        for precision in ("bf16", "tf32"):
            for size in sizes:
                yield Configuration(name, size, precision)
    for name, size in (("BERT-Base", 8), ("BERT-Base", 64), ("ViT-Base", 8), ("GPT-2", 8)):
        for precision in ("bf16", "tf32"):
            yield Configuration(name, size, precision)


def others() -> Iterator[Configuration]:
    """Models that are described by nothing, and so can only be rehearsed."""
    for models in (LATER, OTHERS):
        for precision in ("bf16", "tf32", "fp32"):
            for name, other in models.items():
                for size in other.batches[: 1 if precision == "fp32" else None]:
                    yield Configuration(name, size, precision)


def built(model: str, attention: str = "sdpa", length: int = 0) -> torch.nn.Module:
    """The model with random weights, as its library makes it. ``length``: another than its usual one."""
    if other := {**OTHERS, **LATER}.get(model):
        return other.build()
    shape = SHAPES[model]
    length = length or shape.length
    kind = KINDS[shape.kind]
    settings = (
        dict(zip(kind.sizes, (shape.layers, shape.hidden, shape.heads, shape.ffn), strict=True)) | kind.more
    )
    if shape.vocabulary:
        settings["vocab_size"] = shape.vocabulary
    if shape.kv_heads:
        settings["num_key_value_heads"] = shape.kv_heads
    if kind.task == "CausalLM":
        settings["use_cache"] = False
    if kind.family == "vision":
        settings["image_size"] = side(shape, length)
    config = getattr(transformers, kind.config)(**settings)
    auto = getattr(transformers, f"AutoModelFor{kind.task}")
    return auto.from_config(config, attn_implementation=attention)


def side(shape: Shape, length: int) -> int:
    """Of a picture, in pixels: 196 patches, or 4 where hardly anything is to be computed."""
    return 224 if length >= shape.length else 32


def samples(model: str, batch: int, length: int = 0) -> dict[str, torch.Tensor]:
    """A batch on the CPU, as a collator gives it."""
    if other := {**OTHERS, **LATER}.get(model):
        return other.sample(batch)
    shape = SHAPES[model]
    length = length or shape.length
    if shape.kind == "vit":
        pixels = side(shape, length)
        return {
            "pixel_values": torch.randn(batch, 3, pixels, pixels),
            "labels": torch.randint(0, 1000, (batch,)),
        }
    ids = torch.randint(0, shape.vocabulary, (batch, length))
    if shape.kind == "bert_classifier":
        return {
            "input_ids": ids,
            "attention_mask": torch.ones_like(ids),
            "labels": torch.randint(0, 2, (batch,)),
        }
    masked = torch.where(torch.rand(batch, length) < 0.15, ids, -100)
    labels = masked if KINDS[shape.kind].family == "encoder" else ids
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


def autocast(precision: str) -> torch.autocast:
    """As the scripts have it; off for fp32 and TF32."""
    return torch.autocast("cuda", dtype=torch.bfloat16, enabled=precision == "bf16")


def plain_step(
    model: torch.nn.Module, wanted: Configuration, batches: list[dict[str, torch.Tensor]]
) -> Callable[[int], None]:
    """One step of a plain script."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

    def step(number: int) -> None:
        batch = {name: part.to("cuda") for name, part in batches[number % len(batches)].items()}
        optimizer.zero_grad()
        with autocast(wanted.precision):
            loss = model(**batch).loss
        loss.backward()
        optimizer.step()

    return step


def windows(step: Callable[[int], None], warm: int) -> tuple[float, float]:
    """Median seconds of a step, and the longest window over the shortest."""
    for number in range(warm):
        step(number)
    torch.cuda.synchronize()
    started = time.perf_counter()
    for number in range(3):
        step(number)
    torch.cuda.synchronize()
    steps = max(3, min(60, int(WINDOW_S * 3 / (time.perf_counter() - started))))
    found = []
    for _ in range(WINDOWS):
        started = time.perf_counter()
        for number in range(steps):
            step(number)
        torch.cuda.synchronize()
        found.append((time.perf_counter() - started) / steps)
    return statistics.median(found), max(found) / min(found)


def kernels(step: Callable[[int], None]) -> tuple[float, int]:
    """Seconds of the kernels of one step, added up, and how many there are."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step(0)
        torch.cuda.synchronize()
    on_device = [each for each in profile.events() if each.device_type == torch.autograd.DeviceType.CUDA]
    return sum(each.self_device_time_total for each in on_device) / 1e6, len(on_device)


class Clock(transformers.TrainerCallback):
    """Times windows of the Trainer's steps."""

    def __init__(self, first: int, steps: int) -> None:
        """``first``: steps before the first window; ``steps``: of a window."""
        self.first, self.steps = first, steps
        self.at: list[float] = []

    def on_step_end(self, _: Any, state: Any, *__: Any, **___: Any) -> None:
        """At a window's edge."""
        if state.global_step >= self.first and (state.global_step - self.first) % self.steps == 0:
            torch.cuda.synchronize()
            self.at.append(time.perf_counter())


def by_trainer(
    model: torch.nn.Module, wanted: Configuration, batches: list[dict[str, torch.Tensor]]
) -> tuple[float, float]:
    """As `windows`, of the Trainer with its defaults."""
    clock = Clock(10, 15)
    rows = [
        {name: part[row] for name, part in each.items()} for each in batches for row in range(wanted.batch)
    ]
    arguments = transformers.TrainingArguments(
        output_dir="/tmp/trainer", per_device_train_batch_size=wanted.batch, max_steps=10 + 15 * WINDOWS,
        logging_steps=500, save_strategy="no", report_to="none", disable_tqdm=True,
        bf16=wanted.precision == "bf16", tf32=wanted.precision == "tf32", remove_unused_columns=False,
    )  # fmt: skip
    trainer = transformers.Trainer(model, arguments, train_dataset=rows * 20, callbacks=[clock])
    trainer.train()
    found = [(end - begin) / clock.steps for begin, end in zip(clock.at, clock.at[1:], strict=False)]
    return statistics.median(found), max(found) / min(found)


def told(wanted: Configuration) -> dict[str, Any]:
    """As a result has it: with its length."""
    usual = SHAPES[wanted.model].length if wanted.model in SHAPES else 0
    return {**asdict(wanted), "length": wanted.length or usual}


def measure(wanted: Configuration) -> dict[str, Any]:
    """One result."""
    torch.manual_seed(0)
    allowed = wanted.precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    torch.cuda.reset_peak_memory_stats()
    model = built(wanted.model, wanted.attention, wanted.length).to("cuda").train()
    batches = [samples(wanted.model, wanted.batch, wanted.length) for _ in range(4)]
    result = told(wanted)
    if wanted.loop == "trainer":
        result["step_s"], result["spread"] = by_trainer(model, wanted, batches)
    else:
        step = plain_step(torch.compile(model) if wanted.loop == "compiled" else model, wanted, batches)
        result["step_s"], result["spread"] = windows(step, 5)
        if wanted.loop == "eager":
            result["device_s"], result["kernels"] = kernels(step)
    result["parameters"] = sum(part.numel() for part in model.parameters())
    result["peak_gib"] = torch.cuda.max_memory_allocated() / GIB
    return result


def row_of(result: dict[str, Any], source: str) -> dict[str, Any]:
    """A result as the price model's tables have it."""
    shape, precision = SHAPES[result["model"]], result["precision"]
    words = {"bf16": "bf16 autocast", "tf32": "TF32", "fp32": "fp32"}[precision]
    attention = " eager attention" if result["attention"] == "eager" else ""
    trained = f"{result['model']} s{result['length']} {words} 1xH100 mb{result['batch']}{attention}"
    return {
        "config": f"{STACKS[result['loop']]}, {trained}", "parameters": result["parameters"],
        "layers": shape.layers, "hidden_size": shape.hidden, "attention_heads": shape.heads,
        "ffn_hidden_size": shape.ffn,
        "kv_hidden_size": shape.hidden * (shape.kv_heads or shape.heads) // shape.heads,
        "vocabulary": 0 if shape.kind == "bert_classifier" else shape.vocabulary, "family": KINDS[shape.kind].family,
        "stack": STACKS[result["loop"]], "instance_type": "ml.p5.48xlarge", "nodes": 1, "tensor_parallel": 1,
        "pipeline_parallel": 1, "data_parallel": 1, "microbatch": result["batch"], "global_batch": result["batch"],
        "sequence_length": result["length"], "storage_dtype": "fp32", "matmul_dtype": precision, "recompute": "none",
        "zero1": False, "attention": "eager" if attention else "flash",
        "sequences_per_second": round(result["batch"] / result["step_s"], 4), "source": source,
    }  # fmt: skip


def processor() -> str:
    """Its name, as Linux has it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(
        (line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine()
    )


def main() -> None:
    """Measure until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=560)
    parser.add_argument("--unseen", action="store_true", help="other transformers, in eager loops")
    parser.add_argument("--others", action="store_true", help="other models, in eager loops")
    parser.add_argument("--only", help="a loop: eager, compiled or trainer")
    parser.add_argument("--done", type=Path, help="lines of an earlier run")
    parser.add_argument("--lines", type=Path, default=Path("gpu_training.jsonl"))
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("no CUDA GPU here: this measures one")
    until = time.monotonic() + arguments.seconds
    done = arguments.done.read_text().splitlines() if arguments.done else []
    results, refused = [json.loads(line) for line in done], []
    chosen = others if arguments.others else unseen if arguments.unseen else configurations
    for wanted in chosen():
        if any(told(wanted).items() <= result.items() for result in results):
            continue
        if (arguments.only or wanted.loop) != wanted.loop or time.monotonic() > until:
            continue
        try:
            results.append(measure(wanted))
        except Exception as error:  # noqa: BLE001 - one that does not fit or compile takes no other with it
            refused.append({**asdict(wanted), "error": f"{type(error).__name__}: {str(error)[:300]}"})
            print(refused[-1], file=sys.stderr)
            continue
        finally:
            torch._dynamo.reset()
            torch.cuda.empty_cache()
        with arguments.lines.open("a") as file:
            file.write(json.dumps(results[-1]) + "\n")
        print(json.dumps(results[-1]), file=sys.stderr, flush=True)
    where = {
        "gpu": torch.cuda.get_device_name(0),
        "processor": processor(),
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
        "date": datetime.now(UTC).date().isoformat(),
    }
    print(json.dumps({**where, "results": results, "refused": refused}))


if __name__ == "__main__":
    main()
