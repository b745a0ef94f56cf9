"""The FastAPI application: both APIs, the page, and error responses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, Match, Mount
from starlette.types import ASGIApp

from dragoman.core.errors import DragomanError
from dragoman.serve import libretranslate, v1
from dragoman.serve.access import ClientMiddleware
from dragoman.serve.description import describe_api
from dragoman.serve.errors import BAD_REQUEST, METHOD_NOT_ALLOWED, invalid_request
from dragoman.serve.middleware import LOCAL_HOSTS, RequestLimitMiddleware, SecurityMiddleware
from dragoman.serve.service import Service

PAGE = Path(__file__).parent / "page"
STATIC_METHODS, METHODS = ("GET", "HEAD"), ("GET", "HEAD", "POST")  # of the files of the page; of all routes


def create_app(
    service: Service,
    *,
    allowed_hosts: Sequence[str] = LOCAL_HOSTS,
    cors_origin: str | None = None,
    version: str = "1",
    log_request: Callable[[str], None] | None = None,
) -> ASGIApp:
    """Return the application with its middleware.

    The middleware is not added to the FastAPI object, because there it would not see responses to unexpected errors.

    Args:
        allowed_hosts: host names that the service answers for; `*` for any.
        cors_origin: another origin whose pages may send requests; `*` for any.
        log_request: called with a line for each request; None: requests are not logged.
    """
    limits = service.limits
    app: ASGIApp = RequestLimitMiddleware(_create_api(service, version), max_body=limits.body, seconds=limits.seconds)
    if cors_origin is not None:
        app = CORSMiddleware(
            app,
            allow_origins=[cors_origin],
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
        )
    app = SecurityMiddleware(app, max_body=limits.body, allowed_hosts=allowed_hosts, cors_origin=cors_origin)
    return ClientMiddleware(app, log_request)


def _create_api(service: Service, version: str) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.queue.close()

    app = FastAPI(
        title="dragoman",
        version=version,
        description="Language models and translators: the LibreTranslate API, and an API to look inside the models.",
        docs_url=None,  # FastAPI's documentation pages load scripts from other servers
        redoc_url=None,
        lifespan=lifespan,
        exception_handlers=dict.fromkeys(
            (HTTPException, RequestValidationError, DragomanError, Exception), _error_response
        ),
    )
    app.include_router(libretranslate.create_router(service))
    app.include_router(v1.create_router(service))

    @app.get("/spec", include_in_schema=False)
    def spec() -> dict[str, object]:
        return describe_api(app, service.limits)

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(PAGE / "index.html")

    app.mount("/page", StaticFiles(directory=PAGE), name="page")
    return app


async def _error_response(request: Request, error: Exception) -> JSONResponse:
    """Answer every error with `{"error": message}`."""
    status, message, headers = BAD_REQUEST, str(error), None
    if isinstance(error, HTTPException):
        status, message, headers = error.status_code, error.detail, error.headers
        if status == METHOD_NOT_ALLOWED:
            headers = {"Allow": ", ".join(_allowed_methods(request.app.routes, request.scope["path"]))}
    elif isinstance(error, RequestValidationError):
        message = invalid_request(error.errors()[0])
        if request.method == "POST" and "json" not in request.headers.get("content-type", ""):
            message = "send JSON, with the header Content-Type: application/json"
    elif not isinstance(error, DragomanError):
        status, message = 500, "internal error; see the service's log"
    return JSONResponse({"error": message}, status, headers)


def _allowed_methods(routes: Sequence[BaseRoute], path: str) -> list[str]:
    """Return the methods of all routes with a path. Starlette reports those of the first route only."""

    def is_allowed(method: str) -> bool:
        scope = {"type": "http", "path": path, "root_path": "", "method": method, "headers": []}
        matching = (route for route in routes if route.matches(scope)[0] == Match.FULL)
        return any(not isinstance(route, Mount) or method in STATIC_METHODS for route in matching)

    return [method for method in METHODS if is_allowed(method)]
