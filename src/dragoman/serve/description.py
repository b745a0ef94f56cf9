"""The OpenAPI description, with the limits of this service."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from dragoman.serve import RequestLimits


def describe_api(app: FastAPI, limits: RequestLimits) -> dict[str, Any]:
    """Return the OpenAPI description of an application whose requests have limits."""
    n = min(limits.alternatives + 1, limits.beam)
    by_field = {
        "beam": {"minimum": 1, "maximum": limits.beam},
        "n": {"maximum": n},
        "alternatives": {"maximum": n - 1},
        "texts": {"maxItems": limits.texts},
        "q": {"maxItems": limits.texts},
    }
    description = app.openapi()
    schemas = [schema for name, schema in description["components"]["schemas"].items() if name.endswith("Request")]
    for operations in description["paths"].values():
        for operation in operations.values():
            schemas += [content["schema"] for content in operation.get("requestBody", {}).get("content", {}).values()]
    for schema in schemas:
        for field, bounds in by_field.items():
            _add_bounds(schema.get("properties", {}).get(field, {}), bounds)
    return description


def _add_bounds(schema: dict[str, Any], bounds: dict[str, int]) -> None:
    """Add bounds to a schema of numbers or lists, or to the alternatives of a schema that are such."""
    for alternative in schema.get("anyOf", [schema]):
        if alternative.get("type") == ("array" if "maxItems" in bounds else "integer"):
            alternative.update(bounds)
