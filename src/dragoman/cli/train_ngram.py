"""dragoman train ngram"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from dragoman.cli.messages import grouped_warnings, status
from dragoman.cli.option_groups import OptionGroup, option, with_option_groups
from dragoman.cli.options import parse_numbers
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
) -> None:
    from dragoman.io.storage import check_output_directory
    from dragoman.ngram.model import NgramModel

    check_output_directory(options.output, replace=options.force)
    config = ngrams.config(
        entropy_prune=entropy_prune, quantise=quantise, gap=gap, interpolate_unigrams=not no_interpolate_unigrams
    )
    data = options.read()
    if ngrams.order is None and data.corpus.vocab.segmenter.kind == "char":
        config = config.model_copy(update={"order": CHARACTER_ORDER})
    with status("counting"), grouped_warnings():
        model = NgramModel.train(data.corpus, config, unknown=data.unknown, heldout=data.dev)
    model.save(options.output, replace=options.force)
    counts = model.table.trie.sizes()
    size = ", ".join(f"{count:,} {n}-grams" for n, count in enumerate(counts, 1))
    if len(counts) > MAX_LISTED_ORDERS:
        size = f"{sum(counts):,} n-grams of orders 1 to {len(counts)}"
    report_model(options, data, model, size, format_coefficients(model, options.dev_text))
    suggest_next_commands(options)


train_ngram.__doc__ = HELP
