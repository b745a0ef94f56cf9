"""What words cost by several models, as text: a column a model, and empty lines between sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.evaluation.surprisal import SentenceSurprisals, SurprisalTable

if TYPE_CHECKING:
    from rich.table import Table

WORD = "word"
# From so many bits on a number stands on this colour: the darker, the more surprising, whatever colours one can tell.
SURPRISAL_STYLES = (
    (0.0, "black on #ffffcc"),
    (2.0, "black on #fed976"),
    (5.0, "black on #fd8d3c"),
    (9.0, "white on #e31a1c"),
    (14.0, "white on #800026"),
)


def surprisal_tsv(surprisals: SurprisalTable) -> str:
    """Rows `word TAB bits TAB bits ...`, the names of the models above them."""
    header = "\t".join([WORD, *surprisals.models])
    return f"{header}\n" + "\n\n".join(map(_rows, surprisals.sentences))


def _rows(sentence: SentenceSurprisals) -> str:
    return "\n".join(
        "\t".join([word, *(f"{bits:.6f}" for bits in row)])
        for word, row in zip(sentence.words, sentence.bits.tolist(), strict=True)
    )


def surprisal_grid(surprisals: SurprisalTable) -> Table:
    """The same for a terminal: aligned, and every number on a colour that says how surprising the word was."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(WORD, box=None, pad_edge=False, header_style="")
    for name in surprisals.models:
        grid.add_column(Text(name), justify="right", no_wrap=True)
    for number, sentence in enumerate(surprisals.sentences):
        if number:
            grid.add_row()
        for word, row in zip(sentence.words, sentence.bits.tolist(), strict=True):
            grid.add_row(Text(word), *(Text(f" {bits:.2f} ", style=surprisal_style(bits)) for bits in row))
    return grid


def surprisal_style(bits: float) -> str:
    """The colours of a number.

    >>> heat(0.0) == heat(1.9) != heat(2.0), heat(float("inf"))
    (True, 'white on #800026')
    """
    return max((least, style) for least, style in SURPRISAL_STYLES if bits >= least)[1]
