"""What `dragoman evaluate` tells of translators, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dragoman.evaluation.alignment import AlignmentCounts
from dragoman.evaluation.significance import BaselineComparison
from dragoman.evaluation.translator import TranslatorEvaluation
from dragoman.report.tables import format_table
from dragoman.report.translation import lengths_section, paired_section


class SearchDescription(NamedTuple):
    """How translations were searched for."""

    beam_size: int
    length: str
    coverage: float = 0.0
    shortlist: bool = False  # whether words were looked for in the shortlist of each sentence alone
    unknowns_replaced: bool = False  # whether unknown words were

    def __str__(self) -> str:
        coverage = f", coverage penalty {self.coverage:g}" if self.coverage else ""
        shortlist = ", by shortlists (perplexities are by all words)" if self.shortlist else ""
        replaced = ", unknown words replaced" if self.unknowns_replaced else ""
        return f"beam size {self.beam_size}, length {self.length}{coverage}{shortlist}{replaced}"


def evaluation_text(
    named: Mapping[str, TranslatorEvaluation],
    comparisons: Sequence[BaselineComparison],
    search: SearchDescription,
    *,
    by_length: bool,
) -> str:
    """One translator line by line; several as a table, with what sets them apart from the first."""
    parts = [_alone(*next(iter(named.items())), search) if len(named) == 1 else _side_by_side(named, search)]
    parts += [paired_section(pair.names, (pair.bleu, pair.chrf)).as_text() for pair in comparisons]
    if by_length:
        parts.append(lengths_section({name: own.by_length for name, own in named.items()}).as_text())
    return "\n\n".join(parts)


def _alone(name: str, own: TranslatorEvaluation, search: SearchDescription) -> str:
    scores = own.scores
    floor = "" if own.floor is None else f"; the true distribution has {own.floor.value:,.2f}"
    unknown = f"the same, if {own.reference_likelihood.unknown:,} unknown units cost their class alone"
    rows: list[tuple[str, object, str]] = [
        ("sentences", scores.sentences, str(search)),
        ("BLEU", scores.bleu, scores.signature),
        ("chrF", scores.chrf, scores.chrf_signature),
        ("length ratio", f"{scores.length_ratio:.3f}", "words by words of the references"),
        ("exactly right", f"{100 * own.edits.exact_match:.1f}%", "translations that are the reference itself"),
        ("word error rate", f"{100 * own.edits.word_error_rate:.1f}%", "words to put in, leave out or replace"),
        ("repeated words", own.edits.repeated, "more often than in the reference, after the first"),
        ("dropped words", own.edits.dropped, f"of {own.edits.words:,} in the references, with nothing in their place"),
        *_strange(own),
        ("perplexity", own.perplexity, f"of the references, a word or sentence end{floor}"),
        ("perplexity class", own.perplexity_class, unknown),
        ("perplexity characters", f"{own.reference_likelihood.perplexity_characters:.4f}", "a character"),
        ("sentences a second", len(own.translations) / own.seconds, f"{own.seconds:,.1f} seconds"),
    ]
    if scores.empty or own.unfinished:
        rows.append(("empty", scores.empty, f"translations without words; {own.unfinished:,} were cut off"))
    if own.alignment is not None:
        share = f"{_percent(own.alignment)}%"
        rows.append(("alignment error", share, "of the attention, beside the true alignment of the references"))
    for error, meaning in _meanings(own.errors).items():
        rows.append((f"{error} errors", own.errors[error], meaning))
    return format_table([name, "", ""], rows)


def _strange(own: TranslatorEvaluation) -> list[tuple[str, object, str]]:
    if own.unknown_word_recall is None or not own.unknown_word_recall.words:
        return []
    told = f"of {own.unknown_word_recall.words:,} in the references that it does not know"
    return [("unknown words found", own.unknown_word_recall.recalled, told)]


def _meanings(errors: Mapping[str, int]) -> dict[str, str]:
    if not errors:
        return {}
    total = max(1, sum(errors.values()))
    search, model = (f"{100 * errors[error] / total:.1f}%" for error in ("search", "model"))
    return {
        "search": f"{search}: the reference scores better than what was found",
        "model": f"{model}: what was found scores as well or better; {errors['none']:,} are as the reference",
    }


def _side_by_side(named: Mapping[str, TranslatorEvaluation], search: SearchDescription) -> str:
    results = list(named.values())
    first = results[0]
    columns: dict[str, list[object]] = {
        "system": list(named),
        "BLEU": [own.scores.bleu for own in results],
        "chrF": [own.scores.chrf for own in results],
        "length ratio": [f"{own.scores.length_ratio:.3f}" for own in results],
        "exact, %": [f"{100 * own.edits.exact_match:.1f}" for own in results],
        "word errors, %": [f"{100 * own.edits.word_error_rate:.1f}" for own in results],
        "perplexity": [own.perplexity for own in results],
        "characters": [f"{own.reference_likelihood.perplexity_characters:.4f}" for own in results],
        "sentences/s": [len(own.translations) / own.seconds for own in results],
    }
    if any(own.alignment is not None for own in results):
        columns["alignment error, %"] = [_percent(own.alignment) for own in results]
    if first.errors:
        columns["search errors"] = [own.errors["search"] for own in results]
        columns["model errors"] = [own.errors["model"] for own in results]
    floor = "" if first.floor is None else f"; perplexity of the true distribution: {first.floor.value:,.2f}"
    told = f"{first.scores.sentences:,} sentences, {search}{floor}"
    body = format_table(list(columns), list(zip(*columns.values(), strict=True)))
    signatures = f"BLEU|{first.scores.signature}\nchrF2|{first.scores.chrf_signature}"
    return f"{body}\n\n{told}\n{signatures}"


def _percent(counts: AlignmentCounts | None) -> str | None:
    return None if counts is None else f"{100 * counts.error_rate:.1f}"
