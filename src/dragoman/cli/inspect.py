"""dragoman inspect: ways to look inside a recurrent model, each a verb of its own."""

from __future__ import annotations

import typer

from dragoman.cli.inspect_cells import inspect_cells
from dragoman.cli.inspect_gradients import inspect_gradients
from dragoman.cli.inspect_saliency import inspect_saliency

HELP = """Look inside a recurrent model; the next word says at what.

\b
Example:
  dragoman inspect cells lstm --text test.txt --follow position
  dragoman inspect saliency lstm "he sees himself" --word himself
  dragoman inspect gradients rnn gru lstm --text test.txt
"""

inspect = typer.Typer(help=HELP, rich_markup_mode=None)
inspect.command("cells")(inspect_cells)
inspect.command("saliency")(inspect_saliency)
inspect.command("gradients")(inspect_gradients)
