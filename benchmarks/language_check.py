"""How often `translate` takes lines for another language: lines of the source language, and of others.

    python benchmarks/language_check.py --data DIR

Letter profiles are trained on the training texts. Lines with fewer than 16 letters are not judged. A file is reported if more
than a fifth of its judged lines are taken for another language.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from dragoman.data.letter_profiles import LetterProfile, looks_foreign
from dragoman.models.line_translation import MAX_FOREIGN_SHARE

MULTI30K, TATOEBA, TANAKA, EUTRANS = (
    "multi30k/raw/{}.{}",
    "tatoeba_de_en/{}.{}",
    "tanaka10k_jaen/{}.{}",
    "eutrans_es_en/{}.{}",
)
TRANSLATORS = {
    "Multi30k de-en": (MULTI30K, "de", "en"),
    "Multi30k fr-en": (MULTI30K, "fr", "en"),
    "Tatoeba de-en": (TATOEBA, "de", "en"),
    "Tatoeba en-de": (TATOEBA, "en", "de"),
    "Tanaka ja-en": (TANAKA, "ja", "en"),
    "EuTrans es-en": (EUTRANS, "es", "en"),
}
DEV_TEXTS = {
    "Multi30k": (MULTI30K, "val", ("de", "en", "fr")),
    "Tatoeba": (TATOEBA, "dev", ("de", "en")),
    "Tanaka": (TANAKA, "dev", ("ja", "en")),
    "EuTrans": (EUTRANS, "dev", ("es", "en")),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data

    def read(pattern: str, part: str, language: str) -> list[str]:
        return (data / pattern.format(part, language)).read_text(encoding="utf-8").splitlines()

    print("| translator | dev text | lines | judged | taken for another language | file reported |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, (pattern, source, target) in TRANSLATORS.items():
        profiles = [LetterProfile.train(read(pattern, "train", language)) for language in (source, target)]
        assert profiles[0] is not None
        for text, (dev_pattern, part, languages) in DEV_TEXTS.items():
            for language in languages:
                lines = read(dev_pattern, part, language)
                judged = [looks_foreign(line, profiles[0], profiles[1]) for line in lines]
                answers = [answer for answer in judged if answer is not None]
                share = sum(answers) / len(answers)
                remark = " (source language)" if language == source else ""
                reported = "yes" if share > MAX_FOREIGN_SHARE else "no"
                counts = f"{len(lines):,} | {len(answers):,} | {100 * share:.2f}% | {reported}"
                print(f"| {name} | {text} {language}{remark} | {counts} |", flush=True)


if __name__ == "__main__":
    main()
