"""Model directories, and arrays mapped into memory."""

from __future__ import annotations

import errno
import gzip
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

import dragoman
from dragoman import DataError, DragomanError
from dragoman.io import files
from dragoman.io.digests import arrays_digest
from dragoman.io.files import write_text
from dragoman.io.storage import (
    DTYPES,
    FileStamp,
    map_arrays,
    map_arrays_with_metadata,
    new_directory,
    write_arrays,
)
from model_files import remove_digests
from zoo import model


def some_arrays() -> dict[str, np.ndarray]:
    """One of each type, of sizes that do not fit together, an empty one and one of three dimensions."""
    arrays = {f"of {name}": (np.arange(7) % 2).astype(code) for name, code in DTYPES.items()}
    return {"codes": np.arange(5, dtype=np.uint8), "none": np.zeros((0, 3), np.float32), **arrays, "cube": cube()}


def cube() -> np.ndarray:
    return np.arange(24, dtype=np.float64).reshape(2, 3, 4)


def assert_same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> None:
    assert first.keys() == second.keys()
    for name in first:
        assert first[name].dtype == second[name].dtype
        assert np.array_equal(first[name], second[name])


# -- arrays --------------------------------------------------------------------------------------------------------


def test_safetensors_reads_written_arrays(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", some_arrays())
    assert_same(load_file(tmp_path / "a"), some_arrays())


def test_files_of_safetensors_are_mapped(tmp_path: Path) -> None:
    save_file(some_arrays(), tmp_path / "a", metadata={"made": "elsewhere"})
    assert_same(map_arrays(tmp_path / "a"), some_arrays())


def test_arrays_are_written_and_mapped(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", some_arrays())
    assert_same(map_arrays(tmp_path / "a"), some_arrays())


def test_strided_arrays_are_written_in_order(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", {"turned": cube().T, "every second": np.arange(9)[::2]})
    assert_same(map_arrays(tmp_path / "a"), {"turned": cube().T, "every second": np.arange(0, 9, 2)})


def test_mapped_arrays_are_aligned_and_read_only(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", some_arrays())
    for array in map_arrays(tmp_path / "a").values():
        assert array.flags.aligned
        assert not array.flags.writeable


def is_mapped(array: Any) -> bool:
    while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
        array = array.base
    return isinstance(array, np.memmap)


def test_small_files_are_copied_and_large_ones_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_arrays(tmp_path / "a", some_arrays())
    copied = map_arrays(tmp_path / "a")
    monkeypatch.setattr("dragoman.io.storage.MAX_COPIED_SIZE", 0)
    mapped = map_arrays(tmp_path / "a")
    assert not any(is_mapped(array) for array in copied.values())
    assert all(is_mapped(array) for array in mapped.values())
    assert_same(copied, mapped)
    (tmp_path / "a").write_bytes(b"")  # now reading a mapped array would end the process
    assert_same(copied, some_arrays())


def test_stamps_notice_changes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_arrays(path, some_arrays())
    stamp = FileStamp.of(path)
    assert stamp.is_current()
    with path.open("r+b") as file:
        file.truncate(100)
    assert not stamp.is_current()
    stamp = FileStamp.of(path)
    path.unlink()
    assert not stamp.is_current()
    write_arrays(path, some_arrays())
    assert not stamp.is_current()


def test_a_digest_covers_names_types_shapes_values_and_metadata(tmp_path: Path) -> None:
    arrays = {"a": np.arange(4, dtype=np.int64), "b": np.zeros((2, 0))}
    others: list[dict[str, np.ndarray]] = [
        {"c": arrays["a"], "b": arrays["b"]},
        {"a": arrays["a"].view(np.float64), "b": arrays["b"]},
        {"a": arrays["a"].reshape(2, 2), "b": arrays["b"]},
        {"a": arrays["a"], "b": np.zeros((0, 2))},
        {"a": arrays["a"][::-1], "b": arrays["b"]},
        {"a": arrays["a"]},
    ]
    digest = arrays_digest(arrays, {"x": "1"})
    assert digest == arrays_digest(dict(reversed(arrays.items())), {"x": "1", "sha256": "any"})
    for other in others:
        write_arrays(tmp_path / "a", other, {"x": "1"})
        written = map_arrays_with_metadata(tmp_path / "a")[1]
        assert written["sha256"] != digest
    assert arrays_digest(arrays, {"x": "2"}) != digest != arrays_digest(arrays, {})


def test_a_changed_value_is_noticed_by_the_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_arrays(tmp_path / "a", {"cube": cube()}, {"note": "kept"})
    whole = bytearray((tmp_path / "a").read_bytes())
    whole[-1] ^= 1
    (tmp_path / "a").write_bytes(whole)
    with pytest.raises(DataError, match=r"a: damaged \(its contents differ from its digest\)"):
        map_arrays(tmp_path / "a")
    monkeypatch.setattr("dragoman.io.storage.MAX_COPIED_SIZE", 0)
    map_arrays(tmp_path / "a")  # too large to be checked
    with pytest.raises(DataError, match="differ from its digest"):
        map_arrays(tmp_path / "a", check_digest=True)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="missing; this model directory is broken"):
        map_arrays(tmp_path / "nothing")


def test_truncated_files_are_damaged(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", {"cube": cube(), "codes": np.arange(5, dtype=np.uint8)})
    whole = (tmp_path / "a").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "cut").write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"cut: damaged"):
            map_arrays(tmp_path / "cut")


def with_header(header: Any, data: bytes = b"12345678") -> bytes:
    encoded = json.dumps(header).encode()
    return struct.pack("<Q", len(encoded)) + encoded + data


@pytest.mark.parametrize(
    "content",
    [
        struct.pack("<Q", 1 << 63),
        struct.pack("<Q", 5) + b"\xff\xfe\xfd\xfc\xfb",
        struct.pack("<Q", 100_000) + b"[" * 100_000,
        with_header([]),
        with_header(None),
        with_header({"a": 5}),
        with_header({"a": {"dtype": "F64", "shape": [1]}}),
        with_header({"a": {"dtype": "F99", "shape": [1], "data_offsets": [0, 8]}}),
        with_header({"a": {"dtype": "F64", "shape": [2], "data_offsets": [0, 8]}}),
        with_header({"a": {"dtype": "F64", "shape": ["x"], "data_offsets": [0, 8]}}),
        with_header({"a": {"dtype": "F64", "shape": [1], "data_offsets": [-8, 0]}}),
        with_header({"a": {"dtype": "F64", "shape": [0], "data_offsets": [8, 0]}}),
        with_header({"a": {"dtype": "F64", "shape": [1], "data_offsets": [8, 16]}}),
        with_header({"a": {"dtype": "F64", "shape": [1], "data_offsets": [0, 7]}}),
        with_header({"a": {"dtype": "F64", "shape": [1], "data_offsets": ["0", "8"]}}),
    ],
)
def test_garbage_is_damaged(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(DataError, match=r"a: damaged"):
        map_arrays(tmp_path / "a")


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    try:
        arrays = map_arrays(path)
    except DataError as error:
        assert "damaged" in str(error)
    else:
        assert all(isinstance(array, np.ndarray) for array in arrays.values())


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="damaged"):
        map_arrays(tmp_path)


# -- files ---------------------------------------------------------------------------------------------------------


def full_disk(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# -- model directories ---------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A directory with one model in it."""
    model("witten-bell, order 2").save(tmp_path / "model")
    return tmp_path


def content(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.suffix != ".lock")


def make(path: Path, *, replace: bool = False) -> None:
    model("mixture").save(path, replace=replace)


def test_an_existing_model_is_not_overwritten(saved: Path) -> None:
    before = content(saved)
    with pytest.raises(DataError, match=r"model: already contains a model; .*--force"):
        make(saved / "model")
    assert content(saved) == before


def test_a_model_is_replaced_on_request(saved: Path) -> None:
    make(saved / "model", replace=True)
    assert dragoman.load(saved / "model").kind == "mixture"
    assert names(saved) == ["model"]


def test_other_directories_are_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").write_text("years of work")
    (tmp_path / "file").write_text("more work")
    make(tmp_path / "both")
    (tmp_path / "both" / "chapter").write_text("a model, and years of work beside it")
    for name in ("thesis", "file", "both"):
        with pytest.raises(DataError, match=rf"{name}: .*, so it is not replaced by"):
            make(tmp_path / name, replace=True)
    assert (tmp_path / "thesis" / "chapter").read_text() == "years of work"
    assert (tmp_path / "both" / "chapter").exists()


def test_an_empty_directory_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    make(tmp_path / "empty")
    assert dragoman.load(tmp_path / "empty").kind == "mixture"
    assert names(tmp_path) == ["empty"]


def test_the_model_that_a_link_refers_to_is_replaced(saved: Path) -> None:
    (saved / "link").symlink_to("model")
    before = content(saved / "model")
    make(saved / "link", replace=True)
    assert (saved / "link").is_symlink()
    assert dragoman.load(saved / "model").kind == "mixture"
    assert content(saved / "model") != before
    assert names(saved) == ["link", "model"]


def fail_second(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with a disk that is full at its second call."""
    calls = []

    def failing(*arguments: Any, **named: Any) -> Any:
        calls.append(arguments)
        return full_disk() if len(calls) == 2 else function(*arguments, **named)

    return failing


@pytest.mark.parametrize("place", ["write_arrays", "sync", "exchange", "move away", "move in"])
def test_a_full_disk_leaves_the_old_model(saved: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    before = content(saved)
    match place:
        case "write_arrays":
            monkeypatch.setattr("dragoman.io.storage.write_arrays", full_disk)
        case "sync":
            monkeypatch.setattr(files, "sync", fail_second(files.sync))
        case "exchange":
            monkeypatch.setattr(files, "_exchange", full_disk)
        case "move away":
            monkeypatch.setattr(files, "_exchange", lambda first, second: False)
            monkeypatch.setattr(Path, "replace", full_disk)
        case "move in":
            monkeypatch.setattr(files, "_exchange", lambda first, second: False)
            monkeypatch.setattr(Path, "replace", fail_second(Path.replace))
    with pytest.raises(DragomanError, match=r"model: could not be written \(No space left.*nothing was changed"):
        make(saved / "model", replace=True)
    monkeypatch.undo()
    assert content(saved) == before
    assert names(saved) == ["model"]


@pytest.mark.parametrize("failure", [ValueError("no"), KeyboardInterrupt()])
def test_after_an_error_no_files_remain(tmp_path: Path, failure: BaseException) -> None:
    with pytest.raises(type(failure)):
        fill_and_fail(tmp_path / "model", failure)
    assert names(tmp_path) == []


def fill_and_fail(path: Path, failure: BaseException) -> None:
    with new_directory(path) as directory:
        (directory / "half").write_text("half")
        raise failure


def test_a_file_in_place_of_a_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DragomanError, match="model: could not be written"):
        make(tmp_path / "file" / "model")
    with pytest.raises(DragomanError, match="arpa: could not be written"):
        write_text(tmp_path / "file" / "arpa", "x")


# -- broken model directories --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("config.yaml", None, "not a model directory"),
        ("config.yaml", "[a, list]", "contains no settings"),
        ("config.yaml", "kind: [", "broken or incomplete"),
        ("config.yaml", "kind: parrot\nformat: 1", "unknown kind of model 'parrot'; known are ngram"),
        ("config.yaml", "kind: ngram\nformat: 99", "newer version of dragoman; update"),
        (
            "config.yaml",
            "kind: ngram\nformat: 1",
            "older version of dragoman and cannot be loaded; train the model again",
        ),
        ("config.yaml", "kind: ngram", "model format None is from an older version"),
        ("config.yaml", "kind: ngram\nformat: 2", "broken model directory"),
        ("config.yaml", "kind: [ngram]\nformat: 1", "unknown kind of model"),
        ("vocab.tsv", None, "vocab.tsv: missing"),
        ("vocab.tsv", "<s>\t0\n</s>\t0\n<unk>\t0\na\t1\na\t1\n", "vocab.tsv:5: 'a' is already on line 4"),
        ("vocab.tsv", "<s>\t0\n</s>\t0\n<unk>\t0\na\n", "vocab.tsv:4: expected `token TAB count`"),
        ("vocab.tsv", "a\t1\n", "vocab.tsv:1: a vocabulary begins with <s>"),
        ("vocab.tsv", "<s>\t0\n</s>\t0\n<unk>\t0\nother\t1\n", "do not match"),
        ("model.safetensors", None, "model.safetensors: missing"),
        ("model.safetensors", "garbage", "model.safetensors: damaged"),
    ],
)
def test_broken_models_are_refused_in_one_line(saved: Path, file: str, text: str | None, complaint: str) -> None:
    remove_digests(saved / "model")
    path = saved / "model" / file
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(DataError) as refusal:
        dragoman.load(saved / "model")
    assert complaint in str(refusal.value)
    assert str(saved / "model") in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_paths_without_a_model_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file.gz").write_bytes(gzip.compress(b"x"))
    for path in (tmp_path, tmp_path / "nothing", tmp_path / "file.gz"):
        with pytest.raises(DataError):
            dragoman.load(path)


def test_parent_references_do_not_hide_existing_files(tmp_path: Path) -> None:
    precious = tmp_path / "precious.txt"
    precious.write_text("all I have\n")
    for refused in (
        tmp_path / "nowhere" / ".." / "precious.txt",
        tmp_path / "no" / "where" / ".." / ".." / "precious.txt",
    ):
        with pytest.raises(DataError, match="so it is not replaced by"), new_directory(refused):
            pass
    assert precious.read_text() == "all I have\n" and not (tmp_path / "nowhere").exists()
    with new_directory(tmp_path / "nowhere" / ".." / "fresh") as directory:
        (directory / "config.yaml").touch()
    assert (tmp_path / "fresh" / "config.yaml").is_file() and not (tmp_path / "nowhere").exists()
