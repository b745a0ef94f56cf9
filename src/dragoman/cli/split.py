"""dragoman split"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dragoman.cli.messages import info, status, suggest_command, warn
from dragoman.cli.option_groups import OptionGroup, option, with_option_groups
from dragoman.cli.options import Field, PairFileOptions, Seed, SrcField, TgtField
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.held_out import HeldOut
    from dragoman.io.corpus_split import SplitInput

PARTS = ("dev", "test")


@dataclass(frozen=True)
class SplitFileOptions(OptionGroup):
    """The corpus: a text, two parallel texts, or a file with both sides."""

    text: Annotated[str | None, option("--text FILE", "Text, one sentence per line, or rows: .tsv, .jsonl.")] = None
    src: Annotated[str | None, option("--src FILE", "Source of sentence pairs.")] = None
    tgt: Annotated[str | None, option("--tgt FILE", "Translation of --src.")] = None
    field: Field = None
    src_field: SrcField = None
    tgt_field: TgtField = None

    def read(self, pair_file: PairFileOptions) -> SplitInput:
        """Read the files. A text that has two columns, or is in a format of sentence pairs, is read as --pairs."""
        from dragoman.io.corpus_split import has_pairs, pairs_to_split, text_to_split

        if (self.text is not None) + (self.src is not None) + (pair_file.pairs is not None) != 1 or (
            (self.src is None) is not (self.tgt is None)
        ):
            raise DataError("give either --text FILE, or --src FILE and --tgt FILE, or --pairs FILE")
        fields = self.src_field, self.tgt_field
        if self.text is not None:
            if not any(fields) and not has_pairs(self.text, self.field):
                return text_to_split(self.text, self.field)
            pair_file = replace(pair_file, pairs=self.text)
        if self.field is not None:
            if pair_file.pairs is not None:
                raise DataError("--field is for one text; choose the columns of pairs with --src-field and --tgt-field")
            fields = self.src_field or self.field, self.tgt_field or self.field
        pairs = pair_file.read(self.src, self.tgt, *fields)
        files = [file for file in (pair_file.pairs, self.src, self.tgt) if file is not None]
        return pairs_to_split(pairs, files)


@with_option_groups
def split(
    output: Annotated[Path, option("--output, -o DIR", "The directory for the new files.")],
    files: SplitFileOptions = SplitFileOptions(),
    pair_file: PairFileOptions = PairFileOptions(),
    dev: Annotated[str | None, option("--dev N|N%", "Lines of dev data. Default: by the size of the text.")] = None,
    test: Annotated[str | None, option("--test N|N%", "Lines of test data; 0: none. Default: as --dev.")] = None,
    similarity: Annotated[
        float,
        option("--similarity X", "Lines this similar are near-duplicates, from 0 to 1; 1: only equal lines are."),
    ] = 0.7,
    prefix: Annotated[str, option("--prefix TEXT", "Begin the names of the files with this.", show_default=False)] = "",
    seed: Seed = 1,
    force: Annotated[bool, option("--force", "Replace existing files.")] = False,
) -> None:
    """Divide a text or sentence pairs into train, dev and test, without leaks.

    Lines are drawn at random. Lines that are equal or nearly equal stay in the same part; for pairs, if their sources
    or their targets are. They are compared without case, punctuation, white space and the values of numbers. Similarity
    is the share of common character 4-grams. A side of pairs with few different lines, such as labels, is not compared.
    Blank lines, and pairs with a blank side, are left out.

    By default dev and test have 5 sqrt(N) lines each for a text of N lines: 500 of 10,000, at most 2,000, and at most a
    tenth. The files have the endings of the given ones, and their lines are in the same order. Rows of TSV and JSONL
    files stay whole. Pairs of TMX, PO, XLIFF and subtitle files are written as two texts, such as train.de and train.en.

    \b
    Example:
      dragoman split --src all.de --tgt all.en -o data     # writes data/train.de, data/dev.de, data/test.de, ...
      dragoman split --pairs pairs.tsv --dev 500 --test 5% -o data
      dragoman split --pairs memory.tmx -o data
      dragoman split --text news.txt --test 0 --seed 7 -o data
    """
    from dragoman.data.held_out import divide
    from dragoman.io.corpus_split import write_parts

    with status("dividing"):
        data = files.read(pair_file)
        sizes = _sizes(data, dev, test)
        divided = divide(data.sides, sizes, seed, similarity)
        _check_sizes(divided, sizes, similarity)
        paths = write_parts(data, divided, PARTS, output, prefix, replace=force)
    _report(data, divided, paths)
    if "dev" in paths:
        _suggest_training(data, paths, files, pair_file)


def _report(data: SplitInput, divided: HeldOut, paths: dict[str, list[Path]]) -> None:
    """Print the size of each part, what was kept together and what was left out."""
    unit = data.unit
    counts = dict(zip(("train", *PARTS), (divided.train, *divided.parts), strict=True))
    for part, names in paths.items():
        info(f"{part:5}  {len(counts[part]):>9,} {unit}  {', '.join(map(str, names))}")
    if len(divided.compared) < len(data.sides):
        side, other = ("sources", "targets")[:: 1 if divided.compared == (0,) else -1]
        info(f"only the {side} were compared: most {other} are equal or nearly equal to many others")
    _, members = divided.kept_together
    if members:
        info(f"{members:,} {unit} are equal or similar to others; similar ones are in the same part (all were kept)")
    if len(divided.blank):
        info(f"{len(divided.blank):,} {'pairs with a blank side' if unit == 'pairs' else 'blank lines'} were left out")


def _suggest_training(
    data: SplitInput, paths: dict[str, list[Path]], files: SplitFileOptions, pair_file: PairFileOptions
) -> None:
    """Print the command that trains a translator, or an n-gram model of one text, on the new files."""
    from dragoman.training.config import SUGGESTED_MINUTES

    if data.unit != "pairs":
        texts = paths["train"][0], paths["dev"][0]
        suggest_command("train", "ngram", "--text", texts[0], "--dev-text", texts[1], "-o", "model", field=files.field)
        return
    is_one_file = len(paths["train"]) == 1
    options = ["--pairs", "--dev-pairs"] if is_one_file else ["--src", "--tgt", "--dev-src", "--dev-tgt"]
    values = [*paths["train"], *paths["dev"]]
    fields = [("--src-field", files.src_field), ("--tgt-field", files.tgt_field)]
    languages = [("--src-lang", pair_file.src_lang), ("--tgt-lang", pair_file.tgt_lang)]
    chosen = [word for name, value in fields + languages if value is not None for word in (name, value)]
    given = [word for pair in zip(options, values, strict=True) for word in pair]
    suggest_command("train", "translator", *given, *chosen, "-o", "model", "--minutes", str(SUGGESTED_MINUTES))


def _sizes(data: SplitInput, dev: str | None, test: str | None) -> list[int]:
    """Return the number of lines of dev and test; raise an error if they are none, or all."""
    from dragoman.data.formats import display_name
    from dragoman.data.held_out import default_size

    lines = len(data.sides[0])
    dev_size = default_size(lines) if dev is None else _parse_size("--dev", dev, lines)
    sizes = [dev_size, dev_size if test is None else _parse_size("--test", test, lines)]
    corpus = f"{display_name(data.files[0])}: has {lines:,} {data.unit if lines != 1 else data.unit.removesuffix('s')}"
    if not sum(sizes):
        if dev is None and test is None:
            raise DataError(f"{corpus}, too few to hold some out; use at least 10, or choose --dev and --test")
        raise DataError(f"{corpus}, of which --dev and --test are 0; give a number above 0 for one of them")
    if sum(sizes) >= lines:
        raise DataError(f"{corpus}; {sizes[0]:,} for dev and {sizes[1]:,} for test leave none to train on; use fewer")
    return sizes


def _parse_size(name: str, text: str, lines: int) -> int:
    """Return the number of lines of `500` or `5%`."""
    number, percent = text.removesuffix("%"), text.endswith("%")
    try:
        size = round(lines * float(number) / 100) if percent else int(number)
    except (ValueError, OverflowError):
        size = -1
    if size < 0:
        raise DataError(f"{name} {text}: give a number of lines or a percentage, such as 500 or 5%")
    return size


def _check_sizes(divided: HeldOut, sizes: list[int], similarity: float) -> None:
    """Report parts that could not be filled; raise an error if one is empty."""
    import numpy as np

    largest = int(np.bincount(divided.groups).max(initial=0))
    for part, indices, size in zip(PARTS, divided.parts, sizes, strict=True):
        if len(indices) < size:
            reason = f"the others are near-duplicates of training lines (the largest group has {largest:,} lines)"
            problem = f"{part}: only {len(indices):,} of {size:,} lines can be held out without leaks; {reason}"
            remedy = "use fewer lines, or --similarity 1 to keep only equal lines together"
            if similarity == 1:
                remedy = "use fewer lines, or a text with more different lines"
            if not len(indices):
                raise DataError(f"{problem}; {remedy}")
            warn(f"{problem}; {remedy}")
