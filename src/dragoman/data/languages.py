"""Languages: codes of ISO 639, English names, and the language of a text by the name of its file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

from dragoman.core.errors import DataError, shorten

# English names of languages by their ISO 639-1 codes
_NAMES_BY_CODE = """
aa Afar|ab Abkhazian|ae Avestan|af Afrikaans|ak Akan|am Amharic|an Aragonese|ar Arabic|as Assamese|av Avaric|ay Aymara
az Azerbaijani|ba Bashkir|be Belarusian|bg Bulgarian|bi Bislama|bm Bambara|bn Bengali|bo Tibetan|br Breton|bs Bosnian
ca Catalan|ce Chechen|ch Chamorro|co Corsican|cr Cree|cs Czech|cu Church Slavonic|cv Chuvash|cy Welsh|da Danish
de German|dv Dhivehi|dz Dzongkha|ee Ewe|el Greek|en English|eo Esperanto|es Spanish|et Estonian|eu Basque|fa Persian
ff Fulah|fi Finnish|fj Fijian|fo Faroese|fr French|fy Western Frisian|ga Irish|gd Scottish Gaelic|gl Galician
gn Guarani|gu Gujarati|gv Manx|ha Hausa|he Hebrew|hi Hindi|ho Hiri Motu|hr Croatian|ht Haitian|hu Hungarian
hy Armenian|hz Herero|ia Interlingua|id Indonesian|ie Interlingue|ig Igbo|ii Sichuan Yi|ik Inupiaq|io Ido|is Icelandic
it Italian|iu Inuktitut|ja Japanese|jv Javanese|ka Georgian|kg Kongo|ki Kikuyu|kj Kuanyama|kk Kazakh|kl Kalaallisut
km Khmer|kn Kannada|ko Korean|kr Kanuri|ks Kashmiri|ku Kurdish|kv Komi|kw Cornish|ky Kyrgyz|la Latin|lb Luxembourgish
lg Ganda|li Limburgan|ln Lingala|lo Lao|lt Lithuanian|lu Luba-Katanga|lv Latvian|mg Malagasy|mh Marshallese|mi Maori
mk Macedonian|ml Malayalam|mn Mongolian|mr Marathi|ms Malay|mt Maltese|my Burmese|na Nauru|nb Norwegian Bokmål
nd North Ndebele|ne Nepali|ng Ndonga|nl Dutch|nn Norwegian Nynorsk|no Norwegian|nr South Ndebele|nv Navajo|ny Chichewa
oc Occitan|oj Ojibwa|om Oromo|or Oriya|os Ossetian|pa Punjabi|pi Pali|pl Polish|ps Pashto|pt Portuguese|qu Quechua
rm Romansh|rn Rundi|ro Romanian|ru Russian|rw Kinyarwanda|sa Sanskrit|sc Sardinian|sd Sindhi|se Northern Sami|sg Sango
si Sinhala|sk Slovak|sl Slovenian|sm Samoan|sn Shona|so Somali|sq Albanian|sr Serbian|ss Swati|st Southern Sotho
su Sundanese|sv Swedish|sw Swahili|ta Tamil|te Telugu|tg Tajik|th Thai|ti Tigrinya|tk Turkmen|tl Tagalog|tn Tswana
to Tonga|tr Turkish|ts Tsonga|tt Tatar|tw Twi|ty Tahitian|ug Uighur|uk Ukrainian|ur Urdu|uz Uzbek|ve Venda
vi Vietnamese|vo Volapük|wa Walloon|wo Wolof|xh Xhosa|yi Yiddish|yo Yoruba|za Zhuang|zh Chinese|zu Zulu
"""

LANGUAGE_NAMES = {entry[:2]: entry[3:] for entry in _NAMES_BY_CODE.strip().replace("\n", "|").split("|")}

# ISO 639-1 codes by the codes of ISO 639-3, and those of ISO 639-2 that differ
_THREE_LETTERS = """
aar aa|abk ab|ave ae|afr af|aka ak|amh am|arg an|ara ar|asm as|ava av|aym ay|aze az|bak ba|bel be|bul bg|bis bi|bam bm
ben bn|bod bo|tib bo|bre br|bos bs|cat ca|che ce|cha ch|cos co|cre cr|ces cs|cze cs|chu cu|chv cv|cym cy|wel cy|dan da
deu de|ger de|div dv|dzo dz|ewe ee|ell el|gre el|eng en|epo eo|spa es|est et|eus eu|baq eu|fas fa|per fa|ful ff|fin fi
fij fj|fao fo|fra fr|fre fr|fry fy|gle ga|gla gd|glg gl|grn gn|guj gu|glv gv|hau ha|heb he|hin hi|hmo ho|hrv hr|hat ht
hun hu|hye hy|arm hy|her hz|ina ia|ind id|ile ie|ibo ig|iii ii|ipk ik|ido io|isl is|ice is|ita it|iku iu|jpn ja|jav jv
kat ka|geo ka|kon kg|kik ki|kua kj|kaz kk|kal kl|khm km|kan kn|kor ko|kau kr|kas ks|kur ku|kom kv|cor kw|kir ky|lat la
ltz lb|lug lg|lim li|lin ln|lao lo|lit lt|lub lu|lav lv|mlg mg|mah mh|mri mi|mao mi|mkd mk|mac mk|mal ml|mon mn|mar mr
msa ms|may ms|mlt mt|mya my|bur my|nau na|nob nb|nde nd|nep ne|ndo ng|nld nl|dut nl|nno nn|nor no|nbl nr|nav nv|nya ny
oci oc|oji oj|orm om|ori or|oss os|pan pa|pli pi|pol pl|pus ps|por pt|que qu|roh rm|run rn|ron ro|rum ro|rus ru|kin rw
san sa|srd sc|snd sd|sme se|sag sg|sin si|slk sk|slo sk|slv sl|smo sm|sna sn|som so|sqi sq|alb sq|srp sr|ssw ss|sot st
sun su|swe sv|swa sw|tam ta|tel te|tgk tg|tha th|tir ti|tuk tk|tgl tl|tsn tn|ton to|tur tr|tso ts|tat tt|twi tw|tah ty
uig ug|ukr uk|urd ur|uzb uz|ven ve|vie vi|vol vo|wln wa|wol wo|xho xh|yid yi|yor yo|zha za|zho zh|chi zh|zul zu
"""

TWO_LETTER_CODES = {entry[:3]: entry[4:] for entry in _THREE_LETTERS.strip().replace("\n", "|").split("|")}
OTHER_ENDINGS = frozenset(
    ["gz", "txt", "text", "tsv", "csv", "jsonl", "srt", "vtt", "raw", "tok", "tokenized", "lc", "clean", "bpe", "trees"]
)
# Codes that are English words: in my_so.tsv and pairs_no_id.tsv they are no languages.
_WORDS = "am an as be he hi ho id ie is it la ma my no om or os pi so ti to us we"
ENGLISH_WORDS = frozenset(_WORDS.split(" "))
CODE = "[A-Za-z]{2,3}"
CODE_PAIR = re.compile(rf"(?:(?P<words>.*[\W_])?)(?P<source>{CODE})(?P<join>[-_])(?P<target>{CODE})")
SCRIPTS = "Arab|Cyrl|Deva|Hans|Hant|Jpan|Latn"
WITH_REGION = re.compile(rf"({CODE})[-_]([A-Za-z]{{2}}|{SCRIPTS}|[0-9]{{3}})")  # pt-BR, zh_Hans, es-419
REGIONS_NOT_PAIRS = frozenset(["pt-br", "zh-tw", "de-ch"])  # also codes of two languages, but hardly of one corpus


class Languages(NamedTuple):
    """The languages of the two sides of sentence pairs; None: unknown, or as in the file."""

    source: str | None = None
    target: str | None = None

    @property
    def reversed(self) -> Languages:
        return Languages(self.target, self.source)

    def or_else(self, others: Iterable[str | None]) -> Languages:
        """Return these languages, and others where they are unknown. Both sides are never in the same language.

        >>> Languages(None, "en").or_else(["de", "fr"]), Languages("en").or_else(["de", "en"])
        (Languages(source='de', target='en'), Languages(source='en', target=None))
        """
        source, target = others
        return Languages(
            self.source or (None if source == self.target else source),
            self.target or (None if target == self.source else target),
        )


AS_IN_FILE = Languages()


def language_code(name: str) -> str | None:
    """Return the two-letter code of a code of two or three letters; None if it is unknown.

    >>> language_code("de"), language_code("DEU"), language_code("ger"), language_code("xx")
    ('de', 'de', 'de', None)
    """
    code = TWO_LETTER_CODES.get(name.lower(), name.lower())
    return code if code in LANGUAGE_NAMES else None


def language_of_tag(tag: str | None) -> str | None:
    """Return the two-letter code of a language tag, without its region; None if it is unknown.

    >>> language_of_tag("de-AT"), language_of_tag("zh_Hans_CN"), language_of_tag("x-none"), language_of_tag(None)
    ('de', 'zh', None, None)
    """
    return None if tag is None else language_code(re.split("[-_]", tag.strip())[0])


def language_of_name(name: str) -> str | None:
    """Return the code of a language by its code, with or without a region, or by its English name.

    >>> language_of_name("German"), language_of_name("pt-BR"), language_of_name("score")
    ('de', 'pt', None)
    """
    plain = name.strip()
    by_name = next((code for code, language in LANGUAGE_NAMES.items() if language.lower() == plain.lower()), None)
    is_code = re.fullmatch(CODE, plain) or WITH_REGION.fullmatch(plain)
    return by_name or (language_of_tag(plain) if is_code else None)


def check_language(name: str, option: str) -> str:
    """Return the two-letter code of a code, also of `de-AT`; raise an error that names the option if it is unknown."""
    code = language_of_tag(name)
    if code is None:
        raise DataError(f"{option} {shorten(name)}: not a language code of ISO 639, such as de or deu")
    return code


def language_from_path(path: str) -> str | None:
    """Return the language that the name of a file ends with, or consists of.

    >>> [language_from_path(path) for path in ("train.de", "corpus.de-en.deu", "film.pt-br.srt", "news.tok.fr.gz")]
    ['de', 'de', 'pt', 'fr']
    >>> [language_from_path(path) for path in ("train.txt", "de", "my_text.txt", "train.src", "-")]
    [None, 'de', None, None, None]
    """
    parts = PurePath(path).name.split(".")
    while len(parts) > 1 and parts[-1].lower() in OTHER_ENDINGS:
        parts.pop()
    tag = WITH_REGION.fullmatch(parts[-1])
    if tag is None:
        return language_code(parts[-1])
    return language_code(tag[1]) if _is_region(tag[1], tag[2]) else None


def _is_region(code: str, region: str) -> bool:
    """Return whether the second part of `pt-br` or `pt_BR` is a region or a script, not another language."""
    if code.islower() and not region.islower():
        return True
    return (
        language_code(region) is None and code not in ENGLISH_WORDS
    ) or f"{code}-{region}".lower() in REGIONS_NOT_PAIRS


def languages_from_paths(paths: Sequence[str]) -> Languages:
    """Return the languages of two parallel texts by the names of their files, or by that of one file with both.

    Names that differ only in the codes at their ends, such as `train_de.txt` and `train_en.txt`, count as well. Texts are
    in different languages: if both names have the same one, neither is known.

    >>> [tuple(languages_from_paths(paths)) for paths in (["train.de", "train.en"], ["train_de.txt", "train_en.txt"])]
    [('de', 'en'), ('de', 'en')]
    >>> [tuple(languages_from_paths(paths)) for paths in (["a.de", "b.de"], ["my.src", "my.tgt"])]
    [(None, None), (None, None)]
    >>> [tuple(languages_from_paths([path])) for path in ("news.de-en.tsv", "news_de_en.tsv", "pairs_no_id.tsv")]
    [('de', 'en'), ('de', 'en'), (None, None)]
    """
    if len(paths) == 1:
        parts = PurePath(paths[0]).name.split(".")
        pairs = (_language_pair(part) for part in parts)
        return next((pair for pair in pairs if pair is not None), Languages())
    languages = Languages(*map(language_from_path, paths))
    if not any(languages):
        stems = [re.fullmatch(rf"(.*[-_])({CODE})((?:\.\w+)*)", PurePath(path).name) for path in paths]
        if all(stems) and len({(stem[1], stem[3]) for stem in stems if stem}) == 1:
            languages = Languages(*(language_code(stem[2]) if stem else None for stem in stems))
            languages = languages if all(languages) else Languages()
    return Languages() if languages.source == languages.target else languages


def _language_pair(part: str) -> Languages | None:
    """Return the two languages at the end of a part of a file's name: `de-en`, `news_de-en`, `news_de_en`.

    Codes that are English words count only in `en-it` and `news_en-it`, not in `en_it` or `news-en-it`.
    """
    match = CODE_PAIR.fullmatch(part)
    if match is None:
        return None
    codes = match["source"], match["target"]
    is_marked = match["join"] == "-" and not (match["words"] or "").endswith("-")
    if not is_marked and any(code.lower() in ENGLISH_WORDS for code in codes):
        return None
    pair = Languages(*map(language_code, codes))
    return pair if all(pair) and pair.source != pair.target and not _is_region(*codes) else None


def choose_languages(given: Iterable[str | None], in_files: Languages) -> Languages:
    """Return the languages of two texts: those of --src-lang and --tgt-lang, otherwise those of the files.

    >>> choose_languages([None, "eng"], Languages("de", None))
    Languages(source='de', target='en')
    """
    options = ("--src-lang", "--tgt-lang")
    checked = (
        None if code is None else check_language(code, option) for option, code in zip(options, given, strict=True)
    )
    return Languages(*checked).or_else(in_files)


def saved_languages(config: Mapping[str, object]) -> tuple[str | None, str | None]:
    """Return the source and target language in the configuration of a translator, as far as they are recorded.

    >>> saved_languages({"languages": {"source": "de", "target": "en"}}), saved_languages({})
    (('de', 'en'), (None, None))
    """
    languages = config.get("languages")
    source, target = (languages.get(side) if isinstance(languages, Mapping) else None for side in ("source", "target"))
    return (
        language_code(source) if isinstance(source, str) else None,
        language_code(target) if isinstance(target, str) else None,
    )


def describe_language(code: str | None) -> str | None:
    """Return the English name of a language, as far as it is known."""
    return None if code is None else LANGUAGE_NAMES.get(code, code)
