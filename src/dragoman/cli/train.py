"""dragoman train KIND: each kind of model is a verb of its own."""

from __future__ import annotations

import typer

from dragoman.cli.settings_options import LazySettingsCommand
from dragoman.cli.train_cache import train_cache
from dragoman.cli.train_class_ngram import train_class_ngram
from dragoman.cli.train_feedforward import train_feedforward
from dragoman.cli.train_loglinear import train_loglinear
from dragoman.cli.train_ngram import train_ngram
from dragoman.cli.train_recurrent import train_recurrent
from dragoman.cli.train_translator import train_translator

train = typer.Typer(help="Train a model on a text; the next word says which kind.", rich_markup_mode=None)
train.command("ngram")(train_ngram)
train.command("class-ngram")(train_class_ngram)
train.command("cache")(train_cache)
train.command("log-linear", cls=LazySettingsCommand)(train_loglinear)
train.command("feed-forward", cls=LazySettingsCommand)(train_feedforward)
train.command("recurrent", cls=LazySettingsCommand)(train_recurrent)
train.command("translator", cls=LazySettingsCommand)(train_translator)
