"""The format of a file: by the ending of its name, or by how it starts."""

from __future__ import annotations

import re
from collections.abc import Collection

from dragoman.data.formats import BOM, read_start, type_by_name

DOCUMENTS = ("html", "markdown", "po", "xliff", "srt", "vtt")  # formats of documents that are translated
PAIRS = ("tsv", "jsonl", "tmx", "po", "xliff")  # formats with two sides
OTHER_ENDINGS = {"htm": "html", "xhtml": "html", "md": "markdown", "pot": "po", "xlf": "xliff"}
# What may come before the first element. Nothing of it is tried in two ways, so that the time is linear.
XML_PROLOGUE = r"(?><\?xml[^>]*>|<!DOCTYPE(?!\s+html)[^>\[]*(?:\[.*?\]\s*)?>|<!--.*?-->|\s)*+"
CONTENT = {  # the start of a file
    "html": re.compile(rf"{XML_PROLOGUE}<(?:!doctype html|html)\b", re.IGNORECASE | re.DOTALL),
    "tmx": re.compile(rf"{XML_PROLOGUE}<(?:\w+:)?tmx\b", re.DOTALL),
    "xliff": re.compile(rf"{XML_PROLOGUE}<(?:\w+:)?xliff\b", re.DOTALL),
    "vtt": re.compile(r"WEBVTT(?:\s|$)"),
    "srt": re.compile(r"\s*\d+\s*\r?\n\d+:\d\d:\d\d,\d+ --> "),
    "po": re.compile(r'(?>#[^\r\n]*[\r\n]|\s)*+(?:domain|msgctxt|msgid)\s+"'),
}
START_BYTES = 1 << 16


def recognise_format(path: str, formats: Collection[str]) -> str | None:
    """Return which of some formats a file has; None: another one.

    >>> recognise_format("de.po", DOCUMENTS), recognise_format("notes.txt", DOCUMENTS)
    ('po', None)
    """
    ending = type_by_name(path)
    by_name = OTHER_ENDINGS.get(ending, ending)
    if by_name in formats:
        return by_name
    start = read_start(path, START_BYTES).removeprefix(BOM)
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if start.startswith(mark):
            text = start[2:].decode(encoding, errors="ignore")
            break
    else:
        text = start.decode("latin-1")
    return next((name for name in formats if name in CONTENT and CONTENT[name].match(text)), None)
