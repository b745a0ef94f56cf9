"""The texts of a translator and how they are tokenized, as options of a command."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dragoman.cli.fine_tuning import FromOptions
from dragoman.cli.option_groups import OptionGroup, option
from dragoman.cli.options import NO_PAIR_FILE, PairFileOptions, Src, SrcField, Tgt, TgtField
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.tokenizer import LinePairs
    from dragoman.models.planning import EncodedPairs
    from dragoman.models.translator import Translator


@dataclass(frozen=True, kw_only=True)
class TextOptions(OptionGroup):
    """The texts of a training run."""

    panel = "Data"

    src: Src = None
    tgt: Tgt = None
    pair_file: PairFileOptions = NO_PAIR_FILE
    dev_src: Annotated[str | None, option("--dev-src FILE", "Held-out source text, to select the best model.")] = None
    dev_tgt: Annotated[str | None, option("--dev-tgt FILE", "Translation of --dev-src.")] = None
    dev_pairs: Annotated[str | None, option("--dev-pairs FILE", "Held-out sentence pairs, as --pairs.")] = None
    src_field: SrcField = None
    tgt_field: TgtField = None
    alignments: Annotated[
        Path | None,
        option(
            "--alignments FILE",
            "Word alignments for --supervision, lines such as 0-0 1-2. Default: an aligner is trained.",
        ),
    ] = None

    placeholders: Annotated[
        bool | None,
        option(
            "--placeholders/--no-placeholders",
            "Learn to copy: what both sides of a pair have in common, such as %s, an address or a name, becomes a "
            "placeholder in some of the pairs. In translation, placeholders stand for what is copied. Default: if "
            "training is planned by the time, and enough pairs have something in common.",
        ),
    ] = None

    def with_languages(self, base: Translator | None) -> TextOptions:
        """Return the options with the languages of the model of --from where no others are given."""
        if base is None:
            return self
        given = self.pair_file
        source, target = given.src_lang or base.source.language, given.tgt_lang or base.target.language
        return replace(self, pair_file=replace(given, src_lang=source, tgt_lang=target))

    def read(self) -> tuple[LinePairs, LinePairs | None]:
        """Return the training pairs, with the languages that are given or in the files, and the dev pairs."""
        from dragoman.data.languages import choose_languages
        from dragoman.models.translator_training import looks_swapped

        if (self.dev_src is None) != (self.dev_tgt is None):
            raise DataError("--dev-src and --dev-tgt must be given together")
        fields = self.src_field, self.tgt_field
        lines = self.pair_file.read(self.src, self.tgt, *fields)
        languages = choose_languages((self.pair_file.src_lang, self.pair_file.tgt_lang), lines.languages)
        lines = replace(lines, languages=languages)
        if self.dev_src is None and self.dev_pairs is None:
            return lines, None
        source, target = languages
        held_out = replace(self.pair_file, pairs=self.dev_pairs, src_lang=source, tgt_lang=target, rejected=None)
        dev = held_out.read(self.dev_src, self.dev_tgt, *fields, "--dev-src, --dev-tgt")
        if looks_swapped(lines, dev):
            problem = "the source has the words of the target language, and the target those of the source language"
            remedy = "exchange the two columns" if self.dev_src is None else "exchange --dev-src and --dev-tgt"
            raise DataError(f"{dev.name}: {problem}; {remedy}")
        return lines, dev


@dataclass(frozen=True)
class TokenizerOptions(OptionGroup):
    """How lines are split into tokens, and which tokens are known."""

    panel = "Data"

    units: Annotated[
        str,
        option(
            "--units KIND",
            "Kind of tokens: word, char, subword:N (BPE) or unigram:N, with N subwords learned from the text. auto: "
            "characters if lines are single words, words if the text is tokenised and few words are rare, otherwise "
            "subwords.",
        ),
    ] = "auto"
    tgt_units: Annotated[str | None, option("--tgt-units KIND", "Kind of target tokens. Default: that of --units.")] = (
        None
    )
    src_format: Annotated[
        str,
        option(
            "--src-format text|tree",
            "Format of the source; tree: one bracketed tree per line, for encoders of trees.",
        ),
    ] = "text"
    min_count: Annotated[
        int | None,
        option("--min-count N", "Tokens with a lower count become <unk>. Default: 2 for words, else 1.", min=1),
    ] = None
    max_size: Annotated[int | None, option("--max-size N", "Maximum number of tokens in a vocabulary.", min=1)] = None
    vocab_from: Annotated[
        Path | None,
        option("--vocab DIR", "Use the tokenizers of this translator, so that the two can be an ensemble."),
    ] = None

    def check_unused(self, start: FromOptions) -> None:
        """Raise an error if options are given that have no effect on a translator that is trained further."""
        unused = replace(self, min_count=None) if start.extend_vocabulary else self
        if unused != TokenizerOptions():
            names = "--units, --tgt-units, --src-format, --min-count, --max-size and --vocab"
            raise DataError(f"--from uses the tokenizers of its translator; remove {names}")

    def check_placeholders(self, placeholders: bool | None) -> bool | None:
        """Return whether to use placeholders. None: this depends on the text. --vocab may have none."""
        from dragoman.models.copying import knows_placeholders
        from dragoman.models.loading import load_translator

        if placeholders is False or self.vocab_from is None:
            return placeholders
        if knows_placeholders(load_translator(self.vocab_from).source):
            return placeholders
        if placeholders:
            raise DataError(
                f"--placeholders: the tokenizers of --vocab {self.vocab_from} have none; leave one of them out"
            )
        return False

    @property
    def chooses_units(self) -> bool:
        """Whether the kind of tokens is chosen by the text."""
        return self.units == "auto" and self.vocab_from is None

    def encode(
        self, lines: LinePairs, max_subwords: int | None = None, units: tuple[str, str] | None = None
    ) -> EncodedPairs:
        """Encode the texts by tokenizers that are trained on them, or those of another translator.

        `units` are the kinds of source and target tokens that were chosen before, for options that leave them open.
        """
        from dragoman.data.corpus import ParallelCorpus
        from dragoman.data.tokenizer import PLAIN_TEXT, TREE, Tokenizer
        from dragoman.models.loading import load_translator
        from dragoman.models.planning import EncodedPairs

        if units is not None and self.vocab_from is None:
            kinds = map(_chosen_before, (self.units, self.tgt_units or self.units), units)
            source_units, target_units = kinds
            return replace(self, units=source_units, tgt_units=target_units).encode(lines, max_subwords)
        if self.src_format not in (PLAIN_TEXT, TREE):
            raise DataError(f"--src-format {self.src_format}: choose {PLAIN_TEXT} or {TREE}")
        if self.vocab_from is not None:
            if self != TokenizerOptions(vocab_from=self.vocab_from, src_format=self.src_format):
                names = "--units, --tgt-units, --min-count and --max-size"
                raise DataError(f"--vocab uses tokenizers without changes; remove {names}")
            model = load_translator(self.vocab_from)
            if (kind := model.source.format) != self.src_format:
                raise DataError(f"--vocab {self.vocab_from}: reads {kind}; use --src-format {kind}")
            return EncodedPairs(lines.encode(model.source, model.target), model.source, model.target)
        if self.src_format == TREE and self.units not in ("auto", "word"):
            raise DataError(f"--src-format tree: the words of trees are not split; remove --units {self.units}")
        train = partial(
            Tokenizer.train_and_encode, min_count=self.min_count, max_size=self.max_size, max_subwords=max_subwords
        )
        source, source_corpus = train(self.units, lines.source, format=self.src_format, name=lines.name)
        target, target_corpus = train(self.tgt_units or self.units, lines.target)
        return EncodedPairs(ParallelCorpus(source_corpus, target_corpus), source, target)


def _chosen_before(units: str, chosen: str) -> str:
    """Return the units that were chosen before, if an option such as `auto` or `subword` leaves them open."""
    return chosen if units == "auto" or chosen.startswith(f"{units}:") else units
