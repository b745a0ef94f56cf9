"""What `dragoman evaluate` does with translators."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dragoman.cli.groups import Group
from dragoman.cli.messages import say, working
from dragoman.cli.pairs import Lines, SrcField, read_pairs
from dragoman.cli.translators import (
    BeamSize,
    Length,
    Threads,
    check_once,
    check_tree,
    is_overlong,
    reads_trees,
    together,
    with_threads,
)
from dragoman.errors import DataError

if TYPE_CHECKING:
    from dragoman.evaluation.alignment import Counts, Gold
    from dragoman.evaluation.edits import Edits
    from dragoman.evaluation.significance import Paired
    from dragoman.evaluation.translation import LengthClass, Statistics
    from dragoman.translating import PairLikelihood, Translated, Translating

AT_ONCE = 64  # references scored together
ERRORS = ("none", "search", "model")  # see `dragoman.search.diagnosis`


@dataclass(frozen=True)
class TranslationChoice(Group):
    """What is translated, how, and what is told of it."""

    src: Annotated[
        str | None,
        typer.Option("--src", metavar="FILE", help="Of translators: the text to translate.", show_default=False),
    ] = None
    ref: Annotated[
        str | None,
        typer.Option(
            "--ref", "--tgt", metavar="FILE", help="Its translation: line i translates line i.", show_default=False
        ),
    ] = None
    src_field: SrcField = None
    ref_field: Annotated[
        str | None,
        typer.Option("--ref-field", metavar="NAME", help="The same of the translation.", show_default=False),
    ] = None
    ensemble: Annotated[
        bool, typer.Option("--ensemble", help="Use several translators together, as one.", show_default=False)
    ] = False
    beam_size: BeamSize = 5
    length: Length = "norm"
    tokenised: Annotated[
        bool | None,
        typer.Option(
            "--tokenised/--raw",
            help="Take words as they are (tok:none), or let sacreBLEU split them (13a). Default: as the training text.",
            show_default=False,
        ),
    ] = None
    by_length: Annotated[
        bool, typer.Option("--by-length", help="Also BLEU by the length of the source.", show_default=False)
    ] = False
    diagnose: Annotated[
        bool,
        typer.Option(
            "--diagnose",
            help="Also how often the search is to blame (the reference has a better score than what was found), and "
            "how often the model.",
            show_default=False,
        ),
    ] = False
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Keep the translations.", show_default=False)
    ] = None
    threads: Threads = None

    def given(self) -> list[str]:
        """The options that are not as they are by themselves."""
        default = type(self)()
        names = [field.name for field in fields(self) if getattr(self, field.name) != getattr(default, field.name)]
        return [f"--{name.replace('_', '-')}" for name in names]


def evaluate_translators(models: Sequence[Path], choice: TranslationChoice, *, floor: bool, as_json: bool) -> None:
    """Translate, judge, and print what there is to say of it."""
    if choice.src is None or choice.ref is None:
        raise DataError("--src and --ref go together: the text to translate, and its translation")
    check_once(models)
    if choice.output is not None:
        _check_output(choice.output, one=len(models) == 1 or choice.ensemble)
    with with_threads(choice.threads):
        systems = _systems(models, ensemble=choice.ensemble)
        task = _task(choice, systems, floor=floor)
        results = [_evaluated(name, model, task) for name, model in systems.items()]
    pairs = _compared(results)
    print(json.dumps(_as_dict(results, pairs), allow_nan=False) if as_json else _written(results, pairs), flush=True)
    if choice.output is not None:  # last, so that the scores are out whatever becomes of the file
        _keep(results[0].translations, choice.output)


def _check_output(path: Path, *, one: bool) -> None:
    """Refuse a file that could not be written, before hours are spent on what belongs there."""
    if not one:
        raise DataError("--output keeps the translations of one system; evaluate one, or several with --ensemble")
    if path.is_dir():
        raise DataError(f"--output {path}: is a directory; name a file")
    if not path.parent.is_dir():
        raise DataError(f"--output {path}: there is no directory {path.parent}; make it first, or name another file")
    if not os.access(path.parent, os.W_OK):
        raise DataError(f"--output {path}: {path.parent} cannot be written to; name another file")


# -- what is to be done ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Task:
    """A text to translate and to be judged by."""

    lines: Lines
    choice: TranslationChoice
    tokenised: bool
    known: Known


def _systems(models: Sequence[Path], *, ensemble: bool) -> dict[str, Any]:
    from dragoman.loading import load
    from dragoman.translating import Translating

    loaded = {path: load(path) for path in models}
    for path, model in loaded.items():
        if not isinstance(model, Translating):
            raise DataError(
                f"{path}: is a language model ({model.kind}), not a translator; evaluate it with --text FILE"
            )
    if ensemble and len(loaded) > 1:
        return {" + ".join(map(str, models)): together(models, list(loaded.values()))}
    return {str(path): model for path, model in loaded.items()}


def _task(choice: TranslationChoice, systems: Mapping[str, Any], *, floor: bool) -> Task:
    from dragoman.translating import MOST_UNITS

    assert choice.src is not None and choice.ref is not None
    lines = read_pairs(choice.src, choice.ref, choice.src_field, choice.ref_field)
    for model in systems.values():
        model.length_handling(choice.length)
        if reads_trees(model):
            for number, line in enumerate(lines.source, 1):
                check_tree(line, choice.src, number, MOST_UNITS, "leave the pair out")
    known = _known(choice.src, choice.ref, lines) if floor else Known()
    return Task(lines, choice, _is_tokenised(choice, systems), known)


def _is_tokenised(choice: TranslationChoice, systems: Mapping[str, Any]) -> bool:
    """Whether words are taken as they are: as was said, else as the translators' own text has it."""
    if choice.tokenised is not None:
        return choice.tokenised
    found = {model.target.tokenised for model in systems.values()}
    if len(found) > 1:
        raise DataError(
            "some were trained on tokenised text and some on raw: say --tokenised or --raw, so that BLEU is one"
        )
    return bool(found.pop())


# -- laboratory text ---------------------------------------------------------------------------------------------------


class Known(NamedTuple):
    """What is known of laboratory text."""

    gold: list[Gold] | None = None  # which words belong together
    log_prob: float | None = None  # log P(E | F) of all references by the true distribution


def _known(src: str, ref: str, lines: Lines) -> Known:
    """Told by the names of the files, and by the lab.yaml beside them."""
    from dragoman.evaluation.conditional import read_log_probs
    from dragoman.lab.place import language_of

    languages = (language_of(src), language_of(ref))
    if None in languages or languages[0] == languages[1] or _part(src) != _part(ref):
        return Known()
    part, wanted = _part(src), len(lines.source)
    gold, log_probs = _gold(part, turned=languages[0] == "en"), read_log_probs(Path(f"{part}.logprob"))
    if len(gold) != wanted or len(log_probs) != wanted:
        say(f"warning: {part}.align or .logprob has another number of lines, so neither is used")
        return Known()
    return Known(gold, float(log_probs.sum()) if languages[0] == "de" else None)


def _part(path: str) -> Path:
    """The part of the corpus, such as lab/test.

    >>> _part("lab/test.de.gz").as_posix()
    'lab/test'
    """
    return Path(path.removesuffix(".gz")).with_suffix("")


def _gold(part: Path, *, turned: bool) -> list[Gold]:
    """The links of each pair; the file has German first."""
    from dragoman.evaluation.alignment import Gold, read_gold

    gold = read_gold(f"{part}.align")
    if not turned:
        return gold
    return [Gold(*(frozenset((b, a) for a, b in some) for some in (one.sure, one.possible))) for one in gold]


# -- what is found -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Evaluated:
    """What one system makes of a text."""

    name: str
    task: Task
    translations: list[Translated]
    seconds: float
    by_bleu: Statistics
    by_chrf: Statistics
    likelihood: PairLikelihood
    lengths: tuple[LengthClass, ...]  # by source length, if asked for
    errors: Mapping[str, int]  # how many of each, if asked for
    alignment: Counts | None  # of the attention, where it is known which words belong together

    @cached_property
    def edits(self) -> Edits:
        """How far the translations are from the references, word by word."""
        from dragoman.evaluation.edits import count_edits

        return count_edits([told.text for told in self.translations], self.task.lines.target)

    @property
    def floor(self) -> float | None:
        """The perplexity that the true distribution has."""
        log_prob = self.task.known.log_prob
        return None if log_prob is None else self.likelihood.lengths.perplexity(log_prob)

    def as_dict(self) -> dict[str, Any]:
        from dragoman.evaluation.likelihood import finite
        from dragoman.evaluation.translation import judged

        choice, paid = self.task.choice, self.likelihood
        return {
            "model": self.name,
            **judged(self.by_bleu, self.by_chrf).as_dict(),
            "exact_match": self.edits.exact_match,
            "word_error_rate": self.edits.word_error_rate,
            "tokenised": self.task.tokenised,
            "perplexity": finite(paid.perplexity),
            "perplexity_class": finite(paid.perplexity_class),
            "perplexity_characters": finite(paid.perplexity_characters),
            "log_likelihood": finite(paid.log_likelihood),
            "log_likelihood_unknown": finite(paid.log_likelihood_unknown),
            "unknown": paid.unknown,
            "unfinished": self.unfinished,
            "beam_size": choice.beam_size,
            "length": choice.length,
            "seconds": self.seconds,
            "sentences_per_second": len(self.translations) / self.seconds,
            **self._as_asked(),
        }

    @property
    def unfinished(self) -> int:
        return sum(not told.finished for told in self.translations)

    def _as_asked(self) -> dict[str, Any]:
        """What not every text and every command has."""
        found: dict[str, Any] = {}
        if self.floor is not None:
            found["perplexity_floor"] = self.floor
        if self.alignment is not None:
            counted = self.alignment.as_dict()
            found |= {"alignment_error_rate": counted["error_rate"], "alignment": counted}
        if self.errors:
            found["errors"] = dict(self.errors)
        if self.lengths:
            found["by_length"] = [one.as_dict() for one in self.lengths]
        return found


def _evaluated(name: str, model: Translating, task: Task) -> Evaluated:
    from dragoman.evaluation.conditional import attention_error
    from dragoman.evaluation.translation import bleu, bleu_by_length, chrf

    lines, choice = task.lines, task.choice
    with working(f"{name}: translating"):
        began = perf_counter()
        told = model.translate(lines.source, choice.beam_size, length=choice.length)
        seconds = perf_counter() - began
    texts = [one.text for one in told]
    by_bleu = bleu(tokenised=task.tokenised).statistics(texts, lines.target)
    with working(f"{name}: scoring the references"):
        return Evaluated(
            name,
            task,
            told,
            seconds,
            by_bleu,
            chrf().statistics(texts, lines.target),
            model.likelihood(lines.source, lines.target),
            bleu_by_length(by_bleu, _source_words(model, lines.source)) if choice.by_length else (),
            _errors(model, lines, told, choice.length) if choice.diagnose else {},
            None if task.known.gold is None else attention_error(model, lines.source, lines.target, task.known.gold),
        )


def _source_words(model: Translating, lines: Sequence[str]) -> list[int]:
    """What is between spaces; of trees, their leaves."""
    from dragoman.evaluation.translation import word_counts

    if reads_trees(model):
        return [int(size) - 1 for size in model.source.read(lines).sizes]
    return word_counts(lines)


def _errors(model: Any, lines: Lines, found: Sequence[Translated], length: str) -> Mapping[str, int]:
    """How many translations are the reference, the search's fault, or the model's.

    Blank lines, and those that were translated in pieces, are left out: no search was made for them.
    """
    from dragoman.search.diagnosis import diagnose
    from dragoman.text.batches import Batch
    from dragoman.translating import MOST_UNITS

    counts: Counter[str] = Counter(dict.fromkeys(ERRORS, 0))
    each = zip(lines.source, lines.target, found, strict=True)
    whole = [one for one in each if one[0].strip() and not is_overlong(model, one[0], MOST_UNITS)]
    for first in range(0, len(whole), AT_ONCE):
        source, target, told = zip(*whole[first : first + AT_ONCE], strict=True)
        references = Batch.of(model.target.read(target), model.source.read(source))
        hypotheses = [_hypothesis(model, one) for one in told]
        judged = diagnose(model, references, hypotheses, length=model.length_handling(length))
        counts.update(one.error for one in judged)
    return counts


def _hypothesis(model: Translating, told: Translated) -> Any:
    """A translation as numbers again."""
    from dragoman.search.hypothesis import Hypothesis

    words = tuple(model.target.vocab.ids(told.words).tolist())
    return Hypothesis(words, told.log_prob, told.score, told.finished)


def _keep(translations: Iterable[Translated], path: Path) -> None:
    from dragoman.storage import new_file

    with new_file(path) as temporary:
        temporary.write_text("".join(f"{told.text}\n" for told in translations), encoding="utf-8", newline="\n")
    say(f"{path}: the translations")


# -- several systems ---------------------------------------------------------------------------------------------------


class Beside(NamedTuple):
    """A system beside the first: whether the difference could be luck with the sentences."""

    names: tuple[str, str]
    bleu: Paired
    chrf: Paired

    def as_dict(self) -> dict[str, Any]:
        first, second = self.names
        return {"first": first, "second": second, "bleu": self.bleu.as_dict(), "chrf": self.chrf.as_dict()}


def _compared(results: Sequence[Evaluated]) -> list[Beside]:
    from dragoman.evaluation.significance import paired_bootstrap

    first, *others = results
    return [
        Beside(
            (first.name, other.name),
            paired_bootstrap(first.by_bleu, other.by_bleu),
            paired_bootstrap(first.by_chrf, other.by_chrf),
        )
        for other in others
    ]


def _as_dict(results: Sequence[Evaluated], pairs: Sequence[Beside]) -> dict[str, Any]:
    reports = [result.as_dict() for result in results]
    if len(reports) == 1:
        return reports[0]
    return {"models": reports, "paired_bootstrap": [pair.as_dict() for pair in pairs]}


# -- as tables ---------------------------------------------------------------------------------------------------------


def _written(results: Sequence[Evaluated], pairs: Sequence[Beside]) -> str:
    from dragoman.report.translation import lengths_section, paired_section

    parts = [_report(results[0])] if len(results) == 1 else [_table(results)]
    parts += [paired_section(pair.names, (pair.bleu, pair.chrf)).as_text() for pair in pairs]
    if results[0].lengths:
        parts.append(lengths_section({result.name: result.lengths for result in results}).as_text())
    return "\n\n".join(parts)


def _report(result: Evaluated) -> str:
    from dragoman.evaluation.translation import judged
    from dragoman.report.tables import table

    scores, paid, choice = judged(result.by_bleu, result.by_chrf), result.likelihood, result.task.choice
    floor = "" if result.floor is None else f"; the true distribution has {result.floor:,.2f}"
    how = f"beam size {choice.beam_size}, length {choice.length}"
    rows: list[tuple[str, object, str]] = [
        ("sentences", scores.sentences, how),
        ("BLEU", scores.bleu, f"{scores.signature}"),
        ("chrF", scores.chrf, f"{scores.chrf_signature}"),
        ("length ratio", f"{scores.length_ratio:.3f}", "words by words of the references"),
        ("exactly right", f"{100 * result.edits.exact_match:.1f}%", "translations that are the reference itself"),
        ("word error rate", f"{100 * result.edits.word_error_rate:.1f}%", "words to put in, leave out or replace"),
        ("perplexity", paid.perplexity, f"of the references, a word or sentence end{floor}"),
        (
            "perplexity class",
            paid.perplexity_class,
            f"the same, if {paid.unknown:,} unknown units cost their class alone",
        ),
        ("perplexity characters", f"{paid.perplexity_characters:.4f}", "a character"),
        ("sentences a second", len(result.translations) / result.seconds, f"{result.seconds:,.1f} seconds"),
    ]
    if scores.empty or result.unfinished:
        rows.append(("empty", scores.empty, f"translations without words; {result.unfinished:,} were cut off"))
    if result.alignment is not None:
        share = f"{100 * result.alignment.error_rate:.1f}%"
        rows.append(("alignment error", share, "of the attention, beside the true alignment of the references"))
    for error, meaning in _meanings(result).items():
        rows.append((f"{error} errors", result.errors[error], meaning))
    return table([result.name, "", ""], rows)


def _meanings(result: Evaluated) -> dict[str, str]:
    if not result.errors:
        return {}
    total = max(1, sum(result.errors.values()))
    search, model = (f"{100 * result.errors[error] / total:.1f}%" for error in ("search", "model"))
    return {
        "search": f"{search}: the reference scores better than what was found",
        "model": f"{model}: what was found scores as well or better; {result.errors['none']:,} are as the reference",
    }


def _table(results: Sequence[Evaluated]) -> str:
    from dragoman.evaluation.translation import judged
    from dragoman.report.tables import table

    scores = [judged(result.by_bleu, result.by_chrf) for result in results]
    columns: dict[str, list[object]] = {
        "system": [result.name for result in results],
        "BLEU": [one.bleu for one in scores],
        "chrF": [one.chrf for one in scores],
        "length ratio": [f"{one.length_ratio:.3f}" for one in scores],
        "exact, %": [f"{100 * result.edits.exact_match:.1f}" for result in results],
        "word errors, %": [f"{100 * result.edits.word_error_rate:.1f}" for result in results],
        "perplexity": [result.likelihood.perplexity for result in results],
        "characters": [f"{result.likelihood.perplexity_characters:.4f}" for result in results],
        "sentences/s": [len(result.translations) / result.seconds for result in results],
    }
    if any(result.alignment is not None for result in results):
        columns["alignment error, %"] = [_percent(result.alignment) for result in results]
    if results[0].errors:
        columns["search errors"] = [result.errors["search"] for result in results]
        columns["model errors"] = [result.errors["model"] for result in results]
    first = results[0]
    choice = first.task.choice
    told = f"{scores[0].sentences:,} sentences, beam size {choice.beam_size}, length {choice.length}"
    floor = "" if first.floor is None else f"; perplexity of the true distribution: {first.floor:,.2f}"
    body = table(list(columns), list(zip(*columns.values(), strict=True)))
    return "\n\n".join([body, f"{told}{floor}\nBLEU|{scores[0].signature}\nchrF2|{scores[0].chrf_signature}"])


def _percent(counts: Counts | None) -> str | None:
    return None if counts is None else f"{100 * counts.error_rate:.1f}"
