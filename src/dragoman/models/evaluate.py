"""Evaluation of any model on text, and BLEU: the functions `dragoman.evaluate` and `dragoman.bleu`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, overload

from dragoman.core.defaults import DEFAULT_BEAM_SIZE, DEFAULT_LENGTH
from dragoman.core.errors import DataError
from dragoman.data.corpus import Corpus
from dragoman.evaluation.likelihood import Likelihood, likelihood
from dragoman.models.language_model import LanguageModel
from dragoman.models.translation import BaseTranslator

if TYPE_CHECKING:
    from dragoman.evaluation.translator import TranslatorEvaluation


@overload
def evaluate(model: LanguageModel, text: Corpus | Iterable[str]) -> Likelihood: ...


@overload
def evaluate(
    model: BaseTranslator,
    text: Iterable[str],
    references: Iterable[str],
    *,
    beam_size: int = DEFAULT_BEAM_SIZE,
    length: str = DEFAULT_LENGTH,
    split_sentences: bool = True,
    tokenised: bool | None = None,
) -> TranslatorEvaluation: ...


def evaluate(
    model: LanguageModel | BaseTranslator,
    text: Corpus | Iterable[str],
    references: Iterable[str] | None = None,
    *,
    beam_size: int = DEFAULT_BEAM_SIZE,
    length: str = DEFAULT_LENGTH,
    split_sentences: bool = True,
    tokenised: bool | None = None,
) -> Likelihood | TranslatorEvaluation:
    """Evaluate a model on a text.

    Args:
        model: a language model or a translator.
        text: sentences or, for language models, a corpus with the model's vocabulary. For translators, source lines.
        references: for translators, the reference translations.
        beam_size, length: of the search, see `BaseTranslator.n_best`.
        split_sentences: whether to translate lines sentence by sentence, see `BaseTranslator.translate_text`.
        tokenised: whether the references are tokenised, so that BLEU uses their words as they are. By default, this is
            known from the training text and the references.

    Returns:
        For language models, the likelihood with `perplexity`. For translators, an evaluation with `scores.bleu`,
        `scores.chrf` and `perplexity`.

    >>> from dragoman import Corpus, NgramModel, evaluate
    >>> corpus = Corpus.from_sentences(["the cat sat", "the dog sat", "the cat ran"])
    >>> model = NgramModel.train(corpus, order=2, smoothing="witten-bell")
    >>> evaluate(model, corpus).perplexity < evaluate(model, ["sat dog the"]).perplexity
    True
    """
    if isinstance(model, BaseTranslator):
        from dragoman.evaluation.translator import ReferenceData, are_tokenised, evaluate_translator

        if references is None or isinstance(text, Corpus):
            raise DataError("a translator is evaluated on source lines and reference lines; give both as text")
        target = _lines(references)
        is_tokenised = are_tokenised(target, model.target) if tokenised is None else tokenised
        data = ReferenceData(target, tokenised=is_tokenised)
        return evaluate_translator(model, _lines(text), data, beam_size, length=length, split_sentences=split_sentences)
    if references is not None:
        raise DataError("references are for translators; give a language model one text")
    corpus = text if isinstance(text, Corpus) else Corpus.from_sentences(_lines(text), model.vocab)
    return likelihood(model, corpus)


def bleu(
    hypotheses: Sequence[str], references: Sequence[str], *, tokenised: bool = False, language: str | None = None
) -> float:
    """Return the BLEU score of translations, from 0 to 100, as sacreBLEU computes it.

    Args:
        hypotheses: one translation per line.
        references: one reference per line.
        tokenised: use the words as they are; otherwise sacreBLEU's default tokenizer (13a) is applied.
        language: the code of the language: Chinese, Japanese and Korean (zh, ja, ko) have tokenizers of their own.

    >>> from dragoman import bleu
    >>> round(bleu(["the dog barks loudly ."], ["the dog barks loudly ."]), 1)
    100.0
    >>> bleu(["the cat barks loudly ."], ["the dog barks loudly ."]) < 50
    True
    """
    from dragoman.evaluation.translation_metrics import score_translations

    return score_translations(hypotheses, references, tokenised, language).bleu


def _lines(text: Iterable[str]) -> list[str]:
    return [text] if isinstance(text, str) else list(text)
