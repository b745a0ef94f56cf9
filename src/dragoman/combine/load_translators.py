"""Loading translators from directories: ensembles, fusion with a language model, shortlists, unknown words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from dragoman.core.errors import DataError
from dragoman.data.tokenizer import TREE
from dragoman.models.loading import check_distinct, load_language_model, load_translator
from dragoman.models.translation import BaseTranslator

# Aligners and ensembles are imported when they are used: one translator starts faster without them.
if TYPE_CHECKING:
    from dragoman.align.aligner import Aligner
    from dragoman.align.shortlist import Shortlist
    from dragoman.align.unknown_words import UnknownReplacer
    from dragoman.combine.ensemble import CombinationMode

DEFAULT_LM_WEIGHT = 0.2

ShortlistSource = Path | Literal["stored", "none"]  # an aligner's directory; the translators' shortlists; all words


def parse_shortlist(option: str | None) -> ShortlistSource:
    """Return the meaning of `--shortlist`.

    >>> parse_shortlist(None), parse_shortlist("none"), parse_shortlist("aligner").name
    ('stored', 'none', 'aligner')
    """
    return "stored" if option is None else "none" if option == "none" else Path(option)


def load_translators(
    paths: Sequence[Path],
    *,
    language_model: Path | None = None,
    lm_weight: float | None = None,
    fusion: str | None = None,
    shortlist: ShortlistSource = "stored",
    precision: str | None = None,
) -> BaseTranslator:
    """Load one translator, or several as an ensemble.

    Args:
        paths: directories of translators with the same tokenizers.
        language_model: directory of a language model over the target's tokens, used in fusion.
        lm_weight: its share with linear fusion, its exponent with log-linear fusion. Default: 0.2.
        fusion: "linear" or "log-linear". Default: log-linear.
        shortlist: directory of an aligner whose lexicon restricts the words of each translation; "stored": the
            shortlists of the translators; "none": search over all words.
        precision: see `dragoman.load`.
    """
    if language_model is None and (lm_weight is not None or fusion is not None):
        raise DataError("--lm-weight and --fusion need a language model; name it with --lm DIR")
    if fusion not in (None, "linear", "log-linear"):
        raise DataError(f"--fusion {fusion}: choose linear or log-linear")
    if fusion == "linear" and (lm_weight or 0) >= 1:
        raise DataError(f"--lm-weight {lm_weight}: with --fusion linear it is a share and must be below 1")
    if fusion == "linear" and isinstance(shortlist, Path):
        raise DataError("--shortlist excludes words that --fusion linear would allow again; use --fusion log-linear")
    check_distinct(paths)
    model, path = ensemble_of(paths, load_with_shortlists(paths, shortlist, precision)), paths[0]
    if language_model is None:
        return model
    from dragoman.combine.ensemble import Ensemble

    loaded = load_language_model(language_model)
    if loaded.vocab != model.vocab:
        difference = model.vocab.describe_difference(loaded.vocab)
        remedy = f"dragoman train ngram --text TEXT --vocab {path} -o LM"
        raise DataError(f"{language_model}: its words are not the tokens of {path} ({difference}); train one: {remedy}")
    weight = DEFAULT_LM_WEIGHT if lm_weight is None else lm_weight
    mode: CombinationMode = "linear" if fusion == "linear" else "log-linear"
    weights = (1 - weight, weight) if mode == "linear" else (1.0, weight)
    return Ensemble([model, loaded], weights, mode, names=[str(path), str(language_model)])


def ensemble_of(paths: Sequence[Path], models: Sequence[BaseTranslator]) -> BaseTranslator:
    """Return several translators as one."""
    if len(models) == 1:
        return models[0]
    from dragoman.combine.ensemble import Ensemble

    return Ensemble(models, names=[str(path) for path in paths])


def load_with_shortlists(
    paths: Sequence[Path], shortlist: ShortlistSource = "stored", precision: str | None = None
) -> list[BaseTranslator]:
    """Load translators with their own shortlists, those from the lexicon of an aligner, or none."""
    models: list[BaseTranslator] = [load_translator(path, precision) for path in paths]
    shortlists = load_shortlists(shortlist)
    for path, model in zip(paths, models, strict=True):
        set_shortlist(model, path, shortlists)
    return models


@dataclass(frozen=True, eq=False)
class AlignerShortlists:
    """Shortlists from the lexicon of an aligner."""

    path: Path
    aligner: Aligner

    @classmethod
    def load(cls, path: Path) -> Self:
        from dragoman.align.aligner import Aligner

        return cls(path, Aligner.load(path))

    def shortlist(self, model: BaseTranslator, path: Path) -> Shortlist:
        """Return a shortlist from the direction of the aligner that covers more of the source of a translator.

        Raise an error that names its path if the aligner does not fit.
        """
        from dragoman.align.shortlist import Shortlist
        from dragoman.align.unknown_words import MIN_COVERAGE

        vocabularies = model.source.vocab, model.target.vocab
        directions = (self.aligner.forward, self.aligner.backward)
        shortlists = [Shortlist.from_lexicon(direction.lexicon, *vocabularies) for direction in directions]
        best = max(shortlists, key=lambda shortlist: shortlist.coverage)
        if best.coverage >= MIN_COVERAGE:
            return best
        known = f"{100 * best.coverage:.0f}% of the tokens of {path}"
        problem = f"--shortlist {self.path}: has translations for {known}"
        if model.source.format == TREE:
            raise DataError(f"{problem}; train the aligner on the words of its trees")
        units = f"dragoman units {path} --source < TEXT, and without --source for the target"
        raise DataError(f"{problem}; train the aligner on text in its tokens ({units})")


Shortlists = AlignerShortlists | Literal["stored", "none"]


def load_shortlists(source: ShortlistSource) -> Shortlists:
    """Load the aligner, if the source is one."""
    return AlignerShortlists.load(source) if isinstance(source, Path) else source


def set_shortlist(model: BaseTranslator, path: Path, shortlists: Shortlists) -> None:
    """Give a translator, which was loaded from a path, another shortlist or none for its searches."""
    if shortlists == "stored":
        return
    from dragoman.combine.shortlist import require_shortlist_support

    if isinstance(shortlists, AlignerShortlists):
        try:
            translator = require_shortlist_support(model)
        except DataError as error:
            raise DataError(f"{path}: {error}") from error
        translator.shortlist = shortlists.shortlist(model, path)
    elif model.has_shortlist:
        require_shortlist_support(model).shortlist = None


def load_unknown_replacer(model: BaseTranslator, lexicon: Path | None) -> UnknownReplacer:
    """Return rules that replace unknown words by source words or, with the lexicon of an aligner, translations."""
    from dragoman.align.unknown_words import MIN_COVERAGE, UnknownReplacer

    model.check_unknown_replacement()
    if lexicon is None:
        return UnknownReplacer()
    from dragoman.align.aligner import Aligner

    loaded, coverage = Aligner.load(lexicon).best_lexicon_for(model.source.vocab)
    if coverage < MIN_COVERAGE:
        problem = f"--lexicon {lexicon}: knows {100 * coverage:.0f}% of the translator's source words"
        raise DataError(f"{problem}; train the aligner on the translator's training text")
    return UnknownReplacer(loaded)


def require_attention(model: BaseTranslator, path: Path) -> None:
    """Raise an error if a translator has no attention."""
    if not model.has_attention:
        remedy = "train one with --attention mlp, dot or bilinear"
        raise DataError(f"{path}: has no attention (it was trained with --attention none); {remedy}")
