"""dragoman serve"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman import __version__
from dragoman.cli.messages import info
from dragoman.core.errors import DataError
from dragoman.serve.limits import RequestLimits

if TYPE_CHECKING:
    from socket import socket

    from dragoman.align.aligner import Aligner
    from dragoman.serve.registry import ModelRegistry
    from dragoman.serve.service import Service

PORT = 5000
# How many compiled products torch's library keeps: one for every length of texts would take more and more memory.
FEW_KEPT = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32")
DEFAULT = RequestLimits()


def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL",
            help="Directories of language models and translators; ONE+TWO is an ensemble, NAME=DIR calls it so. A name "
            "such as de-en tells the languages.",
            show_default=False,
        ),
    ],
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Where to listen; 0: wherever is free.")] = PORT,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="The address to listen at; 0.0.0.0: all of this machine's.")
    ] = "127.0.0.1",
    host_name: Annotated[
        list[str],
        typer.Option(
            "--host-name",
            metavar="NAME",
            help="A name by which the service may be asked for, besides localhost; may be repeated; *: any.",
            show_default=False,
        ),
    ] = [],  # noqa: B006  (typer reads it)
    cors: Annotated[
        str | None,
        typer.Option("--cors", metavar="ORIGIN", help="Let pages of this origin ask, too.", show_default=False),
    ] = None,
    lexicon: Annotated[
        Path | None,
        typer.Option(
            "--lexicon", metavar="ALIGNER", help="Replace unknown words by its translations.", show_default=False
        ),
    ] = None,
    max_characters: Annotated[
        int, typer.Option("--max-characters", min=1, help="Of all texts of a request.")
    ] = DEFAULT.characters,
    max_texts: Annotated[int, typer.Option("--max-texts", min=1, help="Texts of a request.")] = DEFAULT.texts,
    max_beam: Annotated[int, typer.Option("--max-beam", min=1, help="The widest beam.")] = DEFAULT.beam,
    max_alternatives: Annotated[
        int, typer.Option("--max-alternatives", min=0, help="Translations beside the best, or samples.")
    ] = DEFAULT.alternatives,
    max_body: Annotated[int, typer.Option("--max-body", min=1, help="Bytes of a request.")] = DEFAULT.body,
    max_queue: Annotated[int, typer.Option("--max-queue", min=1, help="Requests that wait.")] = DEFAULT.queue,
    max_seconds: Annotated[
        float, typer.Option("--max-seconds", min=0.1, help="That a request may take, waiting included.")
    ] = DEFAULT.seconds,
    max_connections: Annotated[
        int, typer.Option("--max-connections", min=1, help="That are open at a time.")
    ] = DEFAULT.connections,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="Cores to use; all, if not given.", show_default=False)
    ] = None,
    log_texts: Annotated[bool, typer.Option("--log-texts", help="Log what is asked for, texts too.")] = False,
) -> None:
    """Serve models over HTTP, with a web page.

    The page is at http://127.0.0.1:5000. Programs translate by POST /translate, the protocol of LibreTranslate, and
    look inside by /v1/...; http://127.0.0.1:5000/spec describes both. Models are loaded when they are first asked for.

    \b
    Examples:
      dragoman serve de-en
      dragoman serve de-en=models/best kn5 lstm --port 8080
      dragoman serve de-en=one+two+three --lexicon aligner
      curl -s localhost:5000/translate -d q="Guten Tag" -d source=de -d target=en
    """
    from dragoman.core.threads import limit_threads

    os.environ.setdefault(*FEW_KEPT)
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
    _check_address(host)
    with limit_threads(threads):
        service = _service(models, limits, lexicon, log_texts=log_texts)
        _listen(service, host, port, tuple(host_name), cors)


def _check_address(host: str) -> None:
    import ipaddress

    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise DataError(f"--host {host}: give an address, such as 127.0.0.1; names are for --host-name") from None


def _service(models: list[str], limits: RequestLimits, lexicon: Path | None, *, log_texts: bool) -> Service:
    from dragoman.align.aligner import Aligner
    from dragoman.serve.registry import ModelRegistry
    from dragoman.serve.service import Service

    shelf = ModelRegistry.from_arguments(models)
    for entry in shelf:
        if entry.is_translator and entry.languages is None:
            given = f"de-en={'+'.join(map(str, entry.paths))}"
            remedy = f"call it by them, such as {given}"
            info(f"{entry.name}: its languages are not known, so /translate does without it; {remedy}")
    aligner = None if lexicon is None else Aligner.load(lexicon)
    if aligner is not None:
        _check_lexicon(aligner, shelf, f"--lexicon {lexicon}")
    return Service(shelf, limits, aligner, log=info if log_texts else None)


def _check_lexicon(aligner: Aligner, shelf: ModelRegistry, name: str) -> None:
    """Tell of translators that the lexicon is not for, and refuse it if it is for none."""
    from dragoman.align.unknown_words import MIN_COVERAGE
    from dragoman.data.vocabulary import Vocab
    from dragoman.io.storage import SOURCE_VOCAB_FILE

    read = {entry.name: entry.paths[0] / SOURCE_VOCAB_FILE for entry in shelf if entry.is_translator}
    known = {one: aligner.best_lexicon_for(Vocab.read(path))[1] for one, path in read.items() if path.is_file()}
    if known and max(known.values()) < MIN_COVERAGE:
        raise DataError(f"{name}: knows too few words of {', '.join(known)}; align the texts they were trained on")
    for one, covered in known.items():
        if covered < MIN_COVERAGE:
            info(f"{one}: {name} knows {covered:.0%} of its words, so its unknown words are copied")


def _listen(service: Service, host: str, port: int, names: tuple[str, ...], cors: str | None) -> None:
    """Until somebody stops it."""
    import uvicorn

    from dragoman.serve.app import create_app
    from dragoman.serve.connection import limited_protocol
    from dragoman.serve.middleware import LOCAL_HOSTS

    app = create_app(service, allowed_hosts=(*LOCAL_HOSTS, host, *names), cors_origin=cors, version=__version__)
    with _opened(host, port) as listening:
        address = f"[{host}]" if ":" in host else host
        count = len(service.registry.entries)
        info(f"{count:,} model{'s' if count > 1 else ''}; the page is at http://{address}:{listening.getsockname()[1]}")
        config = uvicorn.Config(
            app,
            http=limited_protocol(service.limits),
            ws="none",
            log_level="error",
            access_log=False,
            server_header=False,
        )
        uvicorn.Server(config).run([listening])
    raise KeyboardInterrupt  # nothing else ends it, whether or not the signal came through


def _opened(host: str, port: int) -> socket:
    """Where to listen; a port that somebody else has is refused before anything is loaded."""
    from socket import AF_INET, AF_INET6, create_server

    try:
        return create_server((host, port), family=AF_INET6 if ":" in host else AF_INET)
    except OSError as error:
        raise DataError(f"{host}, port {port}: {error.strerror}; choose another with --port or --host") from None
