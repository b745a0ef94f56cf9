"""The manifest of a sharded run: texts, models, options and the plan of the shards.

The first process of a run writes it; all others compare it with their own command. It depends on nothing but the
texts, the models and the options, so that it is the same whichever process is the first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from time import sleep
from typing import TypeVar

from pydantic import ValidationError

from dragoman.core.errors import DataError, file_errors
from dragoman.data.line_blocks import LineText
from dragoman.io.files import LockedError, directory_lock, write_text
from dragoman.io.storage import model_digest
from dragoman.sharding.plan import OnProgress, Record, Shard, plan_shards

MANIFEST_FILE = "manifest.json"
FORMAT = 1  # of manifests
POLL_SECONDS = 0.2  # between attempts to lock the manifest

R = TypeVar("R", bound=Record)


class TextFile(Record):
    """A text that is divided. Its contents are recognised by the digests of the shards."""

    name: str
    field: str
    size: int  # bytes of the file


class ModelDirectory(Record):
    """A model that is used."""

    name: str
    sha256: str


class LineJob(Record):
    """What is done with each line."""

    command: str
    models: tuple[ModelDirectory, ...]
    options: dict[str, str]  # all that change the output, as text
    suffix: str  # of the output files
    one_line_each: bool  # whether there is one line of output for each line of the text
    block_lines: int
    version: str  # of dragoman


class Manifest(Record):
    """The contents of manifest.json."""

    format: int
    texts: tuple[TextFile, ...]
    job: LineJob
    shards: tuple[Shard, ...]

    @property
    def text(self) -> str:
        return f"{self.model_dump_json(indent=1)}\n"

    @property
    def digest(self) -> str:
        """The digest by which the output of a shard says which run it belongs to."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def lines(self) -> int:
        return sum(shard.lines for shard in self.shards)

    def output_name(self, number: int) -> str:
        """Return the name of the output of a shard, whose number is counted from 1."""
        width = len(str(len(self.shards)))
        return f"shard-{number:0{width}}-of-{len(self.shards)}{self.job.suffix}"


def text_file(text: LineText) -> TextFile:
    path = Path(text.path)
    with file_errors(path):
        return TextFile(name=path.name, field=text.field, size=path.stat().st_size)


def option_texts(options: Mapping[str, object]) -> dict[str, str]:
    """Return options as text; directories of models by the digests of their files."""
    return {name: _option_text(value) for name, value in sorted(options.items())}


def _option_text(value: object) -> str:
    return model_digest(value) if isinstance(value, Path) and value.is_dir() else str(value)


def read_record(path: Path, kind: type[R]) -> R:
    """Read a JSON file of a sharded run."""
    with file_errors(path):
        content = path.read_bytes()
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        remedy = "remove it, and run the shards again"
        raise DataError(f"{path}: damaged, or not written by dragoman ({place}: {problem['msg']}); {remedy}") from None


def read_manifest(path: Path) -> Manifest:
    """Read a manifest; `path` is the file or its directory."""
    file = path / MANIFEST_FILE if path.is_dir() else path
    if not file.is_file():
        remedy = "give the directory that dragoman translate --shards wrote to, or its manifest.json"
        raise DataError(f"{path}: {'has no manifest.json' if path.is_dir() else 'no such file or directory'}; {remedy}")
    manifest = read_record(file, Manifest)
    if manifest.format != FORMAT:
        raise DataError(f"{file}: has format {manifest.format}, and this version reads {FORMAT}; update dragoman")
    return manifest


def open_manifest(
    directory: Path,
    job: LineJob,
    texts: Sequence[LineText],
    shards: int,
    *,
    on_wait: Callable[[], None] = lambda: None,
    on_progress: OnProgress = lambda done, total: None,
) -> Manifest:
    """Return the manifest of a run. The first process writes it; others wait for it, and check that it is the same run.

    Args:
        directory: where the outputs are written.
        job, texts, shards: what is done, with what, and in how many parts.
        on_wait: called once if another process is dividing the text.
        on_progress: called while this process divides the text.
    """
    path, is_waiting = directory / MANIFEST_FILE, False
    while not path.is_file():
        try:
            with directory_lock(path):
                if not path.is_file():
                    _check_new(directory)
                    files = tuple(text_file(text) for text in texts)
                    planned = plan_shards(texts, shards, job.block_lines, on_progress)
                    write_text(path, Manifest(format=FORMAT, texts=files, job=job, shards=planned).text)
        except LockedError:
            if not is_waiting:
                on_wait()
            is_waiting = True
            sleep(POLL_SECONDS)
    manifest = read_manifest(path)
    _check_same(path, manifest, job, texts, shards)
    return manifest


def _check_new(directory: Path) -> None:
    """Raise an error if a directory has other files."""
    if any(not file.name.startswith(".") for file in directory.iterdir()):
        raise DataError(f"{directory}: has other files, and no {MANIFEST_FILE}; name a new or empty directory")


def _check_same(path: Path, manifest: Manifest, job: LineJob, texts: Sequence[LineText], shards: int) -> None:
    """Raise an error that names the first difference between a manifest and this process's command."""
    for before, now in _differences(manifest, job, [text_file(text) for text in texts], shards):
        remedy = "give what the other shards were given, or name another directory with -o"
        raise DataError(f"{path}: is of a run with {before}, and this one has {now}; {remedy}")


def _describe(value: str | None) -> str:
    """Return the value of an option for a message.

    >>> _describe("5"), _describe("True"), _describe("False"), _describe("None")
    ('5', '(on)', '(off)', '(not given)')
    """
    return {"True": "(on)", "False": "(off)", "None": "(not given)", None: "(not given)"}.get(value, str(value))


def _differences(manifest: Manifest, job: LineJob, files: Sequence[TextFile], shards: int) -> Iterator[tuple[str, str]]:
    """Yield descriptions of what differs between a manifest and this process's command."""
    old, new = manifest.job, job
    names = {**old.options, **new.options}
    pairs = [
        ("the command", old.command, new.command),
        ("--shards", str(len(manifest.shards)), str(shards)),
        ("number of texts:", str(len(manifest.texts)), str(len(files))),
        *((f"--{name}", *(_describe(job.options.get(name)) for job in (old, new))) for name in names),
        ("number of models:", str(len(old.models)), str(len(new.models))),
        ("dragoman", old.version, new.version),
        ("lines per block:", str(old.block_lines), str(new.block_lines)),
    ]
    yield from ((f"{name} {before}", f"{name} {now}") for name, before, now in pairs if before != now)
    for file, other in zip(manifest.texts, files, strict=False):
        if file.size != other.size:
            yield f"{file.name} of {file.size:,} bytes", f"{other.name} of {other.size:,} bytes"
        if file.field != other.field:
            yield f"the field {file.field!r} of {file.name}", f"the field {other.field!r}"
    for model, directory in zip(old.models, new.models, strict=False):
        if model.sha256 != directory.sha256:
            yield f"the model {model.name} ({model.sha256[:8]})", f"{directory.name} ({directory.sha256[:8]})"
