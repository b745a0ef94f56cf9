"""Translation of documents by `dragoman translate`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

from dragoman.cli.messages import info, status, warn
from dragoman.cli.option_groups import OptionGroup, option
from dragoman.cli.options import check_output_file
from dragoman.core.errors import DataError, shell_command, shorten

if TYPE_CHECKING:
    from dragoman.cli.translate_options import LineTranslatorOptions
    from dragoman.data.document_formats import DocumentFile
    from dragoman.models.translation import BaseTranslator


@dataclass(frozen=True)
class DocumentOptions(OptionGroup):
    panel = "Documents"

    format: Annotated[
        str | None,
        option(
            "--format NAME",
            "Format to keep: html, markdown, po, xliff, srt, vtt; text: line by line. Default: by name or content.",
        ),
    ] = None
    overwrite: Annotated[
        bool, option("--overwrite", "Also translate units of PO and XLIFF files that have a translation already.")
    ] = False
    output: Annotated[
        Path | None,
        option("--output, -o FILE", "Write to this file; for several documents, to this directory. Default: print."),
    ] = None


@dataclass(frozen=True)
class TranslateInput:
    """What is translated by what: a text line by line, or documents."""

    models: list[Path]
    text: str
    documents: dict[str, str]  # path and format

    @classmethod
    def from_arguments(
        cls, paths: Sequence[Path], text: str, options: DocumentOptions, field: str | None = None
    ) -> TranslateInput:
        """Separate translators, which are directories, from files."""
        from dragoman.data.document_formats import TEXT, document_format

        models, files = [path for path in paths if not path.is_file()], [str(path) for path in paths if path.is_file()]
        if not models:
            raise DataError(f"{files[0]}: is a file, not a translator; name a translator before it")
        if missing := [str(path) for path in models[1:] if not path.exists()]:
            raise DataError(_missing_files(str(models[0]), missing))
        if files and text != "-":
            raise DataError(f"--text {text}: {files[0]} is given already; name all files, or one with --text")
        files = files or [text]
        formats = {path: document_format(path, options.format) for path in files}
        plain = [path for path, file_format in formats.items() if file_format == TEXT]
        if not plain:
            return cls(models, "-", formats)
        _check_field(plain[0], field)
        if len(files) > 1:
            raise DataError(f"{plain[0]}: is plain text; translate it by itself, or give its format with --format")
        if options.overwrite:
            raise DataError("--overwrite is for PO and XLIFF files; remove it")
        return cls(models, plain[0], {})


def _missing_files(model: str, names: Sequence[str]) -> str:
    """Return a message about arguments that are no files, which may be a sentence."""
    problem, sentence = f"{shorten(names[0])}: no such file or directory; check its name", " ".join(names)
    if Path(names[0]).suffix and " " not in sentence:
        return problem
    return f"{problem}, or translate a sentence by: {shell_command(['dragoman', 'translate', model], sentence)}"


def _check_field(path: str, field: str | None) -> None:
    """Raise an error for a table of which no column is chosen."""
    from dragoman.data.file_formats import START_BYTES
    from dragoman.data.formats import read_start, type_by_name

    if field is not None:
        return
    start, file_type = read_start(path, START_BYTES), type_by_name(path)
    if file_type == "tsv" and b"\t" in start:
        raise DataError(f"{path}: has several columns; choose the one to translate with --field, such as --field 1")
    if file_type == "jsonl" and start.strip() and b'"text"' not in start:
        raise DataError(f"{path}: has no key 'text'; choose the one to translate with --field")


def translate_documents(
    model: BaseTranslator, documents: dict[str, str], search: LineTranslatorOptions, options: DocumentOptions
) -> None:
    """Translate documents, and print them or write them to files, whole or not at all."""
    from dragoman.data.document_formats import read_document_file
    from dragoman.data.inline_markup import plain_text
    from dragoman.data.tokenizer import TREE
    from dragoman.models.document_translation import translate_document
    from dragoman.models.input_checks import input_warning
    from dragoman.models.text_pipeline import TextPipeline, default_replacer

    if model.source.format == TREE:
        raise DataError("a translator of trees cannot translate documents; give it trees, line by line")
    outputs = _output_paths(list(documents), options.output)
    files = {
        path: read_document_file(
            path,
            kind,
            overwrite=options.overwrite,
            source_language=model.source.language,
            target_language=model.target.language,
        )
        for path, kind in documents.items()
    }
    split_sentences, verbatim = not search.no_split, search.verbatim
    pipeline = TextPipeline(model, default_replacer(model), split_sentences=split_sentences, verbatim=verbatim)
    kwargs = search.search_kwargs(model)
    if kwargs.get("unknown_replacer") is None:
        kwargs.pop("unknown_replacer", None)
    for path, file in files.items():
        texts = (plain_text(segment.parts, show=False).text for segment in file.document.segments)
        split = pipeline.split_texts([text for text in texts if text.strip()])
        if split and (message := input_warning(model, [sentence for sentences in split for sentence in sentences])):
            warn(f"{file.name}: {message}")
        with status(f"{file.name}: translating"):
            rendering = translate_document(
                file,
                lambda texts: pipeline.translate_texts(
                    texts, 1, search.beam_size, max_tokens=search.max_units, **kwargs
                ),
            )
        _write(rendering.text, outputs[path])
        info(f"{file.name}: {_summary(file, rendering.unchanged)}")


def _summary(file: DocumentFile, unchanged: int) -> str:
    """Return how many segments are translated, and how many are not."""
    total = len(file.document.segments)
    counts = {
        "left as they are": unchanged,
        "kept because they have a translation": file.already_translated,
        "skipped because of rules for plurals": file.skipped,
    }
    others = "".join(f"; {reason}: {count:,}" for reason, count in counts.items() if count)
    return f"segments translated: {total - unchanged:,}{others}"


def _output_paths(paths: Sequence[str], output: Path | None) -> dict[str, Path | None]:
    """Return where each document is written; None: to standard output."""
    if len(paths) == 1:
        check_output_file("--output", output)
        return {paths[0]: output}
    names = {path: Path(path).name for path in paths}
    if output is None or output.is_file():
        raise DataError(f"{len(paths)} documents: give a directory for their translations with -o DIR")
    if len(set(names.values())) < len(names):
        raise DataError("several documents have the same name; translate them one by one")
    for path in paths:
        if (output / names[path]).resolve() == Path(path).resolve():
            raise DataError(f"--output {output}: {path} would be replaced; choose another directory")
    return {path: output / name for path, name in names.items()}


def check_distinct_files(outputs: Mapping[str, Path | None], text: str) -> None:
    """Raise an error if one file would be written twice, or would replace the text that is translated."""
    seen: dict[Path, str] = {} if text == "-" else {Path(text).resolve(): "the text to translate"}
    for name, path in outputs.items():
        if path is None:
            continue
        if (other := seen.get(path.resolve())) is not None:
            raise DataError(f"{name} {path}: is {other} as well; choose another file")
        seen[path.resolve()] = f"the file of {name}"


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Yield a file to write text to; it is written completely or not at all, compressed if its name ends in .gz."""
    from dragoman.io.files import output_file

    with output_file(path) as binary, TextIOWrapper(binary, encoding="utf-8", newline="\n") as stream:
        yield stream


def _write(text: str, path: Path | None) -> None:
    if path is None:
        print(text, end="", flush=True)
        return
    with whole_file(path) as stream:
        stream.write(text)
