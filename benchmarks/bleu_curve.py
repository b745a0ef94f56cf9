"""Dev BLEU against minutes of training, beside the published curve of another toolkit.

    python benchmarks/bleu_curve.py --data DIR --langs de-en -o MODEL [--json FILE]

Trains what `dragoman train translator` would train with its defaults (or goes on with what is in MODEL), and after each
epoch translates the dev text by greedy search; the minutes are those of training, looks at the dev text counted, but
not the translating. DIR holds train and dev (or val) files in both languages.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from dragoman import Translator, fit
from dragoman.evaluation.translation_metrics import score_translations
from dragoman.models.translator_config import size_preset
from dragoman.report.tables import format_table
from dragoman.training.presets import TRANSLATOR, translator_preset
from ptb_cache import processor
from variants import assigned, read

# JoeyNMT 2.3 on Multi30k de-en, greedy dev BLEU after epochs of 5.7 minutes on two cores of another machine.
JOEY = (7, 15, 26, 30, 35, 35, 35, 36, 37.5, 36.6)
JOEY_MINUTES = 5.7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--langs", required=True)
    parser.add_argument("--output", "-o", type=Path, required=True)
    parser.add_argument("--units", default="auto")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the model")
    parser.add_argument("--train", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the training")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    data = read(options.data, options.langs.split("-"), options.units, aligned=False)
    shape = {**size_preset(len(data.train)), **assigned(options.set)}
    model = Translator.create(data.train, data.source, data.target, seed=options.seed, **shape)
    training = {**translator_preset(len(data.train)), **assigned(options.train), "seed": options.seed}
    rows: list[list[Any]] = []

    def after(event: Any) -> None:
        if not getattr(event, "evaluated", False):
            return
        told = [one.text for one in model.translate(data.dev_lines[0], beam_size=1)]
        bleu = score_translations(told, data.dev_lines[1], tokenised=data.target.tokenised).bleu
        rows.append([event.position.epoch, round(event.position.seconds / 60, 2), event.dev_loss, round(bleu, 2)])
        print(rows[-1], flush=True)

    fit(model, data.train, data.dev, TRANSLATOR, output=options.output, callback=after, **training)
    print(format_table(["epoch", "minutes", "dev loss, a unit", "dev BLEU, greedy"], rows))
    published = [[number, f"{number * JOEY_MINUTES:.1f}", bleu] for number, bleu in enumerate(JOEY, 1)]
    print(
        f"\n{format_table(['JoeyNMT 2.3, epoch', 'minutes', 'dev BLEU, greedy'], published)}\n\nprocessor: {processor()}"
    )
    if options.json:
        options.json.write_text(json.dumps(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
