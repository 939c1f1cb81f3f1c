"""The words of the generated reviews: products, their parts, and opinions about them.

All nouns are singular, so that every sentence frame of `reviews.py` is grammatical with every
word. Positive and negative opinion words are lists of equal length, so that neither the length
of a review nor the frequency of its words tells its label.
"""

from __future__ import annotations

from typing import NamedTuple


class Category(NamedTuple):
    """One kind of product: its items, and the aspects of them that reviewers judge."""

    items: tuple[str, ...]
    aspects: tuple[str, ...]


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip().replace("_", " ") for word in text.split())


CATEGORIES: tuple[Category, ...] = (
    Category(
        _words("headset speaker radio microphone amplifier turntable receiver subwoofer soundbar metronome"),
        _words("sound bass volume treble cable battery reception display tuner dial"),
    ),
    Category(
        _words("blender toaster kettle coffee_maker frying_pan knife grinder mixer rice_cooker juicer whisk"),
        _words("handle motor lid blade coating switch spout timer base thermostat"),
    ),
    Category(
        _words(
            "novel cookbook biography thriller travel_guide memoir textbook anthology atlas mystery diary"
        ),
        _words("plot writing ending cover dialogue pacing opening translation narrator index prose"),
    ),
    Category(
        _words("film documentary series concert_recording comedy western cartoon musical drama remake"),
        _words(
            "acting script picture soundtrack editing casting camera_work story commentary costume_design"
        ),
    ),
    Category(
        _words("puzzle doll train_set board_game kite robot dollhouse marble_run toy_car rocking_horse"),
        _words("paint design rule_book plastic finish wiring artwork packaging colour mechanism"),
    ),
    Category(
        _words("jacket dress sweater shirt raincoat scarf hat coat belt swimsuit cardigan blouse"),
        _words("fabric fit stitching zipper lining collar cut pattern elastic hem"),
    ),
    Category(
        _words(
            "laptop keyboard monitor printer router tablet scanner webcam hard_drive modem docking_station"
        ),
        _words("screen software setup signal driver fan trackpad firmware resolution hinge"),
    ),
    Category(
        _words("hose rake lawn_mower lantern shovel planter wheelbarrow hedge_trimmer sprinkler bird_feeder"),
        _words("nozzle grip engine frame valve cord shaft pump tray bulb"),
    ),
    Category(
        _words("tent bicycle backpack racket helmet yoga_mat treadmill sleeping_bag kayak surfboard scooter"),
        _words("padding saddle strap pole chain brake floor ventilation balance cushioning"),
    ),
    Category(
        _words("stroller crib car_seat high_chair playpen night_light baby_monitor cradle changing_table"),
        _words("harness wheel latch mattress canopy buckle rail basket alarm fold"),
    ),
    Category(
        _words("drill saw hammer ladder sander wrench toolbox workbench soldering_iron nail_gun chisel"),
        _words("chuck trigger weight balance charger casing torque guard edge clamp"),
    ),
    Category(
        _words("shampoo lotion razor perfume hair_dryer toothbrush lipstick mirror sunscreen face_cream"),
        _words("scent texture bottle dispenser colour label foam consistency applicator cap"),
    ),
)

POSITIVE: tuple[str, ...] = _words(
    "excellent superb wonderful great good fantastic solid impressive reliable brilliant lovely outstanding "
    "pleasant perfect delightful first-rate remarkable splendid terrific convincing satisfying beautiful "
    "clever dependable charming flawless marvelous enjoyable thoughtful polished amazing fabulous admirable "
    "refined elegant exceptional magnificent stellar praiseworthy gorgeous"
)
NEGATIVE: tuple[str, ...] = _words(
    "awful terrible poor bad cheap disappointing horrible weak shoddy dreadful mediocre flimsy unreliable "
    "annoying useless defective sloppy lousy pathetic ugly clumsy dull frustrating faulty worthless inferior "
    "crude unpleasant careless miserable appalling second-rate unusable hopeless dismal atrocious abysmal "
    "ridiculous crummy laughable"
)

BETTER: tuple[str, ...] = _words(
    "better nicer finer stronger smarter safer cleaner sturdier prettier friendlier"
)
WORSE: tuple[str, ...] = _words("worse weaker cheaper uglier clumsier duller poorer cruder flimsier sloppier")

LIKE: tuple[str, ...] = _words("love enjoy recommend treasure adore admire praise trust cherish applaud")
DISLIKE: tuple[str, ...] = _words("regret hate dislike resent despise detest loathe curse condemn distrust")

GOOD_EVENTS: tuple[str, ...] = (
    "it still works after {duration}",
    "it survived {duration} of daily use",
    "it does exactly what the box says",
    "I ordered a second one after {duration}",
    "it paid for itself within {duration}",
    "my {relative} now wants one too",
    "I would buy it again tomorrow",
    "it has not let me down in {duration}",
    "it was worth every penny",
    "my {relative} uses it every day",
)
BAD_EVENTS: tuple[str, ...] = (
    "it died after {duration}",
    "it fell apart within {duration}",
    "I sent it back after {duration}",
    "I asked for a refund",
    "it ended up in the bin",
    "it stopped working after {duration}",
    "my {relative} had to repair it twice",
    "it has been gathering dust for {duration}",
    "it was a waste of money",
    "I gave up on it after {duration}",
)

NEGATORS: tuple[str, ...] = (
    "not",
    "not at all",
    "anything but",
    "far from",
    "hardly",
    "never",
    "by no means",
    "in no way",
    "nowhere near",
    "scarcely",
)
DEGREES: tuple[str, ...] = (
    "",
    "",
    "really",
    "very",
    "truly",
    "quite",
    "rather",
    "absolutely",
    "simply",
    "just",
)

RELATIVES: tuple[str, ...] = _words(
    "brother sister mother father son daughter wife husband neighbour uncle aunt cousin colleague boss "
    "grandmother grandfather nephew niece roommate friend"
)
DURATIONS: tuple[str, ...] = (
    "a day", "a week", "a month", "a year", "two days", "two weeks", "two months", "two years", "three days",
    "three weeks", "three months", "five days", "five weeks", "six months", "ten days", "ten weeks", "one summer",
    "one winter", "a single weekend", "a few hours", "half a year", "nine months",
)  # fmt: skip
PLACES: tuple[str, ...] = _words(
    "kitchen garage office garden bedroom basement attic classroom workshop cabin studio hallway dormitory caravan"
)
TIMES: tuple[str, ...] = (
    "in spring", "last summer", "in autumn", "last winter", "in January", "in March", "in May", "in July",
    "in September", "in November", "on a Monday", "on a Friday", "on a Sunday", "before the holidays",
    "after my move", "during a sale", "for a birthday", "for a wedding", "on a whim", "by mail",
)  # fmt: skip
