"""A check for schemathesis: requests that fit the OpenAPI description are refused for few reasons only.

What is refused otherwise depends on the models that are served, or on two fields together.
"""

from __future__ import annotations

import re

import schemathesis
from schemathesis import Case, CheckContext, Response

REASONS = re.compile("no translator from|this request needs|give a source|prefix|is blank|more than 250 tokens")


@schemathesis.check
def refused_for_a_known_reason(context: CheckContext, response: Response, case: Case) -> bool | None:
    """Raise an error if a request that fits the description is refused for another reason."""
    fits = case.meta is not None and case.meta.generation.mode.is_positive
    if fits and response.status_code == 400 and not REASONS.search(response.text):
        raise AssertionError(f"a request that fits the description is refused: {response.text[:300]}")
    return None
