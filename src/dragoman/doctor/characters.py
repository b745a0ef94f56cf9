"""Characters that do not belong in a text: how to find them, and how to fix a line."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

# Bytes 0x80 to 0xbf decoded as Windows-1252, or as Latin-1 where Windows-1252 is undefined
CP1252 = {byte: bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(0x80, 0xC0)}
BYTE_OF = {letter: byte for byte, letter in CP1252.items()} | {chr(byte): byte for byte in range(0x80, 0x100)}
CONTINUATIONS = "".join(sorted({*CP1252.values(), *map(chr, CP1252)}))  # continuation bytes of UTF-8, decoded wrongly
QUOTES = "“”‘’„‚‹›«»–—…\u00a0"  # may follow a correct Ä or Å
SURE_CONTINUATIONS = "".join(character for character in CONTINUATIONS if character not in QUOTES)
# Â or Ã with a continuation, Ä or Å with a sure one, and the first bytes of typographic characters
MOJIBAKE = re.compile(
    f"[ÂÃ][{re.escape(CONTINUATIONS)}]|[ÄÅ][{re.escape(SURE_CONTINUATIONS)}]"
    f"|â[€\x80\u201a\x82][{re.escape(CONTINUATIONS)}]"
)
SEPARATORS = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"
CONTROLS = "".join(chr(code) for code in [*range(1, 32), *range(127, 160)] if chr(code) not in f"\t\n{SEPARATORS}")
JOINERS = "\u200c\u200d"  # needed in some scripts and emoji, but not next to ASCII
ALWAYS_INVISIBLE = "".join(
    ["\u00ad\u061c\u180e\u200b\u200e\u200f\ufeff\ufff9\ufffa\ufffb"]  # soft hyphen, zero width space, BOM, directions
    + [chr(code) for code in (*range(0x202A, 0x202F), *range(0x2060, 0x206A))]
)
INVISIBLE = re.compile(
    f"[{ALWAYS_INVISIBLE}]|[{JOINERS}]+(?=[\x00-\x7f]|$)|(?<=[\x00-\x7f])[{JOINERS}]+|^[{JOINERS}]+", re.MULTILINE
)
SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
RESERVED = re.compile(r"(?<![^ \t\n])</?s>(?![^ \t\n])")
SUPERFLUOUS_SPACES = re.compile(r"^[ \t]+|[ \t]+$|\t|  +", re.MULTILINE)
MARKUP = re.compile(
    r"&(?:amp|lt|gt|quot|apos|nbsp|#\d{1,5}|#x[0-9a-fA-F]{1,5});|&(?: )?(?:amp|quot|apos|nbsp) ?;"
    r"|</?(?:a|b|i|u|br|p|em|strong|span|div|font|td|tr|table|li|ul|ref|sup|sub)(?: [^<>\n]*)?/?>",
    re.IGNORECASE,
)
SCRIPTS_WITHOUT_SPACES = "\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"  # between words; ranges
CONTROL_NAMES = {0x85: "NEXT LINE", 0x0B: "VERTICAL TAB", 0x0C: "FORM FEED", 0x0D: "CARRIAGE RETURN", 0x1B: "ESCAPE"}


@dataclass(frozen=True)
class CharacterCheck:
    """A kind of finding with the pattern to search for."""

    kind: str
    pattern: re.Pattern[str]
    describe: Callable[[str], str]  # message for a match
    required: Sequence[str] = ()  # a text without any of these has no match; searching for them is faster


def character_name(text: str) -> str:
    """Describe the first character: U+200B ZERO WIDTH SPACE"""
    code = ord(text[0])
    return f"U+{code:04X} {unicodedata.name(text[0], CONTROL_NAMES.get(code, 'control character'))}"


def _describe_spaces(text: str) -> str:
    return "TAB" if "\t" in text else "spaces at the start or end, or several in a row"


CHECKS = (
    CharacterCheck("nul", re.compile("\0"), character_name),
    CharacterCheck("mojibake", MOJIBAKE, lambda text: f"{text!r} is probably {demojibake(text)!r}", "ÂÃÄÅâ"),
    CharacterCheck("replacement", re.compile("\ufffd"), character_name),
    CharacterCheck("control", re.compile(f"[{CONTROLS}]"), character_name),
    CharacterCheck("separator", re.compile(f"[{SEPARATORS}]"), character_name),
    CharacterCheck("invisible", INVISIBLE, character_name, JOINERS + ALWAYS_INVISIBLE),
    CharacterCheck("odd-space", re.compile(f"[{SPACES}]"), character_name),
    CharacterCheck("reserved", RESERVED, str, ("<s>", "</s>")),
    CharacterCheck("spaces", SUPERFLUOUS_SPACES, _describe_spaces, ("  ", "\t", "\n ", " \n")),
    CharacterCheck("markup", MARKUP, str, "&<"),
    CharacterCheck("placeholder", re.compile(r"(?<![^ \t\n])<unk>(?![^ \t\n])"), str, ("<unk>",)),
)


def find_matches(text: str, check: CharacterCheck) -> Iterator[tuple[int, str]]:
    """Yield the position and the text of each match of a check."""
    framed = f"\n{text}\n"
    if check.required and not any(required in framed for required in check.required):
        return
    for match in check.pattern.finditer(text):
        if check.kind != "mojibake" or _decode_mojibake(match) != match[0]:
            yield match.start(), match[0]


def demojibake(line: str) -> str:
    """Decode UTF-8 that was decoded as Windows-1252, as often as necessary.

    >>> demojibake("MÃ¤dchen â€“ grÃ¼n"), demojibake("Spaß“, Ähre")
    ('Mädchen – grün', 'Spaß“, Ähre')
    """
    while (better := MOJIBAKE.sub(_decode_mojibake, line)) != line:
        line = better
    return line


def _decode_mojibake(match: re.Match[str]) -> str:
    try:
        return bytes(BYTE_OF[letter] for letter in match[0]).decode("utf-8")
    except (KeyError, UnicodeDecodeError):
        return match[0]


# The characters that Windows-1252 has for control characters
_PRINTABLE = {chr(byte): letter for byte, letter in CP1252.items() if letter != chr(byte)}
_REMOVED = re.compile(f"\0|[{CONTROLS}]")
_REPLACED_BY_SPACE = re.compile(f"[{SEPARATORS}{SPACES}\r]")
_SUSPICIOUS = re.compile(  # lines without a match need no fix, except for normalisation
    f"[\0-\x1f\x7f-\x9f{SPACES}\u00ad\ufeff\u061c\u180e\u200b-\u206f\ufff9-\ufffb]|[ÂÃÄÅâ]|</?s>|^ | $|  "
)


def fix_line(line: str) -> str:
    """Return a line with all problems fixed that have an unambiguous fix.

    >>> fix_line("  das  Ma\\u0308dchen\\u200b\\x07 ")
    'das Mädchen'
    """
    if not _SUSPICIOUS.search(line) and (line.isascii() or unicodedata.is_normalized("NFC", line)):
        return line
    for _ in range(len(line) + 1):  # one step may enable another
        previous, line = line, _fix_once(line)
        if line == previous:
            break
    return line


def _fix_once(line: str) -> str:
    if _SUSPICIOUS.search(line):
        line = demojibake(line)
        line = _REPLACED_BY_SPACE.sub(" ", line)
        line = _REMOVED.sub(lambda match: _PRINTABLE.get(match[0], ""), line)
        line = INVISIBLE.sub("", line)
        line = RESERVED.sub(" ", line)
    composed = unicodedata.normalize("NFC", line)
    return " ".join(word for word in composed.replace("\t", " ").split(" ") if word)
