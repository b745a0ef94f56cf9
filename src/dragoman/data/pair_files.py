"""Reading sentence pairs: two texts, or one file with both sides (TSV, JSONL, TMX, PO, XLIFF)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from dragoman.data.languages import AS_IN_FILE, Languages, language_of_name, language_of_tag, languages_from_paths
from dragoman.data.po_files import parse_po
from dragoman.data.subtitles import MAX_CUES, match_cues, read_cues
from dragoman.data.tables import EMPTY, Table
from dragoman.data.tokenizer import LinePairs, RejectedUnit
from dragoman.data.xliff_files import xliff_segments
from dragoman.data.xml_files import XML_LANG, inline_text, local_name, parse_xml

if TYPE_CHECKING:
    from lxml.etree import _Element as Element
    from lxml.etree import _ElementTree as ElementTree

READABLE = "TSV, JSONL, TMX, PO or XLIFF"
NO_SOURCE, NO_TRANSLATION, FUZZY = "no source", "no translation", "fuzzy or not approved"
OBSOLETE, OTHER_LANGUAGE, NOT_TRANSLATABLE = "obsolete", "other language", "not to be translated"
VARIANT = "another translation of the same language"
NO_PARTNER, MANY_CUES = "no cue at the same time", "too many overlapping cues"


class Unit(NamedTuple):
    """A sentence pair of a file, or the reason why it is not used."""

    line: int
    source: str
    target: str
    reason: str = ""
    languages: Languages = AS_IN_FILE  # as tags of the file


def refuse_sides(option: str, sides: Mapping[str, str | None]) -> None:
    """Raise an error if options for single sides are given together with `option`, a file with both sides."""
    if given := [name for name, path in sides.items() if path is not None]:
        raise DataError(f"{option} has both sides; remove {' and '.join(given)}")


def read_pairs(
    src: str, tgt: str, src_field: str | None = None, tgt_field: str | None = None, languages: Languages = AS_IN_FILE
) -> LinePairs:
    """Read two texts, which must have the same number of lines; two subtitle files are matched by their times.

    If both are the same file and no fields are chosen, it has both sides; see `read_pair_file`.
    """
    if src == tgt != "-" and src_field is None and tgt_field is None and pair_format(src) is not None:
        return read_pair_file(src, languages=languages)
    for path in (src, tgt):
        if recognise_format(path, ("tmx", "po", "xliff")) is not None:
            raise DataError(f"{display_name(path)}: has both sides of sentence pairs; give it alone, with --pairs")
    in_files = _languages_of_texts(src, tgt, src_field, tgt_field)
    if type_by_name(src) in SUBTITLES and type_by_name(tgt) in SUBTITLES:
        return _collect(src, _subtitle_units(src, tgt), in_files)
    source = read_lines(src, src_field)
    target = read_parallel_lines(tgt, len(source), src, tgt_field)
    if src == tgt and source == target:
        remedy = "choose two columns or keys" if has_fields(src) else "give two files, or --src-field and --tgt-field"
        raise DataError(f"{display_name(src)}: source and target are the same text; {remedy}")
    return LinePairs(source, target, src, languages=in_files)


def _languages_of_texts(src: str, tgt: str, src_field: str | None, tgt_field: str | None) -> Languages:
    """Return the languages of two texts by the names of their fields, or else of their files."""
    by_name = languages_from_paths([src] if src == tgt else [src, tgt])
    if src == tgt and src_field and tgt_field and src_field.isdecimal() and tgt_field.isdecimal():
        by_name = by_name.reversed if (len(src_field), src_field) > (len(tgt_field), tgt_field) else by_name
    return Languages(language_of_name(src_field or ""), language_of_name(tgt_field or "")).or_else(by_name)


def read_pair_file(
    path: str, src_field: str | None = None, tgt_field: str | None = None, languages: Languages = AS_IN_FILE
) -> LinePairs:
    """Read a file with both sides: TSV, JSONL, TMX, PO or XLIFF, recognised by its name or its content.

    Args:
        path: the file.
        src_field, tgt_field: columns of TSV, by number or by name in the first line; keys of JSONL. By default, the
            columns of a TSV file whose names are languages, or source and target; otherwise the first two with text.
        languages: which languages of a TMX file, or of a TSV file with a header, to read. If those of another file are
            exchanged, so are its sides.

    Returns:
        The pairs, with the languages that the file has for them. The name of the file counts only if it has none.
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
        rows = (Unit(number, *row) for number, row in enumerate(zip(*sides, strict=True), 1))
        return _collect(path, rows, _languages_of_texts(path, path, src_field, tgt_field), has_rows=True)
    if file_format == "tsv":
        table = Table.parse(read_utf8(path), name, (src_field, tgt_field))
        columns = table.pair_columns(src_field, tgt_field, languages)
        in_name = languages_from_paths([path])
        in_name = in_name if columns[0] < columns[1] else in_name.reversed
        return _collect(path, _tsv_units(table, columns), in_name, has_rows=True)
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


def _collect(
    path: str, units: Iterator[Unit], in_name: Languages | None = None, *, has_rows: bool = False
) -> LinePairs:
    """Separate pairs from rejected units; a file without any pair is an error.

    Args:
        in_name: the languages by the name of the file, if its units have none. Default: as the name has them.
    """
    source, target, rejected = list[str](), list[str](), list[RejectedUnit]()
    tags: set[Languages] = set()
    for unit in units:
        reason = unit.reason or ("" if unit.source.strip() and unit.target.strip() else EMPTY)
        if reason:
            rejected.append(RejectedUnit(display_name(path), unit.line, reason))
        else:
            source.append(unit.source)
            target.append(unit.target)
            tags.add(unit.languages)
    in_units = ({language_of_tag(tag) for tag in side} for side in zip(*tags, strict=True)) if tags else ()
    known = Languages(*(codes.pop() if len(codes) == 1 else None for codes in in_units))
    languages = known.or_else(languages_from_paths([path]) if in_name is None else in_name)
    pairs = LinePairs(source, target, path, tuple(rejected), languages, has_rows=has_rows)
    if not source:
        detail = "; ".join(pairs.rejection_summary()) or "it has no entries"
        raise DataError(f"{display_name(path)}: no sentence pairs ({detail})")
    return pairs


# -- TSV ---------------------------------------------------------------------------------------------------------------


def _tsv_units(table: Table, columns: tuple[int, int]) -> Iterator[Unit]:
    languages = table.languages(columns)
    for row in table.select(columns):
        source, target = row.cells or ("", "")
        yield Unit(row.line, source, target, row.reason, languages)


def tsv_fields(path: str, languages: Languages = AS_IN_FILE) -> tuple[str, str]:
    """Return the columns of both sides of a TSV file: by name if its first line is a header, otherwise by number.

    Args:
        languages: which columns to choose of several languages.
    """
    table = Table.parse(read_utf8(path), display_name(path))
    first, second = table.pair_columns(languages=languages)
    return (table.rows[0][first], table.rows[0][second]) if table.has_header else (str(first + 1), str(second + 1))


# -- TMX, PO, XLIFF ----------------------------------------------------------------------------------------------------


def _normalise(tag: str | None) -> tuple[str, ...]:
    """Return the parts of a language tag, with a two-letter code if there is one: `deu_AT` is `de`, `at`."""
    base, *regions = (tag or "").strip().lower().replace("_", "-").split("-")
    return language_of_tag(base) or base, *regions


def language_match(tag: str | None, language: str | None) -> int | None:
    """Return how well the language tag of a file fits a language that is chosen.

    2: it is the language, 1: the language of another region, 0: one of them is unknown, None: another language.

    >>> [language_match(*tags) for tags in (("en_US", "eng"), ("en", "en-US"), ("en", None), ("de", "en"))]
    [2, 1, 0, None]
    """
    if tag is None or language is None:
        return 0
    parts, chosen = _normalise(tag), _normalise(language)
    if parts[0] != chosen[0]:
        return None
    return 2 if parts[: len(chosen)] == chosen else 1


def _tmx_units(tree: ElementTree, name: str, languages: Languages) -> Iterator[Unit]:
    root = root_element(tree, "tmx", name)
    units = [
        (unit.sourceline or 1, [_tmx_variant(child) for child in unit if local_name(child) == "tuv"])
        for unit in root.iter("{*}tu")
    ]
    header = next(root.iter("{*}header"), None)
    declared = None if header is None else header.get("srclang")
    tags = {tag for _, variants in units for tag, _ in variants}
    source_tags, target_tags = _choose_tags(tags, declared, languages, name)
    chosen = Languages(min(source_tags), min(target_tags))
    for line, variants in units:
        sources = [text for tag, text in variants if tag in source_tags]
        targets = [text for tag, text in variants if tag in target_tags]
        if not sources or not targets:
            yield Unit(line, "", "", OTHER_LANGUAGE if len(variants) > 1 else NO_TRANSLATION)
            continue
        yield Unit(line, sources[0], targets[0], "", chosen)
        for _ in range(max(len(sources), len(targets)) - 1):
            yield Unit(line, "", "", VARIANT)


def _tmx_variant(variant: Element) -> tuple[str, str]:
    segment = next(variant.iter("{*}seg"), None)
    return variant.get(XML_LANG) or variant.get("lang") or "", "" if segment is None else inline_text(segment)


def _choose_tags(
    tags: set[str], declared: str | None, languages: Languages, name: str
) -> tuple[frozenset[str], frozenset[str]]:
    """Return which language tags of a TMX file are the source, and which the target."""
    available = ", ".join(sorted(tags)) or "none"

    def of_language(language: str | None, option: str = "") -> frozenset[str]:
        matches = {tag: match for tag in tags if (match := language_match(tag, language))}
        if option and language is not None and not matches:
            raise DataError(f"{name}: {option} {language}: not a language of this file, which has {available}")
        return frozenset(tag for tag, match in matches.items() if match == max(matches.values()))

    def others(chosen: frozenset[str]) -> frozenset[str]:
        """The tags of the only other language, or of the only other region."""
        bases = {_normalise(tag)[0] for tag in chosen}
        remaining = {tag for tag in tags if _normalise(tag)[0] not in bases} or tags - chosen
        return frozenset(remaining if len({_normalise(tag)[0] for tag in remaining}) == 1 else ())

    source, target = of_language(languages.source, "--src-lang"), of_language(languages.target, "--tgt-lang")
    if not source and target:
        source = others(target)
    if not source and declared is not None:
        source = of_language(_normalise(declared)[0])
    if source and not target:
        target = others(source)
    if not source or not target:
        raise DataError(f"{name}: has {available}; choose two languages with --src-lang and --tgt-lang")
    return source, target


def root_element(tree: ElementTree, expected: str, name: str) -> Element:
    """Return the root of a file, which must have the expected name."""
    root = tree.getroot()
    if local_name(root) != expected:
        raise DataError(f"{name}: not {expected.upper()}; its root element is <{local_name(root)}>")
    return root


def _arrange(unit: Unit, in_file: Languages, languages: Languages) -> Unit:
    """Return a unit with its sides exchanged if its languages are, or rejected if they are others."""
    fit, swapped_fit = _language_fit(in_file, languages), _language_fit(in_file, languages.reversed)
    if fit is not None and (swapped_fit is None or fit >= swapped_fit):
        return unit._replace(languages=in_file)
    if swapped_fit is not None:
        return Unit(unit.line, unit.target, unit.source, unit.reason, in_file.reversed)
    return Unit(unit.line, "", "", unit.reason or OTHER_LANGUAGE)


def _language_fit(in_file: Languages, chosen: Languages) -> int | None:
    """Return how well the languages agree, None if one differs."""
    matches = [language_match(tag, language) for tag, language in zip(in_file, chosen, strict=True)]
    return None if None in matches else sum(match or 0 for match in matches)


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
