"""Loads a trained model in plain PyTorch, away from Trainium, and lets it judge reviews.

    python verify_model.py model data/val

Needs torch and transformers, and nothing of Neuron or XLA. Exits with 1 when the accuracy on the
validation channel is below --at-least.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Hide these packages: where they are installed, as in the training image, transformers would use them.
XLA = ("torch_xla", "torch_neuronx", "libneuronxla")
sys.modules.update(dict.fromkeys(XLA))  # type: ignore[arg-type]  # None: the import fails

import torch  # noqa: E402 - after the line above
from transformers import (  # noqa: E402
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging  # noqa: E402

BATCH = 100

JUDGED = (
    ("My new kettle", "The lid is anything but flimsy."),
    ("A novel bought last summer", "The writing is great, but I gave up on it after two weeks."),
    ("Laptop for my sister", "My old tablet was worse than this one."),
    ("The stitching of this jacket", "Others call the zipper superb, I disagree."),
)


def positive(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, reviews: list[tuple[str, str]]
) -> list[float]:
    """The probability of the label 1 for each (title, content)."""
    batch = tokenizer(
        [title for title, _ in reviews],
        [content for _, content in reviews],
        truncation=True,
        padding=True,
        return_tensors="pt",
    )
    with torch.inference_mode():
        probabilities: list[float] = model(**batch).logits.softmax(dim=-1)[:, 1].tolist()
    return probabilities


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, help="folder with what model.tar.gz held")
    parser.add_argument("val", type=Path, help="folder with test.csv")
    parser.add_argument("--at-least", type=float, default=0.0)
    given = parser.parse_args()

    transformers_logging.disable_progress_bar()
    model = AutoModelForSequenceClassification.from_pretrained(given.model).eval()
    tokenizer = AutoTokenizer.from_pretrained(given.model)
    print(f"loaded with torch {torch.__version__} on the CPU, {model.num_parameters():,} parameters")
    for (title, content), probability in zip(JUDGED, positive(model, tokenizer, list(JUDGED)), strict=True):
        print(f"  {'positive' if probability > 0.5 else 'negative'} ({probability:.2f})  {title}: {content}")

    with (given.val / "test.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    pairs = [(row["title"], row["content"]) for row in rows]
    guesses = [
        guess
        for first in range(0, len(pairs), BATCH)
        for guess in positive(model, tokenizer, pairs[first : first + BATCH])
    ]
    right = sum((guess > 0.5) == (row["label"] == "1") for guess, row in zip(guesses, rows, strict=True))
    print(f"accuracy {right / len(rows):.3f} on {len(rows)} held-out reviews")
    if loaded := [name for name in sys.modules if name.startswith(tuple(f"{module}." for module in XLA))]:
        sys.exit(f"{loaded[0]} was loaded: this was no check of plain PyTorch")
    if right / len(rows) < given.at_least:
        sys.exit(f"that is below --at-least {given.at_least:.3f}")


if __name__ == "__main__":
    main()
