"""Shards of a text: the plan, the manifest, outputs that are complete or absent, and the merged result."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import DataError, DragomanError
from dragoman.data import line_blocks
from dragoman.data.formats import number_lines, read_line_batches, read_text
from dragoman.data.line_blocks import LineText, iter_blocks
from dragoman.io.files import directory_lock
from dragoman.io.storage import model_digest
from dragoman.sharding import manifest as manifests
from dragoman.sharding.manifest import LineJob, ModelDirectory, open_manifest
from dragoman.sharding.merge import merge_shards
from dragoman.sharding.plan import Shard, plan_shards
from dragoman.sharding.shard import ShardTask, result_file

LINES = [f"line {number}" + " and more" * (number % 5) for number in range(1, 41)]
JOB = LineJob(
    command="translate",
    models=(ModelDirectory(name="de-en", sha256="0"),),
    options={"beam-size": "5"},
    suffix=".txt",
    one_line_each=True,
    block_lines=4,
    version="1",
)


def write_lines(path: Path, lines: list[str] = LINES) -> LineText:
    path.write_text("".join(f"{line}\n" for line in lines))
    return LineText.of(str(path))


def open_task(directory: Path, text: LineText, number: int, shards: int = 3, job: LineJob = JOB) -> ShardTask:
    return ShardTask(directory, open_manifest(directory, job, [text], shards), number, [text])


def run_shard(task: ShardTask) -> None:
    """Write the lines of a shard in capitals, with their numbers."""
    with task.locked(), task.output() as stream:
        for batch in task.read_line_batches():
            stream.writelines(f"{line.number}: {line.text.upper()}\n" for line in batch)


def run_all(directory: Path, text: LineText, shards: int = 3, job: LineJob = JOB) -> None:
    for number in range(1, shards + 1):
        run_shard(open_task(directory, text, number, shards, job))


EXPECTED = "".join(f"{number}: {line.upper()}\n" for number, line in enumerate(LINES, 1))


# -- the plan ----------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    st.lists(st.text("ab \r\u00e4", max_size=12), max_size=30),
    st.booleans(),
    st.integers(1, 6),
    st.integers(1, 4),
    st.integers(1, 40),
)
def test_shards_cover_the_file_and_are_balanced(
    lines: list[str], ends_with_break: bool, shards: int, block_lines: int, chunk_bytes: int
) -> None:
    content = "\n".join(lines).encode() + (b"\n" if ends_with_break and lines else b"")
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_blocks, "CHUNK_BYTES", chunk_bytes)
        path = Path(directory) / "text"
        path.write_bytes(content)
        text = LineText.of(str(path))
        planned = plan_shards([text], shards, block_lines)
        read = [b"".join(text.read_blocks(block_lines, *position(shard))) for shard in planned]
    assert len(planned) == shards
    check_plan(planned, content, block_lines)
    assert b"".join(read) == content  # whatever CHUNK_BYTES is


def position(shard: Shard) -> tuple[int, int, int]:
    return shard.ranges[0].offset, shard.ranges[0].size, shard.first_line


def check_plan(planned: tuple[Shard, ...], content: bytes, block_lines: int) -> None:
    """The shards follow each other, end between blocks, and end at most one block after their share of the bytes."""
    blocks = list(iter_blocks([content], block_lines))
    largest, end, line = max(map(len, blocks), default=0), 0, 1
    for number, shard in enumerate(planned, 1):
        [part] = shard.ranges
        assert (part.offset, shard.first_line) == (end, line)
        assert part.sha256 == hashlib.sha256(content[end : end + part.size]).hexdigest()
        end, line = end + part.size, line + shard.lines
        share = len(content) * number / len(planned)
        assert share <= end < share + max(1, largest)
        assert (line - 1) % block_lines == 0 or end == len(content)
    assert end == len(content)
    assert line - 1 == len(content.removesuffix(b"\n").split(b"\n")) if content else line == 1


@pytest.mark.parametrize(
    ("name", "content", "field"),
    [
        ("t.txt", b"\xef\xbb\xbfa\r\nb\n\nc\nd\n", None),
        ("t.tsv", b"1\ta\r\n2\tb\n3\tc\n4\td\n5\te\n", "2"),
        ("t.tsv", b"\xef\xbb\xbfde\ten\n1\ta\n2\tb\n3\tc\n4\td\n5\te\n", "en"),
        ("table", b"1\ta\n2\tb\n3\tc\n", "2"),
        ("t.jsonl", b'{"text": "a\\nb"}\n{"text": "c"}\n{"text": "d"}\n', None),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_shards_have_the_lines_of_the_whole_text(
    tmp_path: Path, name: str, content: bytes, field: str | None, packed: bool
) -> None:
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(content) if packed else content)
    text = LineText.of(str(path), field)
    planned = plan_shards([text], 2, 2)
    parts = [b"".join(text.read_blocks(2, *position(shard))) for shard in planned]
    assert all(shard.lines for shard in planned)
    assert b"".join(parts) == read_text(path, field)
    blocks = (line_blocks.split_block(block) for block in text.read_blocks(2, *position(planned[1])))
    second = [line for batch in number_lines(blocks, str(path), first_line=planned[1].first_line) for line in batch]
    whole = [line for batch in read_line_batches(str(path), field) for line in batch]
    assert second == whole[planned[0].lines :]


def test_parallel_texts_have_the_same_lines_in_each_shard(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "a", ["x" * (100 if number < 5 else 1) for number in range(20)])
    target = write_lines(tmp_path / "b", [str(number) for number in range(20)])
    planned = plan_shards([source, target], 3, 1)
    for number, text in enumerate((source, target)):
        assert sum(shard.ranges[number].size for shard in planned) == Path(text.path).stat().st_size
    assert planned[0].lines < 4, "balanced by the bytes of both texts"
    shorter = write_lines(tmp_path / "c", [str(number) for number in range(19)])
    with pytest.raises(DataError, match=r"c has 19 lines and .*a has more"):
        plan_shards([source, shorter], 3, 4)


def test_wrong_lines_are_reported_with_their_numbers_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "latin1").write_bytes(b"a\nb\nc\nd\nf\xfcr\n")
    with pytest.raises(DataError, match=r"latin1:5: not UTF-8 \(byte 0xfc at column 2\)"):
        plan_shards([LineText.of(str(tmp_path / "latin1"))], 2, 2)
    (tmp_path / "t.tsv").write_bytes(b"de\ten\n" + b"x\ty\n" * 4 + b"z\n")
    text = LineText.of(str(tmp_path / "t.tsv"), "en")
    with pytest.raises(DataError, match=r"t.tsv:6: 1 columns, but column 2 is selected"):
        list(text.read_blocks(2, *position(plan_shards([text], 2, 2)[1])))
    (tmp_path / "packed").write_bytes(gzip.compress(b"a\n"))
    with pytest.raises(DataError, match=r"packed: this is gzip data; give it a name that ends in .gz"):
        plan_shards([LineText.of(str(tmp_path / "packed"))], 2, 2)


def test_only_files_of_lines_are_divided(tmp_path: Path) -> None:
    (tmp_path / "a.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nHello.\n")
    for name, problem in (("-", "not a file"), (str(tmp_path / "none"), "no such file"), (str(tmp_path), "not a file")):
        with pytest.raises(DataError, match=problem):
            LineText.of(name)
    with pytest.raises(DataError, match="subtitles are not divided"):
        LineText.of(str(tmp_path / "a.srt"))


READ_LARGE = """
import resource, sys
from dragoman.data.line_blocks import LineText
from dragoman.sharding.plan import plan_shards
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
text = LineText.of(sys.argv[1])
last = plan_shards([text], 4, 256)[-1]
lines = sum(map(len, text.read_blocks(256, last.ranges[0].offset, last.ranges[0].size, last.first_line)))
print(lines, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_does_not_grow_with_the_text(tmp_path: Path) -> None:
    size = 64 << 20
    (tmp_path / "large").write_bytes((b"x" * 63 + b"\n") * (size // 64))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", READ_LARGE, str(tmp_path / "large")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    read, kilobytes = map(int, done.stdout.split())
    assert read == size // 4
    assert kilobytes * 1024 < size // 2, "the text was read at once"


# -- the manifest ------------------------------------------------------------------------------------------------------


def test_the_manifest_is_the_same_whoever_writes_it(tmp_path: Path) -> None:
    text = write_lines(tmp_path / "text")
    first = open_manifest(tmp_path / "one", JOB, [text], 3)
    second = open_manifest(tmp_path / "two", JOB, [text], 3)
    contents = [(tmp_path / name / "manifest.json").read_text() for name in ("one", "two")]
    assert contents[0] == contents[1] == first.text and first.digest == second.digest
    assert open_manifest(tmp_path / "one", JOB, [text], 3) == first


def test_a_process_waits_for_the_one_that_divides_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If that process is killed, the waiting one takes over."""
    text, events = write_lines(tmp_path / "text"), list[str]()
    started, finished = threading.Event(), threading.Event()

    def hold() -> None:
        with directory_lock(tmp_path / "parts" / "manifest.json"):
            started.set()
            finished.wait(60)

    def release(seconds: float) -> None:
        events.append(f"slept {seconds} s")
        finished.set()
        holder.join(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert started.wait(60)
    monkeypatch.setattr(manifests, "sleep", release)
    manifest = open_manifest(tmp_path / "parts", JOB, [text], 3, on_wait=lambda: events.append("waits"))
    assert manifest.lines == len(LINES)
    assert events == ["waits", f"slept {manifests.POLL_SECONDS} s"]


@pytest.mark.parametrize(
    ("change", "shards", "message"),
    [
        ({}, 4, "--shards 3, and this one has --shards 4"),
        ({"command": "score"}, 3, "the command translate, and this one has the command score"),
        ({"options": {"beam-size": "1"}}, 3, "--beam-size 5, and this one has --beam-size 1"),
        (
            {"options": {"beam-size": "5", "dedup": "True"}},
            3,
            r"--dedup \(not given\), and this one has --dedup \(on\)",
        ),
        ({"models": ()}, 3, "number of models: 1, and this one has number of models: 0"),
        ({"block_lines": 2}, 3, "lines per block: 4, and this one has lines per block: 2"),
        (
            {"models": (ModelDirectory(name="de-en", sha256="1"),)},
            3,
            r"the model de-en \(0\), and this one has de-en \(1\)",
        ),
        ({"version": "2"}, 3, "dragoman 1, and this one has dragoman 2"),
    ],
)
def test_another_run_in_the_same_directory_is_refused(
    tmp_path: Path, change: dict[str, object], shards: int, message: str
) -> None:
    text = write_lines(tmp_path / "text")
    open_manifest(tmp_path / "parts", JOB, [text], 3)
    with pytest.raises(DataError, match=f"manifest.json: is of a run with {message}; .* name another directory"):
        open_manifest(tmp_path / "parts", JOB.model_copy(update=change), [text], shards)


def test_a_changed_text_is_noticed(tmp_path: Path) -> None:
    text = write_lines(tmp_path / "text")
    open_manifest(tmp_path / "parts", JOB, [text], 3)
    write_lines(tmp_path / "text", [*LINES[:-1], LINES[-1].upper()])  # of the same size
    run_shard(open_task(tmp_path / "parts", text, 1))  # whose lines are the same
    task = open_task(tmp_path / "parts", text, 3)
    with pytest.raises(DataError, match=r"text: lines 29 to 40 have changed since .*manifest.json was written"):
        run_shard(task)
    write_lines(tmp_path / "text", [*LINES, "more"])
    with pytest.raises(DataError, match=r"is of a run with text of [0-9,]+ bytes"):
        open_task(tmp_path / "parts", text, 3)


def test_a_text_that_changes_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    text = write_lines(tmp_path / "text")
    task = open_task(tmp_path / "parts", text, 1)

    def write_and_change() -> None:
        with task.output() as stream:
            stream.writelines("x\n" for _ in range(task.shard.lines))
            write_lines(tmp_path / "text", LINES[::-1])

    with pytest.raises(DataError, match="was changed while shard 1 of 3 was processed"):
        write_and_change()
    assert not task.path.exists()


def test_directories_with_other_files_are_refused(tmp_path: Path) -> None:
    text = write_lines(tmp_path / "text")
    with pytest.raises(DataError, match=r"has other files, and no manifest\.json"):
        open_manifest(tmp_path, JOB, [text], 3)


def test_damaged_manifests_are_refused(tmp_path: Path) -> None:
    text = write_lines(tmp_path / "text")
    run_all(tmp_path / "parts", text)
    path = tmp_path / "parts" / "manifest.json"
    content = json.loads(path.read_text())
    for damage in (path.read_text()[:50], json.dumps({**content, "shards": [{"lines": "x"}]}), "[]"):
        path.write_text(damage)
        with pytest.raises(DataError, match=r"manifest\.json: damaged, or not written by dragoman"):
            merge_shards(tmp_path / "parts", tmp_path / "out")
    path.write_text(json.dumps({**content, "format": 2}))
    with pytest.raises(DataError, match="has format 2, and this version reads 1"):
        merge_shards(tmp_path / "parts", tmp_path / "out")


def test_the_digest_of_a_model_depends_on_what_is_used(tmp_path: Path) -> None:
    (tmp_path / "m" / "inner").mkdir(parents=True)
    for name in ("config.yaml", "inner/vocab.tsv", "README.md", ".lock"):
        (tmp_path / "m" / name).write_text(name)
    before = model_digest(tmp_path / "m")
    for name, is_used in (("README.md", False), (".lock", False), ("inner/vocab.tsv", True), ("config.yaml", True)):
        (tmp_path / "m" / name).write_text("changed")
        assert (model_digest(tmp_path / "m") != before) == is_used
        before = model_digest(tmp_path / "m")


# -- outputs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shards", [1, 3, 30])
def test_merged_shards_are_the_output_for_the_whole_text(tmp_path: Path, shards: int) -> None:
    text = write_lines(tmp_path / "text")
    run_all(tmp_path / "parts", text, shards)
    merged = merge_shards(tmp_path / "parts" / "manifest.json", tmp_path / "out")
    assert (tmp_path / "out").read_text() == EXPECTED
    assert merged == (shards, len(LINES), len(LINES))
    merge_shards(tmp_path / "parts", tmp_path / "out.gz")
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()).decode() == EXPECTED


KILLED = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_sharding as t
from dragoman.data.line_blocks import LineText
task = t.open_task(Path(sys.argv[2]), LineText.of(sys.argv[3]), 2)
with task.locked(), task.output() as stream:
    stream.write("half"); stream.flush(); os.kill(os.getpid(), 9)
"""


def test_a_killed_shard_is_processed_again(tmp_path: Path) -> None:
    text, parts = write_lines(tmp_path / "text"), tmp_path / "parts"
    run_shard(open_task(parts, text, 1))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = [str(Path(__file__).parent), str(parts), str(tmp_path / "text")]
    process = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False, env=environment)
    assert process.returncode == -signal.SIGKILL
    assert len(list(parts.glob(".shard-2-of-3.txt.tmp-*"))) == 1, "it was killed while it wrote"
    finished = [open_task(parts, text, number).is_finished() for number in (1, 2, 3)]
    assert finished == [True, False, False]
    with pytest.raises(DataError, match="not finished: shards 2-3 of 3; run the same command"):
        merge_shards(parts, tmp_path / "out")
    for number in (2, 3):
        run_shard(open_task(parts, text, number))
    assert not list(parts.glob(".shard-2-of-3.txt.tmp-*"))
    merge_shards(parts, tmp_path / "out")
    assert (tmp_path / "out").read_text() == EXPECTED


def test_one_process_works_on_a_shard(tmp_path: Path) -> None:
    text = write_lines(tmp_path / "text")
    task, errors = open_task(tmp_path / "parts", text, 1), list[str]()

    def run() -> None:
        try:
            run_shard(task)
        except DataError as error:
            errors.append(str(error))

    with task.locked():
        other = threading.Thread(target=run)
        other.start()
        other.join()
    [message] = errors
    assert "shard 1 of 3 is being processed by another program" in message and not task.path.exists()


def test_an_output_with_another_number_of_lines_is_refused(tmp_path: Path) -> None:
    task = open_task(tmp_path / "parts", write_lines(tmp_path / "text"), 1)
    with pytest.raises(DragomanError, match=r"1 lines for 1[0-9] lines of the text"), task.output() as stream:
        stream.write("one\n")
    assert not task.path.exists() and not task.is_finished()


def swap_outputs(parts: Path) -> None:
    first, second = parts / "shard-1-of-3.txt", parts / "shard-2-of-3.txt"
    contents = first.read_bytes(), second.read_bytes()
    first.write_bytes(contents[1])
    second.write_bytes(contents[0])


def shorten_output(parts: Path) -> None:
    path = parts / "shard-2-of-3.txt"
    path.write_bytes(path.read_bytes()[:-1])


def copy_from_another_run(parts: Path) -> None:
    text = write_lines(parts.parent / "other", [line.upper() for line in LINES])
    run_all(parts.parent / "others", text)
    for name in ("shard-2-of-3.txt", "shard-2-of-3.txt.done.json"):
        (parts.parent / "others" / name).replace(parts / name)


def change_manifest(parts: Path) -> None:
    path = parts / "manifest.json"
    path.write_text(path.read_text().replace('"beam-size": "5"', '"beam-size": "1"'))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (swap_outputs, "shard-1-of-3.txt: changed since it was written"),
        (shorten_output, "shard-2-of-3.txt: changed since it was written"),
        (copy_from_another_run, "shard-2-of-3.txt: belongs to a run with another text, model or option"),
        (change_manifest, "shard-1-of-3.txt: belongs to a run with another text, model or option"),
        (lambda parts: (parts / "shard-3-of-3.txt").unlink(), "not finished: shard 3 of 3"),
        (lambda parts: result_file(parts / "shard-3-of-3.txt").unlink(), "not finished: shard 3 of 3"),
        (lambda parts: (parts / "manifest.json").unlink(), "has no manifest.json"),
    ],
)
def test_missing_and_foreign_shards_are_not_merged(
    tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    run_all(tmp_path / "parts", write_lines(tmp_path / "text"))
    damage(tmp_path / "parts")
    with pytest.raises(DataError, match=message):
        merge_shards(tmp_path / "parts", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_outputs_of_another_run_are_replaced(tmp_path: Path) -> None:
    text = write_lines(tmp_path / "text")
    run_all(tmp_path / "parts", text)
    copy_from_another_run(tmp_path / "parts")
    tasks = [open_task(tmp_path / "parts", text, number) for number in (1, 2, 3)]
    assert [task.is_finished() for task in tasks] == [True, False, True]
    run_shard(tasks[1])
    merge_shards(tmp_path / "parts", tmp_path / "out")
    assert (tmp_path / "out").read_text() == EXPECTED


def test_shards_are_not_overwritten_by_the_merged_file(tmp_path: Path) -> None:
    run_all(tmp_path / "parts", write_lines(tmp_path / "text"))
    for name in ("manifest.json", "shard-1-of-3.txt", "shard-1-of-3.txt.done.json"):
        with pytest.raises(DataError, match="is a file of the shards"):
            merge_shards(tmp_path / "parts", tmp_path / "parts" / name)
