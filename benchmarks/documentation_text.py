"""Real prose from documentation packages: one line per paragraph, tokenised, without repeated lines.

    apt-get download debian-reference-en linux-doc python3-doc ...
    python benchmarks/documentation_text.py *.deb > prose.txt

The text is that of HTML, plain text and man pages in the packages. Lines with few letters, such as tables and code, are
left out.
"""

from __future__ import annotations

import argparse
import gzip
import html
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

HIDDEN = re.compile(rb"<(script|style|pre|head)\b.*?</\1>", re.DOTALL | re.IGNORECASE)
BLOCK = re.compile(rb"</?(?:p|div|li|td|th|tr|h\d|br|dt|dd|section|table|ul|ol|blockquote)\b[^>]*>", re.IGNORECASE)
TAG = re.compile(rb"<[^>]*>")
TOKEN = re.compile(r"\w+(?:[-'’]\w+)*|[^\w\s]")
MIN_WORDS, MIN_LETTERS = 5, 0.7  # words per line; share of characters that are letters or spaces
SUFFIXES = (".html", ".htm", ".xhtml", ".txt", ".rst", ".txt.gz", ".html.gz", ".rst.gz")
MAN_PAGE = re.compile(r"/man/man\d/[^/]*\.gz$")
ROFF = re.compile(rb"^[.'].*$|\\f.|\\[&|^]", re.MULTILINE)


def paragraphs(name: str, content: bytes) -> Iterator[str]:
    """Yield the paragraphs of a file."""
    if name.endswith(".gz"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError):
            return
    is_html = ".htm" in name or ".xhtml" in name
    if is_html:
        text = TAG.sub(b"", BLOCK.sub(b"\n\n", HIDDEN.sub(b" ", content)))
    else:
        text = ROFF.sub(b"", content) if MAN_PAGE.search(name) else content
    for paragraph in re.split(rb"\n\s*\n", text):
        line = paragraph.decode("utf-8", "replace")
        yield html.unescape(line) if is_html else line


def files(package: str) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the documents in a package."""
    process = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
    with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
        for member in archive:
            if member.isfile() and (member.name.endswith(SUFFIXES) or MAN_PAGE.search(member.name)):
                content = archive.extractfile(member)
                if content is not None:
                    yield member.name, content.read()
    process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+", help=".deb files")
    arguments = parser.parse_args()
    written, tokens = set[int](), 0
    for package in arguments.packages:
        before = tokens
        for name, content in files(package):
            for paragraph in paragraphs(name, content):
                words = TOKEN.findall(paragraph)
                letters = sum(character.isalpha() or character.isspace() for character in paragraph)
                if len(words) < MIN_WORDS or letters < MIN_LETTERS * len(paragraph) or "\ufffd" in paragraph:
                    continue
                line = " ".join(words).replace("\x00", "")
                key = hash(line)
                if key not in written:
                    written.add(key)
                    tokens += len(words) + 1
                    sys.stdout.write(line + "\n")
        print(f"{Path(package).name}: {tokens - before:,} tokens, {tokens:,} in all", file=sys.stderr)


if __name__ == "__main__":
    main()
