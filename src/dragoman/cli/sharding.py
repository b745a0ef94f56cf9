"""Shards of a text in `dragoman translate` and `dragoman score`: options, and how a shard is opened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, TypeVar

from dragoman import __version__
from dragoman.cli.messages import info
from dragoman.cli.option_groups import OptionGroup, option
from dragoman.cli.progress import amount_progress, format_rate
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.sharding.manifest import LineJob
    from dragoman.sharding.shard import ShardTask

S = TypeVar("S", bound=Sized)


@dataclass(frozen=True)
class ShardOptions(OptionGroup):
    panel = "Shards"

    shards: Annotated[
        int | None,
        option(
            "--shards N",
            "Divide the text into N parts of about the same size, for N processes or jobs; each needs --shard and -o DIR.",
        ),
    ] = None
    shard: Annotated[
        int | None,
        option(
            "--shard K",
            "The part to process, from 1 to N. Its output is written to the directory -o, completely or not at all; a "
            "part that is finished is skipped. dragoman merge joins all parts.",
        ),
    ] = None
    dedup: Annotated[bool, option("--dedup", "Process equal lines once. With --shards, in each part by itself.")] = (
        False
    )

    @property
    def is_given(self) -> bool:
        return self.shards is not None or self.shard is not None

    def check(self, text: str, output: Path | None) -> None:
        """Raise an error if the options do not fit together, or to the text."""
        if self.shards is None or self.shard is None:
            raise DataError("--shards and --shard belong together, such as --shards 100 --shard 7")
        if self.shards < 1:
            raise DataError(f"--shards {self.shards}: give 1 or more")
        if not 1 <= self.shard <= self.shards:
            remedy = f"shards are numbered from 1 to {self.shards}, as by seq {self.shards} or Slurm's --array=1-{self.shards}"
            raise DataError(f"--shard {self.shard}: {remedy}")
        if text == "-":
            raise DataError("--shards: standard input cannot be divided; give a file with --text FILE")
        if output is None:
            raise DataError("--shards: give a directory for the outputs of all shards with -o DIR")
        if output.exists() and not output.is_dir():
            raise DataError(f"--output {output}: is a file; with --shards, name a directory")


def is_planned(directory: Path) -> bool:
    """Return whether a run has a manifest. Otherwise, models are loaded first, so that their errors leave none behind."""
    from dragoman.sharding.manifest import MANIFEST_FILE

    return (directory / MANIFEST_FILE).exists()


def new_job(
    command: str,
    models: Sequence[Path],
    options: Mapping[str, object],
    *,
    suffix: str,
    one_line_each: bool,
    block_lines: int,
) -> LineJob:
    """Return what a command does with each line; see `dragoman.sharding.manifest.LineJob`."""
    from dragoman.io.storage import model_digest
    from dragoman.models.loading import read_model_kind
    from dragoman.sharding.manifest import LineJob, ModelDirectory, option_texts

    for path in models:
        read_model_kind(path)  # raises an error if it is none
    return LineJob(
        command=command,
        models=tuple(ModelDirectory(name=path.name, sha256=model_digest(path)) for path in models),
        options=option_texts(options),
        suffix=suffix,
        one_line_each=one_line_each,
        block_lines=block_lines,
        version=__version__,
    )


@contextmanager
def open_shard(
    options: ShardOptions, directory: Path, job: LineJob, texts: Sequence[tuple[str, str | None]]
) -> Iterator[ShardTask | None]:
    """Yield the shard to process, which is locked; None if it is finished. `texts` are files with their fields."""
    from dragoman.data.line_blocks import LineText
    from dragoman.sharding.manifest import open_manifest
    from dragoman.sharding.shard import ShardTask

    assert options.shards is not None and options.shard is not None, "checked before"
    line_texts = [LineText.of(*text) for text in texts]
    names = " and ".join(text.path for text in line_texts)
    manifest = open_manifest(
        directory,
        job,
        line_texts,
        options.shards,
        on_wait=lambda: info(f"{directory}: waiting for another process that divides the text"),
        on_progress=amount_progress(f"{names}: reading", "MB", scale=10**6),
    )
    task = ShardTask(directory, manifest, options.shard, line_texts)
    with task.locked():
        if task.is_finished():
            task.check_texts()
            info(f"{task.path}: {task.name} is finished already; skipped")
            yield None
            return
        first, last, start = task.shard.first_line, task.shard.first_line + task.shard.lines - 1, monotonic()
        lines = f"lines {first:,} to {last:,}" if task.shard.lines else "no lines"
        info(f"{task.name}: {lines} of {manifest.lines:,} ({task.shard.size:,} bytes)")
        yield task
        seconds = monotonic() - start
        info(f"{task.path}: {task.shard.lines:,} lines in {seconds:,.0f} s, {format_rate(task.shard.lines, seconds)}")


def with_progress(task: ShardTask, batches: Iterable[S]) -> Iterator[S]:
    """Yield the batches of a shard's lines, and report from time to time how many have been processed."""
    progress, done = amount_progress(task.name, "lines"), 0
    for batch in batches:
        yield batch
        done += len(batch)
        progress(done, task.shard.lines)
