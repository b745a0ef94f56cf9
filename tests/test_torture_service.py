"""A short sample of the attacks on the service; `python -m torture.service` runs them for longer."""

from __future__ import annotations

import pytest

from torture.service import run_campaign

pytestmark = pytest.mark.slow


def test_service_survives_attacks() -> None:
    assert run_campaign(8, seed=1) == []
