"""dragoman demo"""

from __future__ import annotations

import warnings
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.messages import say, suggest, working
from dragoman.cli.workplace import Texts, claim, read_texts, write_corpus

if TYPE_CHECKING:
    from dragoman.language_model import LanguageModel
    from dragoman.models.recurrent import RecurrentModel
    from dragoman.ngram.model import NgramModel
    from dragoman.text.corpus import Corpus

SIZES = {"train": 10_000, "dev": 500, "test": 1000}  # sentence pairs
# From counts as they are to modified Kneser-Ney: name in the table, settings.
LADDER: dict[str, dict[str, Any]] = {
    "whole prefix": {"smoothing": "whole-prefix"},
    "maximum likelihood, 3-gram": {"smoothing": "maximum-likelihood", "order": 3},
    "interpolated, 2-gram": {"smoothing": "interpolated", "order": 2},
    "interpolated, 4-gram": {"smoothing": "interpolated", "order": 4},
    "  coefficients fitted": {"smoothing": "interpolated-fitted", "order": 4},
    "  fitted by context count": {"smoothing": "interpolated-bucketed", "order": 4},
    "Witten-Bell": {"smoothing": "witten-bell", "order": 4},
    "stupid back-off, renormalised": {"smoothing": "stupid-backoff", "order": 4},
    "Katz back-off": {"smoothing": "katz", "order": 4},
    "absolute discounting": {"smoothing": "absolute-discounting", "order": 4},
    "Kneser-Ney": {"smoothing": "kneser-ney", "order": 4},
    "modified Kneser-Ney": {"smoothing": "modified-kneser-ney", "order": 4},
}
LSTM = "LSTM"
NETWORK: dict[str, Any] = {
    "cell": "lstm",
    "embedding": 64,
    "embedding_reach": 0.5,
    "hidden": 128,
    "dropout": 0.2,
    "softmax": "brown",
}
TRAINING: dict[str, Any] = {"learning_rate": 0.008, "max_epochs": 8, "warmup": 50, "patience": 8}
CONTRASTED = {"modified Kneser-Ney, 2-gram": 2, "4-gram": 4}  # orders of the models that are asked about contrasts
CONTRASTS = 40  # of each kind


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the texts and the models go.")
    ] = Path("runs/demo"),
    seed: Annotated[int, typer.Option("--seed", help="Of the text and of the samples.")] = 1,
) -> None:
    """Compare n-gram models and an LSTM on text whose truth is known.

    The text is drawn from the laboratory's grammar (see dragoman lab): the exact floor of perplexity is printed beside
    every model, from maximum likelihood to modified Kneser-Ney to a recurrent network, then what models have learnt and
    have not.

    \b
    Example:
      dragoman demo
    """
    claim(output, "demo", "writes them anew when it runs again")
    with working("drawing German and English sentences from the laboratory's grammar"):
        write_corpus(output / "lab", SIZES, seed)
        texts = read_texts(output / "lab")
    train, dev = texts.train, texts.dev
    say(f"{output}: {train.sentences:,} sentences to train on, {train.words:,} words, {train.vocab.known - 1:,} types")
    _show_pairs(output)
    say("training an LSTM")
    lstm, seconds = _train_lstm(texts, output, seed)
    _compare_with_floor(texts, lstm, seconds)
    counted = {name: _train(train, dev, {"order": order}) for name, order in CONTRASTED.items()}
    _compare_by_contrasts({**counted, LSTM: lstm}, seed)
    list(counted.values())[-1].save(output / "model", replace=True)
    _show_samples({**counted, LSTM: lstm}, seed)
    say("")
    suggest("evaluate", output / "model", output / "lstm", "--text", output / "lab" / "test.en")
    suggest("contrast", output / "lstm")
    suggest("next", output / "lstm", "the farmer")


def _show_samples(models: dict[str, LanguageModel], seed: int) -> None:
    for name, model in list(models.items())[-2:]:
        print(f"\nThree sentences drawn from the {name}:")
        for sentence in model.sample(3, seed=seed):
            print(f"  {sentence}")


def _train_lstm(texts: Texts, output: Path, seed: int) -> tuple[RecurrentModel, float]:
    """The network, and the seconds that its training took."""
    from dragoman.cli.watching import watching
    from dragoman.models.recurrent import RecurrentModel
    from dragoman.training.fit import fit
    from dragoman.training.recommended import RECURRENT

    model = RecurrentModel.create(texts.train, seed=seed, **NETWORK)
    settings = RECURRENT.model_copy(update={**TRAINING, "seed": seed})
    with watching() as report:
        fitted = fit(model, texts.train, texts.dev, settings, output=output / "lstm", force=True, report=report)
    return model, fitted.position.seconds


def _show_pairs(output: Path) -> None:
    print("\nThree of the sentence pairs:")
    german, english = (
        (output / "lab" / f"train.raw.{language}").read_text(encoding="utf-8").splitlines() for language in ("de", "en")
    )
    for one, other in list(zip(german, english, strict=True))[:3]:
        print(f"  {one}\n    {other}")


def _compare_with_floor(texts: Texts, lstm: RecurrentModel, seconds: float) -> None:
    """A row for each model: what the text costs by it, and by the truth."""
    from dragoman.evaluation.floor import Floor
    from dragoman.report.tables import plus_minus, table

    rows: list[list[object]] = []
    for name, settings in LADDER.items():
        _train(texts.train, texts.dev, settings)  # once to compile, so that the time is the method's own
        began = perf_counter()
        model = _train(texts.train, texts.dev, settings)
        took = perf_counter() - began
        name += " *" if model.notes else ""
        rows.append([name, *_costs(model, texts), model.table.trie.nodes - 1, f"{took:.3f}"])
    learned = sum(tensor.numel() for tensor in lstm.parameters().values())
    rows.append([LSTM, *_costs(lstm, texts), learned, f"{seconds:.3f}"])
    floor = Floor.of(texts.truth)
    full, by_class = plus_minus(*floor.perplexity), plus_minus(*floor.perplexity_class)
    rows.append(["the floor: the truth itself", full, by_class, "0", None, None])
    headers = ["English", "perplexity", "by class", "nats above the floor", "numbers", "seconds"]
    print(f"\n{table(headers, rows)}")
    print(
        "\nPerplexity: out of how many words, on average, does the model pick the next one? Infinite: some word of\n"
        "the test text has probability 0. An unknown word is paid for in full, as one of 10,000,000; by class, it\n"
        "only costs being unknown. No model can be expected below the floor, which is what the text costs by the\n"
        "grammar it was drawn from; ± is a standard error. Numbers: n-grams, or parameters of the network.\n"
        "* too few counts for this method's own discounts at some order; fixed ones were used there."
    )


def _costs(model: LanguageModel, texts: Texts) -> list[object]:
    """What the test text costs, in full, by class and above the floor."""
    from dragoman.evaluation.floor import measured
    from dragoman.report.tables import plus_minus

    result = measured(model, texts.test, texts.truth)
    assert result.gap is not None, "the truth is given"
    above, cost = plus_minus(*result.gap.by_class.estimate, 3), result.likelihood
    return [cost.perplexity, cost.perplexity_class, above]


def _train(train: Corpus, dev: Corpus, settings: dict[str, Any]) -> NgramModel:
    from dragoman.ngram.model import NgramModel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a small text has too few counts for some discounts; the table says so
        return NgramModel.train(train, heldout=dev, **settings)


def _compare_by_contrasts(models: dict[str, LanguageModel], seed: int) -> None:
    from dragoman.lab.contrasts import contrasts
    from dragoman.report.contrasts import contrast_table, measure

    print("\nWhich of two sentences is right? The laboratory knows; how often do the models?\n")
    print(contrast_table("English", measure(models, contrasts("en", CONTRASTS, seed))))
