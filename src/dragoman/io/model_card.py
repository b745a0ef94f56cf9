"""The model card: README.md in a model directory, with the model's kind, training data, sizes, scores and usage."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.data.languages import describe_language, saved_languages
from dragoman.io.files import write_text
from dragoman.io.storage import ALIGNER_KIND, CARD_FILE, CARD_MARKER, EXAMPLES_FILE, READ_ERRORS, TWO_WAY_KIND

TITLES = {
    "ngram": "An n-gram language model",
    "class-ngram": "A class-based n-gram language model",
    "cache": "A cache language model",
    "feed-forward": "A feed-forward neural language model",
    "log-linear": "A log-linear language model",
    "recurrent": "A recurrent neural language model",
    "mixture": "A mixture of language models",
    "translator": "A translator",
    "quantized-translator": "A translator with 8-bit weights",
    "quantized-recurrent": "A recurrent neural language model with 8-bit weights",
    "quantized-feed-forward": "A feed-forward neural language model with 8-bit weights",
}
NON_SCORER_TITLES = {
    ALIGNER_KIND: "A word aligner",
    TWO_WAY_KIND: "Two translators that were trained together, one for each direction",
}
LANGUAGE_MODEL_USAGE = """dragoman evaluate DIR --text test.txt      # perplexity
dragoman score DIR < test.txt              # log-probability per line; --words: per word
dragoman sample DIR -n 10                  # random sentences
dragoman next DIR "the sentence so far"    # the most probable next words
dragoman serve DIR                         # a web page that shows how it works"""
TRANSLATOR_USAGE = """dragoman translate DIR < FILE              # one translation per line; --n-best 5, --json
dragoman evaluate DIR --src FILE --ref FILE  # BLEU, chrF, perplexity
dragoman attention DIR "a sentence"        # the attention weights
dragoman serve DIR                         # a web page that shows how it works"""
ALIGNER_USAGE = """dragoman align --with DIR --src FILE --tgt FILE  # align the words of other sentence pairs
dragoman translate TRANSLATOR --lexicon DIR < FILE  # replace unknown words by its lexicon
dragoman serve TRANSLATOR --lexicon DIR    # the same as a web page
less DIR/lexicon.tsv                       # the learned lexicon"""
TWO_WAY_USAGE = """dragoman translate DIR/forward < FILE      # each directory is a translator with its own README.md
dragoman translate DIR/backward < FILE
dragoman serve DIR                         # both as a web page"""
USAGE = {
    "translator": TRANSLATOR_USAGE,
    "quantized-translator": TRANSLATOR_USAGE,
    ALIGNER_KIND: ALIGNER_USAGE,
    TWO_WAY_KIND: TWO_WAY_USAGE,
}
NUM_EXAMPLES = 2
CELL_END = re.compile(r" ?(?<!\\)\| ?")  # of a table
NO_SCORES = "None were measured when the model was trained; see below for how to measure them."


class CardScore(NamedTuple):
    """A measured score of a model."""

    text: str  # the name of the test set
    metric: str
    value: float
    signature: str = ""  # such as sacreBLEU's signature


def render_card(config: Mapping[str, object], sizes: Mapping[str, int], scores: Sequence[CardScore] = ()) -> str:
    """Return the card as Markdown. It has no dates and no paths: equal models have equal cards.

    # config: the contents of config.yaml

    >>> text = render_card({"kind": "ngram", "order": 3}, {"words": 1200}, [CardScore("dev", "perplexity", 81.25)])
    >>> [line for line in text.splitlines() if line.startswith(("# ", "| words", "| dev"))]
    ['# An n-gram language model', '| words | 1,200 |', '| dev | perplexity | 81.25 |  |']
    """
    kind = str(config["kind"])
    load = {ALIGNER_KIND: "dragoman.Aligner.load", TWO_WAY_KIND: ""}.get(kind, "dragoman.load")
    in_python = f'In Python: `{load}("DIR")`. ' if load else ""
    is_scorer = kind not in NON_SCORER_TITLES
    rows = [(text, metric, f"{value:,.2f}", f"`{name}`" if name else "") for text, metric, value, name in scores]
    languages = saved_languages(config)
    codes = "".join(f"- {code}\n" for code in languages if code is not None)
    codes = f"language:\n{codes}" if codes else ""
    names = [describe_language(code) for code in languages]
    direction = f" from {names[0]} to {names[1]}" if all(names) else ""
    parts = [
        f"---\n{codes}library_name: dragoman\ntags:\n- dragoman\n- {kind}\n---",
        CARD_MARKER,
        f"# {TITLES.get(kind) or NON_SCORER_TITLES.get(kind, kind)}{direction}",
        f"Trained with dragoman. {_file_list(kind, sizes)}",
        "## Data",
        _data_table(config.get("data")) or "The training data was not recorded.",
        *_trained_from_section(config.get("trained_from")),
        *_weights_section(config),
        *(["## Sizes", _table(["", ""], [(name, f"{size:,}") for name, size in sizes.items()])] if sizes else []),
        *(["## Scores", _table(["text", "", "", "signature"], rows) or NO_SCORES] if is_scorer else []),
        *_search_section(config.get("shortlist")),
        "## Use",
        f"```\n{USAGE.get(kind, LANGUAGE_MODEL_USAGE)}\n```",
        f"{in_python}DIR stands for this directory.",
    ]
    return "\n\n".join(parts) + "\n"


def describe_shortlist(decision: Mapping[str, Any]) -> str:
    """Return in one line whether a translator has a shortlist, and why.

    >>> figures = {"metric": "BLEU", "score": 38.2, "score_of_all_words": 38.11, "speedup": 1.62}
    >>> describe_shortlist({"used": True, **figures})
    'search uses a shortlist: dev BLEU 38.20 (38.11 over all words), about 1.6 times as fast'
    >>> describe_shortlist({"used": False, **figures, "score": 38.0})
    'search is over all words; with a shortlist: dev BLEU 38.00 (38.11 over all words), about 1.6 times as fast'
    >>> describe_shortlist({"used": False, **figures, "speedup": 1.02, "reason": "hardly faster"}).partition(": ")[0]
    'search is over all words, not with a shortlist (hardly faster)'
    >>> describe_shortlist({"used": True})
    'search uses a shortlist'
    """
    if decision.get("metric") is None:
        return "search uses a shortlist" if decision["used"] else "search is over all words"
    scores = "dev {metric} {score:.2f} ({score_of_all_words:.2f} over all words)".format_map(decision)
    start = "search uses a shortlist" if decision["used"] else "search is over all words; with a shortlist"
    if reason := decision.get("reason"):
        start = f"search is over all words, not with a shortlist ({reason})"
    return f"{start}: {scores}, about {decision['speedup']:.1f} times as fast"


def has_scores(directory: Path) -> bool:
    """Return whether the card of a model directory has scores, or was written by the user."""
    file = directory / CARD_FILE
    return file.is_file() and NO_SCORES not in file.read_text(encoding="utf-8", errors="replace")


def read_scores(directory: Path) -> list[CardScore]:
    """Return the scores in the card of a model directory; none if the card was written by the user, or is damaged."""
    file = directory / CARD_FILE
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    if CARD_MARKER not in text:
        return []
    section = text.partition("\n## Scores\n")[2].partition("\n## ")[0]
    scores = []
    for line in section.splitlines():
        with suppress(ValueError):  # the lines of the header
            name, metric, value, signature = (cell.replace("\\|", "|") for cell in CELL_END.split(line)[1:-1])
            scores.append(CardScore(name, metric, float(value.replace(",", "")), signature.strip("`")))
    return scores


def choose_examples(lines: Sequence[str]) -> list[str]:
    """Return lines of a usual length from different places of a text.

    >>> choose_examples(["", "a very long line indeed", "a dog", "a dog", "a cat", "a", "a cat sat"])
    ['a dog', 'a cat']
    """
    distinct = [line.strip() for line in dict.fromkeys(lines) if line.strip()]
    median = sorted(map(len, distinct))[len(distinct) // 2] if distinct else 0
    usual = [line for line in distinct if median <= 2 * len(line) <= 2 * median]
    count = min(NUM_EXAMPLES, len(usual))
    return [usual[(2 * number + 1) * len(usual) // (2 * count)] for number in range(count)]


def write_examples(directory: Path, inputs: Sequence[str]) -> None:
    """Write inputs that show what a translator is for, into its directory."""
    write_text(directory / EXAMPLES_FILE, json.dumps({"inputs": list(inputs)}, ensure_ascii=False) + "\n")


def read_examples(directory: Path) -> list[str]:
    """Return the examples of a translator; none if there is no such file, or it cannot be read."""
    try:
        content = json.loads((directory / EXAMPLES_FILE).read_text(encoding="utf-8"))
        return [text for text in content["inputs"] if isinstance(text, str)]
    except READ_ERRORS:
        return []


def _file_list(kind: str, sizes: Mapping[str, int]) -> str:
    if kind == TWO_WAY_KIND:
        return "`config.yaml` has its settings, `forward` and `backward` hold the translators."
    has_source = any(name.startswith("source ") for name in sizes)
    words = "`source-vocab.tsv` and `vocab.tsv` its tokens" if has_source else "`vocab.tsv` its tokens"
    arrays = ", `model.safetensors` its parameters" if "parameters" in sizes else ""
    return f"`config.yaml` has its settings, {words}{arrays}."


def _trained_from_section(earlier: object) -> list[str]:
    """The texts of earlier trainings, if the model was trained from a trained one."""
    if not isinstance(earlier, Sequence) or not earlier:
        return []
    texts = {
        f"training {number}, {name}": text
        for number, data in enumerate(earlier, 1)
        if isinstance(data, Mapping)
        for name, text in data.items()
    }
    return ["## Trained from", "Training started from a model that was trained on these texts:", _data_table(texts)]


def _search_section(decision: object) -> list[str]:
    """Whether a translator has a shortlist."""
    return ["## Search", f"The {describe_shortlist(decision)}."] if isinstance(decision, Mapping) else []


def _weights_section(config: Mapping[str, object]) -> list[str]:
    """The weights of a mixture."""
    weights, buckets = config.get("weights"), config.get("buckets")
    if not isinstance(weights, Sequence) or not weights:
        return []
    rows = [(f"`member-{number}`", f"{weight:.4f}") for number, weight in enumerate(weights, 1)]
    note = [f"They depend on the context (`{buckets}`); `config.yaml` has all of them."] if buckets else []
    return ["## Weights", _table(["model", "weight"], rows), *note]


def _data_table(data: object) -> str:
    """The training texts with their fingerprints."""
    rows = []
    for name, text in data.items() if isinstance(data, Mapping) else ():
        if not isinstance(text, Mapping):
            continue  # the initial model
        for side, fingerprint in text.items() if "sentences" not in text else [("", text)]:
            if isinstance(fingerprint, Mapping) and "sentences" in fingerprint:
                sentences, tokens = (f"{fingerprint[size]:,}" for size in ("sentences", "tokens"))
                rows.append(
                    (f"{name} {side}".strip().replace("_", " "), sentences, tokens, f"`{fingerprint['checksum']}`")
                )
    return _table(["text", "sentences", "tokens", "checksum"], rows)


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in [headers, ["---"] * len(headers), *cells])
