"""Options that several commands share, and functions that several commands call."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from dragoman.cli.messages import info, warn_if_mostly_unknown
from dragoman.cli.option_groups import OptionGroup, argument, option
from dragoman.core.defaults import DEFAULT_BEAM_SIZE, DEFAULT_LENGTH
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.corpus import Corpus
    from dragoman.data.tokenizer import LinePairs
    from dragoman.models.language_model import LanguageModel
    from dragoman.models.translation import BaseTranslator, SearchKwargs

N = TypeVar("N", int, float)
command_resources = ExitStack()  # closed when the command has ended

SENTENCES = "one sentence per line: plain, .gz, .tsv or .jsonl"
Text = Annotated[str, option("--text FILE", f"Text, {SENTENCES}; - is standard input.", show_default=False)]
InputText = Annotated[str, option("--text FILE", f"Text, {SENTENCES}. Default: standard input.", show_default=False)]
Field = Annotated[
    str | None,
    option(
        "--field NAME",
        "Column of .tsv files, by number (default 1) or by name if the first line is a header; key of .jsonl files "
        "(default text).",
    ),
]
DevText = Annotated[str | None, option("--dev-text FILE", "Held-out text, to fit settings on and to evaluate.")]
Src = Annotated[str | None, option("--src FILE", "Source text, one sentence per line, or subtitles.")]
Tgt = Annotated[str | None, option("--tgt FILE", "Target text, each line the translation of the same line of --src.")]
SrcField = Annotated[str | None, option("--src-field NAME", "Column or key of the source, for .tsv and .jsonl files.")]
TgtField = Annotated[str | None, option("--tgt-field NAME", "Column or key of the target, for .tsv and .jsonl files.")]
PairFile = Annotated[
    str | None,
    option(
        "--pairs FILE",
        "Instead of two texts: one file with both sides, TSV, JSONL, TMX, PO or XLIFF.",
    ),
]
SrcLang = Annotated[str | None, option("--src-lang CODE", "Language of the source, such as de.")]
TgtLang = Annotated[str | None, option("--tgt-lang CODE", "Language of the target, such as en.")]
Rejected = Annotated[
    Path | None, option("--rejected FILE", "Write file, line and reason of each unit that is not used to this file.")
]
Prefix = Annotated[str, argument("PREFIX", "The beginning of the sentence.")]

Model = Annotated[Path, argument("DIR", "A model directory.")]
Models = Annotated[list[Path], argument("DIR...", "Model directories.")]
Translators = Annotated[list[Path], argument("DIR...", "A translator; several are used as an ensemble.")]
TranslatorsAndFiles = Annotated[
    list[Path], argument("DIR... [FILE...]", "Translators (several are an ensemble), then files to translate.")
]
Output = Annotated[Path, option("--output, -o DIR", "The model directory to write.", panel="Output")]
Force = Annotated[bool, option("--force", "Replace an existing model.", panel="Output")]
ForceFile = Annotated[bool, option("--force", "Replace an existing file.")]
Picture = Annotated[Path | None, option("--picture FILE", "Also draw a figure: .svg or .png.")]
Json = Annotated[bool, option("--json", "Print one JSON object; infinite and undefined values are null.")]
Seed = Annotated[int, option("--seed N", "Random seed.")]
Shortlist = Annotated[
    str | None,
    option(
        "--shortlist none|DIR",
        "For speed: restrict each translation to frequent words and the translations of its source words in the lexicon "
        "of this aligner (see dragoman align). Probabilities are normalised over these words. Default: the shortlist "
        "that the translator was given in training, if it has one. none: all words.",
    ),
]
Precision = Annotated[
    str | None,
    option(
        "--precision float32|int8",
        "int8 rounds the weights and the inputs of matrix products to 8 bits, for speed; see dragoman quantize.",
    ),
]
Threads = Annotated[int | None, option("--threads N", "Number of threads. Default: all cores.", min=1)]

BeamSize = Annotated[int, option("--beam-size N", "Hypotheses kept in each step; 1 is greedy search.", min=1)]
Length = Annotated[
    str,
    option(
        "--length NAME",
        "Length handling. none; norm: mean log-probability per word; prior: times P(|E| given |F|) of the training "
        "text; penalty:X: plus X per word.",
    ),
]
NoSplit = Annotated[bool, option("--no-split", "Translate each line at once. Default: sentence by sentence.")]
Metrics = Annotated[
    str,
    option(
        "--metrics A,B",
        "Metrics to print first, of accuracy, WER, PER, CER, BLEU and chrF. Default: by the target: WER and PER for "
        "phones, accuracy and CER for single words, BLEU and chrF for sentences.",
    ),
]


@dataclass(frozen=True)
class PairFileOptions(OptionGroup):
    """One file with both sides, instead of two texts."""

    pairs: PairFile = None
    src_lang: SrcLang = None
    tgt_lang: TgtLang = None
    rejected: Rejected = None

    def read(
        self,
        src: str | None,
        tgt: str | None,
        src_field: str | None,
        tgt_field: str | None,
        names: str = "--src, --tgt",
    ) -> LinePairs:
        """Read --pairs, or else two texts, and report what is not used of them. `names` are the options of the texts."""
        from dragoman.data.formats import display_name
        from dragoman.data.languages import Languages
        from dragoman.data.pair_files import read_pair_file, read_pairs, refuse_sides
        from dragoman.io.files import write_text

        check_output_file("--rejected", self.rejected)
        options = src_field, tgt_field, Languages(self.src_lang, self.tgt_lang)
        if self.pairs is not None:
            refuse_sides("--pairs", dict(zip(names.split(", "), (src, tgt), strict=True)))
            lines = read_pair_file(self.pairs, *options)
        elif src is None or tgt is None:
            raise DataError(f"give two texts ({names}), or one file with both sides (--pairs)")
        else:
            lines = read_pairs(src, tgt, *options)
        if lines.rejected:
            info(f"{display_name(lines.name)}: {lines.describe_rejected()}")
        if self.rejected is not None:
            rows = (f"{unit.file}\t{unit.line}\t{unit.reason}\n" for unit in lines.rejected)
            write_text(self.rejected, "".join(["file\tline\treason\n", *rows]))
        return lines


NO_PAIR_FILE = PairFileOptions()


@dataclass(frozen=True)
class SearchOptions(OptionGroup):
    """Options of the search and of the replacement of unknown words."""

    beam_size: BeamSize = DEFAULT_BEAM_SIZE
    length: Length = DEFAULT_LENGTH
    coverage_penalty: Annotated[
        float, option("--coverage-penalty X", "Penalty for source words that receive little attention.", min=0.0)
    ] = 0.0
    allow_repetition: Annotated[
        bool,
        option(
            "--allow-repetition",
            "Do not block runaway repetition. By default, words are not repeated four times in a row unless the source, "
            "or one in a hundred training lines, repeats something as often.",
        ),
    ] = False
    verbatim: Annotated[
        bool,
        option(
            "--verbatim",
            "Read lines exactly as they are. By default, addresses, code, emoji and unknown characters are copied, wrong "
            "long numbers are corrected, and lines in odd capitals are read as usual text.",
        ),
    ] = False
    shortlist: Shortlist = None
    replace_unknowns: Annotated[
        bool,
        option(
            "--replace-unknowns",
            "Replace unknown words by the source words with the highest attention. For translators of words.",
        ),
    ] = False
    lexicon: Annotated[
        Path | None,
        option("--lexicon DIR", "Replace them by translations of these source words in the lexicon of this aligner."),
    ] = None

    @property
    def replaces_unknowns(self) -> bool:
        return self.replace_unknowns or self.lexicon is not None

    def search_kwargs(self, model: BaseTranslator) -> SearchKwargs:
        from dragoman.combine.load_translators import load_unknown_replacer

        replacer = load_unknown_replacer(model, self.lexicon) if self.replaces_unknowns else None
        return {
            "length": self.length,
            "coverage": self.coverage_penalty,
            "allow_repetition": self.allow_repetition,
            "verbatim": self.verbatim,
            "unknown_replacer": replacer,
        }


DEFAULT_SEARCH = SearchOptions()


def parse_numbers(name: str, text: str, kind: Callable[[str], N], example: str) -> tuple[N, ...]:
    """Parse a list such as `0.05,0.5`."""
    try:
        return tuple(kind(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise DataError(f"{name} {text!r}: give numbers separated by commas, such as {example}") from None


def parse_metrics(names: str) -> list[str] | None:
    """Return the metrics in a list such as `WER,PER`; None if there are none."""
    from dragoman.evaluation.error_rates import check_metric_names
    from dragoman.evaluation.task_scores import METRIC_NAMES

    return check_metric_names([name.strip() for name in names.split(",")], METRIC_NAMES) if names else None


def limited_threads(threads: int | None) -> AbstractContextManager[None]:
    from dragoman.core.threads import limit_threads

    return nullcontext() if threads is None else limit_threads(threads)


def check_utf8_argument(text: str, name: str = "prefix") -> None:
    """Raise an error if an argument is not UTF-8: the shell may pass any bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError(f"the {name} is not UTF-8; check the encoding of the terminal") from None


def check_picture(picture: Path | None) -> None:
    """Raise an error if a figure cannot be written to a file of this name, or matplotlib is missing."""
    from dragoman.report.figures import image_format

    if picture is not None:
        image_format(picture)


def check_new_file(path: Path, *, replace: bool) -> None:
    """Raise an error if something exists at `path`, unless it is a file that may be replaced."""
    if path.exists() and not path.is_file():
        raise DataError(f"{path}: is not a file that can be replaced; choose another name")
    if path.exists() and not replace:
        raise DataError(f"{path}: exists already; choose another name, or --force to replace it")


def lock_output(path: Path) -> None:
    """Let no other command write to a directory before this one has ended."""
    from dragoman.io.files import directory_lock

    command_resources.enter_context(directory_lock(path))


def prepare_training_output(path: Path, *, force: bool) -> None:
    """Check that a model can be trained in a directory, and let no other command write to it before this one has ended."""
    from dragoman.io.storage import check_training_directory

    check_training_directory(path, replace=force)
    lock_output(path)


def check_output_file(name: str, path: Path | None) -> None:
    """Raise an error if a file cannot be written, before the work for it begins."""
    if path is None:
        return
    if str(path) == "-":
        raise DataError(f"{name} -: standard output is used for other results; name a file")
    if path.is_dir():
        raise DataError(f"{name} {path}: is a directory; name a file")
    if not path.parent.is_dir():
        raise DataError(f"{name} {path}: there is no directory {path.parent}; create it, or name another file")
    if not os.access(path.parent, os.W_OK):
        raise DataError(f"{name} {path}: {path.parent} is not writable; name another file")


def encode_for_models(models: Sequence[tuple[str, LanguageModel]], text: str, field: str | None) -> list[Corpus]:
    """Read a text once, and encode it once for each vocabulary of the models, which are given with their names."""
    from dragoman.data.formats import display_name, field_for, read_text
    from dragoman.models.score_blocks import encode_text

    corpora = encode_text([model for _, model in models], read_text(text, field_for(text, field)))
    warn_of_unknown_words([name for name, _ in models], corpora, display_name(text))
    return corpora


def warn_of_unknown_words(names: Sequence[str], corpora: Sequence[Corpus], source: str) -> None:
    """Warn if models with these names do not know most tokens of a text: once for each vocabulary."""
    seen: list[Corpus] = []
    for name, corpus in zip(names, corpora, strict=True):
        if not any(corpus is other for other in seen):
            vocabulary = f", by the vocabulary of {name}" if len(names) > 1 else ""
            warn_if_mostly_unknown(corpus, f"{source}{vocabulary}")
            seen.append(corpus)


def short_names(paths: Sequence[str]) -> list[str]:
    """Return the last parts of paths if these are distinct, otherwise the paths."""
    names = [Path(path).name for path in paths]
    return names if len(set(names)) == len(names) else list(paths)
