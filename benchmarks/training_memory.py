"""Memory of training: resident MB and page faults per update, for the models of `speed.py`.

    python benchmarks/training_memory.py --data multi30k/tok --task "train translator" --precision bfloat16 [--unlimited]

With --unlimited, oneDNN keeps as many compiled products as it does by default, and freed memory is returned at once.
"""

from __future__ import annotations

import argparse
import resource
from pathlib import Path
from time import process_time

from dragoman.core.memory import limit_kernel_caches
from dragoman.report.tables import format_table
from texts_and_results import processor


def resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory of train.de, train.en, val.de and val.en")
    parser.add_argument("--task", default="train translator", help='as in speed.py, such as "train lstm 2x200"')
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--updates", type=int, default=160)
    parser.add_argument("--every", type=int, default=40, help="updates per row of the table")
    parser.add_argument("--unlimited", action="store_true")
    options = parser.parse_args()
    if not options.unlimited:
        limit_kernel_caches()  # before torch is imported

    import torch

    import dragoman.training.loop
    from speed_worker import Translators, language_model

    torch.set_num_threads(1)
    if options.unlimited:
        dragoman.training.loop.keep_freed_memory = lambda: None
    _, kind, *shape = options.task.split()
    if kind == "translator":
        steps = Translators(options.precision, options.data, None).training()
    else:
        steps = language_model(options.precision, kind, *map(int, shape[0].split("x")))
    rows, faults, start = [], resource.getrusage(resource.RUSAGE_SELF).ru_minflt, process_time()
    for update in range(1, options.updates + 1):
        next(steps)
        if update % options.every == 0:
            now = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            per_update = (now - faults) / options.every, 1000 * (process_time() - start) / options.every
            rows.append([update, f"{resident_megabytes():,.0f}", f"{per_update[0]:,.0f}", f"{per_update[1]:.0f}"])
            faults, start = now, process_time()
    print(f"{options.task}, {options.precision}{', unlimited' if options.unlimited else ''}, {processor()}\n")
    print(format_table(["update", "resident MB", "page faults per update", "CPU ms per update"], rows))


if __name__ == "__main__":
    main()
