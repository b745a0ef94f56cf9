"""PO files: messages with their translations, and where each of them is in the file.

Where a library would only give the messages, a translator of files also needs the place of each translation, and the
line of everything that is wrong.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dragoman.core.errors import DataError, encoding_error, error_at_line
from dragoman.data.formats import BOM, check_utf8
from dragoman.data.languages import LANGUAGE_NAMES

LINE = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n|\Z)")
STRING = r'"(?:[^"\\]|\\.)*+"'
KEYWORD = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr|domain)\b[ \t]*(?:\[[ \t]*([0-9]+)[ \t]*\])?[ \t]*")
STRINGS = re.compile(rf"({STRING}[ \t]*)*")
CHARSET = re.compile(rb"charset=([\w.:-]+)")
PLACEHOLDER_CHARSET = "CHARSET"  # of templates: not chosen yet
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
ESCAPED = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
CHECK = "check it with msgfmt -c"


@dataclass
class PoField:
    """A string of a PO file: `msgid "text"`. Offsets are those of its keyword and of its last quote."""

    line: int
    start: int
    end: int
    text: str = ""
    strings: int = 0


@dataclass
class PoEntry:
    """A message with its translations: one, or one for each plural form."""

    line: int
    fields: dict[str, PoField] = field(default_factory=dict)
    translations: dict[int, PoField] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    is_obsolete: bool = False

    @property
    def msgid(self) -> str:
        return self.fields["msgid"].text

    @property
    def msgid_plural(self) -> str | None:
        return self.fields["msgid_plural"].text if "msgid_plural" in self.fields else None

    @property
    def is_header(self) -> bool:
        return not self.msgid and "msgctxt" not in self.fields and not self.is_obsolete

    def source(self, form: int) -> str:
        """Return the source of a plural form: the singular for the first of several."""
        is_singular = self.msgid_plural is None or (form == min(self.translations) and len(self.translations) > 1)
        return self.msgid if is_singular else self.msgid_plural or ""


@dataclass(frozen=True)
class PoFile:
    """The messages of a PO file, without its header."""

    text: str
    header: Mapping[str, str]
    entries: list[PoEntry]

    @property
    def language(self) -> str | None:
        """The code of the language of the translations, if the header names one."""
        language = self.header.get("language", "")
        codes = {name.lower(): code for code, name in LANGUAGE_NAMES.items()}
        return codes.get(language.lower(), language) or None


def parse_po(raw: bytes, name: str) -> PoFile:
    """Parse a PO file, in the encoding that its header names. The text that is returned names UTF-8 instead.

    >>> po = parse_po(b'#, c-format\\nmsgid "Hello"\\n  msgstr "Hallo"\\n', "de.po")
    >>> [(entry.line, entry.msgid, entry.translations[0].text) for entry in po.entries]
    [(2, 'Hello', 'Hallo')]
    """
    text = _decode(raw.removeprefix(BOM), name)
    entries = list(_entries(text, name))
    for entry in entries:
        if "msgid" not in entry.fields:
            raise error_at_line(name, entry.line, f"a message without msgid; {CHECK}")
        if not entry.translations:
            raise error_at_line(name, entry.line, 'a message without msgstr; add msgstr ""')
        for item in (*entry.fields.values(), *entry.translations.values()):
            if not item.strings:
                raise error_at_line(name, item.line, 'no string after the keyword; write ""')
    if not entries:
        raise DataError(f'{name}: not a PO file: it has no messages, such as msgid "Open"')
    headers = [entry for entry in entries if entry.is_header]
    lines = "\n".join(entry.translations[min(entry.translations)].text for entry in headers[:1]).split("\n")
    header = {key.strip().lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return PoFile(text, header, [entry for entry in entries if not entry.is_header])


def _decode(raw: bytes, name: str) -> str:
    match = CHARSET.search(raw[: raw.find(b"\nmsgid", raw.find(b"msgid") + 1)])
    charset = match[1].decode() if match else "UTF-8"
    try:
        encoding = "utf-8" if charset == PLACEHOLDER_CHARSET else codecs.lookup(charset).name
        if encoding in ("utf-8", "ascii") or match is None:
            check_utf8(raw, name)
            return raw.decode()
        declared, place = raw.decode(encoding), match.start(1)
    except LookupError:
        raise DataError(f"{name}: charset={charset} is not known; convert it with msgconv -t UTF-8") from None
    except UnicodeDecodeError as error:
        if b"\0" in raw:
            raise encoding_error(raw, raw.find(b"\0"), name) from None
        line = raw.count(b"\n", 0, error.start) + 1
        raise error_at_line(name, line, f"not {charset}, which the header names; correct charset=") from None
    start = len(raw[:place].decode(encoding))
    return f"{declared[:start]}UTF-8{declared[start + len(charset) :]}"


def _entries(text: str, name: str) -> Iterator[PoEntry]:
    entry, latest = PoEntry(1), None  # the field to which the next string belongs
    for number, match in enumerate(LINE.finditer(text), 1):
        line = match[1].strip(" \t")
        start = match.start() + match[1].find(line)
        if line.startswith("#") and not line.startswith("#~"):
            if entry.translations:
                yield entry
                entry, latest = PoEntry(number), None
            if line.startswith("#,"):
                entry.flags |= {flag.strip() for flag in line[2:].split(",")}
            continue
        is_obsolete = line.startswith("#~")
        if is_obsolete:
            rest = line[2:].lstrip(" \t")
            start, line = start + len(line) - len(rest), rest
        if not line or (is_obsolete and line.startswith("|")):  # what the message was before
            continue
        keyword = KEYWORD.match(line)
        if keyword is not None:
            kind, index = keyword[1], keyword[2]
            if entry.translations and kind != "msgstr":
                yield entry
                entry = PoEntry(number)
            latest = PoField(number, start, start + len(line))
            _add_field(entry, latest, kind, index, name)
            entry.is_obsolete |= is_obsolete
        strings = STRINGS.match(line, keyword.end() if keyword else 0)
        assert strings is not None, "it matches nothing as well"
        if strings.end() < len(line) or latest is None:
            raise error_at_line(name, number, f"{_problem(line, strings.end())}; {CHECK}")
        for string in re.findall(STRING, strings[0]):
            latest.text += _unescape(string[1:-1])
            latest.strings += 1
        latest.end = start + len(line)
    if entry.fields or entry.translations:
        yield entry


def _add_field(entry: PoEntry, new: PoField, kind: str, index: str | None, name: str) -> None:
    if kind == "domain":
        return
    if kind == "msgid":
        entry.line = new.line
    is_known = int(index or 0) in entry.translations if kind == "msgstr" else kind in entry.fields
    if is_known:
        raise error_at_line(name, new.line, f"{kind} for the second time in a message; {CHECK}")
    if kind == "msgstr":
        entry.translations[int(index or 0)] = new
    else:
        entry.fields[kind] = new


def _problem(line: str, end: int) -> str:
    if line[end : end + 1] == '"':
        return "a string without its closing quote"
    return "not a line of a PO file" if end == 0 else "text after a string"


def _unescape(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        if match[1] or match[2]:
            return chr(int(match[1], 8) if match[1] else int(match[2], 16))
        return ESCAPES.get(match[3], match[3])

    return ESCAPED.sub(character, text)


def escape_po(text: str) -> str:
    """Return text as it is written in a string of a PO file.

    >>> escape_po('a "b"\\n')
    'a \\\\"b\\\\"\\\\n'
    """
    names = {character: rf"\{name}" for name, character in ESCAPES.items()} | {'"': r"\"", "\\": r"\\"}
    return "".join(names.get(character, character) for character in text)
