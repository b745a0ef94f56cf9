"""How often `translate` takes lines for another language: lines of the source language, and of others.

    python benchmarks/language_check.py --data DIR

Letter profiles are trained on the training texts. Right lines: how many of 1,000 are reported in a test text of the source
language. Wrong lines: how many percent of the lines of other languages are reported, each as the only one after 50 right lines
of the corpus. Lines with fewer than 16 letters are not judged and not counted. "before" is an earlier rule that judged
each line on its own.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from dragoman.data.letter_profiles import MARGIN, LetterProfile, LineLetters, foreign_lines, line_letters

CORPORA = {
    "Multi30k": ("multi30k/raw/{}.{}", "test_2016_flickr", ("de", "en", "fr")),
    "Tatoeba": ("tatoeba_de_en/{}.{}", "test", ("de", "en")),
    "Tanaka": ("tanaka10k_jaen/{}.{}", "test", ("ja", "en")),
    "EuTrans": ("eutrans_es_en/{}.{}", "test", ("es", "en")),
}
TRANSLATORS = [
    ("Multi30k", "de", "en"),
    ("Multi30k", "en", "de"),
    ("Multi30k", "fr", "en"),
    ("Tatoeba", "de", "en"),
    ("Tatoeba", "en", "de"),
    ("Tanaka", "ja", "en"),
    ("Tanaka", "en", "ja"),
    ("EuTrans", "es", "en"),
    ("EuTrans", "en", "es"),
]
RIGHT_LINES = 50


def was_foreign(line: LineLetters, limit: float) -> bool:
    return line.target_lead > MARGIN or line.source < limit


def percent(answers: Sequence[bool]) -> float:
    return 100 * sum(answers) / len(answers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data

    def read(corpus: str, part: str, language: str) -> list[str]:
        return (data / CORPORA[corpus][0].format(part, language)).read_text(encoding="utf-8").splitlines()

    print("| translator | right lines, per 1,000: before, now | wrong lines: before, now |")
    print("| --- | --- | --- |")
    for corpus, source, target in TRANSLATORS:
        profile, other = (LetterProfile.train(read(corpus, "train", language)) for language in (source, target))
        assert profile is not None and other is not None

        def judge(
            lines: Sequence[str], profile: LetterProfile = profile, other: LetterProfile = other
        ) -> list[LineLetters]:
            return [letters for line in lines if (letters := line_letters(line, profile, other)) is not None]

        right = judge(read(corpus, CORPORA[corpus][1], source))[:RIGHT_LINES]
        alarms, detected = dict[str, str](), defaultdict[str, list[str]](list)
        for name, (_, part, languages) in CORPORA.items():
            for language in languages:
                lines = judge(read(name, part, language))
                before = percent([was_foreign(line, profile.limit) for line in lines])
                if language == source:
                    now = percent(foreign_lines(lines, profile.limit))
                    alarms[name] = f"{name} {10 * before:.1f}, {10 * now:.1f}"
                else:
                    now = percent([foreign_lines([*right, line], profile.limit)[-1] for line in lines])
                    detected[language].append(f"{before:.0f}%, {now:.0f}%")
        wrong = "; ".join(f"{language} {' / '.join(values)}" for language, values in detected.items())
        print(f"| {corpus} {source}-{target} | {'; '.join(alarms.values())} | {wrong} |", flush=True)


if __name__ == "__main__":
    main()
