"""The card of a model: README.md in its directory, for whoever finds it there. What it is, what it learned from, how
large it is, how good it was found to be, and how it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.io.storage import ALIGNER_KIND, CARD_FILE, CARD_MARKER, TWO_WAY_KIND

TITLES = {
    "ngram": "An n-gram language model",
    "class-ngram": "A class-based n-gram language model",
    "cache": "A cache: a language model of the words just seen",
    "feed-forward": "A feed-forward neural language model",
    "log-linear": "A log-linear language model",
    "recurrent": "A recurrent neural language model",
    "mixture": "A mixture of language models",
    "translator": "A translator",
}
NON_SCORER_TITLES = {
    ALIGNER_KIND: "An aligner: which words translate which",
    TWO_WAY_KIND: "Two translators that were trained together, one for each direction",
}
LANGUAGE_MODEL_USAGE = """dragoman evaluate DIR --text test.txt      # perplexity
dragoman score DIR < test.txt              # log-probability a line; --words: a word
dragoman sample DIR -n 10                  # sentences drawn from it
dragoman next DIR "the sentence so far"    # what comes next
dragoman serve DIR                         # a page that looks inside"""
TRANSLATOR_USAGE = """dragoman translate DIR < FILE              # a translation a line; --n-best 5, --json
dragoman evaluate DIR --src FILE --ref FILE  # BLEU, chrF, perplexity
dragoman attention DIR "a sentence"        # where it looks
dragoman serve DIR                         # a page that looks inside"""
ALIGNER_USAGE = """dragoman align --with DIR --src FILE --tgt FILE  # links between the words of other pairs
dragoman translate TRANSLATOR --lexicon DIR < FILE  # unknown words by its lexicon
dragoman serve TRANSLATOR --lexicon DIR    # the same, as a page
less DIR/lexicon.tsv                       # what it has learned"""
TWO_WAY_USAGE = """dragoman translate DIR/forward < FILE      # each is a translator; its own README.md tells more
dragoman translate DIR/backward < FILE
dragoman serve DIR                         # both, on a page"""
USAGE = {"translator": TRANSLATOR_USAGE, ALIGNER_KIND: ALIGNER_USAGE, TWO_WAY_KIND: TWO_WAY_USAGE}


NO_SCORES = "None were measured when it was made; see below for how to."


class CardScore(NamedTuple):
    """How good a model was found to be."""

    text: str  # on which text
    metric: str
    value: float
    signature: str = ""  # such as sacreBLEU's signature


def render_card(config: Mapping[str, Any], sizes: Mapping[str, int], scores: Sequence[CardScore] = ()) -> str:
    """As Markdown. The same model always has the same card: no dates, no paths.  # config: what config.yaml says

    >>> text = card({"kind": "ngram", "order": 3}, {"words": 1200}, [Score("dev", "perplexity", 81.25)])
    >>> [line for line in text.splitlines() if line.startswith(("# ", "| words", "| dev"))]
    ['# An n-gram language model', '| words | 1,200 |', '| dev | perplexity | 81.25 |  |']
    """
    kind = str(config["kind"])
    parts = [
        f"---\nlibrary_name: dragoman\ntags:\n- dragoman\n- {kind}\n---",
        CARD_MARKER,
        f"# {_title(kind)}",
        f"Made with dragoman. {_files(kind, sizes)}",
        "## Data",
        _data(config) or "What it learned from was not noted down.",
        *_inside(config),
        *(["## Sizes", _table(["", ""], [(name, f"{size:,}") for name, size in sizes.items()])] if sizes else []),
        *(["## Scores", _scores(scores) or NO_SCORES] if kind not in NON_SCORER_TITLES else []),
        "## Use",
        f"```\n{USAGE.get(kind, LANGUAGE_MODEL_USAGE)}\n```",
        f"{_from_python(kind)}DIR stands for this directory.",
    ]
    return "\n\n".join(parts) + "\n"


def _title(kind: str) -> str:
    return TITLES.get(kind) or NON_SCORER_TITLES.get(kind, kind)


def _files(kind: str, sizes: Mapping[str, int]) -> str:
    """Which files there are."""
    if kind == TWO_WAY_KIND:
        return "`config.yaml` has its settings, `forward` and `backward` hold the translators."
    words = "`source-vocab.tsv` and `vocab.tsv` its words" if "source words" in sizes else "`vocab.tsv` its words"
    return f"`config.yaml` has its settings, {words}{_numbers(sizes)}."


def _from_python(kind: str) -> str:
    load = {ALIGNER_KIND: "dragoman.align.aligner.Aligner.load", TWO_WAY_KIND: ""}.get(kind, "dragoman.load")
    return f'From Python: `{load}("DIR")`. ' if load else ""


def _inside(config: Mapping[str, Any]) -> list[str]:
    """Of a mixture: how much each of its models counts."""
    weights = config.get("weights", [])
    if not weights:
        return []
    rows = [(f"`member-{number}`", f"{weight:.4f}") for number, weight in enumerate(weights, 1)]
    sorts = config.get("buckets")
    told = [f"They differ by the sort of context (`{sorts}`); `config.yaml` has them all."] if sorts else []
    return ["## Weights", _table(["model", "weight"], rows), *told]


def has_scores(directory: Path) -> bool:
    """Whether the card in a model's directory tells how good it is, or is somebody's own."""
    file = directory / CARD_FILE
    return file.is_file() and NO_SCORES not in file.read_text(encoding="utf-8", errors="replace")


def _numbers(sizes: Mapping[str, int]) -> str:
    return ", `model.safetensors` its numbers" if "numbers" in sizes else ""


def _data(config: Mapping[str, Any]) -> str:
    """The texts of a training, as they are known again."""
    rows = []
    for name, text in config.get("data", {}).items():
        if not isinstance(text, Mapping):
            continue  # how it began
        sides = text.items() if "sentences" not in text else [("", text)]
        for side, own in sides:
            if isinstance(own, Mapping) and "sentences" in own:
                told = (f"{own['sentences']:,}", f"{own['tokens']:,}", f"`{own['checksum']}`")
                rows.append((f"{name} {side}".strip(), *told))
    return _table(["text", "sentences", "tokens", "checksum"], rows) if rows else ""


def _scores(scores: Sequence[CardScore]) -> str:
    rows = [
        (one.text, one.metric, f"{one.value:,.2f}", f"`{one.signature}`" if one.signature else "") for one in scores
    ]
    return _table(["text", "", "", "signature"], rows) if rows else ""


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [headers, ["---"] * len(headers), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
