"""dragoman score"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dragoman.cli import options
from dragoman.cli.messages import info
from dragoman.cli.option_groups import OptionGroup, option, with_option_groups
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dragoman.data.corpus import Corpus
    from dragoman.models.language_model import LanguageModel
    from dragoman.report.language_models import ModelInputs

MAX_WIDTH = 10_000  # columns of a table, however narrow the terminal is


@dataclass(frozen=True)
class ScoreOptions(OptionGroup):
    src: Annotated[str | None, option("--src FILE", "For translators: the source of the text, line by line.")] = None
    src_field: options.SrcField = None
    words: Annotated[
        bool,
        option(
            "--words",
            "Print one row per word. For one model, unknown words also show <unk>, its log-probability and that of the "
            "spelling; for several, columns of bits.",
        ),
    ] = False
    tokens: Annotated[
        bool, option("--tokens", "Print one row per token of the model, such as a subword, instead of per word.")
    ] = False
    picture: Annotated[
        Path | None,
        option("--picture FILE", "Also draw the surprisal of each word, for at most 60 words: .svg or .png."),
    ] = None
    raw: Annotated[bool, option("--raw", "Print unnormalised scores of stupid-backoff.")] = False
    log10: Annotated[bool, option("--log10", "Print logarithms to base 10 instead of natural ones.")] = False

    def check(self, models: list[Path]) -> None:
        from dragoman.models.loading import check_distinct

        options.check_picture(self.picture)
        check_distinct(models)
        several = len(models) > 1
        if several and (files := [path for path in models if path.is_file()]):
            raise DataError(f"{files[0]}: is a file, not a model directory; if it is the text, use --text {files[0]}")
        if self.raw and self.src is not None:
            raise DataError("--raw is for stupid-backoff, and --src for translators; remove one of them")
        if self.raw and (several or self.picture):
            raise DataError("--raw: raw scores are not probabilities; give one model and no --picture")
        if self.log10 and several and self.has_rows:
            name = "--words" if self.words else "--tokens"
            raise DataError(f"--log10: several models with {name} are shown in bits; remove one of the options")
        if self.words and self.tokens:
            raise DataError("--words and --tokens: choose one of them")

    @property
    def has_rows(self) -> bool:
        """Whether there is a row for each word or token."""
        return self.words or self.tokens

    @property
    def by_token(self) -> bool:
        """Whether the parts of a sentence are tokens. Those of a translator are."""
        return self.tokens or self.src is not None


@with_option_groups
def score(
    models: options.Models,
    text: options.Text = "-",
    field: options.Field = None,
    score_options: ScoreOptions = ScoreOptions(),
) -> None:
    """Print the log-probability of each line of a text.

    The probability of an unknown word is that of exactly this word; -inf is probability 0. Prints one line for each input line,
    also for empty ones. With --words, prints rows `word TAB log-probability` for each word and </s>, and an empty line
    between sentences. A word that a model splits into subwords or characters has the sum of theirs; in a script without
    spaces between words, rows are tokens.

    For translators (--src): log P(E | F) of each line given the same line of the source. With --words, one row for each
    token.

    For several models: one column each, with their names above. With --words these are surprisals, -log2 P(word |
    words before), in bits: 1 for probability 1/2, 10 for about 1/1000. Each model uses its own vocabulary. On a
    terminal, darker is more surprising.

    \b
    Example:
      dragoman score kn5 < test.txt
      echo "the cat sat" | dragoman score kn5 --words
      echo "the cat sat" | dragoman score kn2 kn5 --words --picture cat.svg
      dragoman score de-en --src test.de --text test.en
    """
    from dragoman.evaluation.surprisal import surprisal_table
    from dragoman.report.surprisal import draw_surprisals

    score_options.check(models)
    inputs = _read_inputs(models, text, field, score_options)
    if inputs is None:
        return  # no lines in, no lines out
    if score_options.picture is not None:
        named = dict(zip(options.short_names(list(inputs)), inputs.values(), strict=True))
        table = surprisal_table(named, by_token=score_options.by_token)
        draw_surprisals(table, score_options.picture, title="Surprisal: -log2 P(word | words before)")
        info(f"{score_options.picture}: the surprisal of each word, in bits")
    _print_scores(inputs, score_options)


def _read_inputs(models: list[Path], text: str, field: str | None, score_options: ScoreOptions) -> ModelInputs | None:
    """Return the models with the text as each of them reads it; None if standard input is empty."""
    from dragoman.data.pair_files import read_pairs
    from dragoman.models.loading import load_translator

    if score_options.src is not None:
        lines = read_pairs(score_options.src, text, score_options.src_field, field)
        translators = {str(path): load_translator(path) for path in models}
        return {
            name: (model.condition_on(lines.source), model.target.encode(lines.target))
            for name, model in translators.items()
        }
    loaded = {str(path): _load(path, raw=score_options.raw) for path in models}
    is_empty = text == "-" and sys.stdin is not None and not sys.stdin.buffer.peek(1)  # type: ignore[union-attr]
    if is_empty and not score_options.picture:
        return None
    corpora = options.encode_for_models(list(loaded.items()), text, field)
    return dict(zip(loaded, zip(loaded.values(), corpora, strict=True), strict=True))


def _print_scores(inputs: ModelInputs, score_options: ScoreOptions) -> None:
    """Print the scores of one model, or a table of several."""
    from dragoman.evaluation.surprisal import surprisal_table
    from dragoman.report.language_models import sentence_columns, sentence_scores, word_scores
    from dragoman.report.surprisal import surprisal_grid, surprisal_tsv

    base = math.log(10) if score_options.log10 else 1.0
    if len(inputs) == 1:
        [single] = inputs.values()
        rows = partial(word_scores, by_token=score_options.by_token) if score_options.has_rows else sentence_scores
        print(rows(*single, base))
    elif not score_options.has_rows:
        print(sentence_columns(inputs, base, is_terminal=sys.stdout.isatty()))
    else:
        table = surprisal_table(inputs, by_token=score_options.by_token)
        if not sys.stdout.isatty():
            print(surprisal_tsv(table))
            return
        from rich.console import Console

        Console(width=MAX_WIDTH).print(surprisal_grid(table))  # words and names are not truncated


def _load(path: Path, *, raw: bool) -> LanguageModel:
    """Load a language model; if `raw`, a stupid back-off model with its unnormalised scores as probabilities."""
    from dragoman.models.loading import load_language_model
    from dragoman.ngram.model import NgramModel

    model = load_language_model(path)
    if not raw:
        return model

    class RawScores(NgramModel):
        def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
            return self.raw_token_scores(corpus)

    if not isinstance(model, NgramModel):
        raise DataError(f"--raw is for stupid-backoff; a {model.kind} model has probabilities")
    return RawScores(model.vocab, model.table, model.unknown, model.settings)
