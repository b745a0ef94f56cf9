"""`dragoman verify`, and a sample of the campaign of damaged model directories."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from dragoman.io.storage import map_arrays, write_arrays
from dragoman.models.verification import verify
from model_files import remove_digests
from torture.model_directories import ALIGNER, TWO_WAY, save_models
from torture.model_directories import run as run_campaign

KINDS = ("classes", "cache", "unknown words spelled out", "mixture of mixtures", "subwords", "log-linear, hashed")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("campaign") / "models"
    save_models(place, KINDS, ["bidirectional, perceptron, lexicon", "tree-LSTM, perceptron"])
    return place


@pytest.fixture
def copied(models: Path, tmp_path: Path) -> Path:
    shutil.copytree(models, tmp_path / "models")
    return tmp_path / "models"


def test_saved_models_are_intact(copied: Path) -> None:
    paths = sorted(path for path in copied.glob("[!.]*"))
    with_digests = [verify(path) for path in paths]
    for path in paths:
        remove_digests(path)
    without = [verify(path) for path in paths]
    for path, result, earlier in zip(paths, with_digests, without, strict=True):
        assert not result.problems and not earlier.problems
        assert str(result).startswith(f"{path}: intact (") and "no digests" in str(earlier)
        assert result.files >= 2 and earlier.files == 0
        assert (result.contexts > 0) == (path.name != ALIGNER)


def test_every_changed_file_is_a_problem(copied: Path) -> None:
    path = copied / TWO_WAY
    for name in ("forward/vocab.tsv", "backward/source-vocab.tsv", "backward/model.safetensors"):
        file = path / name
        content = bytearray(file.read_bytes())
        content[-2] ^= 1
        file.write_bytes(content)
    problems = verify(path).problems
    for name in ("forward/vocab.tsv", "backward/source-vocab.tsv", "backward/model.safetensors"):
        assert sum(problem.startswith(f"{path / name}: ") for problem in problems) == 1
    assert not any("\n" in problem for problem in problems)


def test_large_files_are_checked(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("dragoman.io.storage", "dragoman.ngram.model"):
        monkeypatch.setattr(f"{module}.MAX_COPIED_SIZE", 0)
    file = copied / "subwords" / "model.safetensors"
    arrays = map_arrays(file)
    changed = arrays["log_prob"].copy()
    changed[-1] -= np.float32(9)
    whole = file.read_bytes()
    write_arrays(file, {**arrays, "log_prob": changed})
    assert any("sum to" in problem for problem in verify(copied / "subwords").problems)
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert any("differ from its digest" in problem for problem in verify(copied / "subwords").problems)


def test_verify_on_the_command_line(copied: Path, run) -> None:
    outcome = run("verify", copied / "cache", copied / "classes")
    assert outcome.code == 0 and outcome.out.count(": intact (") == 2 and not outcome.err
    (copied / "cache" / "vocab.tsv").write_text("nothing\n")
    outcome = run("verify", copied / "cache", copied / "classes", copied / "nowhere")
    assert outcome.code == 1 and len(outcome.out.splitlines()) == 3
    assert "vocab.tsv: changed since it was written" in outcome.out and "no such directory" in outcome.out


def test_damaged_directories_are_refused_or_sound(models: Path) -> None:
    tallies = run_campaign(models.parent, 48, seed=3, check_bounds=False)
    assert tallies["wrong"] == 0 and tallies["refused"] > 10 and tallies["sound"] > 2
