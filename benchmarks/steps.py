"""From an encoder-decoder to an ensemble in steps, as on the "nmt-tips" page of the tutorial's author.

    python benchmarks/steps.py --data tanaka10k_jaen --langs ja-en -o MODELS [--units word] [--seeds 1 2] [--json FILE]

The published steps and scores are those of that page (lamtram, multi-bleu). The measured ones are for the same text and
test set, with the sizes and training settings that `dragoman train translator --max-epochs N` chooses; BLEU is computed
by sacreBLEU without tokenisation, like multi-bleu. The word penalty is chosen on the dev text. Finished models are not
trained again. Unknown words can be replaced if words are predicted (`--units word`); with subwords there are none.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dragoman.align.aligner import Aligner
from dragoman.align.unknown_words import UnknownReplacer
from dragoman.combine.ensemble import Ensemble
from dragoman.evaluation.translation_metrics import score_translations
from dragoman.models.translation import BaseTranslator
from dragoman.report.tables import format_table
from texts_and_results import processor, write_json
from variants import Data, encode_words, parse_settings, read_data, train

PENALTIES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5)
BEAM_SIZE = 10


@dataclass(frozen=True)
class Models:
    plain: BaseTranslator  # without attention
    attention: BaseTranslator
    lexicon: BaseTranslator
    ensemble: BaseTranslator


@dataclass(frozen=True)
class Step:
    name: str
    published: float | None
    bleu: float
    length_ratio: float


def score(
    model: BaseTranslator, lines: tuple[list[str], list[str]], beam_size: int, **options: Any
) -> tuple[float, float]:
    """Return BLEU and the length ratio."""
    translations = model.translate_text(lines[0], beam_size, **options)
    scores = score_translations([translation.text for translation in translations], lines[1], tokenised=True)
    return scores.bleu, scores.length_ratio


def measure_steps(models: Models, data: Data, replacer: UnknownReplacer | None) -> Sequence[Step]:
    """Measure the steps. Each adds to the step before; with attention, the encoder is bidirectional."""
    replace = {"unknown_replacer": replacer}

    def dev_bleu(penalty: float) -> tuple[float, float]:
        return score(models.lexicon, data.dev_lines, BEAM_SIZE, length=f"penalty:{penalty}", **replace)

    penalty = max(PENALTIES, key=dev_bleu)
    with_penalty = {**replace, "length": f"penalty:{penalty}"}
    steps: list[tuple[str, float | None, BaseTranslator, int, dict[str, Any]]] = [
        ("encoder-decoder", 1.76, models.plain, 1, {}),
        ("attention", 2.17, models.attention, 1, {}),
        *([("unknown words replaced", 3.32, models.attention, 1, replace)] if replacer is not None else []),
        ("lexicon", 8.83, models.lexicon, 1, replace),
        (f"beam size {BEAM_SIZE}", 9.73, models.lexicon, BEAM_SIZE, {**replace, "length": "none"}),
        (f"word penalty ({penalty:g})", 10.00, models.lexicon, BEAM_SIZE, with_penalty),
        ("ensemble of two", 10.99, models.ensemble, BEAM_SIZE, with_penalty),
        ("the same with length normalisation", None, models.ensemble, BEAM_SIZE, replace),
    ]
    results = []
    for name, published, model, beam_size, options in steps:
        results.append(Step(name, published, *score(model, data.test_lines, beam_size, **options)))
        print(results[-1], flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="directory of the parallel corpus")
    parser.add_argument("--langs", required=True, help="file name extensions, such as ja-en")
    parser.add_argument("--output", "-o", type=Path, required=True, help="directory for the models")
    parser.add_argument("--units", default="word", help="as for dragoman train translator")
    parser.add_argument("--seeds", type=int, nargs=2, default=[1, 2], help="random seeds of the two members")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the models")
    parser.add_argument("--train", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the training")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    data = read_data(arguments.data, arguments.langs.split("-"), arguments.units, aligned=False)
    arguments.output.mkdir(parents=True, exist_ok=True)

    def train_model(name: str, seed: int, **changes: Any) -> BaseTranslator:
        settings = {**parse_settings(arguments.set), **changes}
        model, minutes = train(name, settings, seed, data, arguments.output, parse_settings(arguments.train))
        print(f"{name}, seed {seed}: {minutes:.1f} minutes", flush=True)
        return model

    first, second = arguments.seeds
    plain = train_model("plain", first, encoder="reverse", attention="none")
    attention = train_model("attention", first)
    lexicon = train_model("lexicon", first, lexicon=True)
    ensemble = Ensemble([lexicon, train_model("lexicon", second, lexicon=True)])
    replacer = None
    if data.target.segmenter.kind == "word":
        replacer = UnknownReplacer(Aligner.train(encode_words(data.train_lines)).forward.lexicon)
    steps = measure_steps(Models(plain, attention, lexicon, ensemble), data, replacer)
    rows = [
        [
            step.name,
            None if step.published is None else f"{step.published:.2f}",
            f"{step.bleu:.2f}",
            f"{step.length_ratio:.3f}",
        ]
        for step in steps
    ]
    print(f"\n{format_table(['step', 'published BLEU', 'BLEU', 'length ratio'], rows)}")
    print(f"\nunits {arguments.units}; processor: {processor()}")
    write_json(arguments.json, [asdict(step) for step in steps])


if __name__ == "__main__":
    main()
