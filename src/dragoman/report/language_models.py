"""Texts and tables about language models: likelihoods, the floor, minimal pairs, scores of words, weights, classes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import SPECIALS, UNK, Vocab
from dragoman.evaluation.dynamic_evaluation import DynamicEvaluation
from dragoman.evaluation.floor import LanguageModelEvaluation, PointEstimate
from dragoman.evaluation.lab_reference import PhenomenonAccuracies, distance_label
from dragoman.evaluation.minimal_pairs import MinimalPairAccuracy
from dragoman.report.tables import format_cell, format_table, format_with_error, percent_cell

if TYPE_CHECKING:
    from dragoman.combine.mixture import Mixture
    from dragoman.data.brown import BrownClustering
    from dragoman.models.language_model import LanguageModel, WordScore
    from dragoman.models.loglinear.explain import Explanation, WordContribution
    from dragoman.models.score_blocks import ModelInputs

NATS_DIGITS = 4
MIN_PAIRS = 10  # minimal pairs, below which an accuracy is not meaningful
MINIMAL_PAIRS_LEGEND = f"""\
% of minimal pairs whose correct sentence is the more probable one; ties count one half. Guessing gives 50%, and 6% on
all four of a group. Distances with fewer than {MIN_PAIRS} pairs have no row."""
CLASSES_SHOWN, WORDS_SHOWN = 12, 8


@dataclass(frozen=True)
class NamedEvaluation:
    """The evaluation of one model on a text."""

    path: str
    evaluation: LanguageModelEvaluation
    carries: bool  # whether the model keeps its state from one sentence to the next
    dynamic: DynamicEvaluation | None  # settings of dynamic evaluation, if used
    units: str = "word"  # the tokens of the model

    @property
    def name(self) -> str:
        return self.path if self.dynamic is None else f"{self.path} (dynamic)"

    def as_dict(self) -> dict[str, object]:
        dynamic = {} if self.dynamic is None else {"dynamic_evaluation": asdict(self.dynamic)}
        units = {"units": self.units, "carries": self.carries}
        return {"model": self.path, **dynamic, **units, **self.evaluation.as_dict()}


def likelihood_text(result: NamedEvaluation) -> str:
    """Return all figures of one model, with explanations."""
    likelihood, floor, gap = result.evaluation.likelihood, result.evaluation.floor, result.evaluation.gap
    rows = _likelihood_rows(result)
    if floor is None:
        lines = [format_table([result.name, "", ""], rows)]
    else:
        floors = {
            "perplexity": format_with_error(*floor.perplexity),
            "perplexity words": format_with_error(*floor.perplexity_words),
            "perplexity class": format_with_error(*floor.perplexity_class),
            "bits per character": format_with_error(*floor.bits_per_character, digits=4),
        }
        cells = [(row, value, floors.get(row, ""), note) for row, value, note in rows]
        lines = [format_table([result.name, "", "floor", ""], cells)]
    per_token = format_cell(-likelihood.log_likelihood / max(1, likelihood.tokens))
    if likelihood.unknown_words:
        per_unknown = format_cell(-likelihood.log_likelihood_unknown / likelihood.unknown_words)
        unknown = f", and {per_unknown} more for each unknown word"
    else:
        unknown = "; there are no unknown words"
    lines += ["", f"{per_token} nats per token{unknown}"]
    if gap is not None:
        by_class, full = (format_cell(_format_nats(ratio)) for ratio in (gap.by_class, gap.full))
        if_unknown = f", {by_class} if unknown words are only predicted as <unk>" if likelihood.unknown_words else ""
        lines.append(f"above the floor: {full} nats per token{if_unknown}")
        lines.append("floor: the best possible values, by the true distribution, ± standard error")
    if likelihood.matched_orders:
        orders = sorted(likelihood.matched_orders.items())
        counts = [(order, count, 100 * count / likelihood.tokens) for order, count in orders]
        lines += ["", format_table(["n-grams of order", "used for tokens", "%"], counts)]
    return "\n".join(lines)


def _likelihood_rows(result: NamedEvaluation) -> list[tuple[str, object, str]]:
    """Return the name, the value and the explanation of each figure."""
    likelihood = result.evaluation.likelihood
    context = "the state is kept between them" if result.carries else "each is scored separately"
    if result.dynamic is not None:
        context = "the model learned from the sentences before"
    token = {"word": "word", "char": "character"}.get(result.units.partition(":")[0], "subword")
    tokens, characters = f"{token}s", f"{likelihood.characters:,}"
    rows: list[tuple[str, object, str]] = [
        ("sentences", likelihood.sentences, f"lines, including empty ones; {context}"),
        ("words", likelihood.words, "separated by spaces"),
        ("tokens", likelihood.tokens, f"{tokens} and sentence ends </s>: all predictions"),
        ("unknown words", likelihood.unknown_words, f"{tokens} outside the vocabulary"),
        ("log-likelihood", likelihood.log_likelihood, "sum of natural logs; an unknown word is predicted as <unk>"),
    ]
    exactly = ""
    if likelihood.unknown_words:
        exactly = "; which unknown word it is, counts as well"
        rows.append(
            ("log-likelihood unknown", likelihood.log_likelihood_unknown, "natural log of which unknown words they are")
        )
    rows += [
        ("perplexity", likelihood.perplexity, f"per word, counting </s>{exactly}"),
        ("perplexity words", likelihood.perplexity_words, "the same, but not counting </s>"),
    ]
    if likelihood.unknown_words:
        by_class = "per word, counting </s>; an unknown word is only predicted as <unk>"
        rows.append(("perplexity class", likelihood.perplexity_class, by_class))
    if token != "word":
        rows.append(("perplexity tokens", likelihood.perplexity_tokens, f"per {token}; not comparable between units"))
    elif likelihood.unknown_words:
        rows.append(("perplexity known", likelihood.perplexity_known, "per word, counting </s>, without unknown words"))
    rows += [
        ("perplexity characters", _format_digits(likelihood.perplexity_characters), "per character"),
        ("bits per character", _format_digits(likelihood.bits_per_character), f"over {characters} characters"),
    ]
    if likelihood.impossible:
        rows.append(("impossible tokens", likelihood.impossible, "with probability 0: perplexity is infinite"))
    return rows


def likelihood_table(results: Sequence[NamedEvaluation]) -> str:
    """Return several models as a table with one row each."""
    likelihoods = [result.evaluation.likelihood for result in results]
    has_units = any(result.units != "word" for result in results)
    has_unknown = any(likelihood.unknown_words for likelihood in likelihoods)
    columns: dict[str, list[object]] = {"model": [result.name for result in results]}
    if has_units:
        columns["units"] = [result.units for result in results]
    columns["perplexity"] = [likelihood.perplexity for likelihood in likelihoods]
    columns["perplexity words"] = [likelihood.perplexity_words for likelihood in likelihoods]
    legend = ["perplexity: per word, counting </s>", "perplexity words: not counting </s>"]
    if has_unknown and not has_units:
        columns["perplexity class"] = [likelihood.perplexity_class for likelihood in likelihoods]
        columns["perplexity known"] = [likelihood.perplexity_known for likelihood in likelihoods]
        legend[0] += "; which unknown word it is, counts as well"
        legend.append("perplexity class: an unknown word is only predicted as <unk>")
        legend.append("perplexity known: without unknown words")
    columns["perplexity characters"] = [_format_digits(item.perplexity_characters) for item in likelihoods]
    columns["bits/char"] = [_format_digits(likelihood.bits_per_character) for likelihood in likelihoods]
    columns["unknown"] = [likelihood.unknown_words for likelihood in likelihoods]
    columns["log-lik."] = [likelihood.log_likelihood for likelihood in likelihoods]
    if has_unknown:
        columns["log-lik. unknown"] = [likelihood.log_likelihood_unknown for likelihood in likelihoods]
    first = likelihoods[0]
    sizes = f"{first.sentences:,} sentences, {first.words:,} words, {first.characters:,} characters"
    table = format_table(list(columns), list(zip(*columns.values(), strict=True)))
    parts = [table, "\n".join([sizes, *legend, "perplexity characters: per character"])]
    if has_units:
        parts.append("models of different units can be compared by these perplexities")
    if carrying := [result.name for result in results if result.carries]:
        parts.append(f"the state is kept between sentences by {', '.join(carrying)}")
    if results[0].evaluation.floor is not None:
        parts.append(floor_table([(result.name, result.evaluation) for result in results]))
        parts.append(
            "floor: the best possible values, by the true distribution, ± standard error; nats per token above it"
        )
    return "\n\n".join(parts)


def _format_digits(value: float) -> str:
    """Format a number of which small differences matter."""
    return f"{value:.4f}" if math.isfinite(value) else format_cell(value)


def floor_table(results: Sequence[tuple[str, LanguageModelEvaluation]]) -> str:
    """Return named models and the floor: by class, then in full. Models without a floor are left out."""
    headers = ["model", "perplexity class", "floor", "nats above", "perplexity", "floor", "nats above"]
    rows: list[list[object]] = []
    for name, result in results:
        floor, gap, likelihood = result.floor, result.gap, result.likelihood
        if floor is not None and gap is not None:
            by_class = format_with_error(*floor.perplexity_class), _format_nats(gap.by_class)
            full = format_with_error(*floor.perplexity), _format_nats(gap.full)
            rows.append([name, likelihood.perplexity_class, *by_class, likelihood.perplexity, *full])
    return format_table(headers, rows)


def _format_nats(nats: PointEstimate) -> str | float:
    return format_with_error(*nats, NATS_DIGITS)


def minimal_pair_table(title: str, results: Mapping[str, PhenomenonAccuracies]) -> str:
    """Return accuracies with one row per phenomenon, and per class of distance where there are several.

    Args:
        title: header of the first column.
        results: accuracies by the name of the model.
    """
    first, *_ = results.values()
    rows: list[list[object]] = []
    for phenomenon in dict.fromkeys(name for name, _ in first):
        by_distance = [
            {minimum: accuracy for (name, minimum), accuracy in accuracies.items() if name == phenomenon}
            for accuracies in results.values()
        ]
        rows += _phenomenon_rows(phenomenon, by_distance)
    headers = [title, "distance", "pairs", *results]
    return f"{format_table(headers, rows)}\n\n{MINIMAL_PAIRS_LEGEND}"


def _phenomenon_rows(
    phenomenon: str, by_distance: Sequence[Mapping[int, MinimalPairAccuracy]]
) -> Iterator[list[object]]:
    """Yield the rows of one phenomenon; `by_distance` has the accuracies of each model."""
    totals = [sum(accuracies.values(), MinimalPairAccuracy()) for accuracies in by_distance]
    yield [phenomenon, "", totals[0].pairs, *(percent_cell(total.accuracy) for total in totals)]
    if totals[0].groups < totals[0].pairs:
        shares = [percent_cell(total.group_accuracy) for total in totals]
        yield ["  all four of a group", "", totals[0].groups, *shares]
    if len(by_distance[0]) > 1:
        for minimum, accuracy in sorted(by_distance[0].items()):
            if accuracy.pairs >= MIN_PAIRS:
                shares = [percent_cell(accuracies[minimum].accuracy) for accuracies in by_distance]
                yield ["", f"{distance_label(minimum)} words between", accuracy.pairs, *shares]


def sentence_scores(model: LanguageModel, corpus: Corpus, base: float) -> str:
    """Return the log-probability of each sentence, one per line; `base` is the natural log of the base."""
    return "\n".join(f"{log_prob:.6f}" for log_prob in (model.sentence_log_probs(corpus) / base).tolist())


def word_scores(model: LanguageModel, corpus: Corpus, base: float, *, by_token: bool = False) -> str:
    """Return the log-probability of each word or token and `</s>`, one per line, with empty lines between sentences."""
    sentences = []
    for *words, end in model.score_corpus_tokens(corpus) if by_token else model.score_corpus_words(corpus):
        rows = [_word_row(word, model.vocab, base) for word in words]
        sentences.append("\n".join([*rows, f"{end.word}\t{end.log_prob / base:.6f}"]))
    return "\n\n".join(sentences)


def _word_row(word: WordScore, vocab: Vocab, base: float) -> str:
    log_prob, spelling = word.log_prob / base, word.log_prob_unknown / base
    row = f"{word.word}\t{log_prob + spelling:.6f}"
    if vocab.id(word.word) != UNK or word.word == SPECIALS[UNK] or not spelling:
        return row
    return f"{row}\t{SPECIALS[UNK]}\t{log_prob:.6f}\t{spelling:.6f}"


def sentence_columns(inputs: ModelInputs, base: float, *, is_terminal: bool) -> str:
    """Return the log-probability of each sentence with one column per model: a table on a terminal, else TSV."""
    columns = [(model.sentence_log_probs(corpus) / base).tolist() for model, corpus in inputs.values()]
    rows = [[f"{log_prob:.6f}" for log_prob in row] for row in zip(*columns, strict=True)]
    if is_terminal:
        return format_table(list(inputs), rows)
    return "\n".join("\t".join(row) for row in [list(inputs), *rows])


def format_explanation(explanation: Explanation) -> str:
    """Return two tables: the parts of each word's score, and the words with the highest weights of each feature."""
    words = explanation.words
    rows: list[list[object]] = [
        ["probability", *(f"{word.prob:.4f}" for word in words)],
        ["score", *(_rounded(word.score) for word in words)],
        ["  bias", *(_rounded(word.bias) for word in words)],
    ]
    for number, feature in enumerate(explanation.features):
        factor = f" × {feature.value:g}" if feature.value != 1 else ""
        amounts = (_rounded(word.contributions[number].amount) for word in words)
        rows.append([f"  {feature.feature}{factor}", *amounts])
    prefix = f"{explanation.prefix} ..." if explanation.prefix else "..."
    parts = [format_table([prefix, *(word.word for word in words)], rows)]
    if explanation.features:
        weights = [
            [feature.feature, _format_words(feature.up), _format_words(feature.down)]
            for feature in explanation.features
        ]
        parts.append(format_table(["feature", "highest weights", "lowest weights"], weights))
    if explanation.unseen:
        parts.append("not in the training text: " + ", ".join(explanation.unseen))
    return "\n\n".join(parts)


def _format_words(weights: Sequence[WordContribution]) -> str:
    return ", ".join(f"{weight.word} {_rounded(weight.amount):.2f}" for weight in weights) or "-"


def _rounded(amount: float | None) -> float | None:
    """Round to two digits, without -0.00."""
    return None if amount is None else round(amount, 2) + 0.0


def format_weights(mixture: Mixture, names: Sequence[str]) -> str:
    """Return a line with weight and name for each model of a mixture."""
    return "\n".join(f"{weight:.6f}\t{name}" for name, weight in zip(names, mixture.weights.tolist(), strict=True))


def format_bucket_weights(mixture: Mixture, names: Sequence[str], dev: Corpus) -> str:
    """Return a table with a row for all contexts and one for each bucket: its dev tokens and weights."""
    labels = mixture.bucketing.labels
    tokens = np.bincount(mixture.bucketing.buckets_of_corpus(dev), minlength=len(labels)).tolist()
    buckets = zip(labels, tokens, mixture.bucket_weights, strict=True)
    rows = [
        [label, str(count), *(f"{weight:.6f}" for weight in weights.tolist())]
        for label, count, weights in [("all", dev.num_tokens, mixture.weights), *buckets]
    ]
    return "\n".join("\t".join(row) for row in [["bucket", "tokens", *names], *rows])


def format_classes(clustering: BrownClustering) -> str:
    """Return a table of the most frequent word classes, in the order of the tree.

    The frequency of a class is that of its words without the most frequent one: a class of `the` and a few rare words
    would not be informative.
    """
    classes, counts = clustering.class_of, clustering.counts
    tokens, highest = np.zeros((2, len(clustering.paths)), np.int64)
    np.add.at(tokens, classes, counts)
    np.maximum.at(highest, classes, counts)
    shared = (tokens - highest)[len(SPECIALS) :]
    chosen = np.sort(np.argsort(-shared, kind="stable")[:CLASSES_SHOWN]) + len(SPECIALS)
    members = {clustering.paths[number]: clustering.members[number] for number in chosen}
    # With a space after them, bits are not aligned as numbers.
    rows = [[f"{path} ", len(words), " ".join(words[:WORDS_SHOWN])] for path, words in members.items()]
    return format_table(["bits ", "words", "most frequent words"], rows)
