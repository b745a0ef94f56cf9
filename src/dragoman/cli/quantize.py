"""The command `dragoman quantize`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from dragoman.cli.messages import info, status, suggest_command, warn_if_unfinished
from dragoman.cli.option_groups import argument
from dragoman.cli.options import Force, Output, lock_output
from dragoman.core.errors import DataError


def quantize(
    model: Annotated[Path, argument("MODEL", "Directory of a translator, recurrent or feed-forward model.")],
    output: Output,
    force: Force = False,
) -> None:
    """Round the weights of a translator or neural language model to 8 bits.

    The directory and the memory in use have about a quarter of the size, and search and scoring are faster on processors
    with AVX512_VNNI, AVX_VNNI or AMX. That pays for larger models; those with less than about a million parameters may be
    slower. Each row of a matrix has its own scale. The inputs of matrix products are rounded
    to 8 bits as well, each row with its own scale, so that sentences of a batch do not share one. Compare both models by
    dragoman evaluate before using the smaller one. It cannot be trained.

    \b
    Example:
      dragoman quantize de-en -o de-en-8
      dragoman evaluate de-en de-en-8 --src test.de --ref test.en
      dragoman translate de-en --precision int8 < test.de     # the same without writing a model
      dragoman quantize lstm -o lstm-8
      dragoman evaluate lstm lstm-8 --text test.txt
    """
    from dragoman.io.files import real_path
    from dragoman.io.storage import check_output_directory
    from dragoman.models.loading import TRANSLATOR_KINDS
    from dragoman.models.quantized import quantize_directory, warn_if_slow

    if real_path(model) == real_path(output):
        raise DataError(f"{output}: is the model itself, which would be lost; choose another directory")
    check_output_directory(output, replace=force)
    lock_output(output)
    warn_if_unfinished([model])
    with status("rounding"):
        quantized = quantize_directory(model, output, replace=force)
    before, after = (_size(directory) for directory in (model, output))
    info(f"{output}: {after / 1e6:.1f} MB instead of {before / 1e6:.1f} MB")
    warn_if_slow(output, f"use {model} on it")
    texts = ("--src", "FILE", "--ref", "FILE") if quantized.kind in TRANSLATOR_KINDS else ("--text", "FILE")
    suggest_command("evaluate", model, output, *texts)


def _size(model: Path) -> int:
    """Return the size of the parameters of a model in bytes."""
    from dragoman.io.storage import ARRAYS_FILE

    return (model / ARRAYS_FILE).stat().st_size
