"""The generated reviews are what the real ones are for training: balanced, varied, and worth reading."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from functools import lru_cache

import baseline
import lexicon
from reviews import Review, Split, generate


@lru_cache
def reviews(split: Split, count: int = 4000) -> list[Review]:
    """Generated once for all tests."""
    return generate(count, 0, split)


def sentences(split: Split) -> set[str]:
    """All distinct sentences of a split."""
    return {sentence for review in reviews(split) for sentence in re.split(r"(?<=\.) ", review.content)}


def test_rows_have_the_columns_of_amazon_polarity() -> None:
    """Title, content and a label 0 or 1; each text filled in, capitalised, on one line."""
    assert Review._fields == ("title", "content", "label")
    for title, content, label in reviews("train"):
        assert label in (0, 1)
        assert title[0].isupper()
        assert content[0].isupper()
        assert content.endswith(".")
        assert not re.search(r"[{}_\n]|  ", title + content)


def test_labels_are_balanced() -> None:
    """Half of each label; of an odd number one more negative."""
    assert sum(review.label for review in reviews("train")) == 2000
    assert sum(review.label for review in generate(7, 0, "train")) == 3


def test_same_seed_same_reviews_on_every_machine() -> None:
    """The reviews of a seed never change; those of another seed are others."""
    digest = hashlib.sha256(
        repr([tuple(review) for review in generate(200, 0, "train")]).encode()
    ).hexdigest()
    assert digest[:16] == "5286484d1dc97e60"
    assert generate(50, 1, "train") != generate(50, 0, "train")


def test_no_sentence_and_no_title_leaks_into_the_held_out_reviews() -> None:
    """Nothing of the held-out set can have been learnt by heart."""
    assert not sentences("train") & sentences("held_out")
    assert not {review.title for review in reviews("train")} & {
        review.title for review in reviews("held_out")
    }


def test_held_out_reviews_use_known_words() -> None:
    """The split asks for new sentences, not for new words."""
    known = set().union(*(baseline.words(review) for review in reviews("train")))
    new = set().union(*(baseline.words(review) for review in reviews("held_out"))) - known
    assert len(known) > 550
    assert not new


def test_reviews_rarely_repeat() -> None:
    """Nearly every review is one of its kind."""
    assert len(set(reviews("train"))) > 0.99 * len(reviews("train"))


def test_no_opinion_word_gives_the_label_away() -> None:
    """Each opinion word occurs often in reviews of either label."""
    labels = defaultdict(list)
    for review in reviews("train"):
        for word in baseline.words(review):
            labels[word].append(review.label)
    for word in (*lexicon.POSITIVE, *lexicon.NEGATIVE):
        if word in labels:  # "first-rate" and such are several words
            assert 0.2 < sum(labels[word]) / len(labels[word]) < 0.8, word


def test_opinion_words_come_in_pairs() -> None:
    """No side has more words, and no word is on both."""
    for good, bad in (
        (lexicon.POSITIVE, lexicon.NEGATIVE),
        (lexicon.BETTER, lexicon.WORSE),
        (lexicon.LIKE, lexicon.DISLIKE),
    ):
        assert len(set(good)) == len(good) == len(set(bad)) == len(bad)
        assert not set(good) & set(bad)


def test_counting_words_is_not_enough() -> None:
    """A bag of words stays 20 points below the 0.90 that the example's BERT must reach."""
    assert 0.5 < baseline.accuracy(reviews("train"), reviews("held_out", 1000)) < 0.70


def test_counting_words_works_where_words_decide() -> None:
    """The baseline is low for what the reviews are, not for being a poor learner."""
    easy = [Review("", f"the {'lid' if index % 3 else 'cable'} is {word}", int(word in lexicon.POSITIVE[:20]))
            for index, word in enumerate((lexicon.POSITIVE[:20] + lexicon.NEGATIVE[:20]) * 10)]  # fmt: skip
    assert baseline.accuracy(easy[:300], easy[300:]) > 0.95
