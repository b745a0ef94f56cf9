"""dragoman merge"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from dragoman.cli.messages import info
from dragoman.cli.option_groups import argument, option
from dragoman.cli.options import check_output_file
from dragoman.cli.progress import amount_progress


def merge(
    shards: Annotated[Path, argument("DIR", "The directory that all shards were written to, or its manifest.json.")],
    output: Annotated[Path, option("--output, -o FILE", "The file to write; compressed if its name ends in .gz.")],
) -> None:
    """Join the outputs of translate or score with --shards.

    They are written by dragoman translate or dragoman score with --shards N --shard K -o DIR. Checks first that all
    of them are finished and belong to the same text, models and options; and then, by SHA-256 digests, that each output is
    what its shard wrote. The file is written completely or not at all.

    \b
    Example:
      seq 100 | parallel dragoman translate de-en --text big.de --shards 100 --shard {} -o parts
      dragoman merge parts -o big.en
    """
    from dragoman.sharding.merge import merge_shards

    check_output_file("--output", output)
    merged = merge_shards(shards, output, amount_progress(f"{output}: merging", "MB", scale=10**6))
    lines = f"{merged.output_lines:,} lines for {merged.lines:,} lines of text"
    info(f"{output}: {merged.shards:,} shard{'' if merged.shards == 1 else 's'}, {lines}")
