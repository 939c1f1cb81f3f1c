"""A mistyped name is answered with what is near to it, and a word that is no misspelling with nothing."""

from __future__ import annotations

import argparse

import pytest

from windtunnel.cli.main import build_parser
from windtunnel.errors import did_you_mean
from windtunnel.priceperf.instances.catalog import CATALOG
from windtunnel.priceperf.model.architectures import ARCHITECTURES
from windtunnel.priceperf.model.hub_models import hub_names


def _known() -> dict[str, list[str]]:
    parser = build_parser()
    commands = next(item for item in parser._actions if isinstance(item, argparse._SubParsersAction)).choices
    options = {name: list(commands[name]._option_string_actions) for name in ("compare", "plan", "run")}
    return {
        **options,
        "commands": list(commands),
        "instances": list(CATALOG),
        "architectures": [*ARCHITECTURES, *hub_names()],
    }


KNOWN = _known()

MISTYPED = {
    "compare": (
        "--instnces --instances", "--instance --instances", "--instance-types --instances", "--sample --samples",
        "--smaples --samples", "--epoch --epochs", "--epcohs --epochs", "--arch --architecture",
        "--architecure --architecture", "--seq-length --sequence-length", "--sequence-len --sequence-length",
        "--sequence_length --sequence-length", "--globalbatch --global-batch", "--global-batch-size --global-batch",
        "--batch-size --batch", "--micro-batch --microbatch", "--tensor-paralel --tensor-parallel", "--node --nodes",
        "--tensor-parallelism --tensor-parallel", "--token --tokens", "--ful --full", "--jsn --json",
        "--prices --price", "--loar-rank --lora-rank", "--pipeline-paralell --pipeline-parallel",
        "--gradient-acumulation --gradient-accumulation", "--gpus --gpu", "--dataset --dataset-gib",
    ),
    "plan": ("--deadline-hours --deadline", "--budjet --budget", "--dedline --deadline", "--budget-usd --budget"),
    "run": ("--instance-typ --instance-type", "--channels --channel", "--dryrun --dry-run", "--nowait --no-wait"),
    "commands": (
        "compar compare", "compair compare", "reprot report", "lgos logs", "log logs", "pland plan",
        "decribe describe", "validat validate", "price prices", "clsuter cluster", "docter doctor",
        "endpoint endpoints",
    ),
    "instances": (
        "ml.p4d.24xlrge ml.p4d.24xlarge", "ml.trn1.32xlage ml.trn1.32xlarge", "ml.trn.32xlarge ml.trn1.32xlarge",
        "ml.p4d.24large ml.p4d.24xlarge", "ml.p5.48xl ml.p5.48xlarge", "ml.trn1.23xlarge ml.trn1.32xlarge",
        "ml.trn1-32xlarge ml.trn1.32xlarge", "ml.tnr1.2xlarge ml.trn1.2xlarge", "ml.p4d.48xlarge ml.p4d.24xlarge",
    ),
    "architectures": (
        "lama-3.1-8b Llama-3.1-8B", "Llama3.1-8B Llama-3.1-8B", "Llama-31-8B Llama-3.1-8B", "Lama2-7B Llama2-7B",
        "bert-lrge BERT-Large", "bertlarge BERT-Large", "mistral7b Mistral-7B", "Mistrall-7B Mistral-7B",
        "qwen2.5-7 Qwen2.5-7B", "gpt2 GPT-2", "GPT-3-175B GPT3-175B", "roberta-bse RoBERTa-Base", "vit-bsae ViT-Base",
        "Qwen-2.5-7B Qwen2.5-7B", "phi4 Phi-4", "falcn-40b Falcon-40B", "Llama-3.1-7B Llama-3.1-8B",
        "llama-3.1-8b-instruct Llama-3.1-8B",
    ),
}  # fmt: skip

OTHER_WORDS = {
    "compare": (
        "--foo --verbose --quiet --region --output --color --debug --spot --profile --cost --lr --seed --workers "
        "--memory --model --time --budget --deadline --config --cheapest --cores --savings"
    ),
    "run": (
        "--epochs --lr --model --seed --gpu --tag --name --max-steps --warmup --nodes --detach --entry-point "
        "--learning-rate --batch-size"
    ),
    "commands": (
        "foo train help version fit start deploy list status jobs cost estimate delete login config init predict "
        "serve tune"
    ),
    "instances": (
        "ml.m5.xlarge ml.m5.12xlarge ml.c5.4xlarge ml.g4dn.xlarge ml.p3.16xlarge ml.t3.medium ml.c7g.16xlarge "
        "ml.m5.large h100 a100 tpu-v4 gpu cpu ml.x"
    ),
    "architectures": (
        "foo my-model t5-large Mixtral-8x7B deepseek-v3 whisper-large resnet50 gpt-4o claude unet stable-diffusion "
        "train.py config.json Grok-1 yi-34b llava"
    ),
}


@pytest.mark.parametrize("kind", MISTYPED)
def test_a_misspelling_gets_the_name_that_was_meant(kind: str) -> None:
    """Wherever names are typed; a letter more, less or swapped, separators, or only the beginning."""
    for given, meant in map(str.split, MISTYPED[kind]):
        assert repr(meant) in did_you_mean(given, KNOWN[kind]), given


@pytest.mark.parametrize("kind", OTHER_WORDS)
def test_another_word_gets_no_suggestion(kind: str) -> None:
    """Whoever asks for what there is not must not be told that something else was meant."""
    for word in OTHER_WORDS[kind].split():
        assert did_you_mean(word, KNOWN[kind]) == "", word
