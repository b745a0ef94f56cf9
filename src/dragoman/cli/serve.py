"""dragoman serve"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from dragoman import __version__
from dragoman.cli.messages import info
from dragoman.serve import RequestLimits

# The number of compiled kernels that oneDNN keeps. One for every text length would use more and more memory.
KERNEL_CACHE = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32")
DEFAULT = RequestLimits()


def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL",
            help="Model directories. ONE+TWO is an ensemble, NAME=DIR sets the name. A name such as de-en also sets "
            "the languages of a translator.",
            show_default=False,
        ),
    ],
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0: any free port.")] = 5000,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="IP address to listen on; 0.0.0.0: all interfaces.")
    ] = "127.0.0.1",
    host_name: Annotated[
        list[str],
        typer.Option(
            "--host-name",
            metavar="NAME",
            help="Host name that the service answers for, in addition to localhost; repeatable; *: any.",
            show_default=False,
        ),
    ] = [],  # noqa: B006  (typer reads it)
    cors: Annotated[
        str | None,
        typer.Option("--cors", metavar="ORIGIN", help="Allow requests from pages of this origin.", show_default=False),
    ] = None,
    lexicon: Annotated[
        Path | None,
        typer.Option(
            "--lexicon", metavar="ALIGNER", help="Translate unknown words with this aligner.", show_default=False
        ),
    ] = None,
    max_characters: Annotated[
        int, typer.Option("--max-characters", min=1, help="Characters per request, all texts together.")
    ] = DEFAULT.characters,
    max_texts: Annotated[int, typer.Option("--max-texts", min=1, help="Texts per request.")] = DEFAULT.texts,
    max_beam: Annotated[int, typer.Option("--max-beam", min=1, help="Largest beam size.")] = DEFAULT.beam,
    max_alternatives: Annotated[
        int, typer.Option("--max-alternatives", min=0, help="Alternative translations, or additional samples.")
    ] = DEFAULT.alternatives,
    max_body: Annotated[int, typer.Option("--max-body", min=1, help="Bytes per request.")] = DEFAULT.body,
    max_queue: Annotated[int, typer.Option("--max-queue", min=1, help="Waiting requests.")] = DEFAULT.queue,
    max_seconds: Annotated[
        float, typer.Option("--max-seconds", min=0.1, help="Seconds per request, including the time in the queue.")
    ] = DEFAULT.seconds,
    max_connections: Annotated[
        int, typer.Option("--max-connections", min=1, help="Open connections.")
    ] = DEFAULT.connections,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="CPU threads; default: all cores.", show_default=False)
    ] = None,
    log_texts: Annotated[bool, typer.Option("--log-texts", help="Log the texts of requests.")] = False,
) -> None:
    """Serve models over HTTP, with a web page.

    The page is at http://127.0.0.1:5000. POST /translate is the LibreTranslate API; /v1/... returns scores, attention
    and more. http://127.0.0.1:5000/spec is the OpenAPI description. Models are loaded on first use.

    \b
    Examples:
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

    limits = RequestLimits(
        characters=max_characters,
        texts=max_texts,
        beam=max_beam,
        alternatives=max_alternatives,
        body=max_body,
        queue=max_queue,
        seconds=max_seconds,
        connections=max_connections,
    )
    with limit_threads(threads):
        serve_models(
            models,
            host,
            port,
            limits=limits,
            host_names=host_name,
            cors_origin=cors,
            lexicon=lexicon,
            log_texts=log_texts,
            version=__version__,
            info=info,
        )
    raise KeyboardInterrupt  # only a signal ends the server, and uvicorn may have handled it
