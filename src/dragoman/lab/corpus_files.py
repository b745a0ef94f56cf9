"""The lab's corpus as files: train, dev and test in both languages, with trees, alignments and log-probabilities.

Importing this module does not build the grammar, so commands can check cheaply whether a text is from the lab.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.core.errors import DataError
from dragoman.core.yaml_files import read_yaml
from dragoman.io.digests import to_yaml
from dragoman.io.storage import DirectoryKind, new_directory

if TYPE_CHECKING:
    from dragoman.lab.derivation import AnnotatedSentence
    from dragoman.lab.lab import Lab, SentencePair
    from dragoman.lab.probabilities import PairLogProbs

SPLITS = ("train", "dev", "test")  # sampled independently of each other
MANIFEST_FILE = "lab.yaml"
MANIFEST_KIND = "dragoman laboratory"
GRAMMAR_VERSION = 1  # increase it whenever rules, words or weights change: the probabilities change with them
RAW_SUFFIX = ".raw"  # before the language: detokenized text, whose probabilities are not known
CAPITALIZED_TAGS = ("NN", "NE", "NNP")  # German nouns, names, and words that the lexicon capitalises
CLOSING_PUNCTUATION = ",.!?"

# The line of a sentence pair in the file with each ending.
LINE_FORMATS: dict[str, Callable[[SentencePair], str]] = {
    "de": lambda pair: " ".join(pair.german.words),
    "en": lambda pair: " ".join(pair.english.words),
    "raw.de": lambda pair: detokenized(pair.german),
    "raw.en": lambda pair: detokenized(pair.english),
    "de.trees": lambda pair: pair.german.tree,
    "en.trees": lambda pair: pair.english.tree,
    "align": lambda pair: " ".join(f"{german}-{english}" for german, english in pair.alignment),
    "logprob": lambda pair: log_prob_line(pair.log_probs),
}

LAB_CORPUS = DirectoryKind(
    "a corpus",
    MANIFEST_FILE,
    frozenset((MANIFEST_FILE, *(f"{split}.{ending}" for split in SPLITS for ending in LINE_FORMATS))),
)


def log_prob_line(pair: PairLogProbs) -> str:
    """Return log P(E), log P(F), log P(E | F)."""
    return "\t".join(f"{log_prob:.9f}" for log_prob in (pair.english, pair.german, pair.english_given_german))


def detokenized(sentence: AnnotatedSentence) -> str:
    """Return a sentence with normal capitalisation and spacing.

    >>> from dragoman.lab.derivation import AnnotatedSentence
    >>> detokenized(AnnotatedSentence(("der", "hund", ",", "oder", "?"), ("ART", "NN", "$,", "KON", "$."), (), ""))
    'Der Hund, oder?'
    """
    text = ""
    for word, tag in zip(sentence.words, sentence.tags, strict=True):
        space = " " if text and word not in CLOSING_PUNCTUATION else ""
        text += space + (word.capitalize() if tag in CAPITALIZED_TAGS or not text else word)
    return text


def write_lab_corpus(lab: Lab, path: Path, sizes: Mapping[str, int], seed: int, *, replace: bool = False) -> None:
    """Write the corpus to a new directory; the same seed gives the same files.

    Args:
        lab: the lab to sample from.
        path: the directory.
        sizes: number of sentence pairs of each split. A larger split begins with the pairs of a smaller one.
        seed: random seed.
        replace: overwrite an existing corpus.
    """
    with new_directory(path, replace=replace, kind=LAB_CORPUS) as directory:
        for split, size in sizes.items():
            with ExitStack() as stack:
                paths = [directory / f"{split}.{ending}" for ending in LINE_FORMATS]
                files = [stack.enter_context(file.open("w", encoding="utf-8", newline="\n")) for file in paths]
                for pair in lab.pairs(size, seed, split):
                    for file, line in zip(files, LINE_FORMATS.values(), strict=True):
                        file.write(line(pair) + "\n")
        manifest = to_yaml(_manifest(lab, sizes, seed))
        (directory / MANIFEST_FILE).write_text(manifest, encoding="utf-8")


def _manifest(lab: Lab, sizes: Mapping[str, int], seed: int) -> dict[str, object]:
    entropy = lab.entropy
    return {
        "kind": MANIFEST_KIND,
        "grammar": GRAMMAR_VERSION,
        "about": "Synthetic sentence pairs drawn from a grammar; see .logprob for the exact log P(E), P(F), P(E | F).",
        "seed": seed,
        "pairs": dict(sizes),
        "expected_words": {"de": round(entropy.german_words, 6), "en": round(entropy.english_words, 6)},
        "entropy_nats_a_sentence": {
            "de": round(entropy.german, 6),
            "en": round(entropy.english, 6),
            "en_given_de": round(entropy.english_given_german, 6),
        },
        "entropy_nats_a_word": {"en_given_de": round(entropy.english_given_german_per_word, 6)},
    }


def lab_language(path: str | Path) -> str | None:
    """Return the language of a text of the lab, by its file name and the manifest beside it; None for other texts."""
    stem, _, language = Path(path).name.removesuffix(".gz").rpartition(".")
    if language not in ("de", "en") or not _is_lab_corpus(Path(path).parent):
        return None
    if stem.endswith(RAW_SUFFIX):
        tokenised = f"{stem.removesuffix(RAW_SUFFIX)}.{language}"
        warnings.warn(f"{path}: no floor is known for detokenized text; use {tokenised} instead", stacklevel=2)
        return None
    return language


def _is_lab_corpus(directory: Path) -> bool:
    try:
        manifest = read_yaml(directory / MANIFEST_FILE)
    except DataError:
        return False  # no manifest, or another program's file
    if not isinstance(manifest, dict) or manifest.get("kind") != MANIFEST_KIND:
        return False
    if manifest.get("grammar") != GRAMMAR_VERSION:
        warnings.warn(f"{directory}: written by another version of the lab, so no floor is known", stacklevel=2)
        return False
    return True
