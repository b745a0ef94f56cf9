"""dragoman serve"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from dragoman import __version__
from dragoman.cli.errors import INTERRUPTED
from dragoman.cli.messages import info
from dragoman.cli.option_groups import OptionGroup, argument, option, with_option_groups
from dragoman.cli.options import Precision, Shortlist, Threads
from dragoman.core.errors import DataError
from dragoman.serve import RequestLimits, ServerOptions

KEYS = "API keys"  # heading in the help
DEFAULT, LISTEN = RequestLimits(), ServerOptions()


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
    max_write_seconds: Annotated[
        float, option("--max-write-seconds X", "Seconds until a client has read a response.", min=0.1)
    ] = DEFAULT.write_seconds
    max_connections: Annotated[int, option("--max-connections N", "Open connections.", min=1)] = DEFAULT.connections
    requests_per_minute: Annotated[
        int | None,
        option("--requests-per-minute N", "Requests per minute of each key, or address; default: any.", min=1),
    ] = DEFAULT.requests_per_minute
    characters_per_minute: Annotated[
        int | None,
        option("--characters-per-minute N", "Characters per minute of each key, or address; default: any.", min=1),
    ] = DEFAULT.characters_per_minute


@dataclass(frozen=True)
class ServerOptionGroup(OptionGroup):
    """The fields of `ServerOptions`."""

    panel = "Network"

    port: Annotated[int, option("--port N", "Port to listen on; 0: any free port.", min=0, max=65535)] = LISTEN.port
    host: Annotated[str, option("--host ADDRESS", "IP address to listen on; 0.0.0.0: all interfaces.")] = LISTEN.host
    host_name: Annotated[
        list[str],
        option(
            "--host-name NAME",
            "Host name that the service answers for, in addition to localhost; repeatable; *: any.",
        ),
    ] = field(default_factory=list)
    cors: Annotated[str | None, option("--cors ORIGIN", "Allow requests from pages of this origin.")] = None
    tls_cert: Annotated[Path | None, option("--tls-cert FILE", "Certificate for HTTPS, in PEM format.")] = None
    tls_key: Annotated[
        Path | None, option("--tls-key FILE", "Key of the certificate, if it is not in the same file.")
    ] = None
    forwarded_allow_ips: Annotated[
        str | None,
        option(
            "--forwarded-allow-ips ADDRESSES",
            "Reverse proxies whose X-Forwarded-For header is trusted: addresses or networks, with commas.",
        ),
    ] = None
    shutdown_timeout: Annotated[
        int,
        option(
            "--shutdown-timeout N", "Seconds to finish requests after a signal; a second signal ends at once.", min=0
        ),
    ] = LISTEN.shutdown_timeout

    def server_options(self) -> ServerOptions:
        proxies = [address.strip() for address in (self.forwarded_allow_ips or "").split(",") if address.strip()]
        return ServerOptions(
            self.host,
            self.port,
            self.host_name,
            self.cors,
            proxies,
            self.tls_cert,
            self.tls_key,
            self.shutdown_timeout,
        )


@with_option_groups
def serve(
    models: Annotated[
        list[str] | None,
        argument(
            "MODEL...",
            "Model directories. NAME=DIR gives a model another name in requests and on the page; a name such as de-en "
            "also sets the languages of a translator. ONE+TWO is an ensemble.",
        ),
    ] = None,
    listen: ServerOptionGroup = ServerOptionGroup(),
    lexicon: Annotated[Path | None, option("--lexicon ALIGNER", "Translate unknown words with this aligner.")] = None,
    api_keys: Annotated[
        Path | None, option("--api-keys FILE", "Require API keys: the file of their names and hashes.", panel=KEYS)
    ] = None,
    new_key: Annotated[
        str | None,
        option(
            "--new-key NAME", "Make a key, add its hash to the file of --api-keys, print the key, and end.", panel=KEYS
        ),
    ] = None,
    limits: RequestLimitOptions = RequestLimitOptions(),
    shortlist: Shortlist = None,
    precision: Precision = None,
    threads: Threads = None,
    log_requests: Annotated[
        bool, option("--log-requests", "Log each request: address, name of the key, path, status and seconds.")
    ] = False,
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

    \b
    For other people:
      dragoman serve --api-keys keys.txt --new-key alice
      dragoman serve de-en --host 0.0.0.0 --api-keys keys.txt --tls-cert cert.pem --tls-key key.pem
    """
    from dragoman.core.errors import require_extra

    for package in ("fastapi", "uvicorn"):
        require_extra(package, "serve")
    if new_key is not None:
        _make_key(api_keys, new_key)
        return
    if not models:
        raise DataError("no model given; name the directory of one: dragoman serve MODEL")
    from dragoman.combine.load_translators import parse_shortlist
    from dragoman.core.threads import limit_threads
    from dragoman.serve.server import serve_models

    with limit_threads(threads), suppress(KeyboardInterrupt):
        serve_models(
            models,
            listen.server_options(),
            limits=RequestLimits(**{name.removeprefix("max_"): value for name, value in vars(limits).items()}),
            api_keys=api_keys,
            lexicon=lexicon,
            precision=precision,
            shortlist=parse_shortlist(shortlist),
            log_texts=log_texts,
            log_requests=log_requests,
            version=__version__,
            info=info,
        )
    raise typer.Exit(INTERRUPTED)  # only a signal ends the server; Ctrl-C is the usual way, so there is no message


def _make_key(path: Path | None, name: str) -> None:
    """Print a new key; everything else about it is on standard error."""
    from dragoman.serve.api_keys import create_key

    if path is None:
        raise DataError("--new-key needs the file to add the key to: --api-keys FILE")
    print(create_key(path, name))
    info(f"{path}: added the key {name}; it is shown only now, and the file has only its hash")
