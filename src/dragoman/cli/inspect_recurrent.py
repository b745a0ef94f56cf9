"""dragoman inspect cells, dragoman inspect saliency, dragoman inspect gradients"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dragoman.cli import options
from dragoman.cli.messages import info, status, suggest_command
from dragoman.cli.option_groups import argument, option
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.corpus import Corpus
    from dragoman.models.inspection import Activations, Saliency
    from dragoman.models.recurrent import RecurrentModel

BAR_WIDTH = 40  # columns of the longest bar


def _load(path: Path) -> RecurrentModel:
    from dragoman.models.loading import load_language_model
    from dragoman.models.quantized import check_is_trainable
    from dragoman.models.recurrent import RecurrentModel

    model = load_language_model(path)
    check_is_trainable(model, path)
    if not isinstance(model, RecurrentModel):
        remedy = "give a model of dragoman train recurrent"
        raise DataError(f"{path}: is a model of kind {model.kind}, not recurrent; {remedy}")
    return model


def _encode(models: Mapping[str, RecurrentModel], text: str, field: str | None) -> list[Corpus]:
    """Read a text, which must have words, for each model."""
    from dragoman.data.formats import display_name

    corpora = options.encode_for_models(list(models.items()), text, field)
    if not corpora[0].num_words:
        raise DataError(f"{display_name(text)}: has no words; give at least one sentence")
    return corpora


def inspect_cells(
    model: options.Model,
    text: options.Text = "-",
    field: options.Field = None,
    cells: Annotated[str, option("--cells N,N,...", "Cells to show, counted from 0.")] = "",
    follow: Annotated[
        str | None,
        option(
            "--follow WORD",
            "Show the cells with the highest correlation with: whether this word occurred in the sentence so far or, "
            "for `position`, the position in the sentence. Default: position, unless --cells is given.",
        ),
    ] = None,
    most: Annotated[int, option("--most N", "Number of cells shown by --follow.", min=1)] = 5,
    part: Annotated[str, option("--part h|c", "Part of the state: h, or the memory c of an LSTM.")] = "h",
    layer: Annotated[int | None, option("--layer N", "Layer, counted from 1. Default: the last.")] = None,
    picture: options.Picture = None,
) -> None:
    """Print the values of chosen cells after each word.

    The state of a recurrent model is its only memory of the sentence. Some cells can be interpreted: one may count the
    words, another may be active after `he`. --follow finds such cells by their correlation over the whole text, which
    is printed on standard error; use a few hundred sentences.

    Prints rows `word TAB value TAB value ...` with the numbers of the cells above, and an empty line between sentences.
    A picture shows the first sentences that fit (with a word: those that contain it), positive values in red and
    negative ones in blue.

    \b
    Example:
      dragoman inspect cells lstm --text test.txt --follow position --part c --picture cells.svg
      dragoman inspect cells lstm --text test.txt --follow he --most 3
      echo "she sees herself" | dragoman inspect cells lstm --cells 3,17
    """
    from dragoman.models.inspection import POSITION, activations, correlated_cells

    options.check_picture(picture)
    if cells and follow is not None:
        raise DataError("--cells and --follow both choose cells; remove one of them")
    chosen = options.parse_numbers("--cells", cells, int, "3,17")
    loaded = _load(model)
    for number, cell in enumerate(chosen):
        if cell not in range(loaded.settings.hidden):
            last = loaded.settings.hidden - 1
            raise DataError(f"--cells {cell}: a layer has the cells 0 to {last}; choose from these")
        if cell in chosen[:number]:
            raise DataError(f"--cells {cell}: named twice; name each cell once")
    [corpus] = _encode({str(model): loaded}, text, field)
    values = activations(loaded, corpus, part, layer)
    names = {cell: f"cell {cell}" for cell in chosen}
    feature = follow or POSITION
    if not cells:
        for cell, correlation in correlated_cells(values, feature, most):
            names[cell] = f"cell {cell} follows {feature}: correlation {correlation:.2f}"
    if picture is not None:
        _draw_cells(values, names, None if feature == POSITION else feature, picture)
    if not cells:
        info("\n".join(names.values()))
    print("\n".join(_cell_rows(values, list(names))))
    suggest_command("inspect", "saliency", model, next(filter(None, corpus.lines())))


def _cell_rows(values: Activations, cells: list[int]) -> Iterator[str]:
    yield "\t".join(["word", *map(str, cells)])
    for number, (words, states) in enumerate(zip(values.words, values.values, strict=True)):
        if number:
            yield ""
        for word, state in zip(words, states[:, cells].tolist(), strict=True):
            yield "\t".join([word, *(f"{value:.6f}" for value in state)])


def _draw_cells(values: Activations, names: Mapping[int, str], word: str | None, path: Path) -> None:
    """Draw the first sentences that fit, of those that contain a word if one is given."""
    from dragoman.models.inspection import is_word
    from dragoman.report.networks import MAX_WORDS, draw_cells

    sentences = [
        number
        for number, words in enumerate(values.words)
        if words and (word is None or any(is_word(token, word) for token in words))
    ]
    short = [number for number in sentences if len(values.words[number]) <= MAX_WORDS]
    totals = accumulate(len(values.words[number]) for number in short)
    fitting = [number for number, total in zip(short, totals, strict=True) if total <= MAX_WORDS] or sentences[:1]
    by_cell = {name: [values.of_cell(cell)[number] for number in fitting] for cell, name in names.items()}
    title = f"{values.part} of layer {values.layer} after each word"
    draw_cells([values.words[number] for number in fitting], by_cell, path, title=title)
    info(f"{path}: the values in {len(fitting)} of {len(values.words):,} sentences")


def inspect_saliency(
    model: options.Model,
    sentence: Annotated[str, argument("SENTENCE", "A sentence, in quotes.")],
    word: Annotated[
        str | None,
        option("--word WORD", "The predicted word, at its last occurrence; </s> is the end. Default: the last word."),
    ] = None,
    show_all: Annotated[
        bool, option("--all", "Print all predictions: one row each, one column for each word before.")
    ] = False,
    picture: options.Picture = None,
) -> None:
    """Print how much a prediction depends on each word.

    This is the norm of the gradient of log P(word | words before) with respect to the vector of each word before.
    Whether `himself` depends on `he` or on the adjacent word shows what the model has learned about the sentence.

    With --all, words that were not yet read have 0. A picture shows all predictions, each row scaled by its highest
    value.

    \b
    Example:
      dragoman inspect saliency lstm "he sees himself"
      dragoman inspect saliency lstm "he sees himself in the mirror" --word himself --picture himself.svg
      dragoman inspect saliency lstm "he sees himself" --all > matrix.tsv
    """
    from dragoman.models.inspection import is_word, saliency
    from dragoman.report.networks import draw_saliency

    options.check_picture(picture)
    options.check_utf8_argument(sentence, "sentence")
    if not sentence.split():
        example = 'dragoman inspect saliency DIR "he sees her"'
        raise DataError(f"the sentence is empty; give one in quotes, such as: {example}")
    if show_all and word is not None:
        raise DataError("--all prints all predictions and --word one of them; remove one of the options")
    result = saliency(_load(model), sentence)
    rows = [row for row, predicted in enumerate(result.predicted) if word is not None and is_word(predicted, word)]
    if word is not None and not rows:
        raise DataError(f"--word {word!r}: not in the sentence; its words are {' '.join(result.predicted)}")
    if picture is not None:
        title = "Which words a prediction depends on"
        draw_saliency(result.read, result.predicted, result.norms, picture, title=title)
        info(f"{picture}: which words each prediction depends on")
    if show_all:
        print("\t".join(["predicted", *result.read]))
        for name, norms in zip(result.predicted, result.norms.tolist(), strict=True):
            print("\t".join([name, *(f"{norm:.6g}" for norm in norms)]))
    else:
        row = rows[-1] if rows else len(result.predicted) - 2
        info(f"the prediction of {result.predicted[row]} depends on:")
        print(_format_row(result, row))
    if picture is None:
        suggest_command("inspect", "saliency", model, sentence, "--picture", "saliency.svg")


def _format_row(result: Saliency, row: int) -> str:
    """Return the words before a prediction with their gradients; with bars on a terminal."""
    from dragoman.report.tables import format_table

    pairs = list(zip(result.read[: row + 1], result.norms[row, : row + 1].tolist(), strict=True))
    if not sys.stdout.isatty():
        return "\n".join(f"{word}\t{norm:.6g}" for word, norm in pairs)
    scale = BAR_WIDTH / (max(norm for _, norm in pairs) or 1.0)
    return format_table(
        ["word", "gradient", ""], [(word, f"{norm:.4f}", "█" * round(scale * norm)) for word, norm in pairs]
    )


def inspect_gradients(
    models: options.Models,
    text: options.Text,
    field: options.Field = None,
    words: Annotated[int, option("--words N", "Number of words back; shorter sentences are not used.", min=1)] = 20,
    picture: options.Picture = None,
) -> None:
    """Measure how far back gradients reach.

    The loss of the word after the first N words of a sentence is propagated back. Prints the norm of the gradient with
    respect to the state 0, 1, 2, ... words earlier (h, and c if there is one, of all layers), as the mean over all
    sentences that are long enough. If it becomes very small (vanishing gradient), training cannot learn from words that
    far back.

    Each model has two columns: after training, and before training with random parameters.

    \b
    Example:
      dragoman inspect gradients rnn gru lstm --text test.txt --words 20 --picture gradients.svg
    """
    from dragoman.models.inspection import gradient_by_distance, untrained_copy
    from dragoman.models.loading import check_distinct
    from dragoman.report.networks import GradientNorms, draw_gradients
    from dragoman.report.tables import format_table

    options.check_picture(picture)
    check_distinct(models)
    with status("computing gradients"):
        loaded = {str(path): _load(path) for path in models}
        results = {
            name: GradientNorms(*(gradient_by_distance(each, corpus, words) for each in (model, untrained_copy(model))))
            for (name, model), corpus in zip(loaded.items(), _encode(loaded, text, field), strict=True)
        }
    if picture is not None:
        named = dict(zip(options.short_names(list(results)), results.values(), strict=True))
        draw_gradients(named, picture, title="How far back gradients reach")
        info(f"{picture}: how far back gradients reach")
    headers = ["words back", *(f"{name}{suffix}" for name in results for suffix in ("", ", untrained"))]
    columns = [norms.tolist() for both in results.values() for norms in both]
    rows = [[str(back), *(f"{norm:.3g}" for norm in row)] for back, row in enumerate(zip(*columns, strict=True))]
    if sys.stdout.isatty():
        print(format_table(headers, rows))
    else:
        print("\n".join("\t".join(row) for row in [headers, *rows]))
    for name, norms_pair in results.items():
        trained, untrained = (norms[-1] / norms[0] if norms[0] else 0.0 for norms in norms_pair)
        info(f"{name}: {trained:.2g} of the gradient is left {words - 1} words back; before training, {untrained:.2g}")
    if picture is None:
        arguments = ("--text", text, "--words", str(words), "--picture", "gradients.svg")
        suggest_command("inspect", "gradients", *models, *arguments, field=field)
