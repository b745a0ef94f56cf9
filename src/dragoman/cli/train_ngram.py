"""dragoman train ngram, dragoman train class-ngram, dragoman train cache"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dragoman.cli.cluster import cluster_with_progress, parse_class_count
from dragoman.cli.messages import grouped_warnings, status, suggest_command
from dragoman.cli.option_groups import OptionGroup, option, with_option_groups
from dragoman.cli.options import lock_output, parse_numbers
from dragoman.cli.spark_options import SparkTrainingOptions
from dragoman.cli.training import LanguageModelOptions, report_model, suggest_next_commands
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.ngram.model import NgramConfig, NgramModel

MAX_LISTED_ORDERS = 8  # counts of more orders are added up
CHARACTER_ORDER = 8  # default order of n-grams of characters
# The keys are those of dragoman.ngram.smoothing.SMOOTHINGS, which takes long to import.
SMOOTHING_SUMMARIES = {
    "maximum-likelihood": "relative frequencies; unseen n-grams have probability 0",
    "whole-prefix": "relative frequencies given the whole sentence so far",
    "interpolated": "interpolation with shorter contexts, by --coefficients",
    "interpolated-fitted": "the same, fitted on --dev-text or every tenth sentence",
    "interpolated-bucketed": "the same, depending on the count of the context",
    "witten-bell": "by the number of different words after the context",
    "katz": "back-off with Good-Turing discounts",
    "absolute-discounting": "one discount per order",
    "kneser-ney": "lower orders count different preceding words",
    "modified-kneser-ney": "the same with three discounts per order; usually the best",
    "stupid-backoff": "relative frequencies times 0.4 for each back-off",
}
WIDTH = max(map(len, SMOOTHING_SUMMARIES))
HELP = "\n".join(
    [
        "Train an n-gram model.",
        "\nA word is predicted from the n - 1 words before it.",
        "\n\b\nExample:",
        "  dragoman train ngram --text train.txt --dev-text dev.txt --order 5 -o kn5",
        "\n\b\nSmoothing methods:",
        *(f"  {name:{WIDTH}}  {summary}" for name, summary in SMOOTHING_SUMMARIES.items()),
    ]
)


@dataclass(frozen=True)
class NgramOptions(OptionGroup):
    """Settings of n-gram models."""

    panel = "Model"

    order: Annotated[
        int | None, option("--order N", "Length of the longest n-grams; for characters, the default is 8. Default: 5.")
    ] = None
    smoothing: Annotated[str, option("--smoothing NAME", "Smoothing method.")] = "modified-kneser-ney"
    coefficients: Annotated[
        str, option("--coefficients A,A,...", "alpha_1,alpha_2,... for --smoothing interpolated.")
    ] = ""
    prune: Annotated[
        str,
        option(
            "--prune N,N,...",
            "Remove n-grams of each order that occur at most this often: 0,0,1 removes trigrams that occur once.",
        ),
    ] = ""

    def config(self, **overrides: object) -> NgramConfig:
        """Return the settings of the model."""
        from dragoman.core.settings import GivenValue, validate
        from dragoman.ngram.model import NgramConfig

        if self.smoothing == "whole-prefix" and self.order is not None:
            raise DataError(f"--order {self.order}: whole-prefix uses the whole sentence and has no order; remove it")
        values = overrides | ({} if self.order is None else {"order": self.order})
        values |= {
            "smoothing": self.smoothing,
            "coefficients": parse_numbers("--coefficients", self.coefficients, float, "0.05,0.5"),
            "prune": parse_numbers("--prune", self.prune, int, "0,0,1"),
        }
        given = {name: GivenValue(value, f"--{name.replace('_', '-')}") for name, value in values.items()}
        return validate(NgramConfig, given, "n-gram settings")


def format_coefficients(model: NgramModel, dev_text: str | None) -> str:
    """Describe the coefficients that were fitted, and on which text; empty if there are none."""
    from dragoman.ngram.model import HELDOUT_EVERY

    if model.coefficients is None:
        return ""
    source = dev_text or f"every {HELDOUT_EVERY}th training sentence (without --dev-text)"
    ranges = [
        f"alpha_{n} " + " to ".join(dict.fromkeys(f"{number:.3g}" for number in (min(row), max(row))))
        for n, row in enumerate(model.coefficients.table.tolist(), 1)
    ]
    return f"coefficients fitted on {source}: {', '.join(ranges)}"


def format_sizes(model: NgramModel) -> str:
    """Describe how many n-grams of each order a model has."""
    counts, settings = model.table.trie.sizes(), model.settings
    is_shorter = len(counts) < settings.order and settings.smoothing != "whole-prefix"
    is_pruned = settings.prune or settings.entropy_prune
    reason = f" (the longest line gives order {len(counts)})" if is_shorter and not is_pruned else ""
    if len(counts) > MAX_LISTED_ORDERS:
        return f"{sum(counts):,} n-grams of orders 1 to {len(counts)}{reason}"
    return ", ".join(f"{count:,} {n}-grams" for n, count in enumerate(counts, 1)) + reason


@with_option_groups
def train_ngram(
    options: LanguageModelOptions,
    ngrams: NgramOptions = NgramOptions(),
    entropy_prune: Annotated[
        float, option("--entropy-prune X", "Remove n-grams whose removal raises perplexity by less than this share.")
    ] = 0.0,
    quantise: Annotated[bool, option("--quantise, --quantize", "Store each probability in 8 bits.")] = False,
    gap: Annotated[
        int, option("--gap N", "Number of words between context and predicted word, for models in a mixture.")
    ] = 0,
    no_interpolate_unigrams: Annotated[
        bool, option("--no-interpolate-unigrams", "Give the mass that unigrams discount to <unk> only.")
    ] = False,
    memory: Annotated[
        str | None,
        option(
            "--memory SIZE",
            "For large texts: count on disk with about this much memory, such as 2G. The model is the same.",
            panel="Memory",
        ),
    ] = None,
    tmp: Annotated[
        Path | None,
        option(
            "--tmp DIR", "Directory for temporary files, with --memory. Default: that of the output.", panel="Memory"
        ),
    ] = None,
    spark: SparkTrainingOptions = SparkTrainingOptions(),
) -> None:
    from dragoman.cli.train_ngram_disk import train_on_disk, warn_if_larger_than_memory
    from dragoman.io.storage import check_output_directory
    from dragoman.ngram.model import NgramModel

    if spark.is_chosen:
        spark.check_no_disk(memory, tmp)
    check_output_directory(options.output, replace=options.force)
    lock_output(options.output)
    config = ngrams.config(
        entropy_prune=entropy_prune, quantise=quantise, gap=gap, interpolate_unigrams=not no_interpolate_unigrams
    )
    if memory is not None:
        train_on_disk(options, config, memory, tmp, CHARACTER_ORDER if ngrams.order is None else None)
        suggest_next_commands(options)
        return
    if spark.is_chosen:
        from dragoman.cli.train_ngram_spark import train_ngram_spark

        train_ngram_spark(options, config, spark)
        return
    if tmp is not None:
        raise DataError(f"--tmp {tmp}: temporary files are only written with --memory; give both or none")
    warn_if_larger_than_memory(options.text)
    data = options.read()
    if ngrams.order is None and data.corpus.vocab.segmenter.kind == "char":
        config = config.model_copy(update={"order": CHARACTER_ORDER})
    with status("counting"), grouped_warnings():
        model = NgramModel.train(data.corpus, config, unknown=data.unknown, heldout=data.dev)
    report_model(options, data, model, format_sizes(model), format_coefficients(model, options.dev_text), save=True)
    suggest_next_commands(options)


train_ngram.__doc__ = HELP


@with_option_groups
def train_class_ngram(
    options: LanguageModelOptions,
    classes: Annotated[
        str,
        option(
            "--classes FILE",
            "File with lines `word TAB class`, or from dragoman cluster; each other word is a separate class. "
            "brown:N finds N classes in the text.",
            panel="Model",
        ),
    ],
    ngrams: NgramOptions = NgramOptions(),
) -> None:
    """Train an n-gram model over word classes.

    The class of the next word is predicted from the classes before it, then the word from its class. The smoothing
    methods are those of `dragoman train ngram`.

    \b
    Example:
      dragoman train class-ngram --text train.txt --classes classes.tsv -o classes3 --order 3
      dragoman train class-ngram --text train.txt --classes brown:200 -o classes5
    """
    from dragoman.io.storage import check_output_directory
    from dragoman.ngram.class_model import ClassNgramModel, read_classes
    from dragoman.ngram.model import NgramModel

    check_output_directory(options.output, replace=options.force)
    lock_output(options.output)
    config = ngrams.config()
    num_classes = parse_class_count(classes)
    class_of = {} if num_classes is not None else read_classes(classes)
    data = options.read()
    if num_classes is not None:
        class_of = cluster_with_progress(data.corpus, num_classes).as_mapping()
    with status("counting"), grouped_warnings():
        model = ClassNgramModel.train(data.corpus, class_of, config, unknown=data.unknown, heldout=data.dev)
    size = f"{len(model.inner.vocab):,} classes and single words"
    coefficients = format_coefficients(model.inner, options.dev_text) if isinstance(model.inner, NgramModel) else ""
    report_model(options, data, model, size, coefficients, save=True)
    suggest_next_commands(options)


@with_option_groups
def train_cache(
    options: LanguageModelOptions,
    decay: Annotated[float, option("--decay X", "Factor by which the weight of a word decreases per word.")] = 0.994,
    prior: Annotated[float, option("--prior X", "Weight of the distribution of shorter contexts.")] = 2.0,
    order: Annotated[int, option("--order N", "Length of the longest n-grams.")] = 3,
) -> None:
    """Create a cache model, which favours recent words.

    It is useful in a mixture with another model.

    \b
    Example:
      dragoman train cache --text train.txt --vocab kn5 -o cache
      dragoman mix kn5 cache --dev-text dev.txt -o both
    """
    from dragoman.io.storage import check_output_directory
    from dragoman.models.cache import CacheModel

    check_output_directory(options.output, replace=options.force)
    lock_output(options.output)
    data = options.read()
    model = CacheModel.train(data.corpus, unknown=data.unknown, decay=decay, prior=prior, order=order)
    report_model(options, data, model, f"a cache of {model.size:,} words", save=True)
    if (other := options.vocab.vocab_from) is not None:
        dev = options.dev_text or "FILE"
        suggest_command("mix", other, options.output, "--dev-text", dev, "-o", "MIXED", field=options.field)
    else:
        arguments = ("--text", options.text, "--vocab", options.output, "-o", "DIR")
        suggest_command("train", "ngram", *arguments, field=options.field)
