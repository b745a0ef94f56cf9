"""`dragoman translate|score --shards N --shard K`, `--dedup` and `dragoman merge`, also by GNU parallel and Slurm's scripts."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dragoman
from command import DEV, TRAIN, is_one_line
from dragoman.data import formats
from dragoman.data.tokenizer import Tokenizer
from dragoman.models import duplicates, score_blocks
from dragoman.models.cache import CacheModel
from guide_commands import guide_commands
from small_translators import ENGLISH, GERMAN, _untrained

EXAMPLES = Path(__file__).parent.parent / "examples"
BLOCK_LINES = score_blocks.BLOCK_LINES
REPEATED = [*GERMAN[:7], "", *GERMAN[3:9], *GERMAN[:2], ""]  # with duplicates, and an empty line


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained translator, and its texts."""
    directory = tmp_path_factory.mktemp("place")
    _untrained(Tokenizer.train("word", GERMAN), Tokenizer.train("word", ENGLISH)).save(directory / "de-en")
    (directory / "big.de").write_text("".join(f"{line}\n" for line in REPEATED))
    (directory / "big.en").write_text("".join(f"{line}\n" for line in [*ENGLISH[:7], "", *ENGLISH[:9]]))
    return directory


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "MAX_BATCH_LINES", 3)
    monkeypatch.setattr(score_blocks, "BLOCK_LINES", 4)


def run_shards(good: Any, parts: Path, *command: object, shards: int = 3) -> list[str]:
    """Run all shards, the last one first, and return their messages."""
    numbers = range(shards, 0, -1)
    return [good(*command, "--shards", shards, "--shard", number, "-o", parts).err for number in numbers]


# -- translate ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [(), ("--n-best", 2), ("--json",), ("--sample", 2, "--seed", 3)],
    ids=["text", "n-best", "json", "sample"],
)
def test_merged_translations_are_those_of_the_whole_text(
    good: Any, place: Path, tmp_path: Path, options: tuple[object, ...]
) -> None:
    command = ("translate", place / "de-en", "--text", place / "big.de", *options)
    whole = good(*command).out
    messages = run_shards(good, tmp_path / "parts", *command)
    assert messages[2].startswith("shard 1 of 3: lines 1 to 6 of 17 (")
    merged = good("merge", tmp_path / "parts", "-o", tmp_path / "out")
    assert (tmp_path / "out").read_text() == whole
    assert merged.err == f"{tmp_path / 'out'}: 3 shards, {whole.count(chr(10))} lines for 17 lines of text\n"
    again = run_shards(good, tmp_path / "parts", *command)
    assert all("is finished already; skipped" in message and message.count("\n") == 1 for message in again)


def test_columns_and_packed_files_are_divided(good: Any, place: Path, tmp_path: Path) -> None:
    rows = "".join(f"{number}\t{line}\n" for number, line in enumerate(REPEATED))
    (tmp_path / "t.tsv.gz").write_bytes(gzip.compress(f"id\tde\n{rows}".encode()))
    command = ("translate", place / "de-en", "--text", tmp_path / "t.tsv.gz", "--field", "de")
    run_shards(good, tmp_path / "parts", *command)
    good("merge", tmp_path / "parts", "-o", tmp_path / "out.gz")
    whole = good("translate", place / "de-en", "--text", place / "big.de").out
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()).decode() == whole


def without_digits(text: str) -> str:
    """Round the log-probabilities in a text: other batches have other rounding errors."""
    return re.sub(r"-?\d+\.\d+(e-\d+)?", lambda match: f"{float(match[0]):.4f}", text)


def test_equal_lines_are_translated_once(
    good: Any, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("translate", place / "de-en", "--text", place / "big.de")
    translated = list[str]()
    translate = duplicates.LineTranslator.translate

    def count(self: Any, lines: Any, sentences: Any) -> Any:
        translated.extend(line.text for line in lines)
        return translate(self, lines, sentences)

    monkeypatch.setattr(duplicates.LineTranslator, "translate", count)
    for options in ((), ("--n-best", 2), ("--json",), ("--alignments", tmp_path / "align")):
        whole = good(*command, *options).out
        translated.clear()
        done = good(*command, *options, "--dedup")
        assert without_digits(done.out) == without_digits(whole)
        assert done.err == "17 lines, 7 of them equal to an earlier one and not translated again\n"
        assert len(translated) == len(set(translated)) == 10
    run_shards(good, tmp_path / "parts", *command, "--dedup", shards=2)
    good("merge", tmp_path / "parts", "-o", tmp_path / "out")
    assert (tmp_path / "out").read_text() == good(*command).out


def test_forgotten_lines_are_translated_again(good: Any, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "DEDUP_BATCH_LINES", 2)
    command = ("translate", place / "de-en", "--text", place / "big.de")
    whole = good(*command).out
    pipeline = duplicates.DuplicateTranslator.__init__
    monkeypatch.setattr(
        duplicates.DuplicateTranslator, "__init__", lambda self, *given, **named: pipeline(self, *given, cache_bytes=0)
    )
    done = good(*command, "--dedup")
    assert done.out == whole and "17 lines, 0 of them equal" in done.err


def test_line_numbers_are_those_of_the_whole_text(run: Any, good: Any, place: Path, tmp_path: Path) -> None:
    lines = [*GERMAN[:6], f"{GERMAN[0]} {GERMAN[1]}"]
    (tmp_path / "long").write_text("".join(f"{line}\n" for line in lines))
    command = ("translate", place / "de-en", "--text", tmp_path / "long", "--no-split", "--max-units", 5)
    second, _ = run_shards(good, tmp_path / "parts", *command, shards=2)
    assert second.splitlines()[1] == "line 7: more than 5 tokens, so it is split"
    sampled = run(*command, "--sample", 1, "--shards", 2, "--shard", 2, "-o", tmp_path / "sampled")
    assert sampled.code == 2 and f"{tmp_path / 'long'}:7: more than 5 tokens" in sampled.err
    assert not list((tmp_path / "sampled").glob("shard*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--shards", 3), "--shards and --shard belong together"),
        (("--shard", 3), "--shards and --shard belong together"),
        (("--shards", 3, "--shard", 0, "-o", "new"), "--shard 0: shards are numbered from 1 to 3"),
        (("--shards", 3, "--shard", 4, "-o", "new"), "--shard 4: shards are numbered from 1 to 3"),
        (("--shards", 0, "--shard", 0, "-o", "new"), "--shards 0: give 1 or more"),
        (("--shards", 3, "--shard", 1), "give a directory for the outputs of all shards with -o DIR"),
        (("--shards", 3, "--shard", 1, "-o", "file"), "is a file; with --shards, name a directory"),
        (("--shards", 3, "--shard", 1, "-o", "new", "--text", "-"), "standard input cannot be divided"),
        (("--shards", 3, "--shard", 1, "-o", "new", "--alignments", "a"), "--alignments is not for --shards"),
        (("--shards", 3, "--shard", 1, "-o", "new", "--lattice", "a"), "--lattice is not for --shards"),
        (("--shards", 3, "--shard", 1, "-o", "new", "--format", "html"), "--shards is for text line by line"),
        (("--dedup", "--sample", 1), "--dedup: samples of equal lines differ"),
        (("--shards", 3, "--shard", 1, "-o", "new", "--coverage-penalty", 1, "--length", "x"), "length"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    run: Any, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[object, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    text = () if "--text" in arguments else ("--text", place / "big.de")
    outcome = run("translate", place / "de-en", *text, *arguments)
    assert outcome.code == 2 and is_one_line(outcome.err.replace("loading ...\n", "")) and message in outcome.err
    assert not (tmp_path / "new").exists()


def test_another_option_is_refused(run: Any, good: Any, place: Path, tmp_path: Path) -> None:
    shard = ("--text", place / "big.de", "--shards", 3, "--shard", 1, "-o", tmp_path / "parts")
    good("translate", place / "de-en", *shard)
    outcome = run("translate", place / "de-en", *shard, "--beam-size", 2)
    assert outcome.code == 2 and is_one_line(outcome.err)
    assert "is of a run with --beam-size 5, and this one has --beam-size 2" in outcome.err


# -- score -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("tri",), ("tri", "bi")])
@pytest.mark.parametrize("options", [(), ("--words",), ("--log10",), ("--dedup",)])
def test_merged_scores_are_those_of_the_whole_text(
    good: Any, shared: Path, tmp_path: Path, names: tuple[str, ...], options: tuple[str, ...], monkeypatch: Any
) -> None:
    (tmp_path / "text").write_text(DEV + TRAIN[:300] + DEV)
    command = ("score", *(shared / name for name in names), "--text", tmp_path / "text", *options)
    whole = good(*command).out
    run_shards(good, tmp_path / "parts", *command)
    good("merge", tmp_path / "parts", "-o", tmp_path / "out")
    assert (tmp_path / "out").read_text() == whole
    monkeypatch.setattr(score_blocks, "BLOCK_LINES", 10**6)
    assert good(*[item for item in command if item != "--dedup"]).out == whole


def test_equal_lines_are_scored_once(good: Any, shared: Path) -> None:
    done = good("score", shared / "tri", "--dedup", stdin=DEV * 3)
    assert done.out == good("score", shared / "tri", stdin=DEV * 3).out
    assert done.err.splitlines()[-1] == "9 lines, 6 of them equal to an earlier one and not scored again"


def test_scores_of_translations_are_merged(good: Any, run: Any, place: Path, tmp_path: Path) -> None:
    command = ("score", place / "de-en", "--src", place / "big.de", "--text", place / "big.en")
    whole = good(*command).out
    run_shards(good, tmp_path / "parts", *command)
    good("merge", tmp_path / "parts", "-o", tmp_path / "out")
    assert (tmp_path / "out").read_text() == whole
    assert good(*command, "--dedup").out == whole
    (tmp_path / "short.en").write_text("the dog\n")
    outcome = run(*command[:-1], tmp_path / "short.en", "--shards", 2, "--shard", 1, "-o", tmp_path / "others")
    assert outcome.code == 2 and is_one_line(outcome.err) and "short.en has 1 lines and" in outcome.err
    (tmp_path / "t.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in zip(GERMAN, ENGLISH, strict=True)))
    (tmp_path / "t.tmx").write_text("<tmx/>")
    for source, target, message in (
        ("-", "t.tsv", "standard input cannot be divided"),
        ("t.tsv", "t.tsv", "choose the columns or keys of both sides with --src-field and --field"),
        ("t.tmx", "t.tsv", "t.tmx: --shards divides texts, TSV and JSONL only"),
    ):
        files = ("--src", "-" if source == "-" else tmp_path / source, "--text", tmp_path / target)
        outcome = run(*command[:2], *files, "--shards", 2, "--shard", 1, "-o", tmp_path / "others")
        assert outcome.code == 2 and is_one_line(outcome.err) and message in outcome.err
    command = (*command[:2], *files[:1], tmp_path / "t.tsv", *files[2:], "--src-field", 1, "--field", 2)
    run_shards(good, tmp_path / "columns", *command)
    good("merge", tmp_path / "columns", "-o", tmp_path / "out")
    assert (tmp_path / "out").read_text() == good(*command).out


def test_models_with_a_state_are_not_divided(run: Any, tmp_path: Path) -> None:
    CacheModel.train(dragoman.Corpus.from_sentences(TRAIN.splitlines())).save(tmp_path / "cache")
    (tmp_path / "text").write_text(TRAIN)
    command = ("score", tmp_path / "cache", "--text", tmp_path / "text")
    for options, name in (
        (("--shards", 2, "--shard", 1, "-o", tmp_path / "parts"), "--shards"),
        (("--dedup",), "--dedup"),
    ):
        outcome = run(*command, *options)
        assert outcome.code == 2 and is_one_line(outcome.err)
        assert "keeps its state from line to line" in outcome.err and outcome.err.endswith(f"remove {name}\n")
    assert not (tmp_path / "parts").exists()
    scores = [float(line) for line in run(*command).out.splitlines()]
    assert scores == pytest.approx(dragoman.load(tmp_path / "cache").score(TRAIN.splitlines()), abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "new"), "--output new: is for --shards"),
        (("--shards", 2, "--shard", 1, "-o", "new", "--picture", "a.svg"), "--picture draws a whole text"),
        (("--dedup", "--words"), "--dedup is for one score per line"),
    ],
)
def test_options_of_scores_that_do_not_fit_are_refused(
    run: Any, shared: Path, arguments: tuple[object, ...], message: str
) -> None:
    outcome = run("score", shared / "bi", "--text", shared / "dev.txt", *arguments)
    assert outcome.code == 2 and is_one_line(outcome.err) and message in outcome.err


# -- processes ---------------------------------------------------------------------------------------------------------

KILLED = """
import os, sys
from dragoman.cli.main import main
from dragoman.models import score_blocks
from dragoman.report.score_text import ScoreFormat
score_blocks.BLOCK_LINES = 4
body = ScoreFormat.body
def kill_at_the_second_block(self, inputs, calls=[]):
    calls.append(1)
    return body(self, inputs) if len(calls) < 2 else os.kill(os.getpid(), 9)
ScoreFormat.body = kill_at_the_second_block
main(sys.argv[1:])
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of programs, first on PATH: `dragoman`, and `sbatch`, which runs the tasks of an array one by one."""
    directory = tmp_path / "bin"
    directory.mkdir()
    (directory / "dragoman").write_text(f'#!/bin/bash\nexec "{sys.executable}" -m dragoman "$@"\n')
    (directory / "sbatch").write_text(SBATCH)
    for program in directory.iterdir():
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    return directory


SBATCH = """#!/bin/bash
set -euo pipefail
first=1 last=1
while [[ $1 == --* ]]; do
    case $1 in
        --array=*) range=${1#--array=}; range=${range%\\%*}; first=${range%-*}; last=${range#*-};;
    esac
    shift
done
for ((task = first; task <= last; task++)); do SLURM_CPUS_PER_TASK=1 SLURM_ARRAY_TASK_ID=$task bash "$@" >&2; done
echo 4711
"""


def test_a_process_killed_in_the_middle_leaves_no_output(
    good: Any, run: Any, shared: Path, tmp_path: Path, programs: Path
) -> None:
    (tmp_path / "text").write_text(TRAIN)
    command = ["score", str(shared / "tri"), "--text", str(tmp_path / "text")]
    shard = [*command, "--shards", "2", "--shard", "1", "-o", str(tmp_path / "parts")]
    killed = subprocess.run([sys.executable, "-c", KILLED, *shard], check=False)
    assert killed.returncode == -signal.SIGKILL
    parts = {path.name for path in (tmp_path / "parts").iterdir() if not path.name.endswith(".lock")}
    assert len(parts) == 2 and "manifest.json" in parts, "and a temporary file"
    outcome = run("merge", tmp_path / "parts", "-o", tmp_path / "out")
    assert outcome.code == 2 and "not finished: shards 1-2 of 2" in outcome.err and not (tmp_path / "out").exists()
    run_shards(good, tmp_path / "parts", *command, shards=2)
    good("merge", tmp_path / "parts", "-o", tmp_path / "out")
    assert (tmp_path / "out").read_text() == good(*command).out
    assert not list((tmp_path / "parts").glob(".*.tmp-*"))


@pytest.mark.slow
def test_the_commands_of_the_guide_work(
    good: Any, place: Path, shared: Path, tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With GNU parallel, and an `sbatch` that runs the tasks one by one: Slurm itself is not tested."""
    monkeypatch.chdir(tmp_path)
    for source, name in ((place, "de-en"), (place, "big.de"), (place, "big.en"), (shared, "tri")):
        Path("kn5" if name == "tri" else name).symlink_to(source / name)
    Path("examples").symlink_to(EXAMPLES)
    Path("big.txt").write_text(TRAIN * 300)
    Path("big.en").unlink()
    whole = good("translate", "de-en", "--text", "big.de").out
    monkeypatch.setattr(score_blocks, "BLOCK_LINES", BLOCK_LINES)  # as in the processes that are started
    scores = good("score", "kn5", "--text", "big.txt").out
    commands = guide_commands("scaling-shards.md")
    assert len(commands) > 10
    for command in commands:
        if "examples/" in command or " parallel " in command:
            if shutil.which("parallel") is not None or "slurm" in command:
                done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
                assert done.returncode == 0, done.stderr
        elif shutil.which("parallel") is not None or "merge scores" not in command:
            good(*shlex.split(command)[1:])
    assert Path("big.en").read_text() == whole
    assert Path("big.logprob").read_text() == scores
    if shutil.which("parallel") is not None:
        assert Path("big.scores").read_text() == gzip.decompress(Path("big.scores.gz").read_bytes()).decode() == scores
    results = [json.loads(file.read_text()) for file in Path("big.logprob.parts").glob("*.done.json")]
    assert len(results) == 2 and all(0 < result["lines"] < 36 * 300 for result in results)


@pytest.mark.skipif(shutil.which("parallel") is None, reason="needs GNU parallel")
def test_options_reach_the_processes_of_parallel_as_they_are(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    (programs / "dragoman").write_text('#!/bin/bash\nprintf "<%s>" "$OMP_NUM_THREADS" "$@"\necho\n')
    command = [EXAMPLES / "parallel" / "run_shards.sh", "o u t", "2", "1", "score", "a {}", "--text", "$b *"]
    done = subprocess.run(["bash", *map(str, command)], capture_output=True, text=True, check=True)
    shards = [f"<1><score><a {{}}><--text><$b *><--shards><2><--shard><{n}><-o><o u t.parts>" for n in (1, 2)]
    assert done.stdout.splitlines() == [*shards, "<><merge><o u t.parts><-o><o u t>"]


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*/*.s*")), ids=lambda path: path.name)
def test_example_scripts_are_correct_shell(script: Path) -> None:
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
