"""What a translator makes of text that its training text does not have: addresses, emoji, capitals, single words.

    python benchmarks/robustness.py MODEL --test test.de test.en [--lines 500] [--words 10000] [--json FILE]

Items: each line gets an item at a random place between its words; an item is copied if the translation has it as it is.
Replaced words: in lines with a word of three or more letters, or a number of three or more digits, that both sides have once,
it is a URL or another number on both sides; the score says how well the rest is translated, and where the item stands.
Capitals: the score of the test text in other capitals, against the same references. Brackets: its score with brackets that the
translator does not know around some words; those of the translation are not scored. Repetition: the score with and
without the block, and how many translations of single words reach the length limit: words of the test text, and tokens
of the source vocabulary; if there are too few, also two of them as one. "without" is `--verbatim` for items and
capitals. A file of both sides, such as a TSV file, is given once.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from time import perf_counter

from dragoman.data.long_numbers import Number, find_numbers
from dragoman.data.scanner import split_words
from dragoman.data.segmenters import SPACE_MARK
from dragoman.data.vocabulary import SPECIALS
from dragoman.evaluation.task_scores import score_task
from dragoman.evaluation.translation_metrics import MetricStatistics
from dragoman.models.loading import load_translator
from dragoman.models.translation import BaseTranslator, SearchKwargs
from dragoman.report.tables import format_table
from texts_and_results import processor, write_json

ITEMS = {
    "URL": ["https://example.org/a?b=C", "www.example.com", "http://x.de/~tom/index_1.html", "example.org"],
    "e-mail": ["tom.smith@example.org", "info@x-y.de", "a_b+c@mail.example.co.uk"],
    "placeholder": ["{0}", "{name}", "%s", "%(count)d", "${HOME}"],
    "code": ["`git log -1`", "foo_bar()", "--verbose", "/etc/hosts", "notes.txt"],
    "emoji": ["😀", "👩‍💻", "❤️", "🇩🇪"],
    "unknown characters": ["Москва", "ŁÓDŹ☃", "٣٤", "ქართული"],
    "number": ["1984", "4711", "365", "20517", "1.250", "17"],
}


def capitalize(line: str) -> str:
    return " ".join(word[:1].upper() + word[1:] for word in line.split(" "))


def put_in_brackets(line: str, random: Random) -> str:
    words = split_words(line)
    first = random.randrange(len(words))
    last = random.randrange(first, len(words))
    words[first] = f"⟦{words[first]}"
    words[last] = f"{words[last]}⟧"
    return " ".join(words)


def remove_brackets(text: str) -> str:
    return re.sub("⟦ ?| ?⟧", "", text)


def translate(model: BaseTranslator, lines: Sequence[str], **options: bool) -> list[str]:
    return [translation.text for translation in model.translate(lines, **SearchKwargs(**options))]  # type: ignore[typeddict-item]


def has_item(text: str, item: str) -> bool:
    """Whether a translation has an item as it is; a number may have other separators."""
    value = Number(item, 0).value if item[0].isdecimal() else None
    return item in text or any(number.value == value for number in find_numbers(text))


def copied_share(model: BaseTranslator, lines: Sequence[str], items: Sequence[str], random: Random) -> list[float]:
    """Return the share of items in the translations, without copying and with it."""
    texts, inserted = list[str](), list[str]()
    for line in lines:
        words, item = split_words(line), random.choice(items)
        place = random.randint(0, len(words))
        texts.append(" ".join([*words[:place], item, *words[place:]]))
        inserted.append(item)
    shares = []
    for verbatim in (True, False):
        translations = translate(model, texts, verbatim=verbatim)
        shares.append(sum(map(has_item, translations, inserted)) / len(texts))
    return shares


def replace_shared(
    lines: Sequence[str], references: Sequence[str], pattern: str, new: Callable[[], str], count: int
) -> list[tuple[str, str, str]]:
    """Return pairs of lines in which one word that both sides have once is another one, and that word."""
    replaced = []
    for pair in zip(lines, references, strict=True):
        first, second = (re.findall(pattern, line) for line in pair)
        shared = [word for word in first if first.count(word) == 1 == second.count(word)]
        if shared and len(replaced) < count:
            item, word = new(), rf"(?<!\w){shared[0]}(?!\w)"
            source, target = (re.sub(word, item, line) for line in pair)
            replaced.append((source, target, item))
    return replaced


def replaced_words(
    model: BaseTranslator, lines: Sequence[str], references: Sequence[str], random: Random, count: int
) -> dict[str, list[float]]:
    """Return the number of lines, and without and with copying the share of the items that are copied, and the score."""
    kinds: dict[str, tuple[str, Callable[[], str]]] = {
        "URL instead of a word": (r"(?<!\w)[^\W\d_]{3,}(?!\w)", lambda: "https://x.org/a?b=c"),
        "other number": (r"(?<![\w.,:])\d{3,}(?![\w.,:]*\d)", lambda: str(random.randint(100, 9999))),
    }
    results = {}
    for name, (pattern, new) in kinds.items():
        if not (triples := replace_shared(lines, references, pattern, new, count)):
            continue
        sources, targets, items = map(list, zip(*triples, strict=True))
        values: list[float] = [len(items)]
        for verbatim in (True, False):
            texts = translate(model, sources, verbatim=verbatim)
            share = sum(item in text for item, text in zip(items, texts, strict=True)) / len(items)
            bleu = score_task(texts, targets, sources, model.target, tokenised=model.target.tokenised).of("BLEU").score
            values += [share, bleu]
        results[name] = values
    return results


def runaways(model: BaseTranslator, words: Sequence[str], *, allow_repetition: bool) -> int:
    """Return how many translations of single words reach the length limit."""
    translations = model.translate(words, allow_repetition=allow_repetition)
    return sum(not translation.finished for translation in translations)


def single_words(model: BaseTranslator, lines: Sequence[str], count: int, random: Random) -> list[str]:
    """Return words of the source side: of the test text, and from the vocabulary, also pieces of words."""
    known = [token.replace(SPACE_MARK, "") for token in model.source.vocab.tokens if token not in SPECIALS]
    words = sorted({word for line in lines for word in split_words(line)} | {word for word in known if word.strip()})
    compounds = [first + second for first, second in zip(words, random.sample(words, len(words)), strict=True)]
    return random.sample(words, min(count, len(words))) + compounds[: max(0, count - len(words))]


def read_pairs(files: Sequence[Path], lines: int | None) -> tuple[list[str], list[str]]:
    texts = [path.read_text(encoding="utf-8").splitlines()[:lines] for path in files]
    if len(files) == 1:
        pairs = [line.split("\t") for line in texts[0]]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return texts[0], texts[1]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument(
        "--test", nargs="+", type=Path, required=True, help="test files: source and target, or one file"
    )
    parser.add_argument("--lines", type=int, help="only the first lines of the test text")
    parser.add_argument("--item-lines", type=int, default=200, help="lines that items are put into, for each class")
    parser.add_argument("--words", type=int, default=10_000, help="number of single words; 0: skip")
    parser.add_argument("--only-replaced", action="store_true", help="only the lines with replaced words")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    return parser.parse_args()


def compare_cases(
    score: Callable[..., MetricStatistics], lines: Sequence[str], random: Random
) -> tuple[dict[str, list[float]], str]:
    """Return the scores of the test text in several cases, without and with the feature, and the name of the metric."""

    def random_case(line: str) -> str:
        return "".join(letter.upper() if random.random() < 0.5 else letter.lower() for letter in line)

    cases: dict[str, Callable[[str], str]] = {
        "plain": str,
        "ALL CAPS": str.upper,
        "lower case": str.lower,
        "Title Case": capitalize,
        "rAnDoM case": random_case,
        "⟦brackets⟧": lambda line: put_in_brackets(line, random),
    }
    scores, metric = dict[str, list[float]](), ""
    for name, change in cases.items():
        texts = [change(line) for line in lines]
        pair = score(texts, verbatim=True), score(texts)
        scores[name], metric = [result.score for result in pair], pair[0].metric.name
    return scores, metric


def main() -> None:
    arguments = parse_arguments()
    start, random = perf_counter(), Random(arguments.seed)
    model = load_translator(arguments.model)
    lines, references = read_pairs(arguments.test, arguments.lines)

    def score(texts: Sequence[str], **options: bool) -> MetricStatistics:
        hypotheses = [remove_brackets(text) for text in translate(model, texts, **options)]
        return score_task(hypotheses, references, lines, model.target, tokenised=model.target.tokenised).statistics[0]

    replaced = replaced_words(model, lines, references, random, 2 * arguments.item_lines)
    rows = [
        [name, f"{n}", f"{100 * share:.1f}%", f"{100 * share_with:.1f}%", f"{bleu:.2f}", f"{bleu_with:.2f}"]
        for name, (n, share, bleu, share_with, bleu_with) in replaced.items()
    ]
    print(format_table(["replaced words", "lines", "copied without", "with", "BLEU without", "with"], rows), flush=True)
    if arguments.only_replaced:
        return
    item_lines = lines[: arguments.item_lines]
    shares = {name: copied_share(model, item_lines, items, random) for name, items in ITEMS.items()}
    rows = [[name, *(f"{100 * share:.1f}%" for share in pair)] for name, pair in shares.items()]
    print(f"\n{format_table(['items copied', 'without', 'with'], rows)}", flush=True)
    scores, metric = compare_cases(score, lines, random)
    rows = [[name, *(f"{value:.2f}" for value in values)] for name, values in scores.items()]
    print(f"\n{format_table([f'{metric} of the test text', 'without', 'with'], rows)}", flush=True)
    repetition = [score(lines, allow_repetition=True).score, scores["plain"][1]]
    print(f"\n{metric} without the repetition block {repetition[0]:.2f}, with it {repetition[1]:.2f}", flush=True)
    limit_reached = []
    if arguments.words:
        words = single_words(model, lines, arguments.words, random)
        limit_reached = [runaways(model, words, allow_repetition=allowed) for allowed in (True, False)]
        counts = f"{limit_reached[0]} without the block, {limit_reached[1]} with it"
        print(f"{len(words):,} single words, translations that reach the length limit: {counts}")
    print(f"\nseed {arguments.seed}; {perf_counter() - start:.0f} s; processor: {processor()}")
    results = {"replaced": replaced, "copied": shares, "scores": scores, "repetition": repetition}
    write_json(arguments.json, {**results, "limit_reached": limit_reached})


if __name__ == "__main__":
    main()
