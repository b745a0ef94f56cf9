"""What the verbs that use translators share: loading one or several, and the attention between words."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.messages import info
from dragoman.cli.option_groups import OptionGroup
from dragoman.core.errors import DataError, error_at_line

if TYPE_CHECKING:
    from dragoman.align.aligner import Aligner
    from dragoman.align.unknown_words import UnknownReplacer
    from dragoman.combine.shortlist import Shortlist
    from dragoman.data.tokenizer import Tokenizer
    from dragoman.models.translation import AttentionMatrix, BaseTranslator, Translation

Translators = Annotated[
    list[Path],
    typer.Argument(metavar="DIR...", help="A translator; several are used together, an ensemble.", show_default=False),
]
BeamSize = Annotated[
    int, typer.Option("--beam-size", min=1, metavar="N", help="Hypotheses that the search keeps; 1 is greedy search.")
]
Length = Annotated[
    str,
    typer.Option(
        "--length",
        metavar="HOW",
        help="What is done about the liking for short translations. none; norm: the mean over the words; prior: times "
        "P(|E| given |F|) of the training text; penalty:X: plus X for each word.",
    ),
]
CoveragePenalty = Annotated[
    float,
    typer.Option(
        "--coverage-penalty",
        min=0.0,
        metavar="X",
        help="How much it costs to leave words of the source out, as far as attention tells; 0: nothing.",
    ),
]
ShortlistFrom = Annotated[
    Path | None,
    typer.Option(
        "--shortlist",
        metavar="DIR",
        help="For speed: look for the words of each line among those that this aligner's lexicon has for it, and the "
        "most frequent ones (see dragoman align). Probabilities are then among these words.",
        show_default=False,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, metavar="N", help="Default: all cores.", show_default=False),
]
LINEAR, LOG_LINEAR = "linear", "log-linear"


@dataclass(frozen=True)
class FusionOptions(OptionGroup):
    """A language model beside the translators."""

    model: Annotated[
        Path | None,
        typer.Option(
            "--lm",
            metavar="DIR",
            help="A language model of the target's units that has a say (see dragoman units).",
            show_default=False,
        ),
    ] = None
    weight: Annotated[
        float | None,
        typer.Option(
            "--lm-weight",
            min=0.0,
            metavar="X",
            help="How much it has to say. linear: its share, below 1; log-linear: its exponent. Default: 0.2.",
            show_default=False,
        ),
    ] = None
    how: Annotated[
        str | None,
        typer.Option(
            "--fusion",
            metavar=f"{LINEAR}|{LOG_LINEAR}",
            help="Whether probabilities are averaged or multiplied. Default: log-linear.",
            show_default=False,
        ),
    ] = None

    def check(self) -> None:
        if self.model is None and (self.weight is not None or self.how is not None):
            raise DataError("--lm-weight and --fusion are for a language model; name one with --lm DIR")
        if self.how not in (None, LINEAR, LOG_LINEAR):
            raise DataError(f"--fusion {self.how}: it is {LINEAR} or {LOG_LINEAR}")
        if self.how == LINEAR and (self.weight or 0) >= 1:
            raise DataError(f"--lm-weight {self.weight}: with --fusion linear it is a share, below 1")


@dataclass(frozen=True)
class UnknownReplacementOptions(OptionGroup):
    """What becomes of unknown words in translations."""

    replace: Annotated[
        bool,
        typer.Option(
            "--replace-unknowns",
            help="Put the source word that was looked at most in the place of an unknown word, those first that the "
            "translator does not know; for words and names.",
            show_default=False,
        ),
    ] = False
    lexicon: Annotated[
        Path | None,
        typer.Option(
            "--lexicon",
            metavar="DIR",
            help="The same, but its translation by this aligner's lexicon (see dragoman align), if it has one.",
            show_default=False,
        ),
    ] = None

    def rules(self, model: BaseTranslator) -> UnknownReplacer | None:
        """How unknown words are replaced, if they are; refused where that cannot be."""
        from dragoman.align.aligner import Aligner
        from dragoman.align.unknown_words import MIN_COVERAGE, UnknownReplacer

        if not self.replace and self.lexicon is None:
            return None
        model.check_unknown_replacement()
        if self.lexicon is None:
            return UnknownReplacer()
        lexicon, covered = Aligner.load(self.lexicon).best_lexicon_for(model.source.vocab)
        if covered < MIN_COVERAGE:
            told = f"--lexicon {self.lexicon}: knows {100 * covered:.0f}% of what the translator reads"
            raise DataError(f"{told}; let dragoman align learn from the translator's training text")
        return UnknownReplacer(lexicon)

    def told(self) -> dict[str, Any]:
        """What a report says of it."""
        if self.lexicon is not None:
            return {"lexicon": str(self.lexicon)}
        return {"replace_unknowns": True} if self.replace else {}


def load_translators(
    paths: Sequence[Path], fusion: FusionOptions = FusionOptions(), shortlist: Path | None = None
) -> BaseTranslator:
    """The translator of a directory; of several, their ensemble; with a language model, if there is one. With the
    lexicon of an aligner, each by shortlists.

    Those that do not go together are refused with the reason.
    """
    fusion.check()
    check_distinct(paths)
    if shortlist is not None and fusion.how == LINEAR:
        raise DataError("--shortlist leaves words out, and --fusion linear lets them in again; take log-linear")
    model = combine_translators(
        paths, with_shortlists(paths, [load_translator_model(path) for path in paths], shortlist)
    )
    if shortlist is not None:
        info(f"words are looked for in the shortlist of each line alone; probabilities are among these ({shortlist})")
    return model if fusion.model is None else _fused(model, paths, fusion)


def load_translator_model(path: Path) -> Any:
    from dragoman.models.loading import load_translator

    return load_translator(path)


def combine_translators(paths: Sequence[Path], models: Sequence[Any]) -> Any:
    """Translators as one."""
    from dragoman.combine.ensemble import Ensemble

    return models[0] if len(models) == 1 else Ensemble(models, names=[str(path) for path in paths])


def with_shortlists(paths: Sequence[Path], models: Sequence[Any], aligner: Path | None) -> list[Any]:
    """Translators by shortlists, if there is a lexicon to make them from."""
    from dragoman.align.aligner import Aligner
    from dragoman.combine.shortlist import ShortlistScorer

    if aligner is None:
        return list(models)
    loaded, found = Aligner.load(aligner), []
    for path, model in zip(paths, models, strict=True):
        try:
            found.append(ShortlistScorer(model, _shortlist(loaded, model, f"--shortlist {aligner}", path)))
        except DataError as error:
            raise error if str(path) in str(error) else DataError(f"{path}: {error}") from error
    return found


def _shortlist(aligner: Aligner, model: Any, name: str, path: Path) -> Shortlist:
    """By the lexicon that translates as the translator does, whichever direction of the aligner that is."""
    from dragoman.align.unknown_words import MIN_COVERAGE
    from dragoman.combine.shortlist import Shortlist

    vocabs = model.source.vocab, model.target.vocab
    ways = [Shortlist.from_lexicon(way.lexicon, *vocabs) for way in (aligner.forward, aligner.backward)]
    best = max(ways, key=lambda way: way.coverage)
    if best.coverage >= MIN_COVERAGE:
        return best
    told = f"{name}: has translations for {100 * best.coverage:.0f}% of what {path} reads"
    if reads_trees(model):
        raise DataError(f"{told}; let dragoman align learn from the words of its trees")
    cut = f"dragoman units {path} --source < TEXT, and without --source for the other side"
    raise DataError(f"{told}; let dragoman align learn from text in its units ({cut})")


def check_distinct(paths: Sequence[Path]) -> None:
    """One directory given twice is a mistake."""
    repeated = [path for path, times in Counter(map(os.path.realpath, paths)).items() if times > 1]
    if repeated:
        twice = next(path for path in paths if os.path.realpath(path) == repeated[0])
        raise DataError(f"{twice}: named twice; name each model once")


def _fused(model: Any, paths: Sequence[Path], fusion: FusionOptions) -> Any:
    from dragoman.combine.ensemble import CombinationMode, Ensemble
    from dragoman.models.loading import load_language_model

    assert fusion.model is not None
    beside = load_language_model(fusion.model)
    if beside.vocab != model.vocab:
        problem = (
            f"its words are not the units that {paths[0]} writes ({model.vocab.describe_difference(beside.vocab)})"
        )
        cut = f"dragoman units {paths[0]} < TEXT > cut.txt"
        remedy = f"{cut}, then dragoman train ngram --text cut.txt --vocab {paths[0]} -o LM"
        raise DataError(f"{fusion.model}: {problem}; make one that fits: {remedy}")
    weight = 0.2 if fusion.weight is None else fusion.weight
    how: CombinationMode = "linear" if fusion.how == LINEAR else "log-linear"
    weights = (1 - weight, weight) if how == "linear" else (1.0, weight)
    return Ensemble([model, beside], weights, how, names=[str(paths[0]), str(fusion.model)])


def check_output_file(option: str, path: Path) -> None:
    """Refuse a file that could not be written, before hours are spent on what belongs there."""
    if str(path) == "-":
        raise DataError(f"{option} -: standard output has other things to say here; name a file")
    if path.is_dir():
        raise DataError(f"{option} {path}: is a directory; name a file")
    if not path.parent.is_dir():
        raise DataError(f"{option} {path}: there is no directory {path.parent}; make it first, or name another file")
    if not os.access(path.parent, os.W_OK):
        raise DataError(f"{option} {path}: {path.parent} cannot be written to; name another file")


def limited_threads(threads: int | None) -> AbstractContextManager[None]:
    """So many threads, if a number is asked for."""
    from dragoman.core.threads import limit_threads

    return nullcontext() if threads is None else limit_threads(threads)


# -- what they read ----------------------------------------------------------------------------------------------------


def reads_trees(model: BaseTranslator) -> bool:
    from dragoman.data.tokenizer import TREE

    return model.source.format == TREE


def reads_characters(model: BaseTranslator) -> bool:
    """Whether the source is read letter by letter, often a single word: attention to words would say nothing then."""
    return model.source.segmenter.kind == "char"


def check_tree(line: str, source: str, number: int, most: int, remedy: str) -> None:
    """Refuse a line that is no tree, and a tree that is too large: trees are not translated in pieces."""
    from dragoman.data.trees import parse_tree

    leaves = len(parse_tree(line, source, number).words)
    if leaves > most:
        raise error_at_line(
            source, number, f"a tree of {leaves:,} words, and trees of more than {most:,} are refused; {remedy}"
        )


@dataclass
class UnknownLineReporter:
    """Tells of lines most of whose units the translator does not know: of the first, and at the end how many."""

    model: BaseTranslator
    lines: int = 0  # that were found

    def look(self, number: int, line: str) -> None:
        """At the next line."""
        from dragoman.data.vocabulary import UNK

        units = _units(self.model, line)
        unknown = int((self.model.source.vocab.ids(units) == UNK).sum())
        if 2 * unknown <= len(units):
            return
        self.lines += 1
        if self.lines == 1:
            written = " ".join(units) if reads_trees(self.model) else line
            told = f"{unknown} of {len(units)} {self._named} were never seen in training"
            info(f"line {number}: {told}; {_why_strange(self.model.source, written)}")

    def sum_up(self) -> None:
        """After the last line."""
        if self.lines > 1:
            info(f"{self.lines:,} lines in all are mostly {self._named} that were never seen in training")

    @property
    def _named(self) -> str:
        return {"word": "words", "char": "characters"}.get(self.model.source.segmenter.kind, "pieces")


def _units(model: BaseTranslator, line: str) -> list[str]:
    from dragoman.data.trees import parse_tree

    if not line.strip():
        return []
    return parse_tree(line).words if reads_trees(model) else model.source.segmenter.segment(line)


def _why_strange(side: Tokenizer, line: str) -> str:
    """How the training text was written, as far as the line is written otherwise."""
    from dragoman.data.words import looks_tokenised

    lower = line != line.lower() and all(word == word.lower() for word in side.vocab.tokens)
    tokenised = side.tokenised and not looks_tokenised([line])
    how = " ".join(word for word, holds in (("lower-cased,", lower), ("tokenised", tokenised)) if holds)
    return f"it was trained on {how.removesuffix(',')} text" if how else "is this the language that it translates from?"


# -- what they look at -------------------------------------------------------------------------------------------------


def require_attention(model: Any, path: Path) -> None:
    """Refuse models that attend to nothing."""
    if not _attends(model):
        remedy = "train one with --attention mlp, dot or bilinear"
        raise DataError(f"{path}: has no attention (it was trained with --attention none); {remedy}")


def _attends(model: Any) -> bool:
    members = getattr(model, "members", ())
    if isinstance(members, tuple) and members:
        return any(_attends(member) for member in members)
    return getattr(getattr(model, "settings", None), "attention", "none") != "none"


def attention_matrix(model: BaseTranslator, told: Translation, *, units: bool = False) -> AttentionMatrix | None:
    """Return the attention between words, or between tokens; None if there is none."""
    return model.attention_matrix(told, tokens=units)


def attention_links(found: AttentionMatrix, told: Translation) -> list[tuple[int, int]]:
    """Return (source word, target word) links: each target word with the source word of the highest weight."""
    return found.links(finished=told.finished)
