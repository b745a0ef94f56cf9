"""Plans: sizes and settings by the time there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from torch import nn

from dragoman.data.corpus import ParallelCorpus
from dragoman.data.tokenizer import LinePairs, Tokenizer
from dragoman.models import planning
from dragoman.models.configs import TranslatorConfig
from dragoman.models.planning import TRANSLATOR_SIZES, EncodedPairs, StoredRun, TranslatorPlanner
from dragoman.models.translator import Translator
from dragoman.training import planning as training_planning
from dragoman.training.config import TRANSLATOR, TrainingConfig
from dragoman.training.fit import TrainingStarted
from dragoman.training.planning import (
    AVERAGE,
    Candidate,
    Speed,
    choose_size,
    evaluations_for,
    full_epochs,
)
from dragoman.training.progress import Progress
from dragoman.training.protocols import Examples

GERMAN = ["ein hund bellt .", "eine katze schläft .", "der hund schläft .", "die katze bellt nicht ."] * 400
ENGLISH = ["a dog barks .", "a cat sleeps .", "the dog sleeps .", "the cat does not bark ."] * 400
LINES = LinePairs(GERMAN, ENGLISH)


def choose(rate: Callable[[int], float], seconds: float, sizes: tuple[int, ...] = (1, 2, 4, 8, 16)) -> tuple[int, int]:
    """Choose among sizes whose number of parameters is 1,000 times their number. Return the size and the trials."""
    trials = 0

    def measure(size: int, expected: float) -> Candidate[int]:
        nonlocal trials
        trials += 1
        return Candidate(size, 1000 * size, Speed(1.0, rate(size), 1))

    chosen = choose_size(sizes, lambda size: 1000 * size, measure, lambda: seconds, 2.0)
    return chosen.size, trials


@pytest.mark.parametrize("seconds", [1.0, 10.0, 30.0, 100.0, 1000.0])
def test_the_largest_size_that_there_is_time_for(seconds: float) -> None:
    """Small networks are slower than their number of parameters suggests, so speeds are measured, not only predicted."""

    def rate(size: int) -> float:
        return 1000 / (0.5 + size)

    size, trials = choose(rate, seconds)
    fitting = [n for n in (1, 2, 4, 8, 16) if rate(n) * seconds >= 2000 * n]
    assert size == max(fitting, default=1)
    assert trials <= 4


@pytest.mark.parametrize(
    ("epochs", "dev_predictions", "expected"),
    [
        (2, 1_000, {"check_every": 40, "patience": 25}),  # 25 evaluations; a plateau lasts two epochs
        (10, 1_000, {"check_every": 40, "patience": 5}),
        (100, 1_000, {"check_every": 34, "patience": 5}),  # 3 % of the time, less often than each epoch
        (100, 100, {"check_every": 10, "patience": 5}),  # each epoch
        (10, 20_000, {"check_every": 200, "patience": 5}),  # five evaluations, 10 % of the time
        (10, 80_000, {"check_every": 200, "patience": 5, "dev_sample": 20_000}),
    ],
)
def test_evaluations_take_little_of_the_time(epochs: float, dev_predictions: int, expected: dict[str, int]) -> None:
    settings = evaluations_for(1000, epochs, 500.0, dev_predictions, predictions_per_second=1000.0)
    assert settings == expected


class FakeMachine:
    """Training speeds by the number of parameters, instead of measured ones."""

    def __init__(self, parameters_per_second: float):
        self.parameters_per_second = parameters_per_second
        self.measured: list[TrainingConfig] = []

    def measure_speed(self, model: nn.Module, data: Examples, config: TrainingConfig, seconds: float) -> Speed:
        self.measured.append(config)
        rate = self.parameters_per_second / sum(parameter.numel() for parameter in model.parameters())
        return Speed(0.9 * config.batch_size / rate, 0.9 * config.batch_size, config.batch_size)


def encode(max_subwords: int | None) -> EncodedPairs:
    source, source_corpus = Tokenizer.train_and_encode("word", GERMAN)
    target, target_corpus = Tokenizer.train_and_encode("word", ENGLISH)
    return EncodedPairs(ParallelCorpus(source_corpus, target_corpus), source, target)


def plan(
    monkeypatch: pytest.MonkeyPatch, minutes: float | None, speed: float = 3e9, **given: dict[str, object]
) -> planning.TranslatorPlan:
    monkeypatch.setattr(training_planning, "measure_speed", FakeMachine(speed).measure_speed)
    sections = {"model": {}, "training": {}, **given}
    planner = TranslatorPlanner(
        encode,
        LINES.spread(50),
        TranslatorConfig(**sections["model"]),
        TRANSLATOR.model_copy(update=sections["training"]),
        {name: frozenset(settings) for name, settings in sections.items()},
    )
    return planner.plan(minutes)


def test_more_time_or_a_faster_machine_gives_a_larger_model(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [plan(monkeypatch, minutes, 1e7).model.hidden for minutes in (0.05, 0.2, 1, 5, 1000)]
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]
    speeds = [plan(monkeypatch, 1, speed).model.hidden for speed in (1e6, 1e8, 1e10)]
    assert speeds == sorted(speeds) and speeds[0] < speeds[-1]
    most = planning.MAX_HIDDEN * int(encode(None).pairs.sizes.sum()) ** 0.25
    assert sizes[-1] == max(size.hidden for size in TRANSLATOR_SIZES if size.hidden <= most), "the text is small"


def test_plan_fits_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    result = plan(monkeypatch, 5, 1e7)
    assert 0.85 * 5 <= result.minutes <= 5
    predictions = result.epochs * result.data.pairs.sizes.sum()
    updates = predictions / result.training.batch_size
    assert 0.02 * updates <= result.training.warmup <= 0.1 * updates
    assert 5 <= updates / result.training.check_every <= max(26, result.epochs + 1)
    assert result.training.average == AVERAGE
    assert result.training.max_epochs is None and result.training.minutes == 5
    assert "90,077 parameters" in result.describe() and "epochs in" in result.describe()


def test_without_minutes_training_is_expected_to_end_before_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    result = plan(monkeypatch, None)
    assert result.minutes < result.training.minutes == planning.DEFAULT_MINUTES
    assert result.epochs == pytest.approx(full_epochs(len(GERMAN)))
    assert result.training.schedule == "cooldown" and result.training.max_epochs is None


def test_a_text_that_is_read_often_is_regularized(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = [plan(monkeypatch, minutes, 1e7) for minutes in (1, 5, 1000)]
    epochs, dropout = [result.epochs for result in plans], [result.model.dropout for result in plans]
    assert epochs[0] < 1 and dropout[0] == 0 < dropout[1] <= dropout[2] == 0.4
    smoothing = [result.training.label_smoothing for result in plans]
    assert smoothing == [0.1 if number >= planning.SMOOTHED_EPOCHS else 0 for number in epochs]
    rates = [plan(monkeypatch, minutes, 1e9).training.learning_rate for minutes in (1, 100, 1000)]
    assert rates == sorted(rates, reverse=True) and rates[0] > rates[2]


@pytest.mark.parametrize(("minutes", "units"), [(0.05, "char"), (30, "word")])
def test_more_subwords_if_there_is_time_for_them(monkeypatch: pytest.MonkeyPatch, minutes: float, units: str) -> None:
    """Characters stand for few subwords, and words for many."""

    def encode_with(max_subwords: int | None) -> EncodedPairs:
        kind = "word" if max_subwords is None else "char"
        (source, first), (target, second) = (Tokenizer.train_and_encode(kind, text) for text in (GERMAN, ENGLISH))
        return EncodedPairs(ParallelCorpus(first, second), source, target)

    monkeypatch.setattr(training_planning, "measure_speed", FakeMachine(1e8).measure_speed)
    given = {"model": (), "training": ()}
    result = TranslatorPlanner(encode_with, None, TranslatorConfig(), TRANSLATOR, given).plan(minutes)
    assert result.data.target.segmenter.kind == units


def test_given_settings_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"model": {"hidden": 40, "dropout": 0.15}, "training": {"batch_size": 77, "learning_rate": 0.5}}
    result = plan(monkeypatch, 5, **given)
    assert (result.model.hidden, result.model.dropout) == (40, 0.15)
    assert (result.training.batch_size, result.training.learning_rate) == (77, 0.5)


@pytest.mark.parametrize("trial_seconds", [9.0, 40.0])
def test_measuring_takes_a_small_part_of_the_time_on_a_busy_machine(
    monkeypatch: pytest.MonkeyPatch, trial_seconds: float
) -> None:
    """Other sizes are extrapolated then, and all that is left is planned for training."""
    now, measured = 0.0, list[int]()

    def measure_speed(model: nn.Module, data: Examples, config: TrainingConfig, seconds: float) -> Speed:
        nonlocal now
        now += trial_seconds
        measured.append(sum(parameter.numel() for parameter in model.parameters()))
        return Speed(100 * measured[-1] / 2e7, 100, config.batch_size)

    monkeypatch.setattr(training_planning, "measure_speed", measure_speed)
    training = TRANSLATOR.model_copy(update={"threads": 1})
    planner = TranslatorPlanner(encode, None, TranslatorConfig(), training, {"model": (), "training": ()})
    result = planner.plan(3.0, lambda: now)
    assert len(measured) == (2 if trial_seconds == 9 else 1)
    assert 60 * result.minutes == pytest.approx(180 - now)
    assert (result.parameters < min(measured)) == (trial_seconds == 40), "a size that was not measured"
    assert result.epochs * result.data.pairs.sizes.sum() == pytest.approx((180 - now) * 2e7 / result.parameters)


@pytest.mark.parametrize(("encoding_seconds", "times"), [(0.0, 2), (30.0, 1)])
def test_more_subwords_are_not_tried_if_encoding_takes_long(
    monkeypatch: pytest.MonkeyPatch, encoding_seconds: float, times: int
) -> None:
    now, encoded = 0.0, list[int | None]()

    def encode_slowly(max_subwords: int | None) -> EncodedPairs:
        nonlocal now
        now += encoding_seconds
        encoded.append(max_subwords)
        return encode(max_subwords)

    monkeypatch.setattr(training_planning, "measure_speed", FakeMachine(1e10).measure_speed)
    planner = TranslatorPlanner(encode_slowly, None, TranslatorConfig(), TRANSLATOR, {"model": (), "training": ()})
    planner.plan(3.0, lambda: now)
    assert len(encoded) == times


def test_one_thread_is_used_where_it_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.training.planning.available_cores", lambda: 2)

    def measure_speed(model: object, data: Examples, config: TrainingConfig, seconds: float) -> Speed:
        return Speed(1.0, 5000.0 if config.threads == 1 else 1000.0, config.batch_size)

    monkeypatch.setattr(training_planning, "measure_speed", measure_speed)
    planner = TranslatorPlanner(encode, None, TranslatorConfig(), TRANSLATOR, {"model": (), "training": ()})
    assert planner.plan(1.0).training.threads == 1


class SimulatedClock:
    """A clock that shows the time that simulated updates have taken."""

    def __init__(self, update_seconds: list[float]):
        self.now, self.update_seconds, self.updates = 0.0, update_seconds, 0

    def __call__(self) -> float:
        return self.now

    def steps(self, state: object, task: object) -> Iterator[object]:
        """Stand for `training_steps`, with updates of 100 predictions; the last duration is repeated."""
        while True:
            self.now += self.update_seconds[min(self.updates, len(self.update_seconds) - 1)]
            self.updates += 1
            yield SimpleNamespace(predictions=100)


@pytest.mark.parametrize(
    ("update_seconds", "updates", "expected"),
    [
        ([0.9, 0.5, 0.25], 6, 0.25),  # two updates are not measured; then enough to fill a second
        ([2.0, 2.0, 2.0], 4, 2.0),  # two measured ones take more than three seconds
        ([30.0], 1, 30.0),  # the first one has taken too long already
        ([6.0], 2, 6.0),
    ],
)
def test_slow_updates_are_not_repeated_to_measure_them(
    monkeypatch: pytest.MonkeyPatch, update_seconds: list[float], updates: int, expected: float
) -> None:
    clock = SimulatedClock(update_seconds)
    monkeypatch.setattr(training_planning, "perf_counter", clock)
    monkeypatch.setattr(training_planning, "training_steps", clock.steps)
    data = encode(None)
    model = Translator.create(data.pairs, data.source, data.target, embedding=4, hidden=4)
    speed = training_planning.measure_speed(model, data.pairs, TRANSLATOR, seconds=1.0)
    assert (clock.updates, speed.update_seconds, speed.predictions) == (updates, expected, 100.0)


@pytest.mark.parametrize(("update_seconds", "trials"), [(0.1, 2), (60.0, 1)])
def test_other_numbers_of_threads_are_not_tried_if_that_takes_long(
    monkeypatch: pytest.MonkeyPatch, update_seconds: float, trials: int
) -> None:
    measured = list[int | None]()

    def measure_speed(model: object, data: Examples, config: TrainingConfig, seconds: float) -> Speed:
        measured.append(config.threads)
        return Speed(update_seconds, 1000.0, config.batch_size)

    monkeypatch.setattr(training_planning, "available_cores", lambda: 2)
    monkeypatch.setattr(training_planning, "measure_speed", measure_speed)
    given = {"model": {"hidden", "embedding"}, "training": ()}
    TranslatorPlanner(encode, None, TranslatorConfig(hidden=4, embedding=4), TRANSLATOR, given).plan(1.0)
    assert measured == [2, 1][:trials]


def test_batches_of_the_whole_text_are_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """An update is an epoch."""
    predictions = float(encode(None).pairs.sizes.sum())
    monkeypatch.setattr(FakeMachine, "measure_speed", lambda self, *trial: Speed(0.5, predictions, 0))
    result = plan(monkeypatch, 2, training={"batch_size": 0})
    assert result.training.batch_size == 0 and result.epochs == pytest.approx(240, rel=0.1)
    assert result.training.warmup == pytest.approx(0.05 * result.epochs, abs=1)
    assert result.training.check_every == pytest.approx(1, abs=1)


def test_two_translators_are_planned_with_the_time_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: dict[str, object] = {"embedding": 16, "hidden": 16}
    single = plan(monkeypatch, 5, 1e7, model=sizes)
    two_way = plan(monkeypatch, 5, 1e7, model={**sizes, "symmetry": 0.5})
    assert two_way.parameters == pytest.approx(2 * single.parameters, rel=0.05)
    predicted = encode(None).pairs
    both = int(predicted.source.sizes.sum() + predicted.target.sizes.sum())
    # Twice the parameters take twice the time per prediction, and both sides are predicted.
    expected = single.epochs * single.parameters / two_way.parameters * int(predicted.sizes.sum()) / both
    assert two_way.epochs == pytest.approx(expected, rel=0.05)


# -- the command line --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("elapsed", "is_late"), [(20.0, False), (40.0, True)])
def test_a_late_start_is_reported(capsys: pytest.CaptureFixture[str], elapsed: float, is_late: bool) -> None:
    from dragoman.cli.progress import _with_late_warning

    event = TrainingStarted(Progress(), 1, 1, 1, "order", has_auxiliary_loss=False, time_limit=120.0)
    _with_late_warning(lambda event: None, elapsed)(event)
    assert ("of the 120 seconds were over" in capsys.readouterr().err) == is_late


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, ...]:
    path = tmp_path_factory.mktemp("pairs")
    for name, lines in (("train.de", GERMAN), ("train.en", ENGLISH), ("dev.de", GERMAN[:8]), ("dev.en", ENGLISH[:8])):
        (path / name).write_text("".join(f"{line}\n" for line in lines))
    texts = ("--src", path / "train.de", "--tgt", path / "train.en", "--dev-src", path / "dev.de")
    return ("train", "translator", *texts, "--dev-tgt", path / "dev.en", "--threads", 1)


def test_planned_training_is_resumed_and_continued(good, tmp_path: Path, command) -> None:  # type: ignore[no-untyped-def]
    """The plan is stored: the same command does not plan again, also if the speed is another one."""
    from dragoman.io.storage import CHECKPOINT_FILE
    from dragoman.training.run_directory import read_progress

    output, command = tmp_path / "model", (*command, "--patience", 1000)
    first = good(*command, "-o", output, "--minutes", 0.08)
    assert "measuring how fast a translator is trained here" in first.err
    assert "plan: " in first.err and "source       " in first.err and "reference    " in first.err
    stored = StoredRun.read(output)
    again = good(*command, "-o", output, "--minutes", 0.08)
    assert "plan: " not in again.err and "already finished" in again.err
    updates = read_progress(output / CHECKPOINT_FILE).update
    assert "next: " not in again.err, "it is not known here whether the translator is usable"
    longer = good(*command, "-o", output, "--max-updates", updates + 5)
    assert "seconds in total" in first.err and "seconds in this process" in longer.err
    assert "plan: " not in longer.err and "finished after" in longer.err
    assert read_progress(output / CHECKPOINT_FILE).update == updates + 5
    after = StoredRun.read(output)
    assert stored is not None and after is not None and after.model == stored.model
    assert after.training == {**stored.training, "minutes": None, "max_updates": updates + 5}
    by_updates = good(*command, "-o", output, "--max-updates", 1)
    assert "already finished" in by_updates.err, "other limits apply to the same run"


@pytest.mark.parametrize("units", [("--units", "subword"), ("--symmetry", 0.1)])
def test_units_that_were_chosen_are_used_again(good, tmp_path: Path, command, units, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(planning, "FEW_SUBWORDS", 40)
    sizes = ("--embedding", 8, "--hidden", 8, "--attention-hidden", 8)
    options = (*command, *sizes, *units, "--minutes", 0.03, "-o", tmp_path / "model")
    good(*options)
    assert "already finished" in good(*options).err


def test_a_given_limit_is_the_only_one(good, tmp_path: Path, command) -> None:  # type: ignore[no-untyped-def]
    """The preset has 30 epochs for so few pairs."""
    options = (*command, "--embedding", 4, "--hidden", 4, "--batch-size", 10_000, "--max-updates", 40, "-o", tmp_path)
    assert "finished after 40 updates" in good(*options).err
    assert "already finished" in good(*options).err


@pytest.mark.parametrize(("lines", "held_out"), [([f"satz {n} ." for n in range(400)], True), (["ja"] * 300, False)])
def test_pairs_are_held_out_if_there_is_no_dev_text(good, tmp_path: Path, lines: list[str], held_out: bool) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "train.tsv").write_text("".join(f"{line}\t{line[::-1]}\n" for line in lines))
    options = ("--embedding", 4, "--hidden", 4, "--threads", 1, "--minutes", 0.02, "-o", tmp_path / "model")
    result = good("train", "translator", "--pairs", tmp_path / "train.tsv", *options)
    assert ("pairs are held out" in result.err) == held_out
    stored = StoredRun.read(tmp_path / "model")
    assert stored is not None and bool(stored.dev_pairs) == held_out
    assert stored.pairs + stored.dev_pairs == len(lines)


def test_time_before_and_after_training_is_given_to_the_loop(good, tmp_path: Path, command, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """The loop keeps to the time limit by these; see test_pace.py."""
    import dragoman.cli.train_translator as module

    calls = []
    fit_with_progress = module.fit_with_progress

    def record(*arguments, **options):  # type: ignore[no-untyped-def]
        calls.append(options)
        return fit_with_progress(*arguments, **options)

    monkeypatch.setattr(module, "fit_with_progress", record)
    monkeypatch.setattr(module, "seconds_since_start", lambda: 123.0)
    sizes = ("--embedding", 4, "--hidden", 4, "--max-updates", 2)
    good(*command, *sizes, "-o", tmp_path / "first")
    good(*command, "--from", tmp_path / "first", "--max-updates", 2, "-o", tmp_path / "second")
    first, second = (call["reserve"] for call in calls)
    assert [call["elapsed_seconds"] for call in calls] == [123.0, 123.0]
    assert first.predictions > 0 and second.predictions == 2 * first.predictions


def test_only_pairs_that_can_be_read_in_the_time_are_used(good, tmp_path: Path, command, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from dragoman.models import translator_training

    monkeypatch.setattr(translator_training, "MAX_PAIRS_PER_MINUTE", 10_000)
    options = (*command, "--embedding", 4, "--hidden", 4, "-o", tmp_path / "model")
    result = good(*options, "--minutes", 0.05)
    assert "500 of 1,600 pairs are used" in result.err
    again = good(*options, "--minutes", 0.06)
    assert "500 of 1,600 pairs are used" in again.err and "different training" not in again.err


def test_training_without_limits_ends_when_the_dev_loss_stops_improving(good, tmp_path: Path, command) -> None:  # type: ignore[no-untyped-def]
    settings = ("--hidden", 16, "--embedding", 16, "--check-every", 4, "--patience", 2, "--batch-size", 300)
    result = good(*command, "-o", tmp_path / "model", *settings, "--learning-rate", 0.02)
    assert "at most 60 minutes" in result.err
    assert "the dev loss stopped improving" in result.err or "without improvement" in result.err


def test_a_useless_translator_is_reported_with_the_reason(good, tmp_path: Path, command) -> None:  # type: ignore[no-untyped-def]
    result = good(*command, "-o", tmp_path / "model", "--max-updates", 2, "--hidden", 8, "--embedding", 8)
    assert "not usable" in result.err and "of the pairs; give it more time" in result.err
    assert "next: dragoman translate" not in result.err


@pytest.mark.parametrize("kind", ["recurrent", "feed-forward"])
def test_language_models_are_planned_too(good, tmp_path: Path, kind: str) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "train").write_text("".join(f"{line}\n" for line in ENGLISH))
    (tmp_path / "dev").write_text("".join(f"{line}\n" for line in ENGLISH[:8]))
    texts = ("--text", tmp_path / "train", "--dev-text", tmp_path / "dev", "--threads", 1, "--patience", 1000)
    first = good("train", kind, *texts, "-o", tmp_path / "model", "--minutes", 0.05)
    assert "plan: hidden" in first.err and "0.05 minutes" in first.err
    again = good("train", kind, *texts, "-o", tmp_path / "model", "--minutes", 0.05)
    assert "plan: " not in again.err and "already finished" in again.err


@pytest.mark.parametrize(("kind", "embedding"), [("recurrent", 24), ("feed-forward", 12)])
def test_other_sizes_follow_a_hidden_size_that_is_given(good, tmp_path: Path, kind: str, embedding: int) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "train").write_text("".join(f"{line}\n" for line in ENGLISH))
    texts = ("--text", tmp_path / "train", "--threads", 1, "--minutes", 0.02, "--hidden", 24)
    good("train", kind, *texts, "-o", tmp_path / "model")
    stored = StoredRun.read(tmp_path / "model")
    assert stored is not None and stored.model["embedding"] == embedding


@pytest.mark.parametrize(("placeholders", "are_used"), [(True, True), (None, True), (False, False)])
def test_held_out_pairs_have_no_placeholders(placeholders: bool | None, are_used: bool) -> None:
    """They are added to the training pairs only, after the dev text is held out; by default if there are enough."""
    from dragoman.data.copied_items import PLACEHOLDER
    from dragoman.models.translator_training import set_up_training

    source = [
        f"{word} nummer {n} kostet {{price}} im laden" for n in range(100) for word in ("tisch", "stuhl", "schrank")
    ]
    target = [line.replace("kostet", "costs").replace("im laden", "in the shop") for line in source]

    def encode_words(lines: LinePairs, max_subwords: object = None, units: object = None) -> EncodedPairs:
        (first, one), (second, two) = (
            Tokenizer.train_and_encode("word", side) for side in (lines.source, lines.target)
        )
        return EncodedPairs(ParallelCorpus(one, two), first, second)

    config = TranslatorConfig(embedding=4, hidden=4)
    given = {"model": {"embedding", "hidden"}, "training": {"minutes"}}
    training = TRANSLATOR.model_copy(update={"minutes": 0.01, "threads": 1})
    lines = LinePairs(source, target)
    setup = set_up_training(encode_words, lines, None, config, training, given, placeholders=placeholders)
    assert setup.dev is not None and not any(PLACEHOLDER in line for line in setup.dev.source)
    assert all((PLACEHOLDER in line) == are_used for line in setup.lines.source)


def test_a_planned_run_with_placeholders_continues_with_other_limits(good, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """Placeholders are used by default in planned runs only, but a run that has them is continued with them."""
    from dragoman.data.copied_items import PLACEHOLDER

    for name, text in (("de", "die datei %s fehlt"), ("en", "the file %s is missing")):
        (tmp_path / name).write_text("".join(f"{text} {n}\n" for n in range(400)), encoding="utf-8")
    texts = ("--src", tmp_path / "de", "--tgt", tmp_path / "en", "-o", tmp_path / "model", "--threads", 1)
    sizes = ("--units", "word", "--embedding", 4, "--hidden", 4)
    good("train", "translator", *texts, *sizes, "--minutes", 0.02)
    assert PLACEHOLDER in (tmp_path / "model" / "source-vocab.tsv").read_text(encoding="utf-8")
    good("train", "translator", *texts, *sizes, "--max-updates", 100_000, "--max-epochs", 1)
