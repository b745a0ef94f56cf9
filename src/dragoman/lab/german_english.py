"""The laboratory's grammar: German and English sentences with one meaning, drawn from rules written by hand.

Everything about it is invented: it is no sample of either language. What it has is truth: the exact probability of
every sentence, its tree, and which words translate each other.
"""

from __future__ import annotations

from functools import cache

from dragoman.lab.clauses import sentences
from dragoman.lab.lexical import lexical
from dragoman.lab.noun_phrases import noun_phrases
from dragoman.lab.synchronous import Builder, Grammar
from dragoman.lab.words import Words


@cache
def grammar(words: Words = Words()) -> Grammar:
    """All rules, from whole sentences to single words."""
    b = Builder()
    sentences(b, words)
    noun_phrases(b, words)
    lexical(b, words)
    return b.grammar("ROOT")
