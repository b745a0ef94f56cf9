"""From an encoder-decoder to an ensemble, step by step, as the tutorial's author did on his own corpus.

    python benchmarks/steps.py --data tanaka10k_jaen --langs ja-en -o MODELS [--units word] [--seeds 1 2] [--json FILE]

His steps and figures are those of his page "nmt-tips" (lamtram, multi-bleu). Ours are of the same text and test set, at
the sizes and with the training that `dragoman train translator` chooses; BLEU by sacreBLEU on the words as they are,
which is what multi-bleu counts. The word penalty is chosen on the dev text. Models that are finished already are not
trained again. Unknown words can be replaced where words are predicted (`--units word`); with subwords there are none.
"""

from __future__ import annotations

import argparse
import json
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
from ptb_cache import processor
from variants import Data, assigned, read, trained, words_of

PENALTIES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5)
BEAM = 10


@dataclass(frozen=True)
class Step:
    name: str
    his: float | None
    bleu: float
    length_ratio: float


def bleu(model: BaseTranslator, lines: tuple[list[str], list[str]], beam: int, **how: Any) -> tuple[float, float]:
    told = model.translate(lines[0], beam, **how)
    judged = score_translations([one.text for one in told], lines[1], tokenised=True)
    return judged.bleu, judged.length_ratio


def steps(models: dict[str, BaseTranslator], data: Data, unknowns: UnknownReplacer | None) -> Sequence[Step]:
    """Each is the one before, and what its name says; attention comes with an encoder that reads both ways."""
    plain, attention, lexicon, both = models.values()
    replaced = {"unknowns": unknowns}
    penalty = max(PENALTIES, key=lambda one: bleu(lexicon, data.dev_lines, BEAM, length=f"penalty:{one}", **replaced))
    ways: list[tuple[str, float | None, BaseTranslator, int, dict[str, Any]]] = [
        ("encoder-decoder", 1.76, plain, 1, {}),
        ("attention", 2.17, attention, 1, {}),
        *([("unknown words replaced", 3.32, attention, 1, replaced)] if unknowns is not None else []),
        ("lexicon", 8.83, lexicon, 1, replaced),
        (f"a beam of {BEAM}", 9.73, lexicon, BEAM, {**replaced, "length": "none"}),
        (f"word penalty ({penalty:g})", 10.00, lexicon, BEAM, {**replaced, "length": f"penalty:{penalty}"}),
        ("ensemble of two", 10.99, both, BEAM, {**replaced, "length": f"penalty:{penalty}"}),
        ("the same, length by the mean instead", None, both, BEAM, replaced),
    ]
    found = []
    for name, his, model, beam, how in ways:
        found.append(Step(name, his, *bleu(model, data.test_lines, beam, **how)))
        print(found[-1], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--langs", required=True, help="such as ja-en: endings of the files")
    parser.add_argument("--output", "-o", type=Path, required=True)
    parser.add_argument("--units", default="word")
    parser.add_argument("--seeds", type=int, nargs=2, default=[1, 2])
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the models")
    parser.add_argument("--train", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the training")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    data = read(options.data, options.langs.split("-"), options.units, aligned=False)
    options.output.mkdir(parents=True, exist_ok=True)

    def made(name: str, seed: int, **settings: Any) -> Any:
        shape = {**assigned(options.set), **settings}
        model, minutes = trained(name, shape, seed, data, options.output, assigned(options.train))
        print(f"{name}, seed {seed}: {minutes:.1f} minutes", flush=True)
        return model

    first, second = options.seeds
    models: dict[str, Any] = {
        "plain": made("plain", first, encoder="reverse", attention="none"),
        "attention": made("attention", first),
        "lexicon": made("lexicon", first, lexicon=True),
    }
    models["both"] = Ensemble([models["lexicon"], made("lexicon", second, lexicon=True)])
    unknowns = None
    if data.target.segmenter.kind == "word":
        unknowns = UnknownReplacer(Aligner.train(words_of(data.train_lines)).forward.lexicon)
    found = steps(models, data, unknowns)
    rows = [
        [one.name, None if one.his is None else f"{one.his:.2f}", f"{one.bleu:.2f}", f"{one.length_ratio:.3f}"]
        for one in found
    ]
    print(f"\n{format_table(['step', 'his BLEU', 'ours', 'length ratio'], rows)}")
    print(f"\nunits {options.units}; processor: {processor()}")
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
