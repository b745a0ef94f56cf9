"""dragoman contrast"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.messages import info, status
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.evaluation.lab_reference import PhenomenonAccuracies
    from dragoman.lab.minimal_pairs import Contrast
    from dragoman.models.language_model import LanguageModel

LANGUAGES = {"de": "German", "en": "English"}
DOUBTFUL = 0.15  # unknown words among all words: more than made-up names can be
STRANGE = 0.5  # unknown words among all words from which on a model does not speak the language


def contrast(
    models: Annotated[
        list[Path] | None, typer.Argument(metavar="DIR...", help="Model directories.", show_default=False)
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            "--language",
            metavar="NAME",
            help="de or en. Default: the one of which the first model knows more words.",
            show_default=False,
        ),
    ] = None,
    count: Annotated[
        int, typer.Option("--count", min=1, metavar="N", help="Contrasts for each phenomenon and class of distance.")
    ] = 100,
    seed: Annotated[int, typer.Option("--seed", help="The same contrasts for the same seed.")] = 1,
    examples: Annotated[
        bool, typer.Option("--examples", help="Show one contrast of each phenomenon, and leave.")
    ] = False,
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="FILE", help="Write the contrasts as TSV.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Test language models on minimal pairs of lab sentences.

    The two differ in one thing: a verb's number, himself or herself, a word of another topic. Accuracy says how often
    the right one is the more probable one; guessing gives 50%. By distance: words between what decides and what is
    decided. Contrasts are drawn from the laboratory's grammar, so train the model on its text: see dragoman lab.

    \b
    Example:
      dragoman contrast lab-kn5
      dragoman contrast lab-kn2 lab-kn5 --json
      dragoman contrast --language de --examples
    """
    from dragoman.models.loading import load_language_model

    loaded = [(path, load_language_model(path)) for path in models or []]
    _check(models=bool(loaded), examples=examples, write=write, as_json=as_json)
    with status("drawing contrasts"):
        language, found = _contrasts(language, count, seed, loaded)
    for path, model in loaded:
        _doubt(path, model, language, found)
    if write is not None:
        _write(write, found)
        info(f"{write}: {len(found):,} contrasts")
    if examples:
        print(_examples(found))
        return
    if loaded:
        from dragoman.evaluation.lab_reference import minimal_pair_accuracies
        from dragoman.report.evaluation import minimal_pair_table

        results = {str(path): minimal_pair_accuracies(model, found) for path, model in loaded}
        print(json.dumps(_as_dict(language, results)) if as_json else minimal_pair_table(LANGUAGES[language], results))


def _check(*, models: bool, examples: bool, write: Path | None, as_json: bool) -> None:
    """Refuse what does not go together, before anything is drawn."""
    if examples and (models or as_json):
        raise DataError("--examples shows contrasts alone: leave out models and --json")
    if write is not None and write.exists():
        raise DataError(f"{write}: exists already; choose another name")
    if not models and not (examples or write):
        raise DataError("give model directories, or --examples or --write to see the contrasts themselves")


def _contrasts(
    language: str | None, count: int, seed: int, loaded: Sequence[tuple[Path, LanguageModel]]
) -> tuple[str, list[Contrast]]:
    """Contrasts in the language that was asked for, or in that of the first model."""
    from dragoman.lab.minimal_pairs import contrasts

    language = language.lower() if language else None
    if language is not None and language not in LANGUAGES:
        raise DataError(f"--language {language}: the laboratory speaks de and en")
    chosen = language or (_language_of(*loaded[0]) if loaded else "en")
    return chosen, contrasts(chosen, count, seed)


def _language_of(path: Path, model: LanguageModel) -> str:
    """The language of which a model knows more words."""
    from dragoman.lab.minimal_pairs import contrasts

    unknown = {language: _unknown(model, contrasts(language, count=2)) for language in LANGUAGES}
    best = min(unknown, key=unknown.__getitem__)
    if unknown[best] > STRANGE:
        remedy = "train it on text of dragoman lab, or say --language"
        raise DataError(f"{path}: knows neither the German nor the English of the laboratory; {remedy}")
    return best


def _doubt(path: Path, model: LanguageModel, language: str, found: Sequence[Contrast]) -> None:
    """Warn of a model that hardly knows the words it is asked about."""
    share = _unknown(model, found)
    if share > DOUBTFUL:
        info(f"warning: {path}: {100 * share:.0f}% of the {LANGUAGES[language]} words are unknown to it; other text?")


def _unknown(model: LanguageModel, found: Iterable[Contrast]) -> float:
    """The share of unknown words."""
    from dragoman.data.corpus import Corpus

    corpus = Corpus.from_sentences((contrast.right for contrast in found), model.vocab)
    return len(corpus.unknown_positions) / corpus.num_words


def _as_dict(language: str, results: dict[str, PhenomenonAccuracies]) -> dict[str, Any]:
    from dragoman.evaluation.lab_reference import accuracies_as_dicts

    models = [{"model": name, "contrasts": accuracies_as_dicts(found)} for name, found in results.items()]
    return {"language": language, "models": models}


def _examples(found: Iterable[Contrast]) -> str:
    first: dict[str, Contrast] = {}
    for contrast in sorted(found, key=lambda contrast: len(contrast.right)):
        first.setdefault(contrast.phenomenon, contrast)
    return "\n\n".join(f"{name}\n  right: {one.right}\n  wrong: {one.wrong}" for name, one in first.items())


def _write(path: Path, found: Iterable[Contrast]) -> None:
    from dragoman.io.storage import atomic_file
    from dragoman.lab.minimal_pairs import to_tsv

    with atomic_file(path) as temporary:
        temporary.write_text(to_tsv(found), encoding="utf-8", newline="\n")
