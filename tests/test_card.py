"""The README.md of a model directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from command import DEV, TRAIN
from dragoman.io.model_card import TITLES, CardScore, render_card
from dragoman.models.loading import MODEL_CLASSES
from small_translators import ENGLISH, GERMAN
from zoo import TRANSLATORS, model, translator


def test_every_kind_of_model_has_a_title() -> None:
    assert set(TITLES) == set(MODEL_CLASSES)


FINGERPRINT = {"sentences": 20, "tokens": 100, "checksum": "ab"}
NAMES = (
    "unknown words spelled out",
    "classes",
    "cache",
    "feed-forward",
    "log-linear, single words",
    "tree-LSTM, copied",
)


@pytest.mark.parametrize("name", NAMES)
def test_every_model_has_a_card(name: str, tmp_path: Path) -> None:
    model_to_save: Any = translator(name) if name in TRANSLATORS else model(name)
    model_to_save.save(tmp_path / "model")
    text = (tmp_path / "model" / "README.md").read_text()
    _, front, body = text.split("---\n", 2)
    assert yaml.safe_load(front) == {"library_name": "dragoman", "tags": ["dragoman", model_to_save.kind]}
    assert f"s | {model_to_save.vocab.num_known:,} |" in body and "## Use" in body
    assert str(tmp_path) not in text
    model_to_save.save(tmp_path / "model", replace=True)  # the card does not prevent it


def test_the_card_of_a_translator_has_its_scores(good: Any, tmp_path: Path) -> None:
    for ending, lines in (("de", GERMAN), ("en", ENGLISH)):
        (tmp_path / f"t.{ending}").write_text("".join(f"{line}\n" for line in lines))
    texts = ("--src", tmp_path / "t.de", "--tgt", tmp_path / "t.en", "--dev-src", tmp_path / "t.de")
    small = ("--embedding", 8, "--hidden", 8, "--max-updates", 3, "--threads", 1, "--max-epochs", 1)
    good("train", "translator", *texts, "--dev-tgt", tmp_path / "t.en", "-o", tmp_path / "m", *small)
    text = (tmp_path / "m" / "README.md").read_text()
    assert "| train source | 20 | 100 |" in text and "| dev target | 20 | 100 |" in text
    assert "| dev | BLEU |" in text and r"`nrefs:1\|" in text and "| source words |" in text


def test_the_card_of_a_language_model_has_its_perplexity_and_data(good: Any, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(TRAIN)
    (tmp_path / "d").write_text(DEV)
    train = ("--text", tmp_path / "t", "-o")
    good("train", "ngram", *train, tmp_path / "m", "--dev-text", tmp_path / "d", "--order", 2)
    card = (tmp_path / "m" / "README.md").read_text()
    lines, words = len(TRAIN.splitlines()), len(TRAIN.split())
    assert "| dev | perplexity per word or sentence end |" in card
    assert f"| train | {lines:,} | {words + lines:,} | `" in card and f"| dev | {len(DEV.splitlines())} |" in card
    good("train", "cache", *train, tmp_path / "cache", "--vocab", tmp_path / "m")
    assert f"| train | {lines:,} |" in (tmp_path / "cache" / "README.md").read_text()
    good("mix", tmp_path / "m", tmp_path / "cache", "--dev-text", tmp_path / "d", "-o", tmp_path / "both")
    mixed = (tmp_path / "both" / "README.md").read_text()
    assert "| dev, for the weights |" in mixed and "| `member-2` | " in mixed and "| members | 2 |" in mixed
    weights = yaml.safe_load((tmp_path / "both" / "config.yaml").read_text())["weights"]
    assert f"| `member-1` | {weights[0]:.4f} |" in mixed


def test_an_aligner_has_a_card(good: Any, tmp_path: Path) -> None:
    for ending, lines in (("de", GERMAN), ("en", ENGLISH)):
        (tmp_path / f"t.{ending}").write_text("".join(f"{line}\n" for line in lines))
    good("align", "--src", tmp_path / "t.de", "--tgt", tmp_path / "t.en", "-o", tmp_path / "aligner")
    card = (tmp_path / "aligner" / "README.md").read_text()
    assert card.split("---\n")[1].endswith("- aligner\n") and "| train source | 20 | 100 |" in card
    assert "dragoman align --with DIR" in card and "## Scores" not in card
    good("align", "--src", tmp_path / "t.de", "--tgt", tmp_path / "t.en", "-o", tmp_path / "aligner", "--force")


def test_two_way_translators_have_a_card(tmp_path: Path) -> None:
    text = render_card({"kind": "two-way", "data": {"train": {"source": FINGERPRINT, "target": FINGERPRINT}}}, {})
    assert "| train source | 20 | 100 | `ab` |" in text and "DIR/forward" in text and "## Sizes" not in text


def test_cards_of_users_are_not_overwritten(run: Any, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(TRAIN)
    command = ("train", "ngram", "--text", tmp_path / "t", "--order", 2, "-o", tmp_path / "m", "--force")
    assert run(*command).code == 0 and run(*command).code == 0
    (tmp_path / "m" / "README.md").write_text("my own notes\n")
    assert run(*command).code == 2
    model("cache").write_card(tmp_path / "m", [])
    assert (tmp_path / "m" / "README.md").read_text() == "my own notes\n"


def test_scores_can_be_added_later(tmp_path: Path) -> None:
    model_to_save = model("cache")
    model_to_save.save(tmp_path / "model")
    assert "None were measured" in (tmp_path / "model" / "README.md").read_text()
    model_to_save.write_card(tmp_path / "model", [CardScore("test", "BLEU", 12.345, "a signature")])
    assert "| test | BLEU | 12.35 | `a signature` |" in (tmp_path / "model" / "README.md").read_text()
