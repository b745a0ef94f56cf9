"""What language a line is in, by models of sequences of four letters, learned from the texts themselves."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map, split_range
from dragoman.doctor.findings import Finding
from dragoman.doctor.letters import LetterSequences
from dragoman.doctor.parallel_text import is_copied_sentence
from dragoman.doctor.reader import Document
from dragoman.doctor.single_text import TextStatistics, shortened

ORDER = 4  # letters: each is predicted from the three before it
TABLE = 1 << 20  # counts are kept by hash; two sequences in one place do little harm
STRENGTH = 4.0  # Dirichlet prior: how many sightings the shorter context is worth
LEARNED = 20_000_000  # letters to learn from
ENOUGH = 20_000  # letters, below which too little is known of a language
FEWEST = 12  # letters of a line that can be judged
CLEAR = 20.0  # nats by which the other side's model must explain a line better
CLEAR_EACH = 0.5  # and nats a letter
APART = 0.3  # nats a letter by which a text's own model must usually be the better one: else it is one language
ODD = 4.5  # standard deviations (robust) by which a line must be spelled worse than lines of its length
COMMON = 0.5  # share of a text that its commonest words make up
FEW_COMMON = 0.15  # share of a sentence: with fewer of the commonest words it is hardly one of this language
SENTENCE = 4  # words


@dataclass(frozen=True)
class LetterModel:
    """Counts of sequences of up to four letters, and of what came before the last letter of each."""

    counts: NDArray[np.int32]  # (TABLE,) of sequences of 1 to ORDER letters
    contexts: NDArray[np.int32]  # (TABLE,) of the same without their last letter
    alphabet: int
    step: int  # every so many lines one was learned from

    @classmethod
    def learn(cls, letters: LetterSequences) -> LetterModel:
        step = max(1, len(letters.codes) // LEARNED)
        counts, contexts = np.zeros(TABLE, np.int32), np.zeros(TABLE, np.int32)
        _count(letters.codes, letters.offsets, step, counts, contexts)
        return cls(counts, contexts, int(np.bincount(letters.codes).astype(bool).sum()), step)

    def log_probs(self, letters: LetterSequences) -> NDArray[np.float64]:
        """log P of each line, which is taken out of the counts before it is judged."""
        tables = self.counts, self.contexts, self.alphabet, self.step

        def work(span: tuple[int, int]) -> Any:
            return _log_probs(letters.codes, letters.offsets, *span, *tables)

        return np.concatenate([np.zeros(0), *parallel_map(work, split_range(0, len(letters.sizes)))])


@kernel
def _step(key: Any, code: Any) -> Any:
    return (key ^ np.uint64(code)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)


@kernel
def _slot(key: Any) -> Any:
    return (key ^ (key >> np.uint64(29))) & np.uint64(TABLE - 1)


@kernel
def _count(codes: Any, offsets: Any, step: int, counts: Any, contexts: Any) -> None:
    for line in range(0, offsets.size - 1, step):
        for k in range(offsets[line] + 1, offsets[line + 1]):
            for n in range(min(ORDER, k - offsets[line] + 1)):
                key = np.uint64(n + 1)
                for i in range(k - n, k):
                    key = _step(key, codes[i])
                contexts[_slot(key)] += 1
                counts[_slot(_step(key, codes[k]))] += 1


@kernel
def _log_probs(
    codes: Any, offsets: Any, first: int, last: int, counts: Any, contexts: Any, alphabet: int, step: int
) -> Any:
    """Each letter given those before it, every order interpolated with the one below."""
    result = np.zeros(last - first)
    for line in range(first, last):
        less = 1.0 if line % step == 0 else 0.0
        for k in range(offsets[line] + 1, offsets[line + 1]):
            p = 1.0 / (alphabet + 1)
            for n in range(min(ORDER, k - offsets[line] + 1)):
                key = np.uint64(n + 1)
                for i in range(k - n, k):
                    key = _step(key, codes[i])
                seen = max(0.0, contexts[_slot(key)] - less)
                count = max(0.0, counts[_slot(_step(key, codes[k]))] - less)
                p = (count + STRENGTH * p) / (max(seen, count) + STRENGTH)
            result[line - first] += np.log(p)
    return result


# -- pairs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LanguageCheck:
    """What was found about the languages of lines."""

    findings: tuple[Finding, ...]
    remark: str = ""  # why nothing could be said


def check_pair_languages(pair: Sequence[TextStatistics]) -> LanguageCheck:
    """Lines that the other side's model explains far better than their own side's does.

    Copied sentences are known without that, and would teach each model the other language: they are left out.
    """
    kept = np.flatnonzero(~is_copied_sentence(pair[0], pair[1]))
    source, target = (side.document.select(kept) for side in pair)
    one, two = (side.letters.select(kept) for side in pair)
    if min(len(one.codes), len(two.codes)) < ENOUGH:
        return LanguageCheck(
            (), f"not checked for swapped sides and wrong languages: that takes {ENOUGH:,} letters of pairs that differ"
        )
    models = LetterModel.learn(one), LetterModel.learn(two)
    gains = _gain(one, models[1], models[0]), _gain(two, models[0], models[1])
    if max(_usual(gains[0], one), _usual(gains[1], two)) > -APART:
        return LanguageCheck((), "the two sides are too much alike to tell lines in the wrong language")
    in_source, in_target = _is_clear(gains[0], one), _is_clear(gains[1], two)
    findings = []
    for line in np.flatnonzero(in_source | in_target).tolist():
        if source.lines[line] == target.lines[line]:
            wrong = source if in_source[line] else target
            findings.append(wrong.finding("untranslated", line, repr(shortened(wrong.lines[line]))))
        elif in_source[line] and in_target[line]:
            what = f"{shortened(source.lines[line], 40)!r} beside {shortened(target.lines[line], 40)!r}"
            findings.append(source.finding("swapped", line, what))
        else:
            wrong = source if in_source[line] else target
            findings.append(wrong.finding("wrong-language", line, repr(shortened(wrong.lines[line]))))
    for document, letters, model, known in ((source, one, models[0], in_source), (target, two, models[1], in_target)):
        findings += _unlike_the_rest(document, letters, model, ~known)
    return LanguageCheck(tuple(findings))


def _gain(letters: LetterSequences, other: LetterModel, own: LetterModel) -> NDArray[np.float64]:
    """By how many nats the other side's model explains each line better than its own side's.

    From both the line is taken out: a name stands on both sides of its pair, and neither should be thought to know it.
    """
    return other.log_probs(letters) - own.log_probs(letters)


def _usual(gain: NDArray[np.float64], letters: LetterSequences) -> float:
    return float(np.median(gain / np.maximum(1, letters.sizes)))


def _is_clear(gain: NDArray[np.float64], letters: LetterSequences) -> NDArray[np.bool_]:
    return (letters.sizes >= FEWEST) & (gain > np.maximum(CLEAR, CLEAR_EACH * letters.sizes))


# -- one text ---------------------------------------------------------------------------------------------------------


def check_text_language(measured: TextStatistics) -> LanguageCheck:
    """Lines that are spelled unlike all others."""
    document, letters = measured.document, measured.letters
    if len(letters.codes) < ENOUGH:
        return LanguageCheck((), f"not checked for lines in other languages: that takes {ENOUGH:,} letters")
    model = LetterModel.learn(letters)
    return LanguageCheck(tuple(_unlike_the_rest(document, letters, model, np.ones(len(document), np.bool_))))


def _unlike_the_rest(
    document: Document, letters: LetterSequences, model: LetterModel, asked: NDArray[np.bool_]
) -> Iterator[Finding]:
    """Lines far below the others in log P a letter; how far, is measured against lines of about the same length."""
    asked = asked & (letters.sizes >= 2 * FEWEST)
    uncommon = asked & _lacks_common_words(letters)
    if int(asked.sum()) < 100 or not uncommon.any():
        return
    each = model.log_probs(letters) / np.maximum(1, letters.sizes)
    size = np.log2(np.maximum(1, letters.sizes)).astype(np.int64)
    for bucket in np.unique(size[asked]).tolist():
        lines = np.flatnonzero(asked & (size == bucket))
        low, middle, high = np.percentile(each[lines], [25, 50, 75])
        spread = max(high - low, 0.05) / 1.349
        for line in lines[uncommon[lines] & (each[lines] < middle - ODD * spread)].tolist():
            yield document.finding("odd-language", line, repr(shortened(document.lines[line])))


def _lacks_common_words(letters: LetterSequences) -> NDArray[np.bool_]:
    """Sentences with hardly any of the words that every other sentence has. Names and rare words alone do not make a
    line foreign: they stand among common ones."""
    scanned = letters.words()
    order = np.argsort(-scanned.counts, kind="stable")
    share = np.cumsum(scanned.counts[order]) / max(1, int(scanned.counts.sum()))
    common = np.zeros(len(scanned.types), np.bool_)
    common[order[: int(np.searchsorted(share, COMMON)) + 1]] = True
    words = np.diff(scanned.offsets)
    total = np.concatenate([[0], np.cumsum(common[scanned.tokens])])
    found = total[scanned.offsets[1:]] - total[scanned.offsets[:-1]]
    return (words >= SENTENCE) & (found < FEW_COMMON * words)


# -- scripts ----------------------------------------------------------------------------------------------------------

TOGETHER = {
    "HIRAGANA": "CJK",
    "KATAKANA": "CJK",
    "KATAKANA-HIRAGANA": "CJK",
    "BOPOMOFO": "CJK",
    "FULLWIDTH": "",
    "HALFWIDTH": "",
}
MAIN, RARE = 0.9, 0.01  # shares of the lines: of a text's own script, and of one that does not belong
MOSTLY = 0.8  # of a line's letters


def script_findings(measured: TextStatistics) -> Iterator[Finding]:
    """Lines mostly in a script that hardly any other line is in."""
    document, letters = measured.document, measured.letters
    script, names = _scripts(letters.codes)
    line = np.repeat(np.arange(len(document)), letters.sizes)
    table = np.bincount(line * len(names) + script, minlength=len(document) * len(names)).reshape(-1, len(names))
    table = table[:, 1:]  # without what is no letter
    if not table.size:
        return
    main, total = table.argmax(axis=1), table.sum(axis=1)
    enough = np.where(np.array(names[1:])[main] == "LATIN", FEWEST, 3)  # a name in Latin letters may stand anywhere
    usual = np.bincount(main[total > 0], minlength=len(names) - 1) / max(1, int((total > 0).sum()))
    if usual.max() < MAIN:
        return
    odd = (total >= enough) & (table.max(axis=1) > MOSTLY * total) & (usual[main] < RARE)
    for number in np.flatnonzero(odd).tolist():
        what = f"{names[1 + main[number]].lower()} letters: {shortened(document.lines[number])!r}"
        yield document.finding("odd-script", number, what)


def _scripts(codes: NDArray[np.uint32]) -> tuple[NDArray[np.int64], list[str]]:
    """The number of each character's script, and the names; number 0 is no script."""
    names = [""]
    of_code = np.zeros(int(codes.max(initial=0)) + 1, np.int64)
    present = np.flatnonzero(np.bincount(codes, minlength=1)).tolist()
    for code in present:
        first = unicodedata.name(chr(code), "").split(" ")[0]
        name = TOGETHER.get(first, first) if chr(code).isalpha() else ""
        if name not in names:
            names.append(name)
        of_code[code] = names.index(name)
    return of_code[codes], names
