"""The command line at work: every verb, the help, and what is imported."""

import gzip
import inspect
import json
import math
import subprocess

import pytest
import yaml

import dragoman
from command import COMMAND, DEV, KEYS, ODD, TRAIN, in_a_process, modules_after
from dragoman.cli.commands import COMMANDS, INSPECT_COMMANDS, SPARK_COMMANDS, TRAIN_COMMANDS
from dragoman.cli.query import sample as sample_verb
from dragoman.cli.train_ngram import SMOOTHING_SUMMARIES, train_cache, train_class_ngram, train_ngram
from dragoman.evaluation.surprisal import surprisals
from dragoman.models.language_model import LanguageModel
from dragoman.ngram.model import NgramConfig
from dragoman.ngram.smoothing import SMOOTHINGS
from dragoman.search.sampling import warp_log_probs

# -- good paths -----------------------------------------------------------------------------------------------------


def test_train_then_evaluate(good, shared, tmp_path):
    trained = good(
        *("train", "ngram", "--text", shared / "train.txt", "--dev-text", shared / "dev.txt"),
        *("--order", 3, "--smoothing", "kneser-ney", "-o", tmp_path / "m"),
    )
    assert trained.out == ""
    assert "3-grams" in trained.err and "seconds" in trained.err and "perplexity" in trained.err
    assert trained.err.splitlines()[-1] == f"next: dragoman sample {tmp_path / 'm'} -n 3"
    report = json.loads(good("evaluate", tmp_path / "m", "--text", shared / "dev.txt", "--json").out)
    assert report.keys() >= KEYS
    assert {key for key in KEYS if isinstance(report[key], int)} == {"sentences", "words", "tokens", "unknown_words"}
    assert (report["sentences"], report["words"], report["tokens"], report["unknown_words"]) == (3, 11, 14, 1)
    assert report["log_likelihood_unknown"] == pytest.approx(-math.log(10_000_000 - 11))
    full = report["log_likelihood"] + report["log_likelihood_unknown"]
    assert report["perplexity"] == pytest.approx(math.exp(-full / 14))
    assert sum(report["found_orders"].values()) == 14


def test_report_has_explanations(good, shared):
    report = good("evaluate", shared / "tri", "--text", shared / "dev.txt").out
    for key in KEYS:
        assert key.replace("_", " ").replace("log likelihood", "log-likelihood") in report
    assert "nats per token, and 16.12 more for each unknown word" in report
    assert "n-grams of order" in report


def test_several_models_make_a_table(good, shared):
    names = [shared / name for name in ("bi", "other", "both")]
    table = good("evaluate", *names, "--text", "-", stdin=DEV).lines
    assert [line.split()[0] for line in table[2:5]] == list(map(str, names))
    reports = json.loads(good("evaluate", *names, "--text", "-", "--json", stdin=DEV).out)["models"]
    assert [report["model"] for report in reports] == list(map(str, names))
    assert [report["unknown_words"] for report in reports] == [1, 11, 1]  # each by its own vocabulary
    alone = json.loads(good("evaluate", shared / "both", "--text", shared / "dev.txt", "--json").out)
    assert alone == reports[2]


def test_infinite_values_are_null_in_json(good, tmp_path):
    text = tmp_path / "train.txt"
    text.write_text("a b\nb a\n")
    options = ("--smoothing", "maximum-likelihood", "--order", 1, "--unknown", "none", "-o", tmp_path / "m")
    good("train", "ngram", "--text", text, *options)
    report = json.loads(good("evaluate", tmp_path / "m", "--text", "-", "--json", stdin="a c\n").out)
    assert report["perplexity"] is None and report["log_likelihood"] is None
    assert report["perplexity_known"] == pytest.approx(3)
    for models in ([tmp_path / "m"], [tmp_path / "m"] * 2):
        report = good("evaluate", *models, "--text", "-", stdin="a c\n").out
        assert "infinite" in report and not {"inf", "-inf"} & set(report.split())


def test_mixtures_work_with_all_commands(good, shared, tmp_path):
    mixed = good("mix", shared / "bi", shared / "tri", "--dev-text", shared / "dev.txt", "-o", tmp_path / "m")
    weights = [float(line.split("\t")[0]) for line in mixed.lines]
    assert sum(weights) == pytest.approx(1, abs=1e-5) and len(weights) == 2
    every = [shared / "bi", shared / "tri", tmp_path / "m"]
    reports = json.loads(good("evaluate", *every, "--text", shared / "dev.txt", "--json").out)["models"]
    assert reports[2]["perplexity"] <= min(reports[0]["perplexity"], reports[1]["perplexity"]) + 1e-6
    scores = [float(line) for line in good("score", tmp_path / "m", stdin=DEV).lines]
    assert sum(scores) == pytest.approx(reports[2]["log_likelihood"] + reports[2]["log_likelihood_unknown"], abs=1e-4)
    assert len(good("sample", tmp_path / "m", "-n", 3).lines) == 3
    assert len(good("next", tmp_path / "m", "the", "-k", 2).lines) == 2


def test_equal_weights_need_no_dev_text(good, shared, tmp_path):
    mixed = good("mix", shared / "bi", shared / "tri", "--equal-weights", "-o", tmp_path / "m")
    assert [line.split("\t")[0] for line in mixed.lines] == ["0.500000", "0.500000"]


def test_scores_equal_those_of_the_library(good, shared):
    model = dragoman.load(shared / "tri")
    expected = model.score(DEV.split("\n")[:-1])
    assert [float(line) for line in good("score", shared / "tri", stdin=DEV).lines] == pytest.approx(expected, abs=1e-6)
    log10 = [float(line) for line in good("score", shared / "tri", "--log10", stdin=DEV).lines]
    assert log10 == pytest.approx([score / math.log(10) for score in expected], abs=1e-6)


def test_score_prints_one_line_per_input_line(good, shared):
    scored = good("score", shared / "tri", stdin=ODD)
    assert scored.out.count("\n") == 6  # not one more for U+2028, VT, U+0085 or FS
    model = dragoman.load(shared / "tri")
    lines = ["the cat\u2028sat", "vertical\vtab here", "", "no\u00a0break saw", "the dog\x85heard\x1cthe cat ."]
    expected = model.score([*lines, "the mouse"])
    assert [float(line) for line in scored.out.split("\n")[:-1]] == pytest.approx(expected, abs=1e-6)


def test_scores_word_by_word(good, shared):
    out = good("score", shared / "tri", "--words", stdin="the zebra <unk>\n\n<s> </s>\n").out
    blocks = [[row.split("\t") for row in block.split("\n")] for block in out.removesuffix("\n").split("\n\n")]
    assert [[row[0] for row in block] for block in blocks] == [
        ["the", "zebra", "<unk>", "</s>"],
        ["</s>"],
        ["<s>", "</s>", "</s>"],
    ]
    # Unknown words show their two parts; the literal <unk> is a word, and in a text <s> and </s> are unknown words.
    assert [[len(row) for row in block] for block in blocks] == [[2, 5, 2, 2], [2], [5, 5, 2]]
    zebra = blocks[0][1]
    assert zebra[2] == "<unk>"
    assert float(zebra[1]) == pytest.approx(float(zebra[3]) + float(zebra[4]), abs=2e-6)
    assert float(zebra[4]) == pytest.approx(-math.log(10_000_000 - 11), abs=1e-6)
    [line] = good("score", shared / "tri", stdin="the zebra <unk>\n").lines
    assert float(line) == pytest.approx(sum(float(row[1]) for row in blocks[0]), abs=1e-5)


def test_score_prints_one_column_per_model(good, shared):
    """Sentences in natural logs, words in bits; `other` knows none of the words but pays for them in full."""
    names = [str(shared / name) for name in ("bi", "tri", "other")]
    models = [dragoman.load(name) for name in names]
    lines = ["the cat saw a zebra .", "", "nobody"]
    text = "".join(f"{line}\n" for line in lines)
    header, *rows = [line.split("\t") for line in good("score", *names, stdin=text).lines]
    assert header == names
    expected = [model.score(lines) for model in models]
    assert [list(map(float, column)) for column in zip(*rows, strict=True)] == [
        pytest.approx(e, abs=1e-6) for e in expected
    ]
    tens = [line.split("\t") for line in good("score", *names, "--log10", stdin=text).lines[1:]]
    assert float(tens[0][1]) == pytest.approx(expected[1][0] / math.log(10), abs=1e-6)
    out = good("score", *names, "--words", stdin=text).out
    header, body = out.removesuffix("\n").split("\n", 1)
    assert header.split("\t") == ["word", *names]
    blocks = [[row.split("\t") for row in block.split("\n")] for block in body.split("\n\n")]
    assert [[row[0] for row in block] for block in blocks] == [[*line.split(), "</s>"] for line in lines]
    for column, sentences in enumerate(expected, 1):
        sums = [-math.log(2) * sum(float(row[column]) for row in block) for block in blocks]
        assert sums == pytest.approx(sentences, abs=1e-4)
    warned = good("score", *names, stdin=text).err
    assert warned.count("\n") == 1 and f"by the vocabulary of {names[2]}: 7 of 7 words are unknown" in warned
    warned = good("score", *names[:2], stdin="zebras\n").err  # they share one vocabulary: said once
    assert warned.count("\n") == 1 and f"by the vocabulary of {names[0]}: 1 of 1 words are unknown" in warned


def test_score_prints_a_table_on_a_terminal(good, shared, monkeypatch):
    """Aligned; the numbers are rounded and nothing is cut off, however narrow it is."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("NO_COLOR", "1")
    names = [shared / "bi", shared / "tri"]
    actual = surprisals({str(name): dragoman.load(name) for name in names}, ["the cat [b]", "saw"])
    shown = good("score", *names, "--words", stdin="the cat [b]\nsaw\n").lines
    assert shown[0].split() == ["word", *map(str, names)]
    rows = [line.split() for line in shown[1:] if line.strip()]
    assert rows == [[word, *(f"{b:.2f}" for b in bits)] for word, bits in zip(actual.words, actual.bits, strict=True)]
    assert good("score", *names, stdin="the cat\n").lines[1].startswith("---")


def test_score_draws_surprisals(good, shared, tmp_path):
    plain = good("score", shared / "bi", shared / "tri", stdin="the cat\n").out
    drawn = good("score", shared / "bi", shared / "tri", "--picture", tmp_path / "cat.svg", stdin="the cat\n")
    assert drawn.out == plain and drawn.err == f"{tmp_path / 'cat.svg'}: the surprisal of each word, in bits\n"
    picture = (tmp_path / "cat.svg").read_text()
    assert all(f">{text}<" in picture for text in ("the", "cat", "&lt;/s&gt;", "bi", "tri"))


def test_raw_scores_of_stupid_backoff(good, shared):
    raw = good("score", shared / "stupid", "--raw", "--words", stdin="the cat saw\n").lines
    probabilities = good("score", shared / "stupid", "--words", stdin="the cat saw\n").lines
    # c(the cat) / c(the): 12 of "the cat ..." and 9 of "... the cat" among 24 + 18
    assert float(raw[1].split("\t")[1]) == pytest.approx(math.log(21 / 42), abs=1e-6)
    assert float(probabilities[1].split("\t")[1]) < math.log(21 / 42)
    [line] = good("score", shared / "stupid", "--raw", stdin="the cat saw\n").lines
    assert float(line) == pytest.approx(sum(float(row.split("\t")[1]) for row in raw), abs=1e-5)


def test_score_of_empty_input_is_empty(good, shared):
    assert good("score", shared / "tri", stdin="").out == good("score", shared / "tri", "--words", stdin="").out == ""


def test_samples_follow_the_seed(good, shared):
    first = good("sample", shared / "tri", "-n", 5, "--seed", 7).out
    assert first == good("sample", shared / "tri", "-n", 5, "--seed", 7).out
    assert first != good("sample", shared / "tri", "-n", 5, "--seed", 8).out
    short = good("sample", shared / "tri", "-n", 4, "--max-words", 2, "--temperature", 0.5).lines
    assert all(len(line.split()) <= 2 for line in short)


def test_samples_with_top_k_top_p_and_prefix(good, shared):
    draw = ("sample", shared / "tri", "-n", 5, "--seed", 7)
    assert good(*draw, "--top-p", 1).out == good(*draw).out
    assert len(set(good(*draw, "--top-k", 1).lines)) == 1
    expected = dragoman.load(shared / "tri").sample(5, 7, prefix="a zebra", temperature=2.0, top_k=4, top_p=0.8)
    options = ("--temperature", 2, "--top-k", 4, "--top-p", 0.8)
    assert good(*draw, "--prefix", "a zebra", *options).lines == expected
    assert all(line.startswith("a zebra") for line in expected) and len(set(expected)) > 1


def test_next_words(good, shared):
    rows = [line.split("\t") for line in good("next", shared / "tri", "the cat", "-k", 100, "--tokens").lines]
    assert good("next", shared / "tri", "the cat", "-k", 99).lines == [
        "\t".join(row) for row in rows if row[0] != "<unk>"
    ]
    probabilities = [float(prob) for _, prob in rows]
    assert sum(probabilities) == pytest.approx(1, abs=1e-4)
    assert probabilities == sorted(probabilities, reverse=True)
    assert rows[0][0] in {"saw", "heard", "met", "."}


def test_arpa_export_and_import(good, shared, tmp_path):
    good("export", shared / "tri", "--arpa", tmp_path / "tri.arpa.gz")
    assert gzip.decompress((tmp_path / "tri.arpa.gz").read_bytes()).lstrip().startswith(b"\\data\\")
    good("import", tmp_path / "tri.arpa.gz", "-o", tmp_path / "again")
    before, after = (good("score", model, stdin=DEV).lines for model in (shared / "tri", tmp_path / "again"))
    assert [float(x) for x in after] == pytest.approx([float(x) for x in before], abs=1e-3)


def test_arpa_files_are_replaced_only_with_force(run, good, shared, tmp_path):
    arpa = tmp_path / "m.arpa"
    arpa.write_text("mine")
    refused = run("export", shared / "bi", "--arpa", arpa)
    assert refused.code == 2 and "--force" in refused.err and arpa.read_text() == "mine"
    result = good("export", shared / "bi", "--arpa", arpa, "--force").err
    assert "<unk> is all unknown words together (--vocab-pad N" in result and arpa.read_text().startswith("\\data\\")
    result = good("export", shared / "bi", "--arpa", arpa, "--force", "--vocab-pad", 1000).err
    assert "<unk> is one unknown word of a language with 1,000 words" in result


def test_arpa_export_to_standard_output(shared, good, tmp_path):
    good("export", shared / "bi", "--arpa", tmp_path / "m.arpa")
    done = in_a_process(COMMAND, "export", shared / "bi", "--arpa", "-", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (0, (tmp_path / "m.arpa").read_text())


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("t.txt.gz", gzip.compress(TRAIN.encode()), ()),
        ("t.tsv", "".join(f"x\t{line}\n" for line in TRAIN.splitlines()).encode(), ("--field", "2")),
        ("t.jsonl", "".join(json.dumps({"s": line}) + "\n" for line in TRAIN.splitlines()).encode(), ("--field", "s")),
        ("t.txt", b"\xef\xbb\xbf" + TRAIN.replace("\n", "\r\n").encode(), ()),
    ],
)
def test_text_formats_give_the_same_model(good, shared, tmp_path, name, content, options):
    (tmp_path / name).write_bytes(content)
    train = ("train", "ngram", "--order", 2, "--smoothing", "witten-bell", "--text")
    good(*train, tmp_path / name, *options, "-o", tmp_path / "m")
    assert good("score", tmp_path / "m", stdin=DEV).out == good("score", shared / "bi", stdin=DEV).out


def test_field_applies_to_tsv_and_jsonl_only(good, run, shared, tmp_path):
    """Plain dev text beside a TSV is read as it is; the field is passed on to the next command."""
    (tmp_path / "t.tsv").write_text("".join(f"x\t{line}\n" for line in TRAIN.splitlines()))
    train = ("train", "ngram", "--order", 2, "--smoothing", "witten-bell", "--field", 2, "--text")
    good(*train, tmp_path / "t.tsv", "--dev-text", shared / "dev.txt", "-o", tmp_path / "m")
    assert good("score", tmp_path / "m", stdin=DEV).out == good("score", shared / "bi", stdin=DEV).out
    trained = good(*train, tmp_path / "t.tsv", "-o", tmp_path / "n")
    assert trained.err.splitlines()[-1] == f"next: dragoman evaluate {tmp_path / 'n'} --text FILE --field 2"
    both = (shared / "bi", shared / "tri")
    mixed = good("mix", *both, "--dev-text", tmp_path / "t.tsv", "--field", 2, "-o", tmp_path / "mixed")
    assert mixed.err.splitlines()[-1].endswith("mixed --text FILE --field 2")
    neither = run(*train, shared / "train.txt", "--dev-text", shared / "dev.txt", "-o", tmp_path / "o")
    assert neither.code == 2 and "--field 2 is for .tsv and .jsonl" in neither.err


def test_training_text_from_standard_input(good, shared, tmp_path):
    good("train", "ngram", "--order", 2, "--smoothing", "witten-bell", "--text", "-", "-o", tmp_path / "m", stdin=TRAIN)
    assert (tmp_path / "m" / "vocab.tsv").read_text() == (shared / "bi" / "vocab.tsv").read_text()


def test_settings_reach_the_model(good, shared, tmp_path):
    good(
        *("train", "ngram", "--text", shared / "train.txt", "--order", 2, "--smoothing", "interpolated"),
        *("--coefficients", "0.1,0.4", "--prune", "0,1", "--gap", 1, "--quantize", "--no-interpolate-unigrams"),
        *("--unknown-words", 5000, "--max-size", 4, "-o", tmp_path / "m"),
    )
    config = yaml.safe_load((tmp_path / "m" / "config.yaml").read_text())
    assert (config["coefficients"], config["prune"], config["gap"]) == ([0.1, 0.4], [0, 1], 1)
    assert (config["quantise"], config["interpolate_unigrams"]) == (True, False)
    assert config["unknown"] == {"kind": "uniform", "total": 5000}
    assert len(dragoman.load(tmp_path / "m").vocab) == 3 + 4


def test_replacing_singletons_is_a_minimum_count_of_two(good, tmp_path):
    text = tmp_path / "t.txt"
    text.write_text("a b\na c\n")
    train = ("train", "ngram", "--text", text, "--order", 1, "--smoothing", "witten-bell")
    good(*train, "--replace-singletons", "-o", tmp_path / "one")
    good(*train, "--min-count", 2, "-o", tmp_path / "two")
    vocabularies = [dragoman.load(tmp_path / name).vocab for name in ("one", "two")]
    assert vocabularies[0].tokens[3:] == vocabularies[1].tokens[3:] == ("a",)


def test_models_with_one_vocabulary_can_be_mixed(good, shared, tmp_path):
    """The unknown-word model comes along with the vocabulary, even one that spells words out."""
    (tmp_path / "talk.txt").write_text("a mouse heard a mouse .\nnobody sings .\n")
    small = ("--order", 2, "--smoothing", "witten-bell")
    good("train", "ngram", "--text", shared / "train.txt", *small, "--unknown", "characters", "-o", tmp_path / "news")
    lent = ("--text", tmp_path / "talk.txt", "--vocab", tmp_path / "news")
    talk = good("train", "ngram", *lent, *small, "-o", tmp_path / "talk")
    assert f"1 of 9 words are not in the vocabulary of {tmp_path / 'news'} and became <unk>" in talk.err
    assert "warning" not in talk.err
    cache = good("train", "cache", *lent, "-o", tmp_path / "cache")
    assert f"next: dragoman mix {tmp_path / 'news'} {tmp_path / 'cache'} --dev-text FILE -o MIXED" in cache.err
    (tmp_path / "classes.tsv").write_text("cat\tANIMAL\ndog\tANIMAL\nmouse\tANIMAL\n")
    good("train", "class-ngram", *lent, *small, "--classes", tmp_path / "classes.tsv", "-o", tmp_path / "classes")
    members = [tmp_path / name for name in ("news", "talk", "cache", "classes")]
    assert len(good("mix", *members, "--dev-text", shared / "dev.txt", "-o", tmp_path / "m").lines) == 4
    assert dragoman.load(tmp_path / "m").unknown.config()["kind"] == "characters"
    exported = good("export", tmp_path / "news", "--arpa", tmp_path / "news.arpa")
    assert "warning: ARPA files cannot contain the character model of unknown words" in exported.err


def test_force_replaces_a_model(good, shared, tmp_path):
    train = ("train", "ngram", "--text", shared / "train.txt", "--smoothing", "witten-bell", "-o", tmp_path / "m")
    good(*train, "--order", 1)
    good(*train, "--order", 2, "--force")
    assert yaml.safe_load((tmp_path / "m" / "config.yaml").read_text())["order"] == 2


def test_warnings_are_plain_lines(good, tmp_path):
    (tmp_path / "t.txt").write_text("too small a text\n")
    trained = good("train", "ngram", "--text", tmp_path / "t.txt", "--order", 2, "-o", tmp_path / "m")
    result = [line for line in trained.err.splitlines() if line.startswith("warning: ")]
    assert result and all("order" in line for line in result) and len(set(result)) == len(result)
    assert ".py:" not in trained.err


def test_counts_of_many_orders_are_summed(good, tmp_path):
    (tmp_path / "t.txt").write_text("a text of a few words that is much too small for all of the orders here\n")
    trained = good("train", "ngram", "--text", tmp_path / "t.txt", "--order", 40, "-o", tmp_path / "m")
    assert "n-grams of orders 1 to 19 (the longest line gives order 19); " in trained.err
    result = [line for line in trained.err.splitlines() if line.startswith("warning: ")]
    assert len(result) < 6 and any(line.startswith("warning: orders ") and " to 19: " in line for line in result)


def test_mostly_unknown_text_is_reported(good, shared, tmp_path):
    doubt = "10 of 11 words are unknown; wrong column, language or tokenisation?"
    text = "Die Katze sieht den Hund und den Vogel und mich .\n"  # only the full stop is known
    for command in (("score", shared / "bi"), ("evaluate", shared / "bi", "--text", "-")):
        assert doubt in good(*command, stdin=text).err
        assert "warning" not in good(*command, stdin=DEV).err
    lent = ("train", "ngram", "--text", "-", "--vocab", shared / "bi", "--order", 1, "--smoothing", "witten-bell")
    assert doubt in good(*lent, "-o", tmp_path / "m", stdin=text).err


def test_fitted_coefficients_are_printed(good, shared, tmp_path):
    train = ("train", "ngram", "--text", shared / "train.txt", "--order", 2, "--smoothing", "interpolated-fitted")
    alone = good(*train, "-o", tmp_path / "m").err
    assert "coefficients fitted on every 10th training sentence (without --dev-text): alpha_1 " in alone
    beside = good(*train, "--dev-text", shared / "dev.txt", "-o", tmp_path / "n").err
    corpus = dragoman.Corpus.read(shared / "train.txt")
    dev = dragoman.Corpus.read(shared / "dev.txt", corpus.vocab)
    fitted = dragoman.NgramModel.train(corpus, heldout=dev, order=2, smoothing="interpolated-fitted").coefficients
    item, two = fitted.table[:, 0].tolist()
    assert f"coefficients fitted on {shared / 'dev.txt'}: alpha_1 {item:.3g}, alpha_2 {two:.3g}\n" in beside
    assert "the coefficients were fitted on this text" in beside


# -- help -----------------------------------------------------------------------------------------------------------


def test_help_has_examples(good):
    overview = good("--help").out
    for verb in COMMANDS:
        assert f"\n  {verb} " in overview
        result = good(verb, "--help").out
        assert "Usage: " in result
        assert "Example" in result
    assert good().out == overview
    assert good("-h").out == overview and good("train", "ngram", "-h").out == good("train", "ngram", "--help").out
    for group, commands in (("train", TRAIN_COMMANDS), ("inspect", INSPECT_COMMANDS), ("spark", SPARK_COMMANDS)):
        for name in commands:
            assert "Example" in good(group, name, "--help").out
    assert good("--version").out == f"dragoman {dragoman.__version__}\n"


def test_summaries_fit_in_a_line_and_begin_the_help_of_each_command(good):
    groups = {(): COMMANDS, ("train",): TRAIN_COMMANDS, ("inspect",): INSPECT_COMMANDS, ("spark",): SPARK_COMMANDS}
    for path, commands in groups.items():
        overview = good(*path, "--help").out
        for name, (_, summary) in commands.items():
            assert f"  {name:{max(map(len, commands))}}  {summary}\n" in overview
            assert max(map(len, overview.splitlines())) <= 90
            assert good(*path, name, "--help").out.split("\n\n")[1].split() == summary.split()


def test_python_runs_the_package():
    script = "import runpy, sys; sys.argv[1:] = ['--version']; runpy.run_module('dragoman', run_name='__main__')"
    done = in_a_process(script, stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (0, f"dragoman {dragoman.__version__}\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell):
    def complete(*words):
        environment = {
            "_DRAGOMAN_COMPLETE": f"complete_{shell}",
            "COMP_WORDS": " ".join(["dragoman", *words]),
            "COMP_CWORD": str(len(words)),
            "_TYPER_COMPLETE_ARGS": " ".join(["dragoman", *words]),
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }
        script = f"import os; os.environ |= {environment!r}; {COMMAND}"
        done = in_a_process(script, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "translator" in complete("train", "tr") and "ngram" not in complete("train", "tr")
    assert "--beam-size" in complete("translate", "--be")


def test_help_lists_all_smoothing_methods(good):
    assert SMOOTHING_SUMMARIES.keys() == SMOOTHINGS.keys()
    result = good("train", "ngram", "--help").out
    assert all(meaning in result for meaning in SMOOTHING_SUMMARIES.values())


# -- what is imported -------------------------------------------------------------------------------------------------


def test_help_imports_nothing_heavy():
    assert not {"typing", "typer", "pydantic", "dragoman.cli.app"} & modules_after(["--help"], ["--version"])
    heavy = {"numpy", "numba", "torch", "rich", "yaml"}
    assert not heavy & modules_after(["train", "--help"], ["train", "ngram", "--help"], ["translate", "--help"])
    assert heavy & modules_after(["train", "translator", "--help"]) == {"yaml"}


def test_ngram_commands_do_not_import_torch(shared, tmp_path):
    text = ("--text", shared / "dev.txt")
    used = modules_after(
        ("train", "ngram", *text, "--dev-text", shared / "dev.txt", "--order", 3, "-o", tmp_path / "m"),
        ("evaluate", tmp_path / "m", shared / "both", *text),
        ("score", shared / "bi", "--words", *text),
        ("score", shared / "bi", shared / "tri", "--words", *text),
        ("mix", shared / "bi", shared / "tri", "--dev-text", shared / "dev.txt", "-o", tmp_path / "mixed"),
        ("export", shared / "bi", "--arpa", tmp_path / "bi.arpa"),
        ("import", tmp_path / "bi.arpa", "-o", tmp_path / "again"),
    )
    assert "numba" in used
    assert not {"torch", "rich"} & used


# -- defaults ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "library", "names"),
    [
        (train_ngram, NgramConfig, ["smoothing", "entropy_prune", "quantise", "gap"]),
        (train_class_ngram, NgramConfig, ["smoothing"]),
        (train_cache, dragoman.CacheModel.train, ["decay", "prior", "order"]),
        (sample_verb, LanguageModel.iter_samples, ["prefix", "max_words"]),
        (sample_verb, warp_log_probs, ["temperature", "top_k", "top_p"]),
    ],
)
def test_defaults_are_those_of_the_library(verb, library, names):
    ours, theirs = inspect.signature(verb).parameters, inspect.signature(library).parameters
    assert {name: ours[name].default for name in names} == {name: theirs[name].default for name in names}
