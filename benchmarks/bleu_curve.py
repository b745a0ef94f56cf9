"""Dev BLEU by minutes of training, next to the published curve of another toolkit.

    python benchmarks/bleu_curve.py --data DIR --langs de-en -o MODEL [--json FILE]

Trains the translator that `dragoman train translator --max-epochs 10` trains, or resumes the training in MODEL. After each
epoch, the dev text is translated with greedy search. The minutes include training and the evaluation of the dev loss,
but not this translation. DIR has train and dev (or val) files in both languages.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from dragoman import Translator, fit
from dragoman.evaluation.translation_metrics import score_translations
from dragoman.models.configs import size_preset
from dragoman.report.tables import format_table
from dragoman.training.config import TRANSLATOR
from dragoman.training.fit import TrainingStarted
from dragoman.training.loop import StepReport
from texts_and_results import processor, write_json
from variants import parse_settings, read_data

# JoeyNMT 2.3 on Multi30k de-en: greedy dev BLEU after epochs of 5.7 minutes on two cores of another machine.
JOEYNMT_BLEU = (7, 15, 26, 30, 35, 35, 35, 36, 37.5, 36.6)
JOEYNMT_MINUTES = 5.7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="directory of the parallel corpus")
    parser.add_argument("--langs", required=True, help="file name extensions, such as de-en")
    parser.add_argument("--output", "-o", type=Path, required=True, help="directory of the model")
    parser.add_argument("--units", default="auto", help="as for dragoman train translator")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the model")
    parser.add_argument("--train", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the training")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    data = read_data(arguments.data, arguments.langs.split("-"), arguments.units, aligned=False)
    preset = size_preset(len(data.train))
    settings = {**preset.model, **parse_settings(arguments.set)}
    model = Translator.create(data.train, data.source, data.target, seed=arguments.seed, **settings)
    training = {**preset.training, **parse_settings(arguments.train), "seed": arguments.seed}
    rows: list[list[Any]] = []

    def measure_bleu(event: TrainingStarted | StepReport) -> None:
        if not isinstance(event, StepReport) or not event.evaluated:
            return
        translations = [translation.text for translation in model.translate_text(data.dev_lines[0], beam_size=1)]
        bleu = score_translations(translations, data.dev_lines[1], tokenised=data.target.tokenised).bleu
        rows.append([event.progress.epoch, round(event.progress.seconds / 60, 2), event.dev_loss, round(bleu, 2)])
        print(rows[-1], flush=True)

    fit(model, data.train, data.dev, TRANSLATOR, output=arguments.output, callback=measure_bleu, **training)
    print(format_table(["epoch", "minutes", "dev loss per token", "dev BLEU, greedy"], rows))
    published = [[epoch, f"{epoch * JOEYNMT_MINUTES:.1f}", bleu] for epoch, bleu in enumerate(JOEYNMT_BLEU, 1)]
    print(f"\n{format_table(['JoeyNMT 2.3, epoch', 'minutes', 'dev BLEU, greedy'], published)}")
    print(f"\nprocessor: {processor()}")
    write_json(arguments.json, rows)


if __name__ == "__main__":
    main()
