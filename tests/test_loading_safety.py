"""What loading refuses: changed files, hostile YAML, links, models that are not normalised."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from dragoman import DataError
from dragoman.core.yaml_files import MAX_SIZE, read_yaml
from dragoman.data.vocabulary import Vocab
from dragoman.io.storage import map_arrays, write_arrays
from dragoman.models.loading import load
from model_files import remove_digests
from zoo import model, translator


@pytest.fixture(scope="module")
def saved_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("saved")
    names = {"ngram": "witten-bell, order 2", "classes": "classes", "cache": "cache", "mixture": "mixture of mixtures"}
    for name, kind in names.items():
        model(kind).save(directory / name)
    model("unknown words spelled out").save(directory / "spelling")
    translator("bidirectional, perceptron, lexicon").save(directory / "translator")
    return directory


@pytest.fixture
def saved(saved_once: Path, tmp_path: Path) -> Path:
    shutil.copytree(saved_once, tmp_path / "saved")
    return tmp_path / "saved"


def refusal(path: Path) -> str:
    with pytest.raises(DataError) as refused:
        load(path)
    message = str(refused.value)
    assert str(path) in message and "\n" not in message
    return message


# -- digests -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vocab.tsv", "source-vocab.tsv", "model.safetensors"])
def test_a_changed_file_is_refused(saved: Path, name: str) -> None:
    file = saved / "translator" / name
    content = file.read_bytes()
    file.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
    message = refusal(saved / "translator")
    assert name in message and "train or copy it again" in message


def test_the_lexicon_for_people_may_be_edited(saved: Path) -> None:
    (saved / "translator" / "lexicon.tsv").write_text("mine\n")
    assert load(saved / "translator").kind == "translator"


def test_an_edited_config_is_refused_until_its_last_line_is_removed(saved: Path) -> None:
    config = saved / "ngram" / "config.yaml"
    text = config.read_text().replace("total: 10000000", "total: 20000000")
    config.write_text(text)
    assert "remove its last line to accept the change" in refusal(saved / "ngram")
    config.write_text("".join(text.splitlines(keepends=True)[:-1]))
    assert load(saved / "ngram").unknown.language_size == 20_000_000


def test_directories_of_earlier_versions_have_no_digests(saved: Path) -> None:
    for path in sorted(saved.glob("[!.]*")):
        before = load(path)
        remove_digests(path)
        assert "sha256" not in (path / "config.yaml").read_text()
        assert repr(load(path)) == repr(before)


def test_the_same_model_is_saved_as_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    for path in sorted(saved.glob("[!.]*")):
        load(path).save(tmp_path / "again" / path.name)
        for file in (file for file in path.rglob("*") if file.is_file() and file.name != "README.md"):
            assert file.read_bytes() == (tmp_path / "again" / path.name / file.relative_to(path)).read_bytes()


# -- YAML --------------------------------------------------------------------------------------------------------------

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (BOMB, "alias *a"),
        ("kind: " + "[" * 100_000, "nested more than 8 deep"),
        ("{a: " * 50_000, "nested more than 8 deep"),
        ("a: !!python/object:os.system x", "tag"),
        ("a: 2001-99-99", "broken or incomplete"),
        ("a: " + "9" * 5000, "broken or incomplete"),
        ("a: \xff", "config.yaml"),
        ("# " + "x" * MAX_SIZE, "larger than 1 MB"),
    ],
)
def test_hostile_yaml_is_refused(saved: Path, text: str, problem: str) -> None:
    (saved / "ngram" / "config.yaml").write_bytes(text.encode("latin1"))
    assert problem in refusal(saved / "ngram")


def test_config_cut_at_any_line_is_refused_or_loads(saved: Path) -> None:
    for name in ("translator", "mixture", "spelling"):
        config = saved / name / "config.yaml"
        text = config.read_text()
        for end in range(0, len(text) - 70, 7):
            config.write_text(text[:end])
            try:
                load(saved / name)
            except DataError as error:
                assert str(saved / name) in str(error) and "\n" not in str(error)


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="is not a file"):
        read_yaml(tmp_path / "pipe")
    with pytest.raises(DataError, match="damaged"):
        map_arrays(tmp_path / "pipe")
    with pytest.raises(DataError, match="is not a file"):
        Vocab.read(tmp_path / "pipe")


# -- members -----------------------------------------------------------------------------------------------------------


def test_only_the_members_that_the_configuration_names_are_loaded(saved: Path) -> None:
    model_directory = saved / "mixture"
    (model_directory / "loop").symlink_to(model_directory, target_is_directory=True)
    (model_directory / ".mixture.tmp-0a1b2c3d").mkdir()
    (model_directory / ".mixture.tmp-0a1b2c3d" / "config.yaml").write_text("kind: [")
    (model_directory / "member-3").mkdir()
    (model_directory / "member-3" / "config.yaml").write_text("kind: nonsense")
    assert len(load(model_directory).models) == 2


def test_members_are_not_links_and_are_language_models(saved: Path) -> None:
    member = saved / "mixture" / "member-2"
    shutil.rmtree(member)
    assert "member-2: missing" in refusal(saved / "mixture")
    member.symlink_to(saved / "mixture", target_is_directory=True)
    assert "member-2: is a symbolic link" in refusal(saved / "mixture")
    member.unlink()
    shutil.copytree(saved / "translator", member)
    assert "member-2: is not a language model" in refusal(saved / "mixture")


def test_models_inside_each_other_are_of_bounded_depth(saved: Path) -> None:
    inner = saved / "mixture"
    for number in range(12):
        outer = saved / f"outer-{number}"
        shutil.copytree(saved / "mixture", outer)
        shutil.rmtree(outer / "member-1")
        shutil.copytree(inner, outer / "member-1")
        inner = outer
    assert "more than 8 deep" in refusal(inner)


# -- values ------------------------------------------------------------------------------------------------------------

Change = Callable[[np.ndarray], np.ndarray]


def with_value(value: float, index: int = -1) -> Change:
    def change(array: np.ndarray) -> np.ndarray:
        array = array.copy()
        array.flat[index] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "array", "change", "problem"),
    [
        ("classes", "class_of", with_value(-1), "a class that does not exist"),
        ("classes", "class_of", with_value(1 << 30), "a class that does not exist"),
        ("classes", "class_of", lambda array: array.astype(np.int64), "do not match"),
        ("classes", "class_of", lambda array: array[None], "do not match"),
        ("classes", "log_emission", with_value(np.nan), "no probability in its class"),
        ("classes", "log_emission", with_value(-np.inf), "no probability in its class"),
        ("classes", "log_emission", with_value(5.0), "no probability in its class"),
        ("classes", "log_emission", with_value(-5.0), "do not sum to one"),
        ("cache", "unigram", with_value(np.nan), "do not sum to one"),
        ("cache", "unigram", with_value(-0.5), "do not sum to one"),
        ("cache", "unigram", lambda array: array * 2, "do not sum to one"),
        ("ngram", "log_prob", with_value(-9.0), "sum to"),
        ("ngram", "log_prob", with_value(np.nan), "above 0"),
        ("ngram", "log_backoff", with_value(3.0, 4), "sum to"),
        ("ngram", "word", with_value(65_535), "not sorted"),
        ("translator", "lexicon.probs", with_value(-0.5), "not between 0 and 1"),
        ("translator", "embedding.weight", with_value(1e30), "nothing can be computed"),
        ("translator", "embedding.weight", with_value(np.inf), "not finite"),
        ("translator", "length_prior.pairs", with_value(1 << 40, 0), "length prior"),
    ],
)
def test_wrong_values_are_refused(saved: Path, name: str, array: str, change: Change, problem: str) -> None:
    file = saved / name / "model.safetensors"
    arrays = map_arrays(file)
    write_arrays(file, {**arrays, array: change(arrays[array])})
    assert problem in refusal(saved / name)


@pytest.mark.parametrize(
    ("name", "entries", "problem"),
    [
        ("ngram", {"unknown": {"kind": "uniform", "total": float("nan")}}, "unknown-word model"),
        ("ngram", {"unknown": {"kind": "uniform", "total": -5}}, "has no unknown ones"),
        ("ngram", {"unknown": {"kind": "uniform", "total": True}}, "unknown-word model"),
        ("ngram", {"unknown": None}, "unknown-word model"),
        ("ngram", {"files": {"../ngram/vocab.tsv": "x"}}, "missing"),
        ("ngram", {"files": 5}, "not a list of files"),
        ("cache", {"order": 10**9}, "order"),
        ("cache", {"prior": 1e-300}, "prior"),
        ("mixture", {"weights": [float("nan"), 1.0]}, "weights"),
        ("mixture", {"weights": 2}, "broken model directory"),
        ("translator", {"model": None}, "`model` has no settings"),
        ("translator", {"model": {"embedding": 10**12}}, "does not fit the settings"),
        ("translator", {"model": {"hidden": 10**12, "layers": 100}}, "broken model directory"),
    ],
)
def test_wrong_settings_are_refused(saved: Path, name: str, entries: dict[str, object], problem: str) -> None:
    config = saved / name / "config.yaml"
    config.write_text(yaml.safe_dump({**yaml.safe_load(config.read_text()), **entries}))
    assert problem in refusal(saved / name)


def test_a_cache_that_forgets_nearly_nothing_needs_little_memory(saved: Path) -> None:
    config = saved / "cache" / "config.yaml"
    config.write_text(yaml.safe_dump({**yaml.safe_load(config.read_text()), "decay": 1 - 1e-15}))
    assert np.isfinite(load(saved / "cache").score("the dog sees the dog")).all()
