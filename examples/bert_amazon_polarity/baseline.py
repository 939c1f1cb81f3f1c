"""A baseline that only counts words: logistic regression on a bag of words.

It tests the generated reviews: a model that reads sentences must beat it by far, else the data
would be too easy. Only the standard library; about a second for 8,000 reviews.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from itertools import pairwise

from reviews import Review

_WORD = re.compile(r"[a-z']+")


def words(review: Review, *, pairs: bool = False) -> set[str]:
    """The distinct words of title and content; with `pairs` also each two neighbours."""
    sequence = _WORD.findall(f"{review.title} . {review.content}".lower())
    found = set(sequence)
    if pairs:
        found.update(f"{left} {right}" for left, right in pairwise(sequence))
    return found


def accuracy(
    train: Sequence[Review],
    held_out: Sequence[Review],
    *,
    pairs: bool = False,
    epochs: int = 6,
    seed: int = 0,
) -> float:
    """Share of `held_out` that the word-count model trained on `train` labels correctly."""
    weights: dict[str, float] = {}
    bias = 0.0
    samples = [(words(review, pairs=pairs), review.label) for review in train]
    rng = random.Random(seed)  # noqa: S311 - an order of samples, nothing secret
    for epoch in range(epochs):
        rng.shuffle(samples)
        rate = 0.1 / (1 + epoch)
        for features, label in samples:
            score = bias + sum(weights.get(word, 0.0) for word in features)
            step = rate * (label - 1 / (1 + math.exp(-max(-30.0, min(30.0, score)))))
            bias += step
            for word in features:
                # The small decay keeps the model from memorising words that occur once.
                weights[word] = weights.get(word, 0.0) * (1 - 1e-4) + step
    right = 0
    for review in held_out:
        score = bias + sum(weights.get(word, 0.0) for word in words(review, pairs=pairs))
        right += (score > 0) == (review.label == 1)
    return right / len(held_out)
