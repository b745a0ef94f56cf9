"""Commands that read a file or an argument, in all formats, and undamaged files for them."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from small_translators import ENGLISH, GERMAN, TREES, translators
from torture.commands import write_inputs

FORMATS = Path(__file__).parent.parent / "formats"
PAIRS = list(zip(GERMAN[:8], ENGLISH[:8], strict=True))
TEXTS = {
    "plain.de": "".join(f"{line}\n" for line in GERMAN[:8]),
    "plain.en": "".join(f"{line}\n" for line in ENGLISH[:8]),
    "raw.en": "".join(f"{line.removesuffix(' .').capitalize()}. Yes!\n" for line in ENGLISH[:8]),
    "trees.de": "".join(f"{line}\n" for line in TREES[:8]),
    "units.en": "▁the ▁d og ▁sleeps ▁.\n" * 8,
    "pairs.tsv": "".join(f"{source}\t{target}\n" for source, target in PAIRS),
    "named.tsv": "source\ttarget\n" + "".join(f"{source}\t{target}\n" for source, target in PAIRS),
    "pairs.jsonl": "".join(f'{{"src": "{source}", "tgt": "{target}"}}\n' for source, target in PAIRS),
    "text.jsonl": "".join(f'{{"text": "{line}"}}\n' for line in GERMAN[:6]),
    "classes.tsv": "dog\tA\ncat\tA\nsleeps\tB\nbarks\tB\n",
    "links.align": "0-0 1-1 2-2 3-3\n" * 8,
    "gold.align": "0-0 1-1 2?2 3-3\n" * 8,
    "sentence": GERMAN[0],
    "vectors.txt": "3 4\nthe 0.1 0.2 0.3 0.4\ndog -1 2e-1 0 1\ncat 1 1 1 1\n",
    "settings.yaml": "model:\n  embedding: 3\n  hidden: 3\ntraining:\n  max_updates: 1\n  batch_size: 4\n",
    "keys.txt": f"one sha256:{'0a' * 32} 2025-01-01\n",
    "features.py": 'import dragoman\n\n@dragoman.atom("capital")\ndef capital(word):\n    return word[:1].upper()\n',
}
TRAIN = ("--order", "2", "-o", "out")
STEPS = ("--max-updates", "1", "--threads", "1", "-o", "out")
SMALL = ("--embedding", "4", "--hidden", "3", *STEPS)
SPLIT = ("--dev", "1", "--test", "1", "-o", "out")
TEXT = ("--text", "FILE")
TREE = ("--src-format", "tree", "--encoder", "tree-lstm")
BOTH = ("--src", "plain.de", "--tgt", "plain.en")


@dataclass(frozen=True)
class Reading:
    """A command that reads a file, and whether it writes one line per line."""

    file: str
    arguments: Sequence[str]  # FILE stands for the file, ARGUMENT for its contents; without both, it is standard input
    by_line: bool = False


BY_LINE = (
    ("plain.de", ("translate", "translator", *TEXT)),
    ("plain.de", ("translate", "translator")),
    ("plain.de", ("translate", "translator", "second-translator", "--beam-size", "2")),
    ("plain.de", ("translate", "translator", *TEXT, "--no-split", "--beam-size", "1")),
    ("plain.de", ("translate", "translator", *TEXT, "--json")),
    ("plain.de", ("translate", "translator", *TEXT, "--lexicon", "aligner", "--shortlist", "aligner")),
    ("trees.de", ("translate", "tree", *TEXT, "--beam-size", "1")),
    ("plain.en", ("score", "first", *TEXT)),
    ("plain.en", ("score", "first")),
    ("raw.en", ("score", "letters", *TEXT)),
    ("plain.en", ("score", "recurrent", *TEXT)),
    ("plain.en", ("units", "first", *TEXT)),
    ("raw.en", ("units", "letters", *TEXT)),
    ("plain.de", ("units", "pieces", "--source")),
    ("units.en", ("units", "pieces", "--join", *TEXT)),
)
LANGUAGE_MODELS = (
    ("plain.en", ("evaluate", "first", "classes", *TEXT)),
    ("plain.en", ("evaluate", "recurrent", "loglinear", *TEXT)),
    ("plain.en", ("score", "first", "recurrent", "--words", *TEXT)),
    ("plain.en", ("score", "letters", "--tokens", *TEXT)),
    ("plain.en", ("mix", "first", "second", "--dev-text", "FILE", "-o", "out")),
    ("plain.en", ("mix", "first", "second", "--buckets", "order+position", "--dev-text", "FILE", "-o", "out")),
    ("plain.en", ("inspect", "cells", "recurrent", *TEXT)),
    ("plain.en", ("inspect", "gradients", "recurrent", *TEXT, "--words", "2")),
    ("sentence", ("inspect", "saliency", "recurrent", "ARGUMENT", "--all")),
    ("sentence", ("explain", "loglinear", "ARGUMENT")),
    ("sentence", ("next", "first", "ARGUMENT")),
    ("sentence", ("next", "letters", "ARGUMENT")),
    ("sentence", ("sample", "first", "--prefix", "ARGUMENT")),
    ("sentence", ("sample", "letters", "-n", "2", "--prefix", "ARGUMENT")),
    ("plain.en", ("train", "ngram", *TEXT, *TRAIN)),
    ("plain.en", ("train", "ngram", "--text", "-", *TRAIN)),
    ("plain.en.gz", ("train", "ngram", *TEXT, *TRAIN)),
    ("raw.en", ("train", "ngram", *TEXT, *TRAIN, "--unknown", "characters", "--smoothing", "katz")),
    ("raw.en", ("train", "ngram", *TEXT, "--units", "subword:40", *TRAIN)),
    ("raw.en", ("train", "ngram", *TEXT, "--units", "unigram:40", *TRAIN)),
    ("plain.en", ("train", "ngram", *TEXT, "--vocab", "letters", *TRAIN)),
    ("text.jsonl", ("train", "ngram", *TEXT, *TRAIN)),
    ("named.tsv", ("train", "ngram", *TEXT, "--field", "target", *TRAIN)),
    ("film.vtt", ("train", "ngram", *TEXT, *TRAIN)),
    ("plain.en", ("train", "class-ngram", *TEXT, "--classes", "brown:3", *TRAIN)),
    ("classes.tsv", ("train", "class-ngram", "--text", "train.en", "--classes", "FILE", *TRAIN)),
    ("plain.en", ("train", "cache", *TEXT, "-o", "out")),
    ("plain.en", ("train", "log-linear", *TEXT, "--dev-text", "plain.en", *STEPS)),
    ("classes.tsv", ("train", "log-linear", "--text", "train.en", "--features", "class1", "--classes", "FILE", *STEPS)),
    ("features.py", ("train", "log-linear", *TEXT[:1], "train.en", "--features-from", "FILE", *STEPS)),
    ("plain.en", ("train", "feed-forward", *TEXT, "--order", "2", *SMALL)),
    ("vectors.txt", ("train", "feed-forward", "--text", "train.en", "--word-vectors", "FILE", *SMALL)),
    ("plain.en", ("train", "recurrent", *TEXT, *SMALL)),
    ("plain.en", ("train", "recurrent", "--text", "train.en", "--dev-text", "FILE", "--carries", *SMALL)),
    ("plain.en", ("train", "recurrent", "--from", "recurrent", *TEXT, "--replay", "plain.en", *STEPS)),
    ("vectors.txt", ("train", "recurrent", "--text", "train.en", "--word-vectors", "FILE", *SMALL)),
    ("settings.yaml", ("train", "recurrent", "--text", "train.en", "--config", "FILE", "-o", "out")),
    ("plain.en", ("cluster", *TEXT, "-n", "3", "-o", "out")),
    ("first.arpa", ("import", "FILE", "-o", "out")),
    ("first.arpa.gz", ("import", "FILE", "-o", "out")),
)
DATA = (
    ("plain.en", ("doctor", *TEXT)),
    ("plain.en", ("doctor", "--text", "plain.en", "--dev-text", "FILE")),
    ("text.jsonl", ("doctor", *TEXT)),
    ("plain.de", ("doctor", "--src", "FILE", "--tgt", "plain.en")),
    ("plain.de", ("doctor", "--src", "FILE", "--tgt", "plain.en", "--fix", "-o", "out")),
    ("pairs.tsv", ("doctor", "--pairs", "FILE", "--fix", "-o", "out")),
    ("named.tsv", ("doctor", "--pairs", "FILE")),
    *((name, ("doctor", "--pairs", "FILE")) for name in ("app-1.2.xlf", "app-2.0.xlf", "app.po")),
    ("plain.en", ("split", *TEXT, *SPLIT)),
    ("text.jsonl", ("split", *TEXT, *SPLIT)),
    ("pairs.tsv", ("split", "--pairs", "FILE", *SPLIT)),
    ("plain.de", ("split", "--src", "FILE", "--tgt", "plain.en", *SPLIT)),
    ("memory.tmx", ("split", "--pairs", "FILE", "--src-lang", "de", "--tgt-lang", "en", *SPLIT)),
    ("plain.de", ("align", "--src", "FILE", "--tgt", "plain.en")),
    ("plain.de", ("align", "--src", "FILE", "--tgt", "plain.en", "--with", "aligner")),
    ("film.de.srt", ("align", "--src", "FILE", "--tgt", "film.en.srt", "--model", "ibm1")),
    ("pairs.jsonl", ("align", "--pairs", "FILE", "--src-field", "src", "--tgt-field", "tgt")),
    ("gold.align", ("align", *BOTH, "--with", "aligner", "--gold", "FILE")),
    ("keys.txt", ("serve", "--api-keys", "FILE", "--new-key", "somebody")),
)
TRANSLATORS = (
    ("plain.de", ("evaluate", "translator", "--src", "FILE", "--ref", "plain.en")),
    ("plain.en", ("evaluate", "translator", "--src", "plain.de", "--ref", "FILE")),
    ("memory.tmx", ("evaluate", "translator", "--pairs", "FILE", "--src-lang", "de", "--tgt-lang", "en")),
    ("plain.de", ("score", "translator", "--src", "FILE", "--text", "plain.en")),
    ("plain.en", ("score", "translator", "--src", "plain.de", "--text", "FILE", "--words")),
    ("plain.en", ("compare", "--ref", "FILE", "--sys", "plain.en", "--sys", "plain.de", "--resamples", "10")),
    ("plain.en", ("compare", "--ref", "plain.en", "--sys", "FILE", "--sys", "plain.de", "--resamples", "10")),
    ("sentence", ("attention", "translator", "ARGUMENT")),
    ("sentence", ("attention", "pieces", "der hund", "--target", "ARGUMENT")),
    ("pairs.tsv", ("train", "translator", "--pairs", "FILE", *SMALL)),
    ("plain.de", ("train", "translator", "--src", "FILE", "--tgt", "plain.en", "--symmetry", "0.1", *SMALL)),
    ("trees.de", ("train", "translator", "--src", "FILE", "--tgt", "plain.en", *TREE, *SMALL)),
    ("pairs.tsv", ("train", "translator", "--from", "translator", "--pairs", "FILE", *STEPS)),
    ("links.align", ("train", "translator", *BOTH, "--alignments", "FILE", "--supervision", "1", *SMALL)),
    ("settings.yaml", ("train", "translator", *BOTH, "--config", "FILE", "-o", "out")),
    *((name, ("train", "translator", "--pairs", "FILE", *SMALL)) for name in ("memory.tmx", "app.po", "app-2.0.xlf")),
    ("named.tsv", ("translate", "translator", *TEXT, "--field", "source")),
    ("text.jsonl", ("translate", "translator", *TEXT)),
    *(
        (name, ("translate", "translator", "FILE", "-o", "out"))
        for name in ("app-1.2.xlf", "app-2.0.xlf", "app.po", "film.de.srt", "film.vtt", "guide.md", "page.html")
    ),
)
READINGS = [
    *(Reading(file, arguments, by_line=True) for file, arguments in BY_LINE),
    *(Reading(file, arguments) for file, arguments in (*LANGUAGE_MODELS, *DATA, *TRANSLATORS)),
]


def write_all(directory: Path) -> None:
    """Write the inputs of all commands."""
    from dragoman.align.aligner import Aligner
    from dragoman.data.corpus import BidirectionalCorpus
    from zoo import model

    write_inputs(directory)
    for name, text in TEXTS.items():
        (directory / name).write_text(text, encoding="utf-8")
    for path in FORMATS.iterdir():
        (directory / path.name).write_bytes(path.read_bytes())
    for name in ("plain.en", "first.arpa"):
        (directory / f"{name}.gz").write_bytes(gzip.compress((directory / name).read_bytes()))
    for name, kind in (("one", "translator"), ("two", "second-translator"), ("pieces", "pieces"), ("tree", "tree")):
        translators()[name].save(directory / kind)
    kinds = {"recurrent": "recurrent, LSTM", "loglinear": "log-linear, every sort of feature", "letters": "subwords"}
    for name, kind in {**kinds, "classes": "classes", "cache": "cache"}.items():
        model(kind).save(directory / name)
    source, target = (translators()["one"].source, translators()["one"].target)
    pairs = BidirectionalCorpus(source.encode(GERMAN), target.encode(ENGLISH))
    Aligner.train(pairs, "hmm", 2).save(directory / "aligner")
