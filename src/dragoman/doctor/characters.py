"""Characters that do not belong in a text: where they are, and the text without them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

# What the bytes 0x80 to 0xbf look like in Windows-1252 (in Latin-1 where that has nothing).
CP1252 = {byte: bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(0x80, 0xC0)}
BYTE_OF = {letter: byte for byte, letter in CP1252.items()} | {chr(byte): byte for byte in range(0x80, 0x100)}
FOLLOWERS = "".join(sorted({*CP1252.values(), *map(chr, CP1252)}))  # how UTF-8's further bytes look when misread
QUOTES = "“”‘’„‚‹›«»–—…\u00a0"  # these follow a real Ä or Å now and then
SURE_FOLLOWERS = "".join(sign for sign in FOLLOWERS if sign not in QUOTES)
# Â and Ã followed by a sign, the same with Ä and Å, and the misread beginnings of typographic signs.
MISREAD = re.compile(
    f"[ÂÃ][{re.escape(FOLLOWERS)}]|[ÄÅ][{re.escape(SURE_FOLLOWERS)}]|â[€\x80\u201a\x82][{re.escape(FOLLOWERS)}]"
)
SEPARATORS = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"
CONTROLS = "".join(chr(code) for code in [*range(1, 32), *range(127, 160)] if chr(code) not in f"\t\n{SEPARATORS}")
# Zero-width space, word joiner, soft hyphen, a byte order mark inside, directions, and joiners beside a plain letter.
INVISIBLE_CHARACTERS = "".join(
    ["\u200c\u200d\u00ad\u061c\u180e\u200b\u200e\u200f\ufeff\ufff9\ufffa\ufffb"]
    + [chr(code) for code in (*range(0x202A, 0x202F), *range(0x2060, 0x206A))]
)
INVISIBLE = re.compile(
    f"[{INVISIBLE_CHARACTERS[2:]}]|[\u200c\u200d]+(?=[\x00-\x7f]|$)|(?<=[\x00-\x7f])[\u200c\u200d]+|^[\u200c\u200d]+",
    re.MULTILINE,
)
SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
RESERVED = re.compile(r"(?<![^ \t\n])</?s>(?![^ \t\n])")
BLANKS = ("  ", "\t", "\n ", " \n")
UNTIDY = re.compile(r"^[ \t]+|[ \t]+$|\t|  +", re.MULTILINE)
MARKUP = re.compile(
    r"&(?:amp|lt|gt|quot|apos|nbsp|#\d{1,5}|#x[0-9a-fA-F]{1,5});|&(?: )?(?:amp|quot|apos|nbsp) ?;"
    r"|</?(?:a|b|i|u|br|p|em|strong|span|div|font|td|tr|table|li|ul|ref|sup|sub)(?: [^<>\n]*)?/?>",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class CharacterCheck:
    """A kind of finding, how to see it, and how to say what was seen."""

    kind: str
    pattern: re.Pattern[str]
    describe: Callable[[str], str]
    hints: Sequence[str] = ()  # without one of these in the text there is nothing to see, which is quicker to tell


def character_name(sign: str) -> str:
    """U+200B ZERO WIDTH SPACE"""
    codes = {0x85: "NEXT LINE", 0x0B: "VERTICAL TAB", 0x0C: "FORM FEED", 0x0D: "CARRIAGE RETURN", 0x1B: "ESCAPE"}
    name = unicodedata.name(sign[0], codes.get(ord(sign[0]), "control character"))
    return f"U+{ord(sign[0]):04X} {name}"


def _misread(found: str) -> str:
    return f"{found!r} is probably {demojibake(found)!r}"


CHECKS = (
    CharacterCheck("nul", re.compile("\0"), character_name),
    CharacterCheck("mojibake", MISREAD, _misread, "ÂÃÄÅâ"),
    CharacterCheck("replacement", re.compile("\ufffd"), character_name),
    CharacterCheck("control", re.compile(f"[{CONTROLS}]"), character_name),
    CharacterCheck("separator", re.compile(f"[{SEPARATORS}]"), character_name),
    CharacterCheck("invisible", INVISIBLE, character_name, INVISIBLE_CHARACTERS),
    CharacterCheck("odd-space", re.compile(f"[{SPACES}]"), character_name),
    CharacterCheck("reserved", RESERVED, str, ("<s>", "</s>")),
    CharacterCheck(
        "spaces", UNTIDY, lambda found: "TAB" if "\t" in found else "spaces at an end, or several in a row", BLANKS
    ),
    CharacterCheck("markup", MARKUP, str, "&<"),
    CharacterCheck("placeholder", re.compile(r"(?<![^ \t\n])<unk>(?![^ \t\n])"), str, ("<unk>",)),
)


def demojibake(line: str) -> str:
    """UTF-8 that was taken for Windows-1252, decoded.

    >>> demojibake("MÃ¤dchen â€“ grÃ¼n"), demojibake("Spaß“, Ähre")
    ('Mädchen – grün', 'Spaß“, Ähre')
    """
    while (better := MISREAD.sub(_decoded, line)) != line:  # a text may have suffered more than once
        line = better
    return line


def _decoded(match: re.Match[str]) -> str:
    try:
        return bytes(BYTE_OF[letter] for letter in match[0]).decode("utf-8")
    except (KeyError, UnicodeDecodeError):
        return match[0]


_DELETED = re.compile(f"\0|[{CONTROLS}]")
_BLANK = re.compile(f"[{SEPARATORS}{SPACES}\r]")
_ROUGH = re.compile(
    f"[\0-\x1f\x7f-\x9f{SPACES}\u00ad\ufeff\u061c\u180e\u200b-\u206f\ufff9-\ufffb]|[ÂÃÄÅâ]|</?s>|^ | $|  "
)


def fix_line(line: str) -> str:
    """A line with everything set right that surely can be.

    >>> mended("  das  Ma\\u0308dchen\\u200b\\x07 ")
    'das Mädchen'
    """
    if not _ROUGH.search(line) and (line.isascii() or unicodedata.is_normalized("NFC", line)):
        return line
    for _ in range(len(line) + 1):  # one step may uncover work for another
        better = _mended_once(line)
        if better == line:
            break
        line = better
    return line


def _mended_once(line: str) -> str:
    if _ROUGH.search(line):
        line = demojibake(line)
        line = _BLANK.sub(" ", line)
        line = _DELETED.sub(_kept_sign, line)
        line = INVISIBLE.sub("", line)
        line = RESERVED.sub(" ", line)
    composed = unicodedata.normalize("NFC", line)
    return " ".join(word for word in composed.replace("\t", " ").split(" ") if word)


def _kept_sign(match: re.Match[str]) -> str:
    """Nothing of a control character; of those that Windows-1252 uses for signs, the sign."""
    code = ord(match[0])
    sign = CP1252.get(code, "")
    return sign if sign != match[0] else ""


def find_matches(text: str, check: CharacterCheck) -> Iterator[tuple[int, str]]:
    """Where in a text a check finds something, and what."""
    framed = f"\n{text}\n"
    if check.hints and not any(hint in framed for hint in check.hints):
        return
    for match in check.pattern.finditer(text):
        if check.kind != "mojibake" or _decoded(match) != match[0]:
            yield match.start(), match[0]
