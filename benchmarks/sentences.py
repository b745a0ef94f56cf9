"""Sentence splitters compared: precision and recall of boundaries, and speed.

    pip install pysbd sentence-splitter syntok blingfire      # those that are missing are left out
    python benchmarks/sentences.py --data DIR                 # DIR has multi30k/raw and tanaka10k_jaen

Made texts (below) have what is difficult: abbreviations, initials, ordinals, quotes, addresses. Their sentences are joined in
random pairs. Lines of corpora that are one sentence are joined in twos to fours.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

from dragoman.data.sentences import split_sentences

TEXTS = {
    "en": [
        "Mr. Smith and Dr. Jones met at 5 p.m. on Jan. 3.",
        "It cost $3.50, i.e. too much.",
        "Why?",
        "“Stop!” he said, and left.",
        "See Fig. 3, p. 12, and www.example.com for more.",
        "She works for Acme Inc. in the U.S. today.",
        "Wait... is it over?",
        "J. R. R. Tolkien wrote it.",
        "He said “No.”",
        "Then he left (see below).",
        "The U.S. won.",
        "I like it!",
        "No. 5 is alive.",
    ],
    "de": [
        "Das ist z. B. der 3. Oktober 1990.",
        "Herr Dr. Müller wohnt in der Hauptstr. 5.",
        "„Halt!“, rief er.",
        "Am 24. Dezember kommt u. a. Prof. Klein, vgl. S. 7.",
        "Warum nicht?",
        "Er kam bzw. ging ca. um 9 Uhr.",
        "Das kostet 1.000,50 Euro.",
        "Er sagte: „Ich komme.“",
        "Dann ging er.",
        "Die Fa. Meier usw. war auch da.",
        "So ist es!",
        "Nr. 5 lebt.",
    ],
    "fr": [
        "M. Dupont et Mme. Martin arrivent à 10 h.",
        "Où est-il ?",
        "« Non ! » dit-elle.",
        "Voir p. 12, art. 3, etc.",
        "C'est fini...",
        "Le prix est de 3,50 €.",
        "J.-P. Sartre est né en 1905.",
        "Quelle surprise !",
        "Il dit : « Je viens. »",
        "Puis il partit.",
    ],
    "es": [
        "El Sr. García y la Sra. López viven en EE. UU. desde 1990.",
        "¿Dónde está?",
        "¡Qué bien!",
        "Véase la pág. 3, p. ej. el cap. 2.",
        "Cuesta 3,50 euros.",
        "El Dr. Ruiz no vino.",
        "«Basta», dijo.",
    ],
    "it": [
        "Il sig. Rossi e il dott. Bianchi sono arrivati.",
        "Dove sei?",
        "Che bello!",
        "Vedi pag. 3, cap. 2, ecc. nel libro.",
        "Costa 3,50 euro.",
        "«Basta!» disse.",
    ],
    "pl": [
        "Pan dr. Kowalski mieszka przy ul. Długiej 5.",
        "Np. tak jest, tj. dobrze.",
        "Dlaczego?",
        "W 1990 r. było inaczej.",
        "To jest prof. Nowak.",
        "Świetnie!",
    ],
    "ru": [
        "Он родился в 1990 г. в Москве.",
        "Т. е. так и есть.",
        "Почему?",
        "«Стой!» — крикнул он.",
        "Это стоит 5 тыс. руб. за штуку.",
        "А. С. Пушкин написал это.",
        "Хорошо!",
        "Дом стоит на ул. Ленина.",
    ],
    "el": [
        "Πού είναι;",
        "Ο κ. Παπαδόπουλος έφυγε.",
        "Τι ωραία!",
        "Κοστίζει 3,50 ευρώ.",
    ],
    "tr": [
        "Dr. Yılmaz geldi.",
        "Neden?",
        "Saat 5.30'da, vb. şeyler için buradayız.",
        "Çok güzel!",
        "Prof. Kaya gitti.",
    ],
    "hi": [
        "वह घर गया।",
        "आप कैसे हैं?",
        "यह अच्छा है!",
        "मूल्य 3.50 रुपये है।",
    ],
    "ar": [
        "ذهب إلى البيت.",
        "كيف حالك؟",
        "هذا رائع!",
        "السعر 3.50 دولار.",
    ],
    "ur": [
        "وہ گھر گیا۔",
        "آپ کیسے ہیں؟",
        "یہ اچھا ہے۔",
    ],
    "ja": [
        "彼は家に帰った。",
        "「本当ですか？」と彼は言った。",
        "値段は3.5ドルです。",
        "すごい！",
        "なぜ？",
    ],
    "zh": [
        "他回家了。",
        "“真的吗？”他说。",
        "价格是3.5元。",
        "太好了！",
        "为什么？",
    ],
    "ko": [
        "그는 집에 갔다.",
        "왜?",
        "가격은 3.5달러이다.",
        "정말 좋다!",
    ],
    "hy": [
        "Նա գնաց տուն։",
        "Դա լավ է։",
        "Նա եկավ։",
    ],
    "am": [
        "ወደ ቤት ሄደ።",
        "ጥሩ ነው።",
        "መጣ።",
    ],
    "my": [
        "သူ အိမ်ပြန်သွားသည်။",
        "ကောင်းသည်။",
    ],
    "xx": [
        "wo ist das bad?",
        "ich brauche ein zimmer, z.b. ein großes.",
        "das ist gut!",
        "er kam um 9.30 uhr.",
        "gut.",
    ],
}
WITHOUT_SPACES = frozenset(("ja", "zh", "my"))
PAIRS = 40  # of each language
MAX_LINES = 6_000  # of each corpus
CORPORA = {
    "Multi30k de": ("multi30k/raw/train.de", "de"),
    "Multi30k en": ("multi30k/raw/train.en", "en"),
    "Multi30k fr": ("multi30k/raw/train.fr", "fr"),
    "Tanaka ja": ("tanaka10k_jaen/train.ja", "ja"),
}
Splitter = Callable[[str], Sequence[str]]


def dragoman(language: str) -> Splitter:
    return lambda text: [sentence for sentence, _ in split_sentences(text, language)]


def sentencex(language: str) -> Splitter:
    return partial(import_module("sentencex").segment, language)


def pysbd(language: str) -> Splitter:
    module = import_module("pysbd")
    known = language if language in module.languages.LANGUAGE_CODES else "en"
    return module.Segmenter(language=known, clean=False).segment  # type: ignore[no-any-return]


def moses(language: str) -> Splitter:
    module = import_module("sentence_splitter")
    try:
        return module.SentenceSplitter(language=language).split  # type: ignore[no-any-return]
    except module.SentenceSplitterException:
        return module.SentenceSplitter(language="en").split  # type: ignore[no-any-return]


def syntok(language: str) -> Splitter:
    process = import_module("syntok.segmenter").process
    return lambda text: ["".join(t.spacing + t.value for t in s) for paragraph in process(text) for s in paragraph]


def blingfire(language: str) -> Splitter:
    module = import_module("blingfire")
    return lambda text: module.text_to_sentences(text).split("\n")


def boundaries(sentences: Sequence[str]) -> set[int]:
    """Return after how many characters, spaces not counted, sentences end; without the last."""
    ends, position = set[int](), 0
    for sentence in sentences:
        position += len(re.sub(r"\s", "", sentence))
        ends.add(position)
    return ends - {0, position}


def measure(split: Splitter, texts: Sequence[Sequence[str]], language: str) -> tuple[int, int, int, float]:
    """Return correct, wrong and missing boundaries, and seconds."""
    correct, wrong, missing, start_time = 0, 0, 0, time.process_time()
    for sentences in texts:
        text = ("" if language in WITHOUT_SPACES else " ").join(sentences)
        expected, actual = boundaries(sentences), boundaries(split(text))
        correct += len(expected & actual)
        wrong += len(actual - expected)
        missing += len(expected - actual)
    return correct, wrong, missing, time.process_time() - start_time


def made_texts() -> dict[str, list[list[str]]]:
    """Return random pairs of the sentences of each language."""
    pairs = {name: [[a, b] for a in lines for b in lines if a is not b] for name, lines in TEXTS.items()}
    return {name: random.Random(1).sample(texts, min(PAIRS, len(texts))) for name, texts in pairs.items()}


def corpus_texts(path: Path, language: str) -> Iterator[list[str]]:
    """Yield two to four random lines that are single sentences."""
    lines = path.read_text(encoding="utf-8").splitlines()
    lines = [line.replace(" ", "") if language == "ja" else line for line in lines]
    single = [line for line in lines if re.fullmatch(r"[^.!?…。！？]+[.!?。！？]", line.strip())]
    generator = random.Random(1)
    generator.shuffle(single)
    single = single[:MAX_LINES]
    while len(single) >= 4:
        size = generator.randint(2, 4)
        yield single[:size]
        del single[:size]


def print_row(name: str, correct: int, wrong: int, missing: int, rest: str = "") -> None:
    precision, recall = 100 * correct / max(1, correct + wrong), 100 * correct / max(1, correct + missing)
    score = 2 * precision * recall / max(1e-9, precision + recall)
    print(f"| {name} | {precision:.1f} | {recall:.1f} | {score:.1f} |{rest}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory of the corpora; without it, made texts only")
    data = parser.parse_args().data
    corpora = {
        name: (list(corpus_texts(data / path, language)), language)
        for name, (path, language) in (CORPORA.items() if data else ())
    }
    print("| splitter | precision | recall | F1 |  |\n| --- | --- | --- | --- | --- |")
    for create in (dragoman, sentencex, pysbd, moses, syntok, blingfire):
        name = create.__name__
        try:
            create("en")
        except ImportError:
            print(f"{name}: not installed")
            continue
        rows = {language: measure(create(language), texts, language) for language, texts in made_texts().items()}
        sums = [sum(row[index] for row in rows.values()) for index in range(3)]
        imperfect = [language for language, row in rows.items() if row[1] or row[2]]
        print_row(f"{name}, made texts", *sums, f" errors in {', '.join(imperfect) or 'none'} |")
        for corpus, (texts, language) in corpora.items():
            *counts, seconds = measure(create(language), texts, language)
            characters = sum(len(line) for text in texts for line in text)
            print_row(f"{name}, {corpus}", *counts, f" {characters / seconds / 1e6:.2f} million characters/s |")


if __name__ == "__main__":
    main()
