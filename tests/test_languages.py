"""Languages of texts and models: names of files, letter profiles, sentence boundaries by language, recorded languages."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from command import is_one_line
from dragoman.core.errors import DataError
from dragoman.data import formats
from dragoman.data.languages import (
    LANGUAGE_NAMES,
    TWO_LETTER_CODES,
    Languages,
    choose_languages,
    language_from_path,
    languages_from_paths,
)
from dragoman.data.letter_profiles import LetterProfile, LineLetters, foreign_lines, letters_of, line_letters
from dragoman.data.sentences import split_sentences
from dragoman.evaluation.translation_metrics import Bleu, bleu_tokenizer
from dragoman.lab.corpus_files import detokenized
from dragoman.lab.lab import german_english_lab
from dragoman.models.input_checks import input_warning
from dragoman.models.text_pipeline import TextPipeline, TranslatedSentence, join_sentences
from dragoman.serve.registry import LanguagePair, ModelRegistry
from model_files import remove_digests


@pytest.fixture(scope="module")
def texts() -> tuple[list[str], list[str]]:
    pairs = list(german_english_lab().pairs(400, seed=3))
    return [detokenized(pair.german) for pair in pairs], [detokenized(pair.english) for pair in pairs]


@pytest.fixture(scope="module")
def model(texts: tuple[list[str], list[str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator that has recorded its languages by the names of the files."""
    from dragoman.cli.main import main

    directory = tmp_path_factory.mktemp("languages")
    for name, lines in zip(("train.de", "train.en"), texts, strict=True):
        (directory / name).write_text("".join(f"{line}\n" for line in lines))
    sizes = ["--embedding", "8", "--hidden", "8", "--max-updates", "2", "--units", "char"]
    files = ["--src", str(directory / "train.de"), "--tgt", str(directory / "train.en")]
    assert main(["train", "translator", *files, *sizes, "-o", str(directory / "model")]) == 0
    return directory / "model"


def test_every_language_has_codes_of_three_letters() -> None:
    assert set(TWO_LETTER_CODES.values()) == set(LANGUAGE_NAMES)
    assert {TWO_LETTER_CODES[code] for code in ("deu", "ger", "zho", "chi", "fra", "fre")} == {"de", "zh", "fr"}


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["train.de", "train.en"], ["de", "en"]),
        (["europarl-v7.de-en.de", "europarl-v7.de-en.en"], ["de", "en"]),
        (["de.txt", "en.txt"], ["de", "en"]),
        (["news.deu.gz", "news.eng.gz"], ["de", "en"]),
        (["train_ja.txt", "train_en.txt"], ["ja", "en"]),
        (["this_is.txt", "that_is.txt"], [None, None]),
        (["train.src", "train.tgt"], [None, None]),
        (["train.de", "references.txt"], ["de", None]),
        (["pairs.tsv", "pairs.tsv"], [None, None]),
        (["-", "train.en"], [None, "en"]),
        (["x.pt-br", "x.zh_CN"], ["pt", "zh"]),
        (["film.de.srt", "film.en.vtt"], ["de", "en"]),
        (["news.de-en.tsv"], ["de", "en"]),
        (["DE-EN.tmx"], ["de", "en"]),
        (["tatoeba_en-it.tsv"], ["en", "it"]),
        (["train_deu_eng.tsv"], ["de", "en"]),
        (["my_so_file.tsv"], [None, None]),
        (["pairs_no_id.tsv"], [None, None]),
        (["this-is-it.tsv"], [None, None]),
        (["x.pt-br.tsv"], [None, None]),
    ],
)
def test_languages_by_names_of_files(paths: list[str], expected: list[str | None]) -> None:
    assert list(languages_from_paths(paths)) == expected


def test_given_languages_come_first() -> None:
    in_files = Languages("de", "en")
    assert choose_languages([None, None], in_files) == ("de", "en")
    assert choose_languages(["spa", None], in_files) == ("es", "en")
    assert choose_languages(["en-GB", None], in_files) == ("en", None), "the sides are in different languages"
    with pytest.raises(DataError, match="--tgt-lang klingon: not a language code"):
        choose_languages([None, "klingon"], in_files)


def test_only_names_of_files_count() -> None:
    assert language_from_path("corpora/de/train.txt") is None


# -- recorded languages ------------------------------------------------------------------------------------------------


def test_languages_are_recorded_and_used(model: Path, texts: tuple[list[str], list[str]], good: Any) -> None:
    assert yaml.safe_load((model / "config.yaml").read_text())["languages"] == {"source": "de", "target": "en"}
    loaded = dragoman.load(model)
    assert isinstance(loaded, dragoman.Translator)
    assert (loaded.source.language, loaded.target.language) == ("de", "en")
    card = (model / "README.md").read_text()
    assert "# A translator from German to English" in card and "language:\n- de\n- en\n" in card
    [entry] = ModelRegistry.from_arguments([str(model)])
    assert entry.languages == LanguagePair("de", "en")
    [entry] = ModelRegistry.from_arguments([f"fr-it={model}"])
    assert entry.languages == LanguagePair("fr", "it"), "a given name overrides them"
    [entry] = ModelRegistry.from_arguments([f"best={model}"])
    assert entry.languages == LanguagePair("de", "en")


def test_dev_pairs_are_read_in_the_direction_of_training(tmp_path: Path) -> None:
    """The content of a file counts, not its name; and the languages of a model that is trained further."""
    from dragoman.cli.options import PairFileOptions
    from dragoman.cli.train_translator import TextOptions

    for name, source in (("train.de-en.tmx", "en"), ("dev.tmx", "de")):
        variants = '<tuv xml:lang="de"><seg>Haus</seg></tuv><tuv xml:lang="en"><seg>house</seg></tuv>'
        (tmp_path / name).write_text(f'<tmx><header srclang="{source}"/><body><tu>{variants}</tu></body></tmx>')
    files = PairFileOptions(pairs=str(tmp_path / "train.de-en.tmx"))
    texts = TextOptions(pair_file=files, dev_pairs=str(tmp_path / "dev.tmx"))
    lines, dev = texts.read()
    assert dev is not None and lines.languages == ("en", "de") and lines.source == dev.source == ["house"]
    lines, dev = texts.with_languages(_GermanEnglish()).read()  # type: ignore[arg-type]
    assert dev is not None and lines.languages == ("de", "en") and lines.source == dev.source == ["Haus"]


class _GermanEnglish:
    """The languages of a translator."""

    source, target = SimpleNamespace(language="de"), SimpleNamespace(language="en")


def test_models_without_languages_load(model: Path, tmp_path: Path) -> None:
    """As written by earlier versions."""
    import shutil

    shutil.copytree(model, tmp_path / "old")
    remove_digests(tmp_path / "old")
    config = yaml.safe_load((tmp_path / "old" / "config.yaml").read_text())
    del config["languages"]
    (tmp_path / "old" / "config.yaml").write_text(yaml.safe_dump(config))
    for file in (tmp_path / "old").glob("*letters.tsv"):
        file.unlink()
    loaded = dragoman.load(tmp_path / "old")
    assert isinstance(loaded, dragoman.Translator)
    assert loaded.source.language is None and loaded.source.letters is None


def test_unknown_language_codes_raise(run: Any, model: Path, tmp_path: Path) -> None:
    files = ("--src", model.parent / "train.de", "--tgt", model.parent / "train.en")
    outcome = run("train", "translator", *files, "--src-lang", "klingon", "-o", tmp_path / "no")
    assert outcome.code == 2 and is_one_line(outcome.err) and "--src-lang klingon: not a language code" in outcome.err


def test_bleu_tokenises_by_language() -> None:
    assert "tok:zh" in Bleu(tokenised=False, language="zh").signature
    assert f"tok:{bleu_tokenizer('ja')}" in Bleu(tokenised=False, language="ja").signature
    assert bleu_tokenizer("ja") in ("char", "ja-mecab")
    assert "tok:13a" in Bleu(tokenised=False, language="de").signature
    assert "tok:none" in Bleu(tokenised=True, language="zh").signature


# -- letter profiles ---------------------------------------------------------------------------------------------------


def test_profiles_tell_languages_apart(texts: tuple[list[str], list[str]]) -> None:
    german, english = (LetterProfile.train(lines[:300]) for lines in texts)
    assert german is not None and english is not None
    for lines, own, other in ((texts[0], german, english), (texts[1], english, german)):
        right, wrong = (
            [letters for line in side[300:] if (letters := line_letters(line, own, other)) is not None]
            for side in (lines, texts[1] if lines is texts[0] else texts[0])
        )
        assert sum(foreign_lines(right, own.limit)) <= 0.02 * len(right)
        assert sum(foreign_lines(wrong, own.limit)) >= 0.98 * len(wrong)
        single = [foreign_lines([*right[:30], line], own.limit) for line in wrong]
        assert sum(answer[-1] for answer in single) >= 0.9 * len(single), "also a single line in a right text"
    japanese = line_letters("彼は家に帰って本を読みましたがとても眠かったです", german, english)
    assert japanese is not None and foreign_lines([japanese], german.limit) == [True]


def test_a_text_about_something_else_is_not_foreign() -> None:
    """If the lines are a bit unlike the training text, only one that is also unlike the others is foreign."""
    strange = [LineLetters(40, -2.4 - 0.02 * number, -3.5 if number % 7 else -2.9) for number in range(20)]
    assert not any(foreign_lines(strange, limit=-2.5)), "mostly more like the source than the target"
    neither = LineLetters(40, -3.7, -3.5)
    assert foreign_lines([*strange, neither], limit=-2.5) == [False] * 20 + [True]
    assert foreign_lines([neither] * 20, limit=-2.5) == [True] * 20
    target = LineLetters(40, -2.4, -1.4)
    assert foreign_lines([*strange, target], limit=-2.5)[-1] and foreign_lines([target], limit=-2.5) == [True]
    short = LineLetters(17, -2.4, -1.9)
    assert not foreign_lines([*strange, short], limit=-2.5)[-1], "too short to be sure"
    other_script = LineLetters(40, -3.7, -9.0)
    assert foreign_lines([*strange, other_script], limit=-2.5)[-1], "the target language says nothing about it"
    assert foreign_lines([LineLetters(20, -9.0, None)], limit=-2.5) == [True], "without a profile of the target"


@pytest.mark.parametrize("line", ["", "Ok", "Nawaz Sharif", "1234 5678 9012 3456 7890", "...", "NATO 2021"])
def test_short_lines_are_not_judged(texts: tuple[list[str], list[str]], line: str) -> None:
    profile = LetterProfile.train(texts[0])
    assert profile is not None and line_letters(line, profile, None) is None


def test_small_texts_have_no_profile() -> None:
    assert LetterProfile.train(["ein hund bellt ."] * 10) is None


def test_profiles_are_saved_exactly(texts: tuple[list[str], list[str]]) -> None:
    profile = LetterProfile.train(texts[0])
    assert profile is not None and LetterProfile.from_text(profile.to_text()) == profile
    assert len(profile.to_text()) < 40_000
    for damaged in ("", "x", "\t0\t-1\n", "\t5\t-1\nab\n", "\t5\tx\n"):
        with pytest.raises(DataError, match="damaged"):
            LetterProfile.from_text(damaged)


def test_probability_of_a_letter_by_hand() -> None:
    """The longest n-gram that is known counts, with a factor of 0.4 for each shorter one."""
    import math

    profile = LetterProfile({"": 10, "a": 4, "b": 2, "ab": 2, " ": 3, "aba": 1}, -9.0)
    assert letters_of("Ab a!") == " ab a "
    expected = [math.log(0.4 * 4 / 10), math.log(0.4 * 2 / 4), math.log(1 / 2)]  # a after space, b after a, a after ab
    assert profile.mean_log_prob(" aba") == pytest.approx(sum(expected) / 3)


def test_translate_warns_of_another_language(good: Any, model: Path, texts: tuple[list[str], list[str]]) -> None:
    german, english = ("".join(f"{line}\n" for line in lines[:20]) for lines in texts)
    assert "does not look like" not in good("translate", model, "--beam-size", 1, stdin=german).err
    [message] = good("translate", model, "--beam-size", 1, stdin=english).err.splitlines()
    numbers = "lines 1, 2, 3, 4, 5, ..."
    expected = f"20 of 20 lines do not look like German, which the model translates from: {numbers}"
    assert message == expected.replace("20 of 20", message[: message.index(" lines")])
    pipeline = TextPipeline(dragoman.load(model))
    warnings = [input_warning(pipeline.model, pipeline.split(text)) for text in (german, english)]
    assert warnings == [None, "this does not look like German, which the model translates from"]


def test_single_lines_in_another_language_are_reported(
    good: Any, model: Path, texts: tuple[list[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    german, english = (lines[:20] for lines in texts)
    mixed = [*german, english[0], *german, english[1]]
    role = "German, which the model translates from"
    for lines, messages in (
        (mixed[:21], [f"line 21 does not look like {role}"]),
        (mixed, [f"2 of 42 lines do not look like {role}: lines 21, 42"]),
    ):
        done = good("translate", model, "--beam-size", 1, stdin="".join(f"{line}\n" for line in lines))
        assert done.err.splitlines() == messages
    monkeypatch.setattr(formats, "MAX_BATCH_LINES", 30)
    done = good("translate", model, "--beam-size", 1, stdin="".join(f"{line}\n" for line in mixed))
    first, last = done.err.splitlines()
    assert (
        first == f"line 21 does not look like {role}" and last == f"2 of 42 lines do not look like {role}: lines 21, 42"
    )
    pipeline = TextPipeline(dragoman.load(model))
    assert (
        input_warning(pipeline.model, pipeline.split(" ".join(mixed[:21])))
        == f"1 of 21 sentences does not look like {role}"
    )


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_evaluate_warns_of_other_languages(
    good: Any, model: Path, texts: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    german, english = (write(tmp_path / f"test.{code}", text[:30]) for code, text in zip("ab", texts, strict=True))
    lines = ["Les hommes jouent au football sur la plage avec des enfants."] * 30
    french = write(tmp_path / "test.c", lines)

    def warnings(source: Path, target: Path) -> list[str]:
        done = good("evaluate", model, "--src", source, "--ref", target, "--beam-size", 1)
        return [line for line in done.err.splitlines() if line.startswith("warning:")]

    assert warnings(german, english) == []
    swapped = (
        f"warning: {english} is in the target language and {german} in the source language; exchange the two texts"
    )
    assert warnings(english, german) == [swapped]
    [source], [target] = warnings(french, english), warnings(german, french)
    assert source == f"warning: {french}: 100% of the lines do not look like German, which the model translates from"
    assert target == f"warning: {french}: 100% of the lines do not look like English, which the model translates to"


def test_evaluate_warns_of_references_of_other_lines(
    good: Any, model: Path, texts: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    source = write(tmp_path / "test.de", texts[0][:200])
    for references, is_reported in ((texts[1][:200], False), (texts[1][200:], True)):
        target = write(tmp_path / "test.en", references)
        err = good("evaluate", model, "--src", source, "--ref", target, "--beam-size", 1).err
        assert (f"{target}: the references fit the sources no better than lines paired at random" in err) == is_reported


def test_swapped_dev_texts_are_an_error(
    run: Any, model: Path, texts: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    dev = [write(tmp_path / f"dev.{code}", text[:30]) for code, text in zip(("de", "en"), texts, strict=True)]
    train = ["--src", model.parent / "train.de", "--tgt", model.parent / "train.en"]
    sizes = ["--embedding", 8, "--hidden", 8, "--max-updates", 1, "--units", "char", "-o", tmp_path / "model"]
    done = run("train", "translator", *train, "--dev-src", dev[1], "--dev-tgt", dev[0], *sizes)
    assert done.code == 2 and "exchange --dev-src and --dev-tgt" in done.err and not (tmp_path / "model").exists()
    english = write(tmp_path / "english.txt", texts[1][:30])
    wrong = run("train", "translator", *train, "--dev-src", english, "--dev-tgt", dev[1], *sizes)
    assert wrong.code == 0 and f"warning: {english}: " in wrong.err and "do not look like German" in wrong.err
    right = run("train", "translator", *train, "--dev-src", dev[0], "--dev-tgt", dev[1], *sizes, "--force")
    assert right.code == 0 and "do not look like" not in right.err


def test_the_language_of_a_page_is_that_of_its_translation(good: Any, model: Path, tmp_path: Path) -> None:
    write(tmp_path / "page.html", ['<html lang="de"><p>привет мир</p></html>'])
    done = good("translate", model, tmp_path / "page.html")
    assert done.out == '<html lang="en"><p>привет мир</p></html>\n'
    assert done.err.endswith("page.html: segments translated: 0; left as they are: 1\n")


# -- sentences ---------------------------------------------------------------------------------------------------------


@given(st.text(alphabet="aB .!?\n\"'(1。」と…\u2028\u00a0é।", max_size=40), st.sampled_from(["de", "ja", "hi", None]))
def test_sentences_of_any_language_join_to_the_text(text: str, language: str | None) -> None:
    assert "".join(sentence + gap for sentence, gap in split_sentences(text, language)) == text


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("de", ["Am 24. Dezember kommt z. B. Dr. Klein.", "„Halt!“, rief er.", "Warum?"]),
        ("en", ["Mr. Smith left at 5 p.m. today.", "“Stop!” he said.", "J. R. Smith wrote it."]),
        ("ru", ["Он родился в 1990 г. в Москве.", "Почему?"]),
        ("hi", ["वह घर गया।", "आप कैसे हैं?"]),
        ("ar", ["كيف حالك؟", "هذا رائع!"]),
        (None, ["wo ist das bad?", "ich brauche ein zimmer.", "gut."]),
        (None, ["1. Das ist gut.", "2. Das auch."]),
        ("en", ["He left.", "5 dogs ran.", "2023 was good."]),
        ("en", ["They met at 5 p.m.", "Then he went to the U.S.", "He likes it."]),
        ("it", ["Vedi pag. 3, cap. 2 del libro.", "G. Verdi venne."]),
        ("es", ["J. Pérez vino.", "Sí."]),
    ],
)
def test_sentences_of_languages(language: str | None, sentences: list[str]) -> None:
    assert [sentence for sentence, _ in split_sentences(" ".join(sentences), language)] == sentences


@pytest.mark.parametrize(
    ("texts", "gaps", "expected"),
    [
        (["彼は帰った。", "なぜ？"], [" ", ""], "彼は帰った。なぜ？"),
        (["「はい。」", "本当"], [" ", ""], "「はい。」本当"),
        (["สวัสดี", "ขอบคุณ"], [" ", ""], "สวัสดี ขอบคุณ"),
        (["ສະບາຍດີ", "ຂອບໃຈ"], [" ", ""], "ສະບາຍດີ ຂອບໃຈ"),
        (["He left.", "Why?"], ["", ""], "He left. Why?"),
        (["他走了。", "为什么？"], ["\n", ""], "他走了。\n为什么？"),
        (["Go.", "", "Now."], ["  ", " ", "\n"], "Go.   Now.\n"),
    ],
)
def test_translations_are_joined_as_their_script_requires(texts: list[str], gaps: list[str], expected: str) -> None:
    segmented: Any = None  # not used here
    sentences = [TranslatedSentence("", gap, segmented, texts=[text]) for text, gap in zip(texts, gaps, strict=True)]
    assert join_sentences(sentences) == expected


def test_sentences_without_spaces() -> None:
    sentences = ["彼は帰った。", "「本当ですか？」と彼は言った。", "なぜ？"]
    assert [sentence for sentence, _ in split_sentences("".join(sentences), "ja")] == sentences
