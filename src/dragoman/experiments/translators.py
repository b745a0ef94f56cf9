"""The ladder's translators: every encoder and every attention on the laboratory's German and English.

A translator joins by one line of `TRANSLATORS`. All have the same sizes and are trained alike, so that they differ in
what their names say. Where they are made is `workshop`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dragoman.experiments.callbacks import SILENT, Callbacks
from dragoman.experiments.trainer import Recipe, TrainedRung, TrainingContext, train_model
from dragoman.experiments.work_directory import LabBitext

if TYPE_CHECKING:
    from dragoman.combine.ensemble import Ensemble
    from dragoman.data.corpus import ParallelCorpus
    from dragoman.data.tokenizer import Tokenizer
    from dragoman.evaluation.translator import ReferenceData
    from dragoman.models.translator import Translator
    from dragoman.report.page import Heatmap
    from dragoman.report.translators import TranslatorRung

PAIRS = 10_000  # most sentence pairs that the ladder's translators learn from: there are many of them
EPOCHS = 6
NETWORK: dict[str, Any] = {
    "embedding": 64,
    "embedding_reach": 0.5,
    "hidden": 128,
    "attention_hidden": 64,
    "filters": 128,
    "readout": 64,
    "tied": True,
    "dropout": 0.2,
}
TRAINING: dict[str, Any] = {
    "learning_rate": 0.005,
    "batch_size": 32,
    "batch_by": "sentences",
    "warmup": 50,
    "max_epochs": EPOCHS,
    "patience": EPOCHS,
    "label_smoothing": 0.0,  # probabilities are held to the truth, which is not smoothed
}


def translator(
    ground: TrainingContext[LabBitext], *, training: dict[str, Any] | None = None, force: bool = False, **settings: Any
) -> Translator:
    """A translator of words, trained in its directory; settings are those that differ from `NETWORK`."""
    from dragoman.data.tokenizer import PLAIN, TREE, Tokenizer
    from dragoman.models.translator import Translator
    from dragoman.models.translator_config import TranslatorConfig
    from dragoman.training.presets import TRANSLATOR

    config = TranslatorConfig(**{**NETWORK, **settings})
    format = TREE if config.reads_trees else PLAIN
    source = Tokenizer.train("word", ground.train.sources(format), format=format)
    target = Tokenizer.train("word", ground.train.english)
    train, dev = (_as_numbers(text, source, target) for text in (ground.train, ground.dev))
    model = Translator.create(train, source, target, config, seed=ground.seed)
    return train_model(ground, model, (train, dev), TRANSLATOR, {**TRAINING, **(training or {})}, force=force)


def _as_numbers(text: LabBitext, source: Tokenizer, target: Tokenizer) -> ParallelCorpus:
    from dragoman.data.corpus import ParallelCorpus

    return ParallelCorpus(source.encode(text.sources(source.format)), target.encode(text.english))


def measure_translator_rung(
    name: str, model: Translator | Ensemble, lines: Sequence[str], answers: ReferenceData, seconds: float
) -> TranslatorRung:
    """What a translator does on a text, by beam search and greedily."""
    from dragoman.combine.ensemble import Ensemble
    from dragoman.evaluation.translation_metrics import score_translations
    from dragoman.evaluation.translator import evaluate_translator
    from dragoman.report.translators import TranslatorRung

    measured = evaluate_translator(model, lines, answers)
    greedy = score_translations(
        [one.text for one in model.translate(lines, 1)], answers.references, tokenised=answers.tokenised
    )
    members: Sequence[Any] = model.members if isinstance(model, Ensemble) else (model,)
    parameters = sum(member.num_parameters for member in members)
    return TranslatorRung(name, measured, greedy, seconds, parameters)


def measure_trained_translator(
    made: TrainedRung[Translator], lines: Sequence[str], answers: ReferenceData, voice: Callbacks = SILENT
) -> TranslatorRung:
    """The same of one that a workshop has made, and a line about it."""
    with voice.status(f"measuring {made.name}"):
        rung = measure_translator_rung(made.name, made.model, lines, answers, made.seconds)
    voice.info(f"{made.name}: perplexity {rung.measured.perplexity:,.2f}, BLEU {rung.measured.scores.bleu:.1f}")
    return rung


def attention_heatmap(name: str, model: Translator, german: str, line: str) -> Heatmap:
    """The attention with which a translator translates a sentence.  # line: the German as the translator reads it"""
    from dragoman.evaluation.translator import attention_over_source_words
    from dragoman.report.translators import heatmap

    told = model.translate([line])[0]
    assert told.attention is not None, "a short sentence, by a translator with attention"
    return heatmap(name, told.tokens_with_end, german, attention_over_source_words(told.attention, model.source, line))


def _recipe(encoder: str, attention: str) -> Recipe[Translator]:
    return Recipe(partial(translator, encoder=encoder, attention=attention), by_gradients=True)


TRANSLATORS: dict[str, Recipe[Translator]] = {
    "encdec-forward": _recipe("forward", "none"),
    "encdec-reverse": _recipe("reverse", "none"),
    "encdec-bidirectional": _recipe("bidirectional", "none"),
    "encdec-convolutional": _recipe("convolutional", "none"),
    "encdec-recursive": _recipe("recursive", "none"),
    "encdec-tree-lstm": _recipe("tree-lstm", "none"),
    "attn-dot": _recipe("bidirectional", "dot"),
    "attn-bilinear": _recipe("bidirectional", "bilinear"),
    "attn-mlp": _recipe("bidirectional", "mlp"),
    "attn-forward": _recipe("forward", "mlp"),
    "attn-reverse": _recipe("reverse", "mlp"),
    "attn-convolutional": _recipe("convolutional", "mlp"),
    "attn-recursive": _recipe("recursive", "mlp"),
    "attn-tree-lstm": _recipe("tree-lstm", "mlp"),
}
