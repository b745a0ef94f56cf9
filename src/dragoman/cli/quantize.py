"""The command `dragoman quantize`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from dragoman.cli.messages import info, status, suggest_command
from dragoman.cli.option_groups import argument
from dragoman.cli.options import Force, Output, lock_output
from dragoman.core.errors import DataError


def quantize(
    model: Annotated[Path, argument("MODEL", "Directory of a translator.")], output: Output, force: Force = False
) -> None:
    """Round the weights of a translator to 8 bits, for faster search.

    The directory has a quarter of the size. Each row of a matrix has its own scale. In search, the inputs of matrix
    products are rounded to 8 bits as well, each row with its own scale, so a translation does not depend on the other
    sentences of a batch. Compare both models by dragoman evaluate before using the smaller one. It cannot be trained.

    \b
    Example:
      dragoman quantize de-en -o de-en-8
      dragoman evaluate de-en de-en-8 --src test.de --ref test.en
      dragoman translate de-en --precision int8 < test.de     # the same without writing a model
    """
    from dragoman.io.files import real_path
    from dragoman.io.storage import check_output_directory
    from dragoman.models.loading import load
    from dragoman.models.quantized_translator import QuantizedTranslator
    from dragoman.models.translator import Translator

    if real_path(model) == real_path(output):
        raise DataError(f"{output}: is the model itself, which would be lost; choose another directory")
    check_output_directory(output, replace=force)
    lock_output(output)
    with status("rounding"):
        loaded = load(model)
        if isinstance(loaded, QuantizedTranslator):
            raise DataError(f"{model}: its weights have 8 bits already")
        if not isinstance(loaded, Translator):
            raise DataError(f"{model}: is a model of kind {loaded.kind}; only translators can be quantized")
        QuantizedTranslator.quantize(loaded).save(output, replace=force)
    before, after = (_size(directory) for directory in (model, output))
    info(f"{output}: {after / 1e6:.1f} MB instead of {before / 1e6:.1f} MB")
    suggest_command("evaluate", model, output, "--src", "FILE", "--ref", "FILE")


def _size(model: Path) -> int:
    """Return the size of the parameters of a model in bytes."""
    from dragoman.io.storage import ARRAYS_FILE

    return (model / ARRAYS_FILE).stat().st_size
