"""German articles and endings, by gender (or plural) and case."""

from __future__ import annotations

CASES = ("nom", "acc", "dat")
GENDERS = ("m", "f", "n")

DEFINITE = {
    "m": {"nom": "der", "acc": "den", "dat": "dem"},
    "f": {"nom": "die", "acc": "die", "dat": "der"},
    "n": {"nom": "das", "acc": "das", "dat": "dem"},
    "pl": {"nom": "die", "acc": "die", "dat": "den"},
}
STRONG = {  # the endings of "dieser"
    "m": {"nom": "er", "acc": "en", "dat": "em"},
    "f": {"nom": "e", "acc": "e", "dat": "er"},
    "n": {"nom": "es", "acc": "es", "dat": "em"},
    "pl": {"nom": "e", "acc": "e", "dat": "en"},
}
INDEFINITE = {
    "m": {"nom": "ein", "acc": "einen", "dat": "einem"},
    "f": {"nom": "eine", "acc": "eine", "dat": "einer"},
    "n": {"nom": "ein", "acc": "ein", "dat": "einem"},
}
SINGULAR_ALIKE = {("m", "nom"), ("f", "nom"), ("n", "nom"), ("f", "acc"), ("n", "acc")}  # "der alte", "die alte", ...


def agreement(gender: str, number: str) -> str:
    """What articles and adjectives agree with: the gender, which plurals do not show."""
    return "pl" if number == "pl" else gender


def weak_ending(gender: str, number: str, case: str) -> str:
    """Of an adjective after "der", "dieser", "jeder".

    >>> weak_ending("m", "sg", "nom"), weak_ending("m", "sg", "acc"), weak_ending("f", "pl", "nom")
    ('e', 'en', 'en')
    """
    return "e" if number == "sg" and (gender, case) in SINGULAR_ALIKE else "en"


def mixed_ending(gender: str, number: str, case: str) -> str:
    """After "ein": strong where "ein" has no ending of its own.

    >>> mixed_ending("m", "sg", "nom"), mixed_ending("n", "sg", "acc"), mixed_ending("f", "sg", "dat")
    ('er', 'es', 'en')
    """
    bare = INDEFINITE[gender][case] == "ein"
    return STRONG[gender][case] if bare else weak_ending(gender, number, case)


def strong_ending(gender: str, number: str, case: str) -> str:
    """Where no article shows the case: bare plurals, and plurals after numbers."""
    return STRONG[agreement(gender, number)][case]
