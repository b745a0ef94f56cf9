"""dragoman compare"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dragoman.cli.messages import info, status, warn
from dragoman.cli.option_groups import OptionGroup, option, with_option_groups
from dragoman.cli.options import Json, Metrics, parse_metrics
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.evaluation.comparison import ComparisonInput


@dataclass(frozen=True, kw_only=True)
class ComparisonFileOptions(OptionGroup):
    """Texts whose lines belong together, and the names of the systems."""

    panel = "Data"

    reference: Annotated[str, option("--ref FILE", "References, one sentence per line.")]
    systems: Annotated[
        list[str], option("--sys FILE", "Translations of one system, one per line. Give this option twice.")
    ]
    source: Annotated[str | None, option("--src FILE", "Source text, for lengths and examples.")] = None
    training: Annotated[
        str | None,
        option(
            "--train-tgt FILE", "Training text of the target language, for word frequencies. Default: the references."
        ),
    ] = None
    names: Annotated[str, option("--names A,B", "Names of the systems. Default: those of their files.")] = ""
    tgt_lang: Annotated[
        str | None,
        option(
            "--tgt-lang CODE",
            "Language of the translations, such as zh: BLEU splits raw Chinese, Japanese and Korean text in its own way. "
            "Default: by the names of the files, such as test.zh.",
        ),
    ] = None

    def read(self) -> ComparisonInput:
        from dragoman.data.formats import read_lines, read_parallel_lines
        from dragoman.evaluation.comparison import ComparisonInput

        if len(self.systems) != 2:
            raise DataError(f"--sys: {len(self.systems)} given; two systems are compared: give --sys twice")
        names = self._system_names()
        references = read_lines(self.reference)
        expected = len(references)
        first, second = (read_parallel_lines(path, expected, self.reference) for path in self.systems)
        source = None if self.source is None else read_parallel_lines(self.source, expected, self.reference)
        training = None if self.training is None else read_lines(self.training)
        return ComparisonInput(references, first, second, names, source, training, self._language())

    def _language(self) -> str | None:
        """Return the language of the translations, if it is given or can be seen from the names of the files."""
        from dragoman.data.languages import check_language, language_from_path

        if self.tgt_lang is not None:
            return check_language(self.tgt_lang, "--tgt-lang")
        paths = [self.reference, *([] if self.training is None else [self.training]), *self.systems]
        return next(filter(None, map(language_from_path, paths)), None)

    def _system_names(self) -> tuple[str, str]:
        """Return the given names, or those of the files; whole paths if the file names are the same."""
        if self.names:
            given = [name.strip() for name in self.names.split(",")]
            if len(given) != 2 or not all(given) or given[0] == given[1]:
                raise DataError(f"--names {self.names}: give two different names separated by a comma, such as old,new")
            return given[0], given[1]
        for first, second in ([Path(path).name for path in self.systems], self.systems):
            if first != second:
                return first, second
        warn(f"{self.systems[0]}: the same file twice; there are no differences")
        return "first", "second"


@with_option_groups
def compare(
    files: ComparisonFileOptions,
    tokenised: Annotated[
        bool | None,
        option(
            "--tokenised/--raw",
            "Use words as they are (tok:none), or let sacreBLEU tokenise (13a). Default: detected from the text.",
        ),
    ] = None,
    metrics: Metrics = "",
    resamples: Annotated[int, option("--resamples N", "Resamples of the paired bootstrap.", min=1)] = 1000,
    seed: Annotated[int, option("--seed N", "Random seed of the resamples.", min=0)] = 12345,
    examples: Annotated[int, option("--examples N", "Number of example sentences for each system.", min=0)] = 3,
    ngrams: Annotated[int, option("--ngrams N", "Number of n-grams shown for each system.", min=0)] = 10,
    as_json: Json = False,
    as_markdown: Annotated[bool, option("--markdown", "Print the tables as Markdown.")] = False,
) -> None:
    """Compare the translations of two systems.

    Prints BLEU and chrF by sacreBLEU, for single words and pronunciations also accuracy and error rates; whether the
    differences are significant (paired bootstrap); BLEU by sentence length; the accuracy of rare and frequent words;
    n-grams that the second system gains and loses; repeated and dropped words; and the sentences that differ most. The
    first system is the baseline.

    \b
    Example:
      dragoman compare --ref test.en --sys plain.en --sys attention.en
      dragoman compare --ref test.en --sys a.en --sys b.en --src test.de --train-tgt train.en --names old,new
      dragoman compare --ref test.en --sys a.en --sys b.en --json
    """
    from dragoman.evaluation.comparison import compare_systems
    from dragoman.report.translators import comparison_text

    if as_json and as_markdown:
        raise DataError("--json and --markdown: choose one of them")
    chosen_metrics = parse_metrics(metrics)
    texts = files.read()
    if tokenised is None:
        tokenised = _detect_tokenised(texts.references)
    with status("comparing"):
        comparison = compare_systems(
            texts,
            tokenised=tokenised,
            metrics=chosen_metrics,
            resamples=resamples,
            seed=seed,
            max_ngrams=ngrams,
            max_examples=examples,
        )
    if as_json:
        print(json.dumps(comparison.as_dict(), allow_nan=False))
    else:
        print(comparison_text(comparison, markdown=as_markdown))


def _detect_tokenised(lines: Sequence[str]) -> bool:
    from dragoman.data.detokenize import looks_tokenised

    tokenised = looks_tokenised(lines)
    if tokenised:
        info("the references look tokenised: words are used as they are (--raw if they are not)")
    else:
        info("the references look like raw text: sacreBLEU tokenises them (--tokenised if they are)")
    return tokenised
