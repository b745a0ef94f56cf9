"""Stands in for `dragoman` where tests start many processes: it trains nothing, but stops, saves and resumes."""

import json
import os
import signal
import sys
import time
from pathlib import Path


def options_of(words: list[str]) -> dict[str, str]:
    return {name.removeprefix("--"): value for name, value in zip(words, words[1:], strict=False) if name[:2] == "--"}


def train(words: list[str]) -> int:
    """Train for --max-epochs epochs of EPOCH_SECONDS; the dev loss depends on --order, --learning-rate and EXTRA_LOSS."""
    options, model = options_of(words), Path(words[words.index("-o") + 1])
    record = model.parent / "events.txt"
    received = []
    signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))

    def note(event: str) -> None:
        with record.open("a") as file:
            file.write(f"{event} {model.name}\n")

    if int(options.get("order", 0)) == 13:
        print("dragoman: --order 13: out of luck", file=sys.stderr)
        return 2
    note("resume" if (model / "training.safetensors").exists() else "start")
    model.mkdir(parents=True, exist_ok=True)
    epochs = int(options.get("max-epochs", 1))
    (model / "options.json").write_text(json.dumps({**options, "OMP_NUM_THREADS": os.environ["OMP_NUM_THREADS"]}))
    (model / "config.yaml").write_text(json.dumps({"training": {"max_epochs": epochs}}))
    checkpoint, metrics = model / "training.safetensors", model / "metrics.jsonl"
    done = int(checkpoint.read_text()) if checkpoint.exists() else 0
    for epoch in range(done + 1, epochs + 1):
        time.sleep(float(os.environ.get("EPOCH_SECONDS", "0")))
        with metrics.open("a") as file:
            file.write(json.dumps({"epoch": epoch, "seconds": epoch, "dev_loss": loss(options) + 1 / epoch}) + "\n")
        checkpoint.write_text(str(epoch))
        if received:
            note("save")
            print("dragoman: stopped", file=sys.stderr)
            return 143
    if "max-epochs" not in options:  # counted in one pass
        checkpoint.unlink()
    note("end")
    return 0


def loss(options: dict[str, str]) -> float:
    extra = float(os.environ.get("EXTRA_LOSS", "0"))
    return 1 + (float(options.get("order", 3)) - 3) ** 2 + float(options.get("learning-rate", 0)) + extra


def evaluate(words: list[str]) -> int:
    options = json.loads((Path(words[0]) / "options.json").read_text())
    report = {"perplexity": 10 * loss(options), "perplexity_characters": 2.0}
    if "--metrics" in words:
        report |= {"metrics": {"BLEU": {"value": 50 / loss(options)}}, "headline": ["BLEU"]}
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(train(sys.argv[3:]) if sys.argv[1] == "train" else evaluate(sys.argv[2:]))
