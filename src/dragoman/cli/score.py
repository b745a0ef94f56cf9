"""dragoman score"""

from __future__ import annotations

from dragoman.cli import options
from dragoman.cli.option_groups import with_option_groups
from dragoman.cli.score_lines import TextScores
from dragoman.cli.score_options import ScoreOptions, ShardDirectory
from dragoman.cli.sharding import ShardOptions
from dragoman.core.errors import DataError


@with_option_groups
def score(
    models: options.Models,
    text: options.Text = "-",
    field: options.Field = None,
    score_options: ScoreOptions = ScoreOptions(),
    sharding: ShardOptions = ShardOptions(),
    output: ShardDirectory = None,
) -> None:
    """Print the log-probability of each line of a text.

    The probability of an unknown word is that of exactly this word; -inf is probability 0. Prints one line for each input line,
    also for empty ones. With --words, prints rows `word TAB log-probability` for each word and </s>, and an empty line
    between sentences. A word that a model splits into subwords or characters has the sum of theirs; in a script without
    spaces between words, rows are tokens.

    For translators (--src): log P(E | F) of each line given the same line of the source. With --words, one row for each
    token.

    For several models: one column each, with their names above. With --words these are surprisals, -log2 P(word |
    words before), in bits: 1 for probability 1/2, 10 for about 1/1000. Each model uses its own vocabulary. On a
    terminal, darker is more surprising.

    --shards N --shard K scores one of N parts of a long text and writes it to the directory -o; dragoman merge joins
    them. Models that keep their state from line to line cannot score parts.

    \b
    Example:
      dragoman score kn5 < test.txt
      echo "the cat sat" | dragoman score kn5 --words
      echo "the cat sat" | dragoman score kn2 kn5 --words --picture cat.svg
      dragoman score de-en --src test.de --text test.en
      dragoman score kn5 --text big.txt --shards 100 --shard 7 -o parts
    """
    score_options.check(models, sharding)
    scores = TextScores(models, score_options, text, field, sharding.dedup)
    if sharding.is_given:
        sharding.check(text, output)
        if output is not None:
            scores.run_shard(sharding, output)
    elif output is not None:
        raise DataError(f"--output {output}: is for --shards; redirect standard output to a file instead")
    else:
        scores.run()
