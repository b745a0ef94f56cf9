"""Documents that are translated by functions instead of models."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from dragoman.data.document_formats import DocumentFile, document_format, read_document_file
from dragoman.data.inline_markup import protect
from dragoman.models.document_translation import translate_document
from dragoman.models.text_pipeline import TranslatedSentence
from dragoman.models.translation import SegmentedLine, Translation

FILES = Path(__file__).parent / "formats"
Translate = Callable[[str], str]
HOSTILE = [
    *(
        "<b>",
        "</i>",
        "**",
        "*a*",
        "`x`",
        "%s",
        "{0}",
        "-->",
        "# x",
        "- y",
        "1. z",
        "&amp;",
        "|",
        "]]>",
        "\0",
        "\n\n",
        "[a](b)",
    ),
    *(
        "00:00:01,000 --> 00:00:02,000",
        '"',
        "\\",
        "~~",
        "_a_",
        "<!--",
        "$HOME",
        "{\\an8}",
        "http://x.yz/",
        "\u2028",
        "犬",
        "。",
    ),
]


def open_document(name: str, **options: bool) -> DocumentFile:
    return read_document_file(str(FILES / name), document_format(name), **options)


def sentences_of(
    texts: Sequence[str], translate: Translate, *, attention: bool = False
) -> list[list[TranslatedSentence]]:
    """Texts as sentences that `translate` translates; with attention from word i to word i, modulo their number."""
    answers = []
    for text in texts:
        target = translate(text)
        tokens, source = tuple(target.split()), tuple(text.split())
        weights = np.zeros((len(tokens) + 1, len(source) + 1))
        weights[np.arange(len(tokens)), np.arange(len(tokens)) % max(1, len(source))] = 1.0
        translation = Translation(target, tokens, 0.0, 0.0, source, attention=weights if attention else None)
        answers.append([TranslatedSentence(text, "", SegmentedLine(text, ()), True, [translation], [target])])
    return answers


def translated(file: DocumentFile, translate: Translate, *, attention: bool = False) -> str:
    return translate_document(file, lambda texts: sentences_of(texts, translate, attention=attention)).text


def hostile_translator(seed: int) -> Translate:
    """A translator that loses, repeats, reorders and invents words."""

    def translate(text: str) -> str:
        generator = random.Random(f"{seed} {text}")
        words = [*text.split(), *generator.sample(HOSTILE, generator.randrange(4))]
        generator.shuffle(words)
        return generator.choice([" ", "  "]).join(words[: generator.randrange(len(words) + 2)])

    return translate


def upper(text: str) -> str:
    """A translator that keeps the order of words, and copies placeholders."""
    return "".join(part.upper() if isinstance(part, str) else part.raw for part in protect(text))


def reverse(text: str) -> str:
    """A translator that turns the order of words around."""
    return " ".join(reversed(text.split()))


def translate_file(
    path: Path, content: str | bytes, translate: Translate = upper, *, attention: bool = True, **options: bool
) -> str:
    """Write a file, and translate it."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    file = read_document_file(str(path), document_format(str(path)), **options)
    return translated(file, translate, attention=attention)
