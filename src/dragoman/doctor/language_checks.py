"""Lines in the wrong language or script, by letter models trained on the texts themselves."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.data.language_id import LetterModel, LetterText
from dragoman.doctor.documents import Document
from dragoman.doctor.findings import CheckResult, Finding
from dragoman.doctor.pair_checks import is_copied_sentence

MIN_TEXT_LETTERS = 20_000  # a letter model trained on less is unreliable
MIN_LINE_LETTERS = 12  # shorter lines are not checked
MIN_GAIN = 20.0  # nats by which the other language's model must be better
MIN_GAIN_PER_LETTER = 0.5  # nats
MIN_LANGUAGE_DISTANCE = 0.3  # nats per letter; if the median difference is smaller, both sides are one language
OUTLIER_DEVIATIONS = 4.5  # robust standard deviations below lines of the same length
MIN_LINES_FOR_OUTLIERS = 100
COMMON_WORDS_SHARE = 0.5  # share of a text that its most common words make up
MIN_COMMON_WORDS = 0.15  # a sentence with a smaller share of common words may be in another language
MIN_SENTENCE_WORDS = 4


def check_pair_languages(pair: Sequence[Document]) -> CheckResult:
    """Find lines to which the other side's letter model gives a much higher probability than that of their side.

    Copied sentences are reported anyway, and would train each model on the other language: they are left out.
    """
    lines = np.flatnonzero(~is_copied_sentence(pair[0], pair[1]))
    documents = [document.select(lines) for document in pair]
    texts = [document.letters.select(lines) for document in pair]
    name = pair[0].name
    if min(len(text.codes) for text in texts) < MIN_TEXT_LETTERS:
        remark = f"not checked for swapped sides and wrong languages: needs {MIN_TEXT_LETTERS:,} letters of pairs"
        return CheckResult(remarks=(f"{name}: {remark} with two different sides",))
    models = [LetterModel.train(text) for text in texts]
    is_wrong, medians = [], []
    for text, model, other in zip(texts, models, reversed(models), strict=True):
        # A line is left out of both models: a name is on both sides of its pair, and neither model should know it.
        gain = other.log_probs(text, leave_one_out=True) - model.log_probs(text, leave_one_out=True)  # (lines,)
        is_clear = gain > np.maximum(MIN_GAIN, MIN_GAIN_PER_LETTER * text.sizes)
        is_wrong.append((text.sizes >= MIN_LINE_LETTERS) & is_clear)
        medians.append(float(np.median(gain / np.maximum(1, text.sizes))))
    if max(medians) > -MIN_LANGUAGE_DISTANCE:
        return CheckResult(remarks=(f"{name}: the two sides are too similar to find lines in the wrong language",))
    findings = list(_wrong_language_findings(documents, is_wrong))
    for document, text, model, known in zip(documents, texts, models, is_wrong, strict=True):
        findings += _outlier_findings(document, text, model, ~known)
    return CheckResult(tuple(findings))


def _wrong_language_findings(documents: Sequence[Document], is_wrong: Sequence[NDArray[np.bool_]]) -> Iterator[Finding]:
    """Findings for pairs with one or both sides in the wrong language."""
    source, target = documents
    for line in np.flatnonzero(is_wrong[0] | is_wrong[1]).tolist():
        wrong = source if is_wrong[0][line] else target
        if source.lines[line] == target.lines[line]:
            yield wrong.finding("untranslated", line, wrong.quoted(line))
        elif is_wrong[0][line] and is_wrong[1][line]:
            yield source.finding("swapped", line, f"{source.quoted(line, 40)} with {target.quoted(line, 40)}")
        else:
            yield wrong.finding("wrong-language", line, wrong.quoted(line))


def check_text_language(document: Document) -> CheckResult:
    """Find lines that are spelled differently from all others."""
    letters = document.letters
    if len(letters.codes) < MIN_TEXT_LETTERS:
        remark = f"not checked for lines in other languages: needs {MIN_TEXT_LETTERS:,} letters"
        return CheckResult(remarks=(f"{document.name}: {remark}",))
    model = LetterModel.train(letters)
    return CheckResult(tuple(_outlier_findings(document, letters, model, np.ones(len(document), np.bool_))))


def _outlier_findings(
    document: Document, text: LetterText, model: LetterModel, checked: NDArray[np.bool_]
) -> Iterator[Finding]:
    """Find lines with a much lower log P per letter than lines of about the same length."""
    checked = checked & (text.sizes >= 2 * MIN_LINE_LETTERS)
    uncommon = checked & _lacks_common_words(text)
    if int(checked.sum()) < MIN_LINES_FOR_OUTLIERS or not uncommon.any():
        return
    mean_log_probs = model.log_probs(text, leave_one_out=True) / np.maximum(1, text.sizes)
    buckets = np.log2(np.maximum(1, text.sizes)).astype(np.int64)
    for bucket in np.unique(buckets[checked]).tolist():
        lines = np.flatnonzero(checked & (buckets == bucket))
        low, median, high = np.percentile(mean_log_probs[lines], [25, 50, 75])
        deviation = max(high - low, 0.05) / 1.349  # of a normal distribution with these quartiles
        limit = median - OUTLIER_DEVIATIONS * deviation
        for line in lines[uncommon[lines] & (mean_log_probs[lines] < limit)].tolist():
            yield document.finding("odd-language", line, document.quoted(line))


def _lacks_common_words(text: LetterText) -> NDArray[np.bool_]:
    """Sentences with few of the words that are common in the text.  # (lines,)

    Names and rare words do not make a line foreign, because they occur among common ones.
    """
    scanned = text.words()
    order = np.argsort(-scanned.counts, kind="stable")
    cumulative = np.cumsum(scanned.counts[order]) / max(1, int(scanned.counts.sum()))
    is_common = np.zeros(len(scanned.types), np.bool_)
    is_common[order[: int(np.searchsorted(cumulative, COMMON_WORDS_SHARE)) + 1]] = True
    words = np.diff(scanned.offsets)
    totals = np.concatenate([[0], np.cumsum(is_common[scanned.tokens])])
    common_words = totals[scanned.offsets[1:]] - totals[scanned.offsets[:-1]]
    return (words >= MIN_SENTENCE_WORDS) & (common_words < MIN_COMMON_WORDS * words)


SCRIPT_GROUPS = {
    **dict.fromkeys(("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "BOPOMOFO"), "CJK"),
    **dict.fromkeys(("FULLWIDTH", "HALFWIDTH"), ""),
}
MAIN_SCRIPT_SHARE = 0.9  # of the lines; without such a script nothing is reported
RARE_SCRIPT_SHARE = 0.01  # of the lines; scripts of more lines are not reported
MIN_SCRIPT_SHARE = 0.8  # of a line's letters
MIN_OTHER_LETTERS = 3  # letters of a line in another script; of Latin letters, `MIN_LINE_LETTERS`


def script_findings(document: Document) -> Iterator[Finding]:
    """Find lines mostly in a script that hardly any other line is in."""
    letters = document.letters
    scripts, names = _scripts(letters.codes)
    line = np.repeat(np.arange(len(document)), letters.sizes)
    counts = np.bincount(line * len(names) + scripts, minlength=len(document) * len(names)).reshape(-1, len(names))
    counts = counts[:, 1:]  # (lines, scripts) without characters that have no script
    if not counts.size:
        return
    main, total = counts.argmax(axis=1), counts.sum(axis=1)
    # names in Latin letters may occur in any text
    min_letters = np.where(np.array(names[1:])[main] == "LATIN", MIN_LINE_LETTERS, MIN_OTHER_LETTERS)
    shares = np.bincount(main[total > 0], minlength=len(names) - 1) / max(1, int((total > 0).sum()))
    if shares.max() < MAIN_SCRIPT_SHARE:
        return
    is_mostly_one = (total >= min_letters) & (counts.max(axis=1) > MIN_SCRIPT_SHARE * total)
    yield from document.findings(
        "odd-script",
        is_mostly_one & (shares[main] < RARE_SCRIPT_SHARE),
        lambda line: f"{names[1 + main[line]].lower()} letters: {document.quoted(line)}",
    )


def _scripts(codes: NDArray[np.uint32]) -> tuple[NDArray[np.int64], list[str]]:
    """The index of each character's script, and the script names; index 0 means no script."""
    names = [""]
    script_of_code = np.zeros(int(codes.max(initial=0)) + 1, np.int64)
    for code in np.flatnonzero(np.bincount(codes, minlength=1)).tolist():
        first_word = unicodedata.name(chr(code), "").split(" ")[0]
        name = SCRIPT_GROUPS.get(first_word, first_word) if chr(code).isalpha() else ""
        if name not in names:
            names.append(name)
        script_of_code[code] = names.index(name)
    return script_of_code[codes], names
