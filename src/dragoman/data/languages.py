"""Languages: codes of ISO 639, English names, and the language of a text by the name of its file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

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
    ["gz", "txt", "text", "tsv", "csv", "jsonl", "raw", "tok", "tokenized", "lc", "clean", "bpe", "trees"]
)


def language_code(name: str) -> str | None:
    """Return the two-letter code of a code of two or three letters; None if it is unknown.

    >>> language_code("de"), language_code("DEU"), language_code("ger"), language_code("xx")
    ('de', 'de', 'de', None)
    """
    code = TWO_LETTER_CODES.get(name.lower(), name.lower())
    return code if code in LANGUAGE_NAMES else None


def check_language(name: str, option: str) -> str:
    """Return the two-letter code of a code, also of `de-AT`; raise an error that names the option if it is unknown."""
    code = language_code(re.split("[-_]", name)[0])
    if code is None:
        raise DataError(f"{option} {shorten(name)}: not a language code of ISO 639, such as de or deu")
    return code


def language_from_path(path: str) -> str | None:
    """Return the language that the name of a file ends with, or consists of.

    >>> [language_from_path(path) for path in ("train.de", "corpus.de-en.deu", "data/de.txt", "news.tok.fr.gz")]
    ['de', 'de', 'de', 'fr']
    >>> [language_from_path(path) for path in ("train.txt", "de", "my_text.txt", "train.src", "-")]
    [None, 'de', None, None, None]
    """
    parts = PurePath(path).name.split(".")
    while len(parts) > 1 and parts[-1].lower() in OTHER_ENDINGS:
        parts.pop()
    return language_code(parts[-1])


def languages_from_paths(paths: Sequence[str]) -> list[str | None]:
    """Return the languages of two parallel texts by the names of their files, or by that of one file with both.

    Names that differ only in the codes at their ends, such as `train_de.txt` and `train_en.txt`, count as well. Texts are
    in different languages: if both names have the same one, neither is known.

    >>> languages_from_paths(["train.de", "train.en"]), languages_from_paths(["train_de.txt", "train_en.txt"])
    (['de', 'en'], ['de', 'en'])
    >>> languages_from_paths(["a.de", "b.de"]), languages_from_paths(["my.src", "my.tgt"])
    ([None, None], [None, None])
    >>> languages_from_paths(["news.de-en.tsv"]), languages_from_paths(["pairs.tsv"])
    (['de', 'en'], [None, None])
    """
    if len(paths) == 1:
        names = re.findall(r"(?<![^\W_])([a-z]{2,3})[-_]([a-z]{2,3})(?![^\W_])", PurePath(paths[0]).name)
        pairs = ([language_code(source), language_code(target)] for source, target in names)
        return next((pair for pair in pairs if all(pair)), [None, None])
    languages = [language_from_path(path) for path in paths]
    if not any(languages):
        stems = [re.fullmatch(r"(.*[-_])([A-Za-z]{2,3})((?:\.\w+)*)", PurePath(path).name) for path in paths]
        if all(stems) and len({(stem[1], stem[3]) for stem in stems if stem}) == 1:
            languages = [language_code(stem[2]) if stem else None for stem in stems]
            languages = languages if all(languages) else [None] * len(paths)
    return languages if len({*languages}) == len(languages) or not all(languages) else [None] * len(paths)


def choose_languages(
    given: Sequence[str | None], paths: Sequence[str], recorded: Sequence[str | None] = (None, None)
) -> list[str | None]:
    """Return the languages of two texts: those of --src-lang and --tgt-lang, else recorded ones, else by their files.

    >>> choose_languages([None, "eng"], ["train.de", "train.tgt"])
    ['de', 'en']
    """
    options = ("--src-lang", "--tgt-lang")
    return [
        (known or language) if code is None else check_language(code, option)
        for option, code, known, language in zip(options, given, recorded, languages_from_paths(paths), strict=True)
    ]


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
