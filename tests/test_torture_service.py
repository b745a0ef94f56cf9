"""A short sample of the attacks on the service; `python -m torture.service` runs them for longer."""

from __future__ import annotations

from torture.service import run_campaign


def test_service_survives_attacks() -> None:
    assert run_campaign(8, seed=1) == []
