"""Generate product reviews from a grammar, for machines that cannot fetch the real ones.

They have the columns of Amazon Polarity (title, content, label; 0 negative, 1 positive). Often
one word does not show the sentiment of a sentence: it is negated ("far from awful"), outweighed
("a great screen, but it died after a week"), compared ("my old kettle was worse than this
one"), corrected ("others call it dull, and I disagree"), or belongs to another product.
So a model that counts words finds only a part of the labels (`baseline.py` measures how many);
a model that reads the sentences can find them all.

Training and held-out reviews share words, but no sentence and no title: a hash assigns each
sentence to one of the two.

Uses only the standard library; the same seed gives the same reviews on every machine.
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Sequence
from typing import Literal, NamedTuple

import lexicon

Split = Literal["train", "held_out"]

HELD_OUT_SHARE = 4
"""One of so many sentences is reserved for the held-out reviews."""

TITLE_WITH_OPINION = 0.35
"""Share of titles that carry the sentiment; the others name the product only."""


class Review(NamedTuple):
    """One row of the data set."""

    title: str
    content: str
    label: int
    """0: the reviewer would not buy the product again; 1: the reviewer would."""


# Slots of a frame: `same` is an opinion word of the sentence's own sentiment, `opposite` one of the
# other sentiment, `either` one of any; a `clause` is another sentence; the other slots are for nouns.

PLAIN = (
    "the {aspect} is {degree} {same}",
    "what I got is a {same} {item}",
    "the {item} turned out {same}",
    "overall a {same} {item}",
    "the {aspect} is not only {same} but also {same_too}",
    "I {verb_same} this {item}",
    "{event_same}",
)
NEGATED = (
    "the {aspect} is {negator} {opposite}",
    "this {item} is {negator} {opposite}",
    "nobody could call this {item} {opposite}",
    "there is nothing {opposite} about the {aspect}",
    "I have yet to find anything {opposite} in the {aspect}",
    "it would be wrong to call the {aspect} {opposite}",
    "I do not {verb_opposite} this {item}",
)
COMPARED = (
    "this {item} is {more_same} than my old {other}",
    "my old {other} was {more_opposite} than this one",
    "the {other} of my {relative} is {more_opposite} than this {item}",
    "next to this one, my old {other} looks {opposite}",
    "unlike my {opposite} old {other}, this {item} is {same}",
    "my {relative} has a {opposite} {other}, mine is {same}",
)
CORRECTED = (
    "I expected a {opposite} {aspect} and I was wrong",
    "I expected a {same} {aspect} and I was right",
    "others call the {aspect} {opposite}, I disagree",
    "others call the {aspect} {same}, I agree",
    "my {relative} said it was {opposite}, which is false",
    "my {relative} said it was {same}, which is true",
)
CONTRASTED = (
    "{clause_opposite}, but {clause_same}",
    "although {clause_opposite}, {clause_same}",
    "{clause_same}, even though {clause_opposite}",
    "{clause_opposite}, and yet {clause_same}",
    "despite the {opposite} {aspect}, {clause_same}",
    "{clause_same} in spite of the {opposite} {aspect}",
)
ASIDES = (
    "I bought it {time}",
    "it stands in the {place}",
    "it was a present for my {relative}",
    "I have had this {item} for {duration}",
    "my {relative} has a {either} {other}",
    "the {other} I ordered {time} was {either}",
    "the shop also sells a {either} {other}",
    "I ordered the {item} {time}",
    "it took {duration} to arrive",
    "we keep it in the {place}",
    "my {relative} picked the {item} while I was paying for a {other}",
    "I compared it with a {other} before I ordered",
)
TITLES = (
    "{same} {item}",
    "{negator} {opposite}",
    "{opposite} {aspect}, {same} {item}",
    "{more_same} than my {other}",
    "nothing {opposite} here",
)
TITLES_ASIDE = (
    "my new {item}",
    "{item} for my {relative}",
    "a {item} bought {time}",
    "{item} after {duration}",
    "the {aspect} of this {item}",
    "{item} for the {place}",
)

KINDS: tuple[tuple[Sequence[str], int], ...] = (
    (PLAIN, 16),
    (NEGATED, 4),
    (COMPARED, 3),
    (CORRECTED, 3),
    (CONTRASTED, 4),
)
"""Kinds of sentences that carry the sentiment, and how often each is drawn."""


def generate(count: int, seed: int, split: Split) -> list[Review]:
    """`count` reviews in random order, half of them of each label (if `count` is odd, one more is negative).

    The same arguments give the same reviews.
    """
    rng = random.Random(f"{seed}/{split}")  # noqa: S311 - reproducible data, nothing secret
    labels = [index % 2 for index in range(count)]
    rng.shuffle(labels)
    return [_review(rng, split, label) for label in labels]


def _review(rng: random.Random, split: Split, label: int) -> Review:
    """A title and one to three sentences about one product."""
    product = rng.choice([(category, item) for category in lexicon.CATEGORIES for item in category.items])
    writer = _Writer(rng, split, *product)
    positive = label == 1
    title = writer.clause(TITLES if rng.random() < TITLE_WITH_OPINION else TITLES_ASIDE, positive)
    kinds = rng.choices([kind for kind, _ in KINDS], [weight for _, weight in KINDS], k=rng.choice((1, 2, 2)))
    sentences = [writer.clause(kind, positive) for kind in kinds]
    sentences += [writer.clause(ASIDES, positive) for _ in range(rng.choice((0, 1)))]
    rng.shuffle(sentences)
    content = " ".join(_capitalised(sentence) + "." for sentence in sentences)
    return Review(_capitalised(title), content, label)


class _Writer:
    """Fills the frames of one review of one product."""

    def __init__(self, rng: random.Random, split: Split, category: lexicon.Category, item: str) -> None:
        self.rng = rng
        self.split = split
        self.category = category
        self.item = item

    def clause(self, frames: Sequence[str], positive: bool) -> str:
        """A filled frame that belongs to this split. Draws frames until one does."""
        while True:
            slots = _Slots(self, positive)
            text = " ".join(self.rng.choice(frames).format_map(slots).split())
            if _belongs(self.split, text):
                return _ARTICLE.sub(r"\1n", text)


class _Slots(dict[str, str]):
    """The words of a frame's slots, each drawn when the frame first asks for it."""

    def __init__(self, writer: _Writer, positive: bool) -> None:
        super().__init__()
        self._writer = writer
        self._positive = positive

    def __missing__(self, slot: str) -> str:
        """Draw the word for `slot`; raises KeyError for a slot without a list of words."""
        self[slot] = word = self._draw(slot)
        return word

    def _draw(self, slot: str) -> str:
        writer, choice = self._writer, self._writer.rng.choice
        if slot == "item":
            return writer.item
        if slot == "aspect":
            return choice(writer.category.aspects)
        if slot in _THINGS:
            return choice(_THINGS[slot])
        kind, _, side = slot.partition("_")
        positive = self._positive is (side != "opposite" and kind != "opposite")
        if kind == "clause":
            return writer.clause(choice((PLAIN, NEGATED)), positive)
        good, bad = _OPINIONS[kind]
        word = choice(good if positive else bad)
        return word.format_map(self) if kind == "event" else word


_THINGS: dict[str, Sequence[str]] = {
    "degree": lexicon.DEGREES,
    "duration": lexicon.DURATIONS,
    "either": lexicon.POSITIVE + lexicon.NEGATIVE,
    "negator": lexicon.NEGATORS,
    "other": tuple(item for category in lexicon.CATEGORIES for item in category.items),
    "place": lexicon.PLACES,
    "relative": lexicon.RELATIVES,
    "time": lexicon.TIMES,
}
_OPINIONS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "same": (lexicon.POSITIVE, lexicon.NEGATIVE),
    "opposite": (lexicon.POSITIVE, lexicon.NEGATIVE),
    "more": (lexicon.BETTER, lexicon.WORSE),
    "verb": (lexicon.LIKE, lexicon.DISLIKE),
    "event": (lexicon.GOOD_EVENTS, lexicon.BAD_EVENTS),
}
_ARTICLE = re.compile(r"\b([Aa])(?= (?:[aeio]|u(?!s)))")
"""An "a" that must become "an": "an awful", "an ugly", but "a useless"."""


def _belongs(split: Split, sentence: str) -> bool:
    """Whether the hash assigns this sentence to `split`."""
    return (zlib.crc32(sentence.encode()) % HELD_OUT_SHARE == 0) is (split == "held_out")


def _capitalised(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
