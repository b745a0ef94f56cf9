"""Documents whose format is kept in translation: recognise and parse them."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.core.errors import DataError, did_you_mean
from dragoman.data.file_formats import DOCUMENTS, recognise_format
from dragoman.data.formats import check_utf8, display_name, read_bytes
from dragoman.data.html_documents import parse_html, replace_language
from dragoman.data.inline_markup import ParsedDocument
from dragoman.data.markdown_documents import parse_markdown
from dragoman.data.po_documents import parse_po_document
from dragoman.data.subtitle_documents import parse_subtitles
from dragoman.data.xliff_documents import parse_xliff_document

TEXT = "text"
BOM = "\ufeff"


@dataclass(frozen=True)
class DocumentFile:
    """A parsed file."""

    name: str
    format: str
    document: ParsedDocument
    prefix: str = ""  # a byte order mark
    already_translated: int = 0  # units whose translation stays
    skipped: int = 0  # units that cannot be translated


def document_format(path: str, name: str | None = None) -> str:
    """Return the format of a file: the given one, or that of its ending or its content; TEXT if it is plain text."""
    if name is not None:
        if name not in (*DOCUMENTS, TEXT):
            raise DataError(f"--format {name}: {did_you_mean(name, (*DOCUMENTS, TEXT))}")
        return name
    file_format = recognise_format(path, (*DOCUMENTS, "tmx"))
    if file_format == "tmx":
        remedy = "dragoman doctor --pairs FILE --fix -o DIR writes its two sides as texts"
        raise DataError(f"{display_name(path)}: is TMX, sentence pairs that have a translation; {remedy}")
    return file_format or TEXT


def read_document_file(
    path: str,
    file_format: str,
    *,
    overwrite: bool = False,
    source_language: str | None = None,
    target_language: str | None = None,
) -> DocumentFile:
    """Read and parse a file.

    Args:
        file_format: one of DOCUMENTS.
        overwrite: translate units of PO and XLIFF files again that have a translation.
        source_language, target_language: their codes. An XLIFF file should name the target language, and an HTML file that
            names the source language (`<html lang="de">`) gets that of the target.
    """
    name, raw = display_name(path), read_bytes(path)
    if file_format == "xliff":
        xliff = parse_xliff_document(raw, name, overwrite=overwrite, target_language=target_language)
        return DocumentFile(name, file_format, xliff, "", xliff.already_translated, xliff.skipped)
    prefix, raw = (BOM, raw[len(BOM.encode()) :]) if raw.startswith(BOM.encode()) else ("", raw)
    if file_format == "po":
        catalog = parse_po_document(raw, name, overwrite=overwrite)
        return DocumentFile(name, file_format, catalog, prefix, catalog.already_translated, catalog.skipped)
    check_utf8(raw, name)
    text = raw.decode()
    if file_format in ("srt", "vtt"):
        return DocumentFile(name, file_format, parse_subtitles(text, name), prefix)
    if file_format == "html":
        if source_language is not None and target_language is not None:
            text = replace_language(text, source_language, target_language)
        return DocumentFile(name, file_format, parse_html(text), prefix)
    return DocumentFile(name, file_format, parse_markdown(text), prefix)
