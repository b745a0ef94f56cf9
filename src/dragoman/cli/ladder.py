"""dragoman ladder"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.messages import info, shell_command, suggest_command
from dragoman.cli.option_groups import OptionGroup, with_option_groups
from dragoman.cli.progress import console_callbacks
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.experiments.corpus_report import CorpusNames
    from dragoman.experiments.corpus_split import CorpusPart
    from dragoman.report.ladder import LanguageModelRung
    from dragoman.report.translators import TranslatorRung

PAIRS = 20_000  # of the laboratory's text, by default
MINUTES = 20.0  # for everything, by default, where the text is one's own
HABIT = "goes on with them when it runs again"


def _file(name: str, told: str) -> Any:
    return typer.Option(name, metavar="FILE", help=told, show_default=False)


@dataclass(frozen=True)
class CorpusFiles(OptionGroup):
    """The texts, where they are not the laboratory's."""

    src: Annotated[str | None, _file("--src", "Your text to translate from, one sentence a line.")] = None
    tgt: Annotated[str | None, _file("--tgt", "Its translation: line i translates line i.")] = None
    dev_src: Annotated[str | None, _file("--dev-src", "Held-out text. Default: lines of --src are held out.")] = None
    dev_tgt: Annotated[str | None, _file("--dev-tgt", "The translation of --dev-src.")] = None
    test_src: Annotated[str | None, _file("--test-src", "Text to compare models by. Default: held out, too.")] = None
    test_tgt: Annotated[str | None, _file("--test-tgt", "The translation of --test-src.")] = None
    text: Annotated[str | None, _file("--text", "Instead of --src and --tgt: one language, no translators.")] = None
    dev_text: Annotated[str | None, _file("--dev-text", "Held-out text. Default: as above.")] = None
    test_text: Annotated[str | None, _file("--test-text", "Text to compare models by. Default: as above.")] = None

    @property
    def given(self) -> list[str]:
        return [own.name for own in fields(self) if getattr(self, own.name) is not None]

    def check(self) -> None:
        """Refuse what does not go together."""
        for one, other in (("src", "tgt"), ("dev_src", "dev_tgt"), ("test_src", "test_tgt")):
            if (one in self.given) != (other in self.given):
                raise DataError(f"{_option(one)} and {_option(other)} go together: give both, or neither")
        if "src" in self.given and any(name.endswith("text") for name in self.given):
            raise DataError("--text is for one language, --src and --tgt are for two; give one or the other")
        for needed, wanted in (("src", ("dev_src", "test_src")), ("text", ("dev_text", "test_text"))):
            if needed not in self.given and (extra := [name for name in wanted if name in self.given]):
                raise DataError(f"{_option(extra[0])} goes with {_option(needed)}; give that, too")

    @property
    def about(self) -> CorpusNames:
        """What the report calls the text."""
        from dragoman.experiments.corpus_report import CorpusNames

        paths = [path for path in (self.src, self.tgt or self.text) if path is not None]
        files = [Path(path).name for path in paths]
        languages = [_language(name) for name in files]
        names = files if len(set(languages)) < len(files) or None in languages else [str(own) for own in languages]
        told = f": {', '.join(files)}" if names != files else ""
        return CorpusNames(f"The ladder, {' to '.join(names)}{told}", names[0], names[-1])

    def read(self) -> tuple[CorpusPart, CorpusPart | None, CorpusPart | None]:
        """The training text and, where they are given, dev and test text."""
        return (
            _required(self.src, self.tgt or self.text),
            _part(self.dev_src, self.dev_tgt or self.dev_text),
            _part(self.test_src, self.test_tgt or self.test_text),
        )


def _language(file: str) -> str | None:
    """The language that the ending of a file's name is the code of.

    >>> _language("train.de.gz"), _language("book.txt")
    ('German', None)
    """
    from dragoman.data.language_names import LANGUAGE_NAMES

    return LANGUAGE_NAMES.get(file.removesuffix(".gz").rpartition(".")[2])


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _part(source: str | None, target: str | None) -> CorpusPart | None:
    return None if target is None else _required(source, target)


def _required(source: str | None, target: str | None) -> CorpusPart:
    from dragoman.cli.pair_options import read_lines, read_pairs
    from dragoman.experiments.corpus_split import CorpusPart

    assert target is not None, "checked before"
    if source is None:
        return CorpusPart(read_lines(target))
    lines = read_pairs(source, target)
    return CorpusPart(lines.target, lines.source)


@with_option_groups
def ladder(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where texts, models, tables and pictures go.")
    ] = Path("runs/ladder"),
    own: CorpusFiles = CorpusFiles(),
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes",
            metavar="N",
            help="With your own text: minutes for everything together (default 20). On the laboratory: most minutes "
            "that each model is trained by gradients (default: as many as it needs).",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the texts and of all models.")] = 1,
    pairs: Annotated[
        int | None,
        typer.Option(
            "--pairs",
            min=1,
            metavar="N",
            help=f"On the laboratory: sentence pairs to train on. Default: {PAIRS:,}.",
            show_default=False,
        ),
    ] = None,
    models: Annotated[
        str,
        typer.Option("--models", metavar="NAME,...", help="On the laboratory: these rungs alone.", show_default=False),
    ] = "",
) -> None:
    """Compare every kind of model on your text or the lab's.

    With --src and --tgt: the tutorial's story told with your parallel text, within a time. Counts, classes, caches,
    features, networks and mixtures of them predict it; words are aligned; an encoder-decoder and one with attention
    translate it, by several searches and, if there is time, two together. Lines to compare by are held out unless you
    give them. report.html is one page with all tables and pictures; ladder.md has the same. With --text: one language.

    Without: on the laboratory's German and English (see dragoman lab) all models are held to the exact floor of
    perplexity and to contrasts, and translators with every encoder and every attention to the true alignment.

    If it is stopped, the same command goes on where it was.

    \b
    Example:
      dragoman ladder --src train.de --tgt train.en --minutes 20 -o my-ladder
      dragoman ladder --text book.txt --minutes 5 -o my-book
      dragoman ladder
      dragoman ladder --models kn-5,feed-forward,attn-mlp --pairs 5000 -o small
    """
    _check_minutes(minutes)
    own.check()
    if not own.given:
        _on_laboratory(output, models, {"pairs": pairs or PAIRS, "seed": seed, "minutes": minutes})
        return
    if models or pairs is not None:
        option = "--models" if models else "--pairs"
        raise DataError(f"{option} is for the ladder on the laboratory's text; leave it out")
    _on_own(output, own, seed, MINUTES if minutes is None else minutes)


def _check_minutes(minutes: float | None) -> None:
    """The networks' training would refuse them too, but only once half the ladder is made."""
    from dragoman.core.settings import GivenValue, validate
    from dragoman.training.config import TrainingConfig

    validate(TrainingConfig, {"minutes": GivenValue(minutes, "--minutes")}, "command line")


def _on_own(output: Path, own: CorpusFiles, seed: int, minutes: float) -> None:
    from dragoman.experiments.corpus_ladder import run_corpus_ladder
    from dragoman.experiments.corpus_report import corpus_report, suggested_commands
    from dragoman.experiments.corpus_split import split_corpus
    from dragoman.experiments.messages import write_report
    from dragoman.experiments.work_directory import check_settings, claim_directory
    from dragoman.io.storage import REPORT_FILE

    began = perf_counter()
    parts = own.read()
    text = split_corpus(*parts, seed, minutes)
    claim_directory(output, "ladder", HABIT)
    names = ("training text", "dev text", "test text")
    texts = {name: None if part is None else part.checksum for name, part in zip(names, parts, strict=True)}
    settings = {"minutes": minutes, "seed": seed}
    check_settings(output, {**settings, **texts})
    sizes = f"{len(text.train):,} to train on, {len(text.dev):,} of dev text, {len(text.test):,} of test text"
    info(f"{output}: lines: {sizes}; {minutes:g} minutes for everything")
    found, budget = run_corpus_ladder(
        output, text, seed=seed, minutes=minutes, callbacks=console_callbacks(), began=began
    )
    commands = suggested_commands(output, found)
    typed = [shell_command(["dragoman", *command.words], command.line) for command in commands]
    told = corpus_report(output, found, budget, own.about, settings, typed)
    write_report(output, own.about.title, told)
    print(told.text)
    info(f"\n{output}: {', '.join(told.files)}; {budget.total_seconds / 60:.1f} minutes in all")
    for command in commands:
        suggest_command(*command.words, line=command.line)
    info(f"report, with pictures: {output / REPORT_FILE}")


def _on_laboratory(output: Path, models: str, settings: dict[str, Any]) -> None:
    from dragoman.experiments.lab_ladder import run_lab_ladder
    from dragoman.experiments.language_models import LANGUAGE_MODELS
    from dragoman.experiments.trainer import select_models
    from dragoman.experiments.translators import TRANSLATORS
    from dragoman.experiments.work_directory import check_settings, claim_directory
    from dragoman.lab.paths import VERSION

    names = select_models(models, [*LANGUAGE_MODELS, *TRANSLATORS])
    claim_directory(output, "ladder", HABIT)
    check_settings(output, {**settings, "grammar": VERSION})
    rungs, climb, told = run_lab_ladder(output, names, settings, console_callbacks())
    print(told.text)
    info(f"\n{output}: {', '.join(told.files)}")
    _suggest(output, rungs, climb.rungs)


def _suggest(output: Path, rungs: Sequence[LanguageModelRung], translators: Sequence[TranslatorRung]) -> None:
    """What to try with the best model of either kind."""
    test = output / "lab" / "test"
    if rungs:
        path = output / "rungs" / min(rungs, key=lambda rung: rung.measured.likelihood.perplexity).name
        suggest_command("contrast", path)
        suggest_command("evaluate", path, "--text", f"{test}.en")
        suggest_command("next", path, "the farmers")
    if translators:
        from dragoman.models.translator_config import TREE_ENCODERS

        best = max(translators, key=lambda rung: rung.measured.scores.bleu).name
        german = f"{test}.de.trees" if best.endswith(TREE_ENCODERS) else f"{test}.de"
        suggest_command("evaluate", output / "rungs" / best, "--src", german, "--ref", f"{test}.en")
