"""The table of commands: for each its summary and the function that runs it, as `module:function` of this package.

The help of the program comes from this table, so that showing it imports no command.
"""

DESCRIPTION = """\
Train language models and translators, from n-grams to attention, and look inside them.

First steps (dragoman lab -o lab writes a small corpus if you have no text):
  dragoman doctor --text train.txt
  dragoman train ngram --text train.txt --order 5 -o kn5
  dragoman evaluate kn5 --text test.txt
  dragoman sample kn5 -n 3
  dragoman train translator --src train.de --tgt train.en -o de-en --minutes 20
  echo "ein hund bellt ." | dragoman translate de-en

Results are written to standard output, messages to standard error.
Exit codes: 0 success, 1 failure while running, 2 wrong usage or data,
3 training diverged, 130 and 143 interrupted."""

OPTIONS = {
    "--version": "Show the version and exit.",
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell.",
    "-h, --help": "Show this message and exit.",
}

COMMANDS = {
    "lab": ("lab:lab", "Write a synthetic German-English corpus with known probabilities."),
    "doctor": ("doctor:doctor", "Check a text or sentence pairs before training."),
    "split": ("split:split", "Divide a text or sentence pairs into train, dev and test, without leaks."),
    "cluster": ("cluster:cluster", "Find classes of words by Brown clustering."),
    "train": ("", "Train a model of the given kind."),
    "train-many": ("train_many:train_many", "Train with every combination of settings and seeds."),
    "tune": ("tune:tune", "Search for the settings that are best on a dev text."),
    "translate": ("translate:translate", "Translate standard input, a file line by line, or documents."),
    "merge": ("merge:merge", "Join the outputs of translate or score with --shards."),
    "attention": ("attention:attention", "Draw the attention of a translator for one sentence."),
    "align": ("align:align", "Align the words of two texts."),
    "evaluate": ("evaluate:evaluate", "Measure language models or translators on a text."),
    "compare": ("compare:compare", "Compare the translations of two systems."),
    "contrast": ("contrast:contrast", "Test language models on minimal pairs of lab sentences."),
    "mix": ("mix:mix", "Interpolate language models with weights fitted on a dev text."),
    "score": ("score:score", "Print the log-probability of each line of a text."),
    "sample": ("query:sample", "Sample sentences from a language model."),
    "next": ("query:next_words", "Print the most probable next words after a prefix."),
    "explain": ("query:explain", "Show how features contribute to the next word's probability."),
    "inspect": ("", "Inspect a recurrent model: cells, saliency, gradients."),
    "export": ("exchange:export", "Export an n-gram model or word vectors for other tools."),
    "import": ("exchange:import_arpa", "Convert an ARPA file to a model directory."),
    "quantize": ("quantize:quantize", "Round the weights of a translator or neural language model to 8 bits."),
    "verify": ("verify:verify", "Check that model directories are complete and undamaged."),
    "units": ("units:units", "Split lines into the tokens of a model."),
    "demo": ("experiments:demo", "Train language models and translators on text from the lab."),
    "ladder": ("experiments:ladder", "Compare every kind of model on your text or the lab's."),
    "serve": ("serve:serve", "Serve models over HTTP, with a web page."),
    "spark": ("", "Score, translate or deduplicate millions of lines with Spark."),
}
TRAIN_COMMANDS = {
    "ngram": ("train_ngram:train_ngram", "Train an n-gram model."),
    "class-ngram": ("train_ngram:train_class_ngram", "Train an n-gram model over word classes."),
    "cache": ("train_ngram:train_cache", "Create a cache model, which favours recent words."),
    "log-linear": ("train_loglinear:train_loglinear", "Train a log-linear (maximum entropy) model."),
    "feed-forward": ("train_network:train_feedforward", "Train a feed-forward neural network."),
    "recurrent": ("train_network:train_recurrent", "Train a recurrent neural network: RNN, LSTM or GRU."),
    "translator": ("train_translator:train_translator", "Train a translator: an encoder-decoder with attention."),
}
INSPECT_COMMANDS = {
    "cells": ("inspect_recurrent:inspect_cells", "Print the values of chosen cells after each word."),
    "saliency": ("inspect_recurrent:inspect_saliency", "Print how much a prediction depends on each word."),
    "gradients": ("inspect_recurrent:inspect_gradients", "Measure how far back gradients reach."),
}
SPARK_COMMANDS = {
    "score": ("spark_score:spark_score", "Compute the log-probability of each line."),
    "translate": ("spark_translate:spark_translate", "Translate each line."),
    "dedup": ("spark_dedup:spark_dedup", "Remove duplicate lines."),
}
TRAIN_HELP = """Train a model of the given kind.

\b
Example:
  dragoman train ngram --text train.txt --order 5 -o kn5
  dragoman train recurrent --text train.txt --dev-text dev.txt -o lstm
  dragoman train translator --src train.de --tgt train.en -o de-en --minutes 20
"""
INSPECT_HELP = """Inspect a recurrent model: cells, saliency, gradients.

\b
Example:
  dragoman inspect cells lstm --text test.txt --follow position
  dragoman inspect saliency lstm "he sees himself" --word himself
  dragoman inspect gradients rnn gru lstm --text test.txt
"""
SPARK_HELP = """Score, translate or deduplicate millions of lines with Spark.

Spark runs on the cores of this machine, or on a cluster (--master). It needs Java and the extra dragoman[spark].

\b
Example:
  dragoman spark score kn5 --text 'text/*.gz' -o scores.parquet
  dragoman spark translate de-en --text news.jsonl -o news.en.jsonl
  dragoman spark dedup --text 'text/*.gz' -o distinct.txt
"""
GROUPS = {
    "train": (TRAIN_COMMANDS, TRAIN_HELP),
    "inspect": (INSPECT_COMMANDS, INSPECT_HELP),
    "spark": (SPARK_COMMANDS, SPARK_HELP),
}


def program_help() -> str:
    """Return the text that `dragoman --help` prints."""
    parts = ["Usage: dragoman [OPTIONS] COMMAND [ARGS]...", DESCRIPTION]
    summaries = {name: summary for name, (_, summary) in COMMANDS.items()}
    for title, rows in (("Options", OPTIONS), ("Commands", summaries)):
        width = max(map(len, rows))
        parts.append("\n".join([f"{title}:", *(f"  {name:{width}}  {text}" for name, text in rows.items())]))
    return "\n\n".join(parts)
