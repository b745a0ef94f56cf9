"""dragoman doctor"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.messages import info, status, suggest_command
from dragoman.cli.option_groups import OptionGroup, option, with_option_groups
from dragoman.cli.options import Field, Json, PairFile, SrcField, SrcLang, TgtField, TgtLang, lock_output
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.doctor.examination import DoctorInput


@dataclass(frozen=True)
class DoctorFileOptions(OptionGroup):
    """One text, or two parallel texts, with held-out texts."""

    panel = "Data"

    text: Annotated[str | None, option("--text FILE", "Text, one sentence per line; - is standard input.")] = None
    src: Annotated[str | None, option("--src FILE", "Source of sentence pairs.")] = None
    tgt: Annotated[str | None, option("--tgt FILE", "Translation of --src.")] = None
    dev_text: Annotated[str | None, option("--dev-text FILE", "Held-out text.")] = None
    dev_src: Annotated[str | None, option("--dev-src FILE", "Held-out source.")] = None
    dev_tgt: Annotated[str | None, option("--dev-tgt FILE", "Translation of --dev-src.")] = None
    pairs: PairFile = None
    dev_pairs: Annotated[str | None, option("--dev-pairs FILE", "Held-out sentence pairs, as --pairs.")] = None
    field: Field = None
    src_field: SrcField = None
    tgt_field: TgtField = None
    src_lang: SrcLang = None
    tgt_lang: TgtLang = None

    def check(self) -> DoctorInput:
        """Return the input of the checks, or raise an error if options contradict each other."""
        from dragoman.data.languages import Languages
        from dragoman.doctor.examination import DoctorInput

        if self.pairs is not None or self.dev_pairs is not None:
            return self._with_pair_files().check()
        if (self.text is None) is (self.src is None) or (self.src is None) is not (self.tgt is None):
            raise DataError("give either --text FILE, or --src FILE and --tgt FILE, or --pairs FILE")
        if self.text is not None:
            if self.dev_src is not None or self.dev_tgt is not None:
                raise DataError("--dev-src and --dev-tgt are for --src and --tgt; with --text use --dev-text")
            if self.src_field is not None or self.tgt_field is not None:
                raise DataError("--src-field and --tgt-field are for --src and --tgt; with --text use --field")
        elif self.dev_text is not None or (self.dev_src is None) is not (self.dev_tgt is None):
            raise DataError("with --src and --tgt give both --dev-src and --dev-tgt, or neither")
        train, dev = (self.text, self.src, self.tgt), (self.dev_text, self.dev_src, self.dev_tgt)
        given, given_dev = (tuple(path for path in paths if path is not None) for paths in (train, dev))
        fields = self.src_field or self.field, self.tgt_field or self.field
        return DoctorInput(given, given_dev, fields, Languages(self.src_lang, self.tgt_lang))

    def _with_pair_files(self) -> DoctorFileOptions:
        """Return the options with each file of pairs as both source and target."""
        from dragoman.data.pair_files import refuse_sides

        if self.text is not None or self.field is not None:
            raise DataError("--pairs is for sentence pairs and --text for one language; give one of them")
        if self.pairs is not None:
            refuse_sides("--pairs", {"--src": self.src, "--tgt": self.tgt})
        if self.dev_pairs is not None:
            refuse_sides("--dev-pairs", {"--dev-src": self.dev_src, "--dev-tgt": self.dev_tgt})
        train, dev = self.pairs, self.dev_pairs
        return replace(
            self,
            pairs=None,
            dev_pairs=None,
            src=train or self.src,
            tgt=train or self.tgt,
            dev_src=dev or self.dev_src,
            dev_tgt=dev or self.dev_tgt,
        )


@dataclass(frozen=True)
class LimitOptions(OptionGroup):
    panel = "Limits"

    max_words: Annotated[int, option("--max-words N", "Maximum number of words in a line.", min=1)] = 250
    max_word_length: Annotated[int, option("--max-word-length N", "Maximum number of characters in a word.", min=1)] = (
        60
    )
    max_ratio: Annotated[
        float, option("--max-ratio X", "Maximum ratio of a translation's length to its expected length.", min=1)
    ] = 2.5
    keep_duplicates: Annotated[bool, option("--keep-duplicates", "Do not report or remove repeated lines.")] = False


@with_option_groups
def doctor(
    files: DoctorFileOptions = DoctorFileOptions(),
    fix: Annotated[bool, option("--fix", "Write a cleaned copy to the directory of -o.")] = False,
    output: Annotated[Path | None, option("--output, -o DIR", "Directory to write, for --fix.")] = None,
    show: Annotated[int, option("--show N", "Number of places shown for each kind of finding.", min=0)] = 5,
    show_all: Annotated[bool, option("--all", "Show all places.")] = False,
    as_json: Json = False,
    strict: Annotated[bool, option("--strict", "Exit with code 1 also if there are only warnings.")] = False,
    limits: LimitOptions = LimitOptions(),
    no_cost: Annotated[bool, option("--no-cost", "Do not estimate the cost of training.")] = False,
) -> None:
    """Check a text or sentence pairs before training.

    Reports files that do not belong together line by line, lines that are shifted from some line on, exchanged
    languages, and dev lines that are in the training text; encoding errors; empty, long and repeated lines; single
    pairs that are misaligned or in the wrong language. Shows what a translator, or an n-gram model of one text, would
    cost to train.

    The exit code is 1 if there are errors (with --strict: or warnings) that --fix has not fixed, 0 otherwise, and 2 if
    the files cannot be read.

    \b
    Example:
      dragoman doctor --text train.txt --dev-text dev.txt
      dragoman doctor --src train.de --tgt train.en --fix -o cleaned
    """
    from dragoman.doctor.examination import examine_documents, read_documents
    from dragoman.doctor.fix import check_new_directory, fix_documents, write_fixed
    from dragoman.doctor.next_command import next_command
    from dragoman.doctor.text_checks import DoctorLimits
    from dragoman.report.doctor import doctor_text, fix_as_dict, fix_text

    if fix is (output is None):
        raise DataError("--fix and -o DIR must be given together: the cleaned copy is written to a new directory")
    if output is not None:
        check_new_directory(output)
        lock_output(output)
    inputs, doctor_limits = files.check(), DoctorLimits(**vars(limits))
    with status("checking"):
        documents = read_documents(inputs)
        report = examine_documents(documents, doctor_limits, with_cost=not no_cost)
        fixed = None if output is None else fix_documents(documents, doctor_limits)
    written = {} if fixed is None or output is None else write_fixed(fixed, output)
    if as_json:
        record = {**report.as_dict(), "fix": None if fixed is None else fix_as_dict(fixed)}
        print(json.dumps(record, allow_nan=False, ensure_ascii=False))
    else:
        print(doctor_text(report, len(report.findings) if show_all else show))
    if fixed is not None:
        info(f"{output}: {fix_text(fixed)}")
    if command := next_command(report, inputs, written):
        suggest_command(*command)
    severities = ("error", "warning") if strict else ("error",)
    if any(report.remaining(severity, is_fixed=fixed is not None) for severity in severities):
        raise typer.Exit(1)
