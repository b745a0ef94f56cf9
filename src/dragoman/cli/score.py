"""dragoman score"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli import options
from dragoman.cli.messages import info, warn_if_mostly_unknown
from dragoman.cli.pair_options import LinePairs, SrcField, read_pairs
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.corpus import Corpus
    from dragoman.data.vocabulary import Vocab
    from dragoman.evaluation.surprisal import SurprisalTable
    from dragoman.models.language_model import LanguageModel, WordScore

WIDEST = 10_000  # columns of a table, on however narrow a terminal
Readings = dict[str, tuple["LanguageModel", "Corpus"]]  # each model with the text as it reads it


def score(
    models: options.Models,
    text: options.Text = "-",
    field: options.Field = None,
    src: Annotated[
        str | None,
        typer.Option(
            "--src",
            metavar="FILE",
            help="Of translators: what the text is a translation of, line by line.",
            show_default=False,
        ),
    ] = None,
    src_field: SrcField = None,
    words: Annotated[
        bool,
        typer.Option(
            "--words",
            help="A row a word. Of one model, unknown words also show <unk>, what the class cost, and which word it "
            "was; of several, columns of bits.",
        ),
    ] = False,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture",
            metavar="FILE",
            help="Also draw the surprisal of each word of a few sentences (60 words at most): .svg or .png.",
            show_default=False,
        ),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Scores of stupid-backoff before they sum to one.")] = False,
    log10: Annotated[bool, typer.Option("--log10", help="Logarithms to base 10 instead of natural ones.")] = False,
) -> None:
    """Print the log-probability of each line of a text.

    Unknown words are paid for in full; what cannot occur has -inf. One output line for each input line, empty ones
    too. With --words, a row `word TAB log-probability` for each word and for </s>, and an empty line between sentences.

    Of translators (--src): log P(E | F) of each line, a translation of the same line of the source. With --words, a
    row for each unit: words, characters or subwords.

    Of several models: a column each, their names above. With --words these show surprisal, -log2 P(word | words
    before), in bits: 1 for a word that has one chance in two, 10 for one in a thousand. Each model reads the text with
    its own vocabulary. On a terminal, the darker the more surprising.

    \b
    Example:
      dragoman score kn5 < test.txt
      echo "the cat sat" | dragoman score kn5 --words
      echo "the cat sat" | dragoman score kn2 kn5 --words --picture cat.svg
      dragoman score de-en --src test.de --text test.en
    """
    _check(models, words=words, picture=picture, raw=raw, log10=log10)
    loaded = _load(models, raw=raw) if src is None else _load_translators(models, raw=raw)
    if text == "-" and not picture and sys.stdin is not None and not sys.stdin.buffer.peek(1):  # type: ignore[union-attr]
        return  # no lines in, no lines out
    if src is None:
        readings = _read(loaded, text, options.field_for(text, field))
    else:
        readings = _read_given(loaded, read_pairs(src, text, src_field, field))
    unit = math.log(10) if log10 else 1.0
    if picture is not None:
        _draw(readings, picture)
    if len(readings) == 1:
        print(_one(*next(iter(readings.values())), words=words, unit=unit))
    elif words:
        _print_surprisals(_surprisals(readings))
    else:
        _print_columns(readings, unit)


def _check(models: list[Path], *, words: bool, picture: Path | None, raw: bool, log10: bool) -> None:
    """Refuse what does not go together."""
    if picture is not None:
        from dragoman.report.figures import image_format

        image_format(picture)
    several = len(models) > 1
    for number, path in enumerate(models):
        if path in models[:number]:
            raise DataError(f"{path}: named twice; name each model once")
        if several and path.is_file():
            raise DataError(f"{path}: is a file, not a model directory; if it is the text, say --text {path}")
    if raw and (several or picture):
        raise DataError("--raw: raw scores are no probabilities to compare or draw; give one model and no --picture")
    if log10 and several and words:
        raise DataError("--log10: several models with --words show bits; leave one of the options out")


def _load(models: list[Path], *, raw: bool) -> dict[str, LanguageModel]:
    from dragoman.models.loading import load_language_model

    return {str(path): _raw(load_language_model(path)) if raw else load_language_model(path) for path in models}


def _load_translators(models: list[Path], *, raw: bool) -> dict[str, Any]:
    from dragoman.models.loading import load_translator

    if raw:
        raise DataError("--raw is for stupid-backoff, and --src for translators; leave one out")
    return {str(path): load_translator(path) for path in models}


def _read_given(models: dict[str, Any], lines: LinePairs) -> Readings:
    """Translators with their source given, as language models, and the translations in their units."""
    return {
        name: (model.condition_on(lines.source), model.target.encode(lines.target)) for name, model in models.items()
    }


def _read(models: dict[str, LanguageModel], text: str, field: str | None) -> Readings:
    """The text is read once, and turned into numbers once for each vocabulary."""
    from dragoman.data.corpus import Corpus
    from dragoman.data.formats import display_name, read_text
    from dragoman.data.scanner import scan

    scanned = scan(read_text(text, field))
    corpora: dict[Vocab, Corpus] = {}
    for name, model in models.items():
        if model.vocab not in corpora:
            corpora[model.vocab] = Corpus.from_scan(scanned, model.vocab)
            by = f", by the vocabulary of {name}" if len(models) > 1 else ""
            warn_if_mostly_unknown(corpora[model.vocab], f"{display_name(text)}{by}")
    return {name: (model, corpora[model.vocab]) for name, model in models.items()}


# -- several models --------------------------------------------------------------------------------------------------


def _surprisals(readings: Readings) -> SurprisalTable:
    from dragoman.evaluation.surprisal import ScorerInput, surprisal_table

    return surprisal_table({name: ScorerInput(*reading) for name, reading in readings.items()})


def _draw(readings: Readings, path: Path) -> None:
    from dragoman.report.surprisal import draw_surprisals

    names = [Path(name).name for name in readings]
    short = dict(zip(names, readings.values(), strict=True)) if len(set(names)) == len(names) else readings
    draw_surprisals(_surprisals(short), path, title="What each word costs: -log2 P(word | words before)")
    info(f"{path}: what each word costs, in bits")


def _print_surprisals(found: SurprisalTable) -> None:
    from dragoman.report.surprisal import surprisal_grid, surprisal_tsv

    if not sys.stdout.isatty():
        print(surprisal_tsv(found))
        return
    from rich.console import Console

    Console(width=WIDEST).print(surprisal_grid(found))  # words and names are never cut off


def _print_columns(readings: Readings, unit: float) -> None:
    """log P(E) of each sentence by each model."""
    columns = [(model.sentence_log_probs(corpus) / unit).tolist() for model, corpus in readings.values()]
    rows = [[f"{log_prob:.6f}" for log_prob in row] for row in zip(*columns, strict=True)]
    if sys.stdout.isatty():
        from dragoman.report.tables import format_table

        print(format_table(list(readings), rows))
    else:
        print("\n".join("\t".join(row) for row in [list(readings), *rows]))


# -- one model -------------------------------------------------------------------------------------------------------


def _one(model: LanguageModel, corpus: Corpus, *, words: bool, unit: float) -> str:
    """A row a word, or a row a sentence."""
    if words:
        return "\n\n".join(_rows(sentence, model.vocab, unit) for sentence in model.score_corpus_words(corpus))
    return "\n".join(f"{log_prob:.6f}" for log_prob in (model.sentence_log_probs(corpus) / unit).tolist())


def _rows(sentence: list[WordScore], vocab: Vocab, unit: float) -> str:
    """The words of a sentence, one a row; the last is its `</s>`."""
    *words, end = sentence
    return "\n".join([*(_row(word, vocab, unit) for word in words), f"{end.word}\t{end.log_prob / unit:.6f}"])


def _row(word: WordScore, vocab: Vocab, unit: float) -> str:
    from dragoman.data.vocabulary import SPECIALS, UNK

    class_, identity = word.log_prob / unit, word.log_prob_unknown / unit
    row = f"{word.word}\t{class_ + identity:.6f}"
    if vocab.id(word.word) != UNK or word.word == SPECIALS[UNK]:
        return row
    return f"{row}\t{SPECIALS[UNK]}\t{class_:.6f}\t{identity:.6f}"


def _raw(model: LanguageModel) -> LanguageModel:
    """The model with the raw scores of stupid back-off in the place of its probabilities."""
    import numpy as np
    from numpy.typing import NDArray

    from dragoman.ngram.model import NgramModel

    class RawScores(NgramModel):
        def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
            return self.raw_token_scores(corpus)

    if not isinstance(model, NgramModel):
        raise DataError(f"raw scores are what stupid-backoff has; a {model.kind} model has probabilities")
    return RawScores(model.vocab, model.table, model.unknown, model.settings)
