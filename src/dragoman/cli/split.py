"""dragoman split"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dragoman.cli.messages import info, status, suggest_command, warn
from dragoman.cli.option_groups import option
from dragoman.cli.options import Field, Seed, SrcField, TgtField
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.held_out import HeldOut
    from dragoman.io.corpus_split import SplitInput

PARTS = ("dev", "test")


def split(
    output: Annotated[Path, option("--output, -o DIR", "The directory for the new files.")],
    text: Annotated[str | None, option("--text FILE", "Text, one sentence per line, or rows: .tsv, .jsonl.")] = None,
    src: Annotated[str | None, option("--src FILE", "Source of sentence pairs.")] = None,
    tgt: Annotated[str | None, option("--tgt FILE", "Translation of --src.")] = None,
    field: Field = None,
    src_field: SrcField = None,
    tgt_field: TgtField = None,
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
    is the share of common character 4-grams. Blank lines, and pairs with a blank side, are left out.

    By default dev and test have 5 sqrt(N) lines each for a text of N lines: 500 of 10,000, at most 2,000, and at most a
    tenth. The files have the endings of the given ones, and their lines are in the same order. Rows of .tsv and .jsonl
    files stay whole.

    \b
    Example:
      dragoman split --src all.de --tgt all.en -o data     # writes data/train.de, data/dev.de, data/test.de, ...
      dragoman split --text pairs.tsv --dev 500 --test 5% -o data
      dragoman split --text news.txt --test 0 --seed 7 -o data
    """
    from dragoman.data.held_out import default_size, divide
    from dragoman.io.corpus_split import read_split_input, write_parts

    if (text is None) is (src is None) or (src is None) is not (tgt is None):
        raise DataError("give either --text FILE, or --src FILE and --tgt FILE")
    files = [text] if text is not None else [file for file in (src, tgt) if file is not None]
    has_both_fields = src_field is not None or tgt_field is not None
    with status("dividing"):
        data = read_split_input(files, [src_field, tgt_field] if has_both_fields else [field] * len(files))
        lines = len(data.sides[0])
        dev_size = default_size(lines) if dev is None else _parse_size("--dev", dev, lines)
        sizes = [dev_size, dev_size if test is None else _parse_size("--test", test, lines)]
        if not 0 < sum(sizes) < lines:
            raise DataError(
                f"{lines:,} lines cannot be divided into {sum(sizes):,} for dev and test, and others to train"
            )
        divided = divide(data.sides, sizes, seed, similarity)
        _check_sizes(divided, sizes)
        paths = write_parts(data, divided, PARTS, output, prefix, replace=force)
    _report(data, divided, paths)


def _report(data: SplitInput, divided: HeldOut, paths: dict[str, list[Path]]) -> None:
    """Print the size of each part and what was kept together, and suggest the next command."""
    unit = "pairs" if len(data.sides) > 1 else "lines"
    counts = dict(zip(("train", *PARTS), (divided.train, *divided.parts), strict=True))
    for part, names in paths.items():
        info(f"{part:5}  {len(counts[part]):>9,} {unit}  {', '.join(map(str, names))}")
    groups, members = divided.kept_together
    if groups:
        info(f"{members:,} {unit} have duplicates or near-duplicates; their {groups:,} groups were kept together")
    if len(divided.blank):
        info(f"{len(divided.blank):,} {'pairs with a blank side' if unit == 'pairs' else 'blank lines'} were left out")
    if len(data.files) == 2 and "dev" in paths:
        train = ("--src", paths["train"][0], "--tgt", paths["train"][1])
        suggest_command(
            "train", "translator", *train, "--dev-src", paths["dev"][0], "--dev-tgt", paths["dev"][1], "-o", "model"
        )


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


def _check_sizes(divided: HeldOut, sizes: list[int]) -> None:
    """Report parts that could not be filled; raise an error if one is empty."""
    import numpy as np

    largest = int(np.bincount(divided.groups).max(initial=0))
    for part, indices, size in zip(PARTS, divided.parts, sizes, strict=True):
        if len(indices) < size:
            reason = f"the others are near-duplicates of training lines (the largest group has {largest:,} lines)"
            problem = f"{part}: only {len(indices):,} of {size:,} lines can be held out without leaks; {reason}"
            remedy = "use fewer lines, or --similarity 1 to keep only equal lines together"
            if not len(indices):
                raise DataError(f"{problem}; {remedy}")
            warn(f"{problem}; {remedy}")
