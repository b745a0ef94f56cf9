"""dragoman serve"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dragoman import __version__
from dragoman.cli.errors import INTERRUPTED
from dragoman.cli.messages import info
from dragoman.cli.option_groups import OptionGroup, argument, option, with_option_groups
from dragoman.cli.options import Threads
from dragoman.serve import RequestLimits

# The number of compiled kernels that oneDNN keeps. One for every text length would use more and more memory.
KERNEL_CACHE = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32")
DEFAULT = RequestLimits()


@dataclass(frozen=True)
class RequestLimitOptions(OptionGroup):
    """The fields of `RequestLimits`, with `max_` before their names."""

    panel = "Limits"

    max_characters: Annotated[
        int, option("--max-characters N", "Characters per request, all texts together.", min=1)
    ] = DEFAULT.characters
    max_texts: Annotated[int, option("--max-texts N", "Texts per request.", min=1)] = DEFAULT.texts
    max_beam: Annotated[int, option("--max-beam N", "Largest beam size.", min=1)] = DEFAULT.beam
    max_alternatives: Annotated[
        int, option("--max-alternatives N", "Alternative translations, or additional samples.", min=0)
    ] = DEFAULT.alternatives
    max_body: Annotated[int, option("--max-body N", "Bytes per request.", min=1)] = DEFAULT.body
    max_queue: Annotated[int, option("--max-queue N", "Waiting requests.", min=1)] = DEFAULT.queue
    max_seconds: Annotated[
        float, option("--max-seconds X", "Seconds per request, including the time in the queue.", min=0.1)
    ] = DEFAULT.seconds
    max_connections: Annotated[int, option("--max-connections N", "Open connections.", min=1)] = DEFAULT.connections


@with_option_groups
def serve(
    models: Annotated[
        list[str],
        argument(
            "MODEL...",
            "Model directories. NAME=DIR gives a model another name in requests and on the page; a name such as de-en "
            "also sets the languages of a translator. ONE+TWO is an ensemble.",
        ),
    ],
    port: Annotated[int, option("--port N", "Port to listen on; 0: any free port.", min=0, max=65535)] = 5000,
    host: Annotated[str, option("--host ADDRESS", "IP address to listen on; 0.0.0.0: all interfaces.")] = "127.0.0.1",
    host_name: Annotated[
        list[str],
        option(
            "--host-name NAME",
            "Host name that the service answers for, in addition to localhost; repeatable; *: any.",
        ),
    ] = [],  # noqa: B006  (typer reads it)
    cors: Annotated[str | None, option("--cors ORIGIN", "Allow requests from pages of this origin.")] = None,
    lexicon: Annotated[Path | None, option("--lexicon ALIGNER", "Translate unknown words with this aligner.")] = None,
    limits: RequestLimitOptions = RequestLimitOptions(),
    threads: Threads = None,
    log_texts: Annotated[bool, option("--log-texts", "Log the texts of requests.")] = False,
) -> None:
    """Serve models over HTTP, with a web page.

    The page is at http://127.0.0.1:5000. POST /translate is the LibreTranslate API; /v1/... returns scores, attention
    and more. http://127.0.0.1:5000/spec is the OpenAPI description. Models are loaded on first use.

    \b
    Example:
      dragoman serve de-en
      dragoman serve de-en=models/best kn5 lstm --port 8080
      dragoman serve de-en=one+two+three --lexicon aligner
      curl -s localhost:5000/translate -d q="Guten Tag" -d source=de -d target=en
    """
    from dragoman.core.errors import require_extra
    from dragoman.core.threads import limit_threads

    for package in ("fastapi", "uvicorn"):
        require_extra(package, "serve")
    os.environ.setdefault(*KERNEL_CACHE)
    from dragoman.serve.server import serve_models

    with limit_threads(threads), suppress(KeyboardInterrupt):
        serve_models(
            models,
            host,
            port,
            limits=RequestLimits(**{name.removeprefix("max_"): value for name, value in vars(limits).items()}),
            host_names=host_name,
            cors_origin=cors,
            lexicon=lexicon,
            log_texts=log_texts,
            version=__version__,
            info=info,
        )
    raise typer.Exit(INTERRUPTED)  # only a signal ends the server; Ctrl-C is the usual way, so there is no message
