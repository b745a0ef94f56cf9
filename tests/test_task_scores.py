"""Accuracy and error rates of words and phones: worked examples, several references, kinds of targets, significance."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from command import is_one_line
from dragoman import DataError
from dragoman.data.pair_files import read_pairs
from dragoman.data.tokenizer import LinePairs, Tokenizer
from dragoman.evaluation.comparison import ComparisonInput, compare_systems
from dragoman.evaluation.significance import confidence_interval, paired_bootstrap
from dragoman.evaluation.task_scores import TargetKind, TaskScores, score_task, target_kind
from dragoman.evaluation.translator import evaluate_translator
from dragoman.experiments.results import TranslatorRung
from dragoman.io.model_card import choose_examples, read_examples
from dragoman.models import dev_report
from dragoman.models.dev_report import score_on_dev, task_scores
from dragoman.report.ladder import overview_table, score_table
from dragoman.report.translators import comparison_text
from small_translators import ENGLISH, GERMAN, place, translators

__all__ = ["place"]

PHONES = ["AH", "B", "K", "T", "S", "IY", "N", "ER"]
LETTERS = "abktsiner"


def pronunciations(words: int = 120) -> tuple[list[str], list[str]]:
    """Words and their pronunciations; every tenth word is listed twice."""
    rng = Random(3)
    spelled = ["".join(rng.choices(LETTERS, k=rng.randint(3, 9))) for _ in range(words)]
    spelled += spelled[::10]
    return spelled, [" ".join(rng.choices(PHONES, k=rng.randint(3, 9))) for _ in spelled]


SOURCES, REFERENCES = pronunciations()


def damaged(share: float, seed: int) -> list[str]:
    """The references, each phone wrong with this probability; equal sources have equal results."""
    rng = Random(seed)
    first = dict[str, str]()
    for source, line in zip(SOURCES, REFERENCES, strict=True):
        phones = [rng.choice(PHONES) if rng.random() < share else phone for phone in line.split()]
        first.setdefault(source, " ".join(phones))
    return [first[source] for source in SOURCES]


def levenshtein(first: list[str], second: list[str]) -> int:
    """The edit distance by its recursive definition, on the full table."""
    table = {(i, 0): i for i in range(len(first) + 1)} | {(0, j): j for j in range(len(second) + 1)}
    for i, word in enumerate(first, 1):
        for j, other in enumerate(second, 1):
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (word != other))
    return table[len(first), len(second)]


def values(scores: TaskScores) -> dict[str, float]:
    return {result.name: result.value for result in scores.results}


# -- values -----------------------------------------------------------------------------------------------------------


def test_word_and_phone_error_rate_equal_an_independent_computation() -> None:
    hypotheses = damaged(0.1, 1)
    scores = score_task(hypotheses, REFERENCES, SOURCES, tokenised=True)
    assert scores.kind == TargetKind.PHONES and [result.name for result in scores.headline] == ["WER", "PER"]
    variants: dict[str, list[list[str]]] = {}
    for source, reference in zip(SOURCES, REFERENCES, strict=True):
        variants.setdefault(source, []).append(reference.split())
    wrong = edits = phones = 0
    for source, references in variants.items():
        hypothesis = hypotheses[SOURCES.index(source)].split()
        wrong += hypothesis not in references
        closest = min(references, key=lambda reference: (levenshtein(hypothesis, reference), -len(reference)))
        edits += levenshtein(hypothesis, closest)
        phones += len(closest)
    assert (scores.entries, scores.entries_with_variants) == (len(variants), 12)
    actual = values(scores)
    assert actual["WER"] == pytest.approx(100 * wrong / len(variants)) and 0 < actual["WER"] < 100
    assert actual["PER"] == pytest.approx(100 * edits / phones)
    assert actual["accuracy"] == pytest.approx(100 - actual["WER"])


def test_accuracy_and_character_error_rate_of_words() -> None:
    """Worked by hand: kitten to sitting needs 3 edits of 7 characters; `fuhr  ab` is `fuhr ab`."""
    scores = score_task(["kitten", "fuhr  ab", "lief"], ["sitting", "fuhr ab", "lief"], tokenised=False)
    assert scores.kind == TargetKind.WORDS and [result.name for result in scores.headline] == ["accuracy", "CER"]
    assert values(scores)["accuracy"] == pytest.approx(100 * 2 / 3)
    assert values(scores)["CER"] == pytest.approx(100 * 3 / (7 + 7 + 4))
    assert values(scores)["WER"] == pytest.approx(100 / 3)


def test_a_word_with_several_references_may_have_any_of_them() -> None:
    references = ["r iy d", "r eh d", "r iy", "d iy r"]
    sources = ["read", "read", "ree", "dear"]
    for written in references[:2]:
        scores = score_task([written, written, "r iy", "d iy r"], references, sources, tokenised=True, metrics=["WER"])
        assert (scores.entries, scores.entries_with_variants, values(scores)["WER"]) == (3, 1, 0)
        assert "1 of them with several references" in scores.entries_text
    alone = score_task(["r eh d", "r eh d", "r iy", "d iy r"], references, tokenised=True)
    assert (alone.entries, values(alone)["WER"]) == (4, 25), "without sources each line is an entry"


def test_sentences_keep_their_lines_and_word_errors_are_edits() -> None:
    hypotheses, references = ["the cat sat on a mat .", "a dog ."], ["the cat sat on the mat .", "the dog ."]
    sources = ["die katze sass auf der matte .", "die katze sass auf der matte ."]
    scores = score_task(hypotheses, references, sources, tokenised=True, metrics=["wer", "Accuracy"])
    assert scores.kind == TargetKind.SENTENCES and scores.entries == 2
    assert [result.name for result in scores.results] == ["WER", "accuracy", "BLEU", "chrF"]
    assert values(scores)["WER"] == pytest.approx(100 * 2 / 10)


def test_unknown_metrics_are_rejected() -> None:
    with pytest.raises(DataError, match=r"'ROUGE': does not exist; choose from accuracy, WER, PER, CER, BLEU, chrF"):
        score_task(["a"], ["a"], tokenised=True, metrics=["ROUGE"])


# -- kinds of targets -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("references", "sources", "kind"),
    [
        (["the cat sat .", "a cat ran ."] * 50, ["die katze sass .", "eine katze lief ."] * 50, "sentences"),
        (["I am a man ."], None, "sentences"),
        (["彼は去ったと思います。"] * 3, None, "sentences"),  # a script without spaces: one "word" per sentence
        (["彼 は 去っ た 。", "彼女 は 去っ た 。"] * 20, None, "sentences"),  # few short words, but not phones
        (["とうきょう", "おおさか"], ["Tokyo", "Osaka"], "words"),
        (["gesetzt", "fuhr ab", "lief", ""], ["setzen V PST", "abfahren V", "laufen V", ""], "words"),
        (REFERENCES, SOURCES, "phones"),
        (REFERENCES, [" ".join(word) for word in SOURCES], "phones"),  # letters separated by spaces
        (REFERENCES, ["die katze sass auf der matte und schlief"] * len(SOURCES), "sentences"),
    ],
)
def test_kinds_of_targets(references: list[str], sources: list[str] | None, kind: str) -> None:
    assert target_kind(references, sources).value == kind


def test_the_vocabulary_of_the_translator_decides_about_few_references() -> None:
    few = ["B IY T", "K AH T ER"]
    assert target_kind(few) == TargetKind.SENTENCES
    assert target_kind(few, ["beat", "cutter"], Tokenizer.train("word", REFERENCES)) == TargetKind.PHONES
    large = Tokenizer.train("word", [f"x{n} x{n}" for n in range(400)])
    assert target_kind(REFERENCES, SOURCES, large) == TargetKind.SENTENCES


# -- intervals and significance ---------------------------------------------------------------------------------------


def test_intervals_contain_the_value_and_depend_on_the_seed_only() -> None:
    scores = score_task(damaged(0.1, 1), REFERENCES, SOURCES, tokenised=True)
    for result in scores.results:
        assert result.interval.low < result.value < result.interval.high
    statistics = scores.of("WER")
    assert confidence_interval(statistics, seed=1) == confidence_interval(statistics, seed=1)
    share = values(scores)["WER"] / 100
    width = 2 * 1.96 * 100 * (share * (1 - share) / scores.entries) ** 0.5  # of a binomial proportion
    assert scores.results[0].interval.high - scores.results[0].interval.low == pytest.approx(width, rel=0.15)


def test_the_system_with_fewer_errors_is_better() -> None:
    worse, better = (score_task(damaged(share, 7), REFERENCES, SOURCES, tokenised=True) for share in (0.3, 0.05))
    for name in ("WER", "PER"):
        test = paired_bootstrap(worse.of(name), better.of(name))
        assert test.difference < 0 and test.second_is_better and test.significant and test.wins > 990 > 9 > test.losses
        back = paired_bootstrap(better.of(name), worse.of(name))
        assert not back.second_is_better and (back.wins, back.losses) == (test.losses, test.wins)
    assert paired_bootstrap(worse.of("accuracy"), better.of("accuracy")).second_is_better


def test_comparison_of_pronunciations() -> None:
    texts = ComparisonInput(REFERENCES, damaged(0.3, 7), damaged(0.05, 7), ("old", "new"), SOURCES)
    comparison = compare_systems(texts, tokenised=True, resamples=200)
    assert [test.metric for test in comparison.tests] == ["WER", "PER", "accuracy", "BLEU", "chrF"]
    shown = comparison_text(comparison)
    assert shown.startswith("Accuracy and error rates of 120 words, 12 of them with several references")
    assert "new is significantly better in WER" in shown and "By sentence length" not in shown
    plain = comparison.as_dict()
    assert list(plain["paired_bootstrap"]) == ["wer", "per", "accuracy", "bleu", "chrf"]
    assert plain["systems"][0]["metrics"]["WER"]["value"] == comparison.first.task_scores.results[0].value


def test_tables_of_a_ladder_begin_with_the_metrics_of_the_kind() -> None:
    model = translators()["one"]

    def rung(sources: list[str], references: list[str]) -> TranslatorRung:
        evaluation = evaluate_translator(model, sources, references)
        return TranslatorRung("one", evaluation, evaluation.scores, seconds=1.0, parameters=2)

    words = rung([line.split()[1] for line in GERMAN], [line.split()[1] for line in ENGLISH])
    table = score_table([words])
    assert list(table.headers[:4]) == ["translator", "accuracy, %", "CER, %", "perplexity"]
    assert table.rows[0][1] == f"{words.evaluation.task_scores.headline[0].value:.2f}"
    sentences = rung(GERMAN, ENGLISH)
    assert "accuracy, %" not in score_table([sentences]).headers
    assert "accuracy, %" in overview_table([words]).headers and "BLEU" in overview_table([sentences]).headers
    assert overview_table([sentences]).rows[0][4] == f"{sentences.bleu:.1f}"


# -- commands ---------------------------------------------------------------------------------------------------------


def test_evaluate_prints_the_metrics_of_the_kind_first(good: Callable[..., Any], place: Path) -> None:
    text = ("--src", place / "test.de", "--ref", place / "test.en")
    rows = [line.split("  ")[0] for line in good("evaluate", place / "two", *text).lines]
    assert rows.index("BLEU") < rows.index("chrF") < rows.index("length ratio") and "PER" not in rows
    shown = good("evaluate", place / "two", *text, "--metrics", "cer,wer").lines
    assert [line.split("  ")[0] for line in shown[3:7]] == ["CER", "WER", "BLEU", "chrF"]
    assert all("95% interval" in line for line in shown[3:7])
    actual = json.loads(good("evaluate", place / "two", *text, "--metrics", "cer", "--json").out)
    assert actual["target_kind"] == "sentences" and list(actual["metrics"]) == ["CER", "BLEU", "chrF"]
    assert actual["metrics"]["BLEU"]["value"] == actual["bleu"] and actual["headline"] == ["CER", "BLEU"]
    pair = good("evaluate", place / "two", place / "one", *text, "--metrics", "WER").out
    assert "no significant difference in WER (p = 1)" in pair and "WER, %" in pair  # both have memorised the text


def test_evaluate_of_single_words(good: Callable[..., Any], place: Path, tmp_path: Path) -> None:
    """The first words of the sentences; `der` is listed for `the` and for `a`."""
    rows = [(source.split()[0], target.split()[0]) for source, target in zip(GERMAN, ENGLISH, strict=True)]
    (tmp_path / "words.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in rows))
    fields = ("--src", tmp_path / "words.tsv", "--ref", tmp_path / "words.tsv", "--src-field", 1)
    shown = good("evaluate", place / "one", *fields, "--ref-field", 2).lines
    names = [line.split("  ")[0] for line in shown]
    assert names[2:6] == ["words", "accuracy", "CER", "perplexity"] and not {"WER", "BLEU"} & set(names)
    chosen = good("evaluate", place / "one", *fields, "--ref-field", 2, "--metrics", "WER,accuracy,BLEU").lines
    assert [line.split("  ")[0] for line in chosen[2:7]] == [
        "words",
        "WER",
        "accuracy",
        "BLEU",
        "perplexity",
    ]
    same = json.loads(good("evaluate", place / "one", *fields, "--tgt-field", 2, "--json").out)
    assert same["target_kind"] == "words" and same["entries"] == len({source for source, _ in rows})


@pytest.mark.parametrize("field", ["1", "source"])
def test_the_same_column_twice_is_an_error(run: Callable[..., Any], place: Path, tmp_path: Path, field: str) -> None:
    (tmp_path / "a.tsv").write_text("source\ttarget\nhund\tdog\n")
    (tmp_path / "a.txt").write_text("hund\n")
    both = ("--src", tmp_path / "a.tsv", "--ref", tmp_path / "a.tsv")
    outcome = run("evaluate", place / "one", *both, "--src-field", field, "--ref-field", field)
    assert outcome.code == 2 and is_one_line(outcome.err)
    assert "a.tsv: source and target are the same text; choose two columns or keys" in outcome.err
    with pytest.raises(DataError, match="give two files"):
        read_pairs(str(tmp_path / "a.txt"), str(tmp_path / "a.txt"))


def test_metrics_that_do_not_exist_are_refused_before_anything_is_read(run: Callable[..., Any], place: Path) -> None:
    for command in (("evaluate", place / "one", "--src", "x"), ("compare", "--sys", "a", "--sys", "b")):
        outcome = run(*command, "--ref", "y", "--metrics", "WER,ROUGE")
        assert outcome.code == 2 and is_one_line(outcome.err) and "metric 'ROUGE': does not exist" in outcome.err


def test_dev_scores_at_the_end_of_training(tmp_path: Path) -> None:
    model = translators()["one"]
    model.save(tmp_path / "one")
    words = LinePairs([line.split()[1] for line in GERMAN], [line.split()[1] for line in ENGLISH])
    result = score_on_dev(tmp_path / "one", model, {"dev": words})["dev"]
    assert [metric.name for metric in result.scores.headline] == ["accuracy", "CER"]
    assert read_examples(tmp_path / "one") == choose_examples(words.source)
    card = (tmp_path / "one" / "README.md").read_text()
    assert "| dev | accuracy |" in card and card.index("| dev | CER |") < card.index("| dev | BLEU |")
    sentences = LinePairs(GERMAN, ENGLISH)
    headline = task_scores(model, ENGLISH, sentences).headline
    assert [(result.name, round(result.value)) for result in headline] == [("BLEU", 100), ("chrF", 100)]


def test_a_sample_of_the_dev_text_is_named_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, lines = translators()["one"], LinePairs(GERMAN, ENGLISH)
    model.save(tmp_path / "one")
    monkeypatch.setattr(dev_report, "MIN_SENTENCES", 3)
    result = score_on_dev(tmp_path / "one", model, {"dev": lines}, share=0.01)["dev"]
    assert result.describe_text("dev text") == f"dev text (3 of {len(GERMAN)} sentences)"
    assert f"| dev (3 of {len(GERMAN)} sentences) | BLEU |" in (tmp_path / "one" / "README.md").read_text()


def test_pronunciations_of_several_words_are_phones() -> None:
    sources = ["san francisco", "new york", "cat", "san antonio"] * 5
    phones = ["S AE N F R AH N S IH S K OW", "N UW Y AO R K", "K AE T", "S AE N AE N T OW N IY OW"] * 5
    assert target_kind(phones, sources) == TargetKind.PHONES
    scores = score_task(phones, phones, sources, tokenised=True)
    assert [result.name for result in scores.shown_results] == ["WER", "PER"] and scores.token == "phone"
    toy = ["a b c", "b c a", "c a b"] * 9
    animals = ["hund katze vogel", "katze vogel hund", "vogel hund katze"] * 9
    assert target_kind(toy, animals) == TargetKind.SENTENCES, "word by word"


def test_the_phone_error_rate_is_not_for_sentences() -> None:
    """In machine translation, PER is the position-independent error rate."""
    lines = ["the dog barks at night", "a small bird sings again"]
    with pytest.raises(DataError, match="PER: the phone error rate is for pronunciations"):
        score_task(lines, lines, tokenised=True, metrics=["PER"])
