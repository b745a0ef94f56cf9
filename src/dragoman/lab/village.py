"""Small talk from a village: a toy text, drawn from a few patterns.

It has what a first look at language models needs: word order, agreement between subject and verb, words that go with
each other, and names that are made up as it goes, so that a test text has words no training text had.
"""

from __future__ import annotations

import numpy as np

SINGULAR = ("farmer", "baker", "teacher", "child", "doctor", "miller", "neighbour", "shepherd")
PLURAL = ("farmers", "bakers", "teachers", "children", "doctors", "millers", "neighbours", "shepherds")
ACTIONS = {  # singular form, plural form, what it is done to
    "eats": ("eat", ("bread", "soup", "an apple", "cheese", "fish", "rice")),
    "sells": ("sell", ("flour", "bread", "wool", "milk", "honey", "a horse")),
    "reads": ("read", ("a letter", "the news", "an old book", "a poem", "a map")),
    "feeds": ("feed", ("the cows", "the sheep", "a dog", "the hens", "a grey cat")),
    "mends": ("mend", ("the fence", "a roof", "the bridge", "an old coat", "the cart")),
    "sees": ("see", ("the river", "a storm", "the mountains", "a fox", "the church")),
}
SAYINGS = {"says": "say", "thinks": "think", "hopes": "hope", "knows": "know"}
PLACES = ("in the village", "near the river", "at the market", "behind the mill", "on the hill", "in the old town")
TIMES = ("today", "every morning", "in winter", "on sunday", "after the rain", "before noon")
QUALITIES = ("old", "young", "tired", "happy", "clever", "poor", "kind", "tall")
SYLLABLES = ("ba", "do", "ka", "li", "mo", "na", "pe", "ri", "su", "ta", "vi", "zo")


def village_text(sentences: int, seed: int = 1) -> list[str]:
    """Draw sentences; the same ones for the same seed.

    >>> len(village_text(3)), village_text(2, seed=5) == village_text(2, seed=5)
    (3, True)
    """
    draw = _Draw(np.random.default_rng(seed))
    return [f"{draw.sentence()} ." for _ in range(sentences)]


class _Draw:
    """The patterns, each a method that draws one phrase."""

    def __init__(self, random: np.random.Generator):
        self.random = random

    def sentence(self) -> str:
        said = self.chance(0.25)
        clause = self.clause()
        if said:
            plural = self.chance(0.4)
            saying = self.one(tuple(SAYINGS))
            clause = f"{self.subject(plural)} {SAYINGS[saying] if plural else saying} that {clause}"
        if self.chance(0.3):
            return f"{self.one(TIMES)} {clause}"
        return f"{clause} {self.one(TIMES)}" if self.chance(0.3) else clause

    def clause(self) -> str:
        plural = self.chance(0.4)
        verb = self.one(tuple(ACTIONS))
        base, objects = ACTIONS[verb]
        who, does = self.subject(plural), base if plural else verb
        place = f" {self.one(PLACES)}" if self.chance(0.4) else ""
        return f"{who} {does} {self.one(objects)}{place}"

    def subject(self, plural: bool) -> str:
        if not plural and self.chance(0.15):
            return self.name()
        noun = self.one(PLURAL if plural else SINGULAR)
        quality = f"{self.one(QUALITIES)} " if self.chance(0.4) else ""
        article = "some" if plural and self.chance(0.3) else "the"
        return f"{article} {quality}{noun}"

    def name(self) -> str:
        return "".join(self.one(SYLLABLES) for _ in range(2 + self.chance(0.5)))

    def one(self, choices: tuple[str, ...]) -> str:
        """One of several, the earlier ones more often: Zipf's law in small."""
        weights = 1 / np.arange(1, len(choices) + 1)
        return choices[self.random.choice(len(choices), p=weights / weights.sum())]

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)
