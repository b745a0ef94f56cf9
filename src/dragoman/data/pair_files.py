"""Reading sentence pairs: two texts, or one file with both sides (TSV, JSONL, TMX, PO, XLIFF)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dragoman.core.errors import DataError
from dragoman.data.file_formats import PAIRS, recognise_format
from dragoman.data.formats import (
    SUBTITLES,
    display_name,
    has_fields,
    looks_like_tsv,
    read_bytes,
    read_lines,
    read_parallel_lines,
    read_utf8,
    type_by_name,
)
from dragoman.data.languages import LANGUAGE_NAMES, language_code
from dragoman.data.po_files import parse_po
from dragoman.data.subtitles import MAX_CUES, match_cues, read_cues
from dragoman.data.tokenizer import LinePairs, RejectedUnit
from dragoman.data.xliff_files import xliff_segments
from dragoman.data.xml_files import XML_LANG, inline_text, local_name, parse_xml

if TYPE_CHECKING:
    from lxml.etree import _Element as Element
    from lxml.etree import _ElementTree as ElementTree

READABLE = "TSV, JSONL, TMX, PO or XLIFF"
# Names of columns, apart from those of languages, by which the first line of a TSV file is recognised as its header.
METADATA_COLUMNS = frozenset(("id", "score", "label", "lang"))
TEXT_NAMES = "source target src tgt trg text sentence translation reference ref input output"
TEXT_COLUMNS = frozenset(TEXT_NAMES.split())
NO_SOURCE, NO_TRANSLATION, EMPTY, FUZZY = "no source", "no translation", "empty", "fuzzy or not approved"
OBSOLETE, OTHER_LANGUAGE, NOT_TRANSLATABLE = "obsolete", "other language", "not to be translated"
HEADER, FEW_COLUMNS, VARIANT = "header", "too few columns", "another translation of the same language"
NO_PARTNER, MANY_CUES = "no cue at the same time", "too many overlapping cues"


class Languages(NamedTuple):
    """The languages of the two sides; None: as in the file."""

    source: str | None = None
    target: str | None = None


AS_IN_FILE = Languages()


class Unit(NamedTuple):
    """A sentence pair of a file, or the reason why it is not used."""

    line: int
    source: str
    target: str
    reason: str = ""


def read_pairs(
    src: str, tgt: str, src_field: str | None = None, tgt_field: str | None = None, languages: Languages = AS_IN_FILE
) -> LinePairs:
    """Read two texts, which must have the same number of lines; two subtitle files are matched by their times.

    If both are the same file and no fields are chosen, it has both sides; see `read_pair_file`.
    """
    if src == tgt != "-" and src_field is None and tgt_field is None and pair_format(src) is not None:
        return read_pair_file(src, languages=languages)
    if type_by_name(src) in SUBTITLES and type_by_name(tgt) in SUBTITLES:
        return _collect(src, _subtitle_units(src, tgt))
    source = read_lines(src, src_field)
    target = read_parallel_lines(tgt, len(source), src, tgt_field)
    if src == tgt and source == target:
        remedy = "choose two columns or keys" if has_fields(src) else "give two files, or --src-field and --tgt-field"
        raise DataError(f"{display_name(src)}: source and target are the same text; {remedy}")
    return LinePairs(source, target, src)


def read_pair_file(
    path: str, src_field: str | None = None, tgt_field: str | None = None, languages: Languages = AS_IN_FILE
) -> LinePairs:
    """Read a file with both sides: TSV, JSONL, TMX, PO or XLIFF, recognised by its name or its content.

    Args:
        path: the file.
        src_field, tgt_field: columns of TSV, by number or by name in the first line (default: `tsv_fields`); keys of
            JSONL.
        languages: which languages of a TMX file, or of a TSV file with a header, to read. If those of another file are
            exchanged, so are its sides.
    """
    name = display_name(path)
    if path == "-":
        raise DataError("<stdin>: sentence pairs are read from a file; give its name")
    file_format = pair_format(path)
    if file_format is None:
        raise DataError(f"{name}: not {READABLE}; for two texts, use --src and --tgt")
    if file_format not in ("tsv", "jsonl") and (src_field is not None or tgt_field is not None):
        raise DataError(f"{name}: is {file_format.upper()}, which has no columns; remove --src-field and --tgt-field")
    if file_format == "jsonl":
        if src_field is None or tgt_field is None:
            raise DataError(f"{name}: JSONL; name the keys of both sides with --src-field and --tgt-field")
        sides = (read_lines(path, field) for field in (src_field, tgt_field))
        return _collect(path, (Unit(number, *row) for number, row in enumerate(zip(*sides, strict=True), 1)))
    if file_format == "tsv":
        source, target = tsv_fields(path, languages)
        return _collect(path, _tsv_units(read_utf8(path), src_field or source, tgt_field or target, name))
    if file_format == "po":
        return _collect(path, _po_units(read_bytes(path), name, languages))
    tree = parse_xml(read_bytes(path), name)
    units = _tmx_units(tree, name, languages) if file_format == "tmx" else _xliff_units(tree, name, languages)
    return _collect(path, units)


def pair_format(path: str) -> str | None:
    """Return the format of a file with both sides, by its name or its content; None if it has one side."""
    if (file_format := recognise_format(path, PAIRS)) is not None:
        return file_format
    return "tsv" if looks_like_tsv(read_bytes(path)) else None


def _collect(path: str, units: Iterator[Unit]) -> LinePairs:
    """Separate pairs from rejected units; a file without any pair is an error."""
    source, target, rejected = list[str](), list[str](), list[RejectedUnit]()
    for unit in units:
        reason = unit.reason or ("" if unit.source.strip() and unit.target.strip() else EMPTY)
        if reason:
            rejected.append(RejectedUnit(display_name(path), unit.line, reason))
        else:
            source.append(unit.source)
            target.append(unit.target)
    pairs = LinePairs(source, target, path, tuple(rejected))
    if not source:
        detail = "; ".join(pairs.rejection_summary()) or "it has no units"
        raise DataError(f"{display_name(path)}: no sentence pairs ({detail})")
    return pairs


# -- TSV ---------------------------------------------------------------------------------------------------------------


def _tsv_units(text: bytes, src_field: str, tgt_field: str, name: str) -> Iterator[Unit]:
    lines = text.decode().removesuffix("\n").split("\n")
    rows = [line.removesuffix("\r").split("\t") for line in lines]
    if max(map(len, rows)) < 2:
        raise DataError(f"{name}: has no columns separated by tabs; for two texts, use --src and --tgt")
    columns = [_column_index(field, rows[0], name) for field in (src_field, tgt_field)]
    has_names = not (src_field.isdecimal() and tgt_field.isdecimal())
    for number, row in enumerate(rows, 1):
        if number == 1 and (has_names or _is_header(row)):
            yield Unit(1, "", "", HEADER)
        elif len(row) <= max(columns):
            yield Unit(number, "", "", EMPTY if row == [""] else FEW_COLUMNS)
        else:
            source, target = (row[column] for column in columns)
            yield Unit(number, source, target)


def _column_index(field: str, header: Sequence[str], name: str) -> int:
    if field.isdecimal():
        if int(field) < 1:
            raise DataError(f"{name}: no column {field}; columns count from 1")
        return int(field) - 1
    if field not in header:
        raise DataError(f"{name}:1: no column {field!r}; the first line has {', '.join(header)}")
    return list(header).index(field)


def tsv_fields(path: str, languages: Languages = AS_IN_FILE) -> tuple[str, str]:
    """Return the columns of both sides of a TSV file.

    If the first line is a header, these are the names of the two languages, or of the first two columns with text.
    Otherwise they are columns 1 and 2.
    """
    cells = read_utf8(path).decode().partition("\n")[0].removesuffix("\r").split("\t")
    if len(cells) < 2 or not _is_header(cells):
        return "1", "2"
    by_language = {language: cell for cell in reversed(cells) if (language := column_language(cell)) is not None}
    source, target = (by_language.get(language_code(_base(name or "")) or "") for name in languages)
    if source is not None and target is not None:
        return source, target
    texts = [cell for cell in cells if cell.strip().lower() not in METADATA_COLUMNS]
    first, second, *_ = texts if len(texts) > 1 else cells
    return first, second


def _is_header(cells: Sequence[str]) -> bool:
    """Return whether cells are names of columns: `source`, `en`, `German`.

    >>> _is_header(["de", "English"]), _is_header(["Hallo", "Hello"])
    (True, False)
    """
    names = TEXT_COLUMNS | METADATA_COLUMNS
    return all(cell.strip().lower() in names or column_language(cell) is not None for cell in cells)


def column_language(name: str) -> str | None:
    """Return the code of a column's language, by its code or its English name.

    >>> column_language("de"), column_language("English"), column_language("id"), column_language("source")
    ('de', 'en', None, None)
    """
    name = name.strip().lower()
    if name in METADATA_COLUMNS:
        return None
    code = next((code for code, language in LANGUAGE_NAMES.items() if language.lower() == name), name)
    return code if code in LANGUAGE_NAMES else None


# -- TMX, PO, XLIFF ----------------------------------------------------------------------------------------------------


def matches_language(code: str | None, language: str | None) -> bool:
    """Return whether a language code of a file is the language chosen: `en-US` is `en`, and nothing chosen is any.

    >>> matches_language("en_US", "en"), matches_language("en", "en-US"), matches_language("de", "en")
    (True, False, False)
    """
    if language is None:
        return True
    code, language = ((value or "").lower().replace("_", "-") for value in (code, language))
    return code == language or code.startswith(f"{language}-")


def _base(code: str) -> str:
    return code.lower().replace("_", "-").partition("-")[0]


def _tmx_units(tree: ElementTree, name: str, languages: Languages) -> Iterator[Unit]:
    root = root_element(tree, "tmx", name)
    units = [
        (unit.sourceline or 1, [_tmx_variant(child) for child in unit if local_name(child) == "tuv"])
        for unit in root.iter("{*}tu")
    ]
    header = next(root.iter("{*}header"), None)
    declared = None if header is None else header.get("srclang")
    source, target = _choose_languages(
        {code for _, variants in units for code, _ in variants}, declared, languages, name
    )
    for line, variants in units:
        sources = [text for code, text in variants if matches_language(code, source)]
        targets = [text for code, text in variants if matches_language(code, target)]
        if not sources or not targets:
            yield Unit(line, "", "", OTHER_LANGUAGE if len(variants) > 1 else NO_TRANSLATION)
            continue
        yield Unit(line, sources[0], targets[0])
        for _ in range(max(len(sources), len(targets)) - 1):
            yield Unit(line, "", "", VARIANT)


def _tmx_variant(variant: Element) -> tuple[str, str]:
    segment = next(variant.iter("{*}seg"), None)
    return variant.get(XML_LANG) or variant.get("lang") or "", "" if segment is None else inline_text(segment)


def _choose_languages(codes: set[str], declared: str | None, languages: Languages, name: str) -> Languages:
    """Return the two languages to read from a TMX file."""
    available = ", ".join(sorted(codes)) or "none"
    for option, language in zip(("--src-lang", "--tgt-lang"), languages, strict=True):
        if language is not None and not any(matches_language(code, language) for code in codes):
            raise DataError(f"{name}: {option} {language}: not a language of this file, which has {available}")
    source, target = languages
    bases = {_base(code) for code in codes}
    if source is None and target is not None and len(bases) == 2:
        source = next(iter(bases - {_base(target)}), None)
    if source is None and declared is not None and _base(declared) in bases:
        source = _base(declared)
    if source is not None and target is None and len(others := bases - {_base(source)}) == 1:
        target = others.pop()
    if source is None or target is None:
        raise DataError(f"{name}: has {available}; choose two languages with --src-lang and --tgt-lang")
    return Languages(source, target)


def root_element(tree: ElementTree, expected: str, name: str) -> Element:
    """Return the root of a file, which must have the expected name."""
    root = tree.getroot()
    if local_name(root) != expected:
        raise DataError(f"{name}: not {expected.upper()}; its root element is <{local_name(root)}>")
    return root


def _arrange(unit: Unit, in_file: Languages, languages: Languages) -> Unit:
    """Return a unit with its sides exchanged if its languages are, or rejected if they are others."""
    fit = _language_fit(in_file, languages)
    swapped_fit = _language_fit(in_file, Languages(languages.target, languages.source))
    if fit is not None and (swapped_fit is None or fit >= swapped_fit):
        return unit
    if swapped_fit is not None:
        return Unit(unit.line, unit.target, unit.source, unit.reason)
    return Unit(unit.line, "", "", unit.reason or OTHER_LANGUAGE)


def _language_fit(in_file: Languages, chosen: Languages) -> int | None:
    """Return how many languages agree, None if one differs. Unknown languages agree with all."""
    known = [(code, name) for code, name in zip(in_file, chosen, strict=True) if code is not None and name is not None]
    return len(known) if all(matches_language(code, name) for code, name in known) else None


def _po_units(raw: bytes, name: str, languages: Languages) -> Iterator[Unit]:
    catalog = parse_po(raw, name)
    in_file = Languages(None, catalog.language)
    for entry in catalog.entries:
        forms = entry.translations
        for form in sorted({min(forms), max(forms)}):
            source, target = entry.source(form), forms[form].text
            is_fuzzy = "fuzzy" in entry.flags
            reason = OBSOLETE if entry.is_obsolete else FUZZY if is_fuzzy else "" if target else NO_TRANSLATION
            unit = Unit(entry.line, " ".join(source.split()), " ".join(target.split()), reason)
            yield _arrange(unit, in_file, languages)


def _xliff_units(tree: ElementTree, name: str, languages: Languages) -> Iterator[Unit]:
    root = root_element(tree, "xliff", name)
    for segment in xliff_segments(root):
        sides = (segment.source, segment.target)
        source, target = ("" if side is None else inline_text(side) for side in sides)
        reason = ""
        if segment.source is None:
            reason = NO_SOURCE
        elif not segment.is_translatable:
            reason = NOT_TRANSLATABLE
        elif not target or not segment.is_translated:
            reason = NO_TRANSLATION
        elif segment.needs_review:
            reason = FUZZY
        in_file = Languages(segment.source_language, segment.target_language)
        yield _arrange(Unit(segment.element.sourceline or 1, source, target, reason), in_file, languages)


# -- subtitles ---------------------------------------------------------------------------------------------------------


def _subtitle_units(src: str, tgt: str) -> Iterator[Unit]:
    source, target = (read_cues(read_utf8(path).decode(), display_name(path)) for path in (src, tgt))
    for pair in match_cues(source, target):
        first, second = (" ".join(cue.plain_text for cue in cues) for cues in (pair.source, pair.target))
        reason = ""
        if not pair.source or not pair.target:
            reason = NO_PARTNER if pair.source else f"{NO_PARTNER} (of {display_name(tgt)})"
        elif max(len(pair.source), len(pair.target)) > MAX_CUES:
            reason = MANY_CUES
        yield Unit((pair.source or pair.target)[0].line, first, second, reason)
