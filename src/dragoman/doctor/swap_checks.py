"""Source and target exchanged: from some line on, in dev against train, or against the languages that are stated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dragoman.data.language_id import LetterModel, LetterText
from dragoman.data.languages import LANGUAGE_NAMES, languages_from_paths
from dragoman.data.tables import column_language
from dragoman.doctor.alignment_checks import best_path
from dragoman.doctor.documents import Document
from dragoman.doctor.findings import Finding

FALSE_ALARM_RATE = 1e-3  # probability that exchanged sides are reported if either order is equally likely
MAX_SAMPLE_LINES = 2000
CHUNKS, CHUNK_LINES = 24, 100
MIN_LINES = 20
MAX_LINE_GAIN = 10.0  # nats: a single line, perhaps a quotation, decides nothing
ROUNDS = 2
CHANGE_COST = 50.0  # nats of evidence required for each end of a run of exchanged pairs
Pair = Sequence[Document]


def is_mostly_positive(gains: NDArray[np.float64], tests: int = 1) -> bool:
    """Sign test: whether so many gains are above 0 that it is no accident, if either sign were equally likely.

    With several tests, the probability that one of them is wrong stays the same (Bonferroni).

    >>> is_mostly_positive(np.ones(30)), is_mostly_positive(np.array([1.0, -1.0] * 15))
    (True, False)
    """
    positive, count = int((gains > 0).sum()), int((gains != 0).sum())
    if count == 0 or 2 * positive <= count:
        return False
    tail = sum(math.comb(count, k) for k in range(positive, count + 1))
    return math.log(tail) - count * math.log(2) < math.log(FALSE_ALARM_RATE / tests)


def exchange_gains(
    models: Sequence[LetterModel], letters: Sequence[LetterText], *, leave_one_out: bool = False
) -> NDArray[np.float64]:
    """For each pair, the log of how much more probable its lines are if source and target are exchanged.  # (pairs,)"""
    gain = np.zeros(len(letters[0].sizes))
    for text, model, other in zip(letters, models, reversed(models), strict=True):
        gain += other.log_probs(text, leave_one_out=leave_one_out) - model.log_probs(text, leave_one_out=leave_one_out)
    return gain


def can_tell_apart(models: Sequence[LetterModel], letters: Sequence[LetterText]) -> bool:
    """Whether the models of two sides fit the lines that they were trained on, each left out, better than exchanged."""
    return is_mostly_positive(-exchange_gains(models, letters, leave_one_out=True))


def dev_swap_findings(train: Pair, dev: Pair) -> Iterator[Finding]:
    """Report a dev source in the language of the training target, and the other way round."""
    if min(len(train[0]), len(dev[0])) < MIN_LINES:
        return
    letters = [_sample(document) for document in train]
    models = [LetterModel.train(text) for text in letters]
    if not can_tell_apart(models, letters):
        return
    gains = exchange_gains(models, [_sample(document) for document in dev])
    if is_mostly_positive(gains):
        message = (
            f"{int((gains > 0).sum()):,} of {len(gains):,} pairs fit {train[0].name} and {train[1].name} better if "
            f"{dev[0].name} and {dev[1].name} are exchanged"
        )
        yield dev[0].finding("swapped-dev", None, message)


def _sample(document: Document) -> LetterText:
    stride = max(1, len(document) // MAX_SAMPLE_LINES)
    return LetterText.from_lines(document.lines[::stride])


# -- runs of lines ----------------------------------------------------------------------------------------------------


def find_exchanged_runs(pair: Pair) -> list[tuple[int, int]]:
    """Find runs of pairs (first and last line) with source and target exchanged; most pairs are in the right order.

    Some chunks of the text are compared with the first one. Only if one of them is exchanged, all lines are.
    """
    size = len(pair[0])
    if size < 2 * MIN_LINES:
        return []
    chunk_lines = min(CHUNK_LINES, size // 2)
    starts = np.unique(np.linspace(0, size - chunk_lines, CHUNKS).astype(int)).tolist()
    chunks = [[LetterText.from_lines(side.lines[s : s + chunk_lines]) for side in pair] for s in starts]
    models = [LetterModel.train(letters) for letters in chunks[0]]
    if not can_tell_apart(models, chunks[0]):
        return []
    gains = [exchange_gains(models, letters) for letters in chunks[1:]]
    if not any(is_mostly_positive(gain, len(gains)) for gain in gains):
        return []
    evidence = exchange_gains(models, [side.letters for side in pair])
    for _ in range(ROUNDS):  # with the models of more lines each time
        is_exchanged = _best_exchange(evidence)
        arranged = exchange_lines(pair, _runs(is_exchanged))
        letters = [side.letters for side in arranged]
        models = [LetterModel.train(text) for text in letters]
        evidence = exchange_gains(models, letters, leave_one_out=True) * np.where(is_exchanged, -1, 1)
    is_exchanged = _best_exchange(evidence)
    return _runs(is_exchanged if 2 * is_exchanged.sum() <= size else ~is_exchanged)  # the first chunk may be exchanged


def _best_exchange(evidence: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which pairs to exchange, so that the sum of their evidence is highest, with a cost for each end of a run."""
    clipped = np.clip(evidence, -MAX_LINE_GAIN, MAX_LINE_GAIN)
    path = best_path(np.stack([np.zeros(len(clipped)), np.zeros(len(clipped)), clipped], axis=1), CHANGE_COST)
    return np.asarray(path == 2)


def _runs(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """The first and last index of each run of true values.

    >>> _runs(np.array([True, True, False, True]))
    [(0, 1), (3, 3)]
    """
    ends = np.flatnonzero(np.diff(mask, prepend=False, append=False)).tolist()
    return [(first, end - 1) for first, end in zip(ends[::2], ends[1::2], strict=True)]


def exchange_lines(pair: Pair, runs: Sequence[tuple[int, int]]) -> tuple[Document, Document]:
    """Return the documents with the lines of some runs exchanged."""
    lines = [list(document.lines) for document in pair]
    for first, last in runs:
        run = slice(first, last + 1)
        lines[0][run], lines[1][run] = lines[1][run], lines[0][run]
    return replace(pair[0], lines=lines[0]), replace(pair[1], lines=lines[1])


def exchanged_run_findings(pair: Pair, runs: Sequence[tuple[int, int]]) -> Iterator[Finding]:
    """Report runs of pairs with source and target exchanged."""
    source, target = pair
    for first, last in runs:
        lines = f"lines {source.number(first)} to {source.number(last)}"
        message = (
            f"{lines} are in the language of {target.name}, and those of {target.name} in the language of this file"
        )
        yield source.finding("swapped-lines", first, message, last=last)


# -- stated languages -------------------------------------------------------------------------------------------------

# The most common words of some languages
_COMMON_WORDS = """
bg и на да се за не от че по като във това
ca de la el que els les i per en amb una del no és
cs a se na je že to v si s do ale jak by jsem
da og i at det er en til af den på jeg ikke med har
de der die und in ist das nicht ich es ein zu den mit sich auf eine er sie
el και το να του η της με που την από για δεν
en the of and to a in is that it was you for on he with as i are this
es de la que el en y a los se del las un por con una no es
et ja on ei et see kui ta oma ma mis aga
fi ja on ei se että hän oli mutta en kun hän tämä
fr de la le et les des en un une du que est pour dans il elle je pas
hr i je u se na da za su ne od koji
hu a az és hogy nem egy is ez volt de meg
id yang dan di itu dengan untuk tidak ini dari dalam akan saya
is og að er í á sem ekki það við til en
it di che la il e un a per in una non sono è del ho
lt ir yra kad su į tai bet ne iš kaip jis
lv un ir ka ar uz no par tas bet kas viņš
nl de het een van en in is dat niet te ik zijn op voor met
no og i det er en til på av ikke jeg med som har
pl i w nie na się z do to że jest a co
pt de a o que e do da em um para não uma com é os
ro de și în la a nu că o cu un pe este să
ru и в не на я что он с как это а по но
sk a sa na je že to v si s do ale ako by som
sl je in v na se da za so ne z ki
sv och i att det är en på som av jag inte med har den
tr bir ve bu da de için çok ne o ben mi
uk і в не на я що з у це як до та
vi là của và có không được một cho người trong
"""
COMMON_WORDS = {line[:2]: frozenset(line[3:].split()) for line in _COMMON_WORDS.strip().split("\n")}


def stated_language_findings(pair: Pair) -> Iterator[Finding]:
    """Report files whose names, columns or options give languages (train.de, train.en) that their texts contradict."""
    languages = _stated_languages(pair)
    if languages[0] == languages[1]:
        return
    size = min(map(len, pair))
    texts = [document.lines[: size : max(1, size // MAX_SAMPLE_LINES)] for document in pair]
    gains = np.zeros(len(texts[0]))
    for text, language, other in zip(texts, languages, reversed(languages), strict=True):
        words = [line.lower().split() for line in text]
        for name, sign in ((other, 1), (language, -1)):
            common_words = COMMON_WORDS.get(name or "", frozenset())
            gains += sign * np.array([sum(word in common_words for word in line) for line in words], np.float64)
    if is_mostly_positive(gains):
        stated = " and ".join(
            f"{document.name} should be {LANGUAGE_NAMES[language]}"
            for document, language in zip(pair, languages, strict=True)
            if language
        )
        yield pair[0].finding("swapped-names", None, f"{stated}, but the texts look exchanged")


def _stated_languages(pair: Pair) -> list[str | None]:
    """The languages by options, by the names of columns, or by the names of files."""
    languages = [document.language or column_language(document.layout.field) for document in pair]
    by_path = languages_from_paths(list(dict.fromkeys(document.layout.path for document in pair)))
    return languages if any(languages) else list(by_path)
