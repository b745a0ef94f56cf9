"""Documents whose format is kept in translation: recognise and parse them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dragoman.core.errors import DataError, did_you_mean
from dragoman.data.catalog_documents import parse_po_document, parse_xliff_document
from dragoman.data.formats import check_utf8, display_name, read_bytes, read_start, type_by_name
from dragoman.data.html_documents import parse_html
from dragoman.data.inline_markup import ParsedDocument
from dragoman.data.markdown_documents import parse_markdown
from dragoman.data.subtitle_documents import parse_subtitles

TEXT = "text"
FORMATS = ("html", "markdown", "po", "xliff", "srt", "vtt")
OTHER_ENDINGS = {"htm": "html", "xhtml": "html", "md": "markdown", "pot": "po", "xlf": "xliff"}
FORMAT_OF_ENDING = {name: name for name in FORMATS} | OTHER_ENDINGS
CONTENT = {  # the start of a file by which its format is recognised
    "html": re.compile(rb"\s*(?:<!--.*?-->\s*)*<(?:!doctype html|html)\b", re.IGNORECASE | re.DOTALL),
    "xliff": re.compile(rb"(?:<\?xml[^>]*>|<!--.*?-->|\s)*<xliff\b", re.DOTALL),
    "vtt": re.compile(rb"WEBVTT(?:\s|$)"),
    "srt": re.compile(rb"\s*\d+\s*\r?\n\d+:\d\d:\d\d,\d+ --> "),
    "po": re.compile(rb'(?:#[^\n]*\n|\s)*msgid ""\s'),
}
START_BYTES = 4096
BOM = "\ufeff"


@dataclass(frozen=True)
class DocumentFile:
    """A parsed file."""

    name: str
    format: str
    document: ParsedDocument
    prefix: str = ""  # a byte order mark
    already_translated: int = 0  # units whose translation stays


def document_format(path: str, name: str | None = None) -> str:
    """Return the format of a file: the given one, or that of its ending or its content; TEXT if it is plain text."""
    if name is not None:
        if name not in (*FORMATS, TEXT):
            raise DataError(f"--format {name}: {did_you_mean(name, (*FORMATS, TEXT))}")
        return name
    if (file_format := FORMAT_OF_ENDING.get(type_by_name(path))) is not None:
        return file_format
    start = read_start(path, START_BYTES).removeprefix(BOM.encode())
    return next((file_format for file_format, pattern in CONTENT.items() if pattern.match(start)), TEXT)


def read_document_file(path: str, file_format: str, *, overwrite: bool = False) -> DocumentFile:
    """Read and parse a file.

    Args:
        file_format: one of FORMATS.
        overwrite: translate units of PO and XLIFF files again that have a translation.
    """
    name, raw = display_name(path), read_bytes(path)
    if file_format == "xliff":
        xliff = parse_xliff_document(raw, name, overwrite=overwrite)
        return DocumentFile(name, file_format, xliff, already_translated=xliff.already_translated)
    check_utf8(raw, name)
    text = raw.decode()
    prefix, text = (BOM, text[1:]) if text.startswith(BOM) else ("", text)
    if file_format == "po":
        catalog = parse_po_document(text, name, overwrite=overwrite)
        return DocumentFile(name, file_format, catalog, prefix, catalog.already_translated)
    if file_format in ("srt", "vtt"):
        return DocumentFile(name, file_format, parse_subtitles(text, name), prefix)
    return DocumentFile(name, file_format, parse_html(text) if file_format == "html" else parse_markdown(text), prefix)
