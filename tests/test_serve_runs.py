"""What the service tells of runs: how trainings go, reports, and models that come later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman import Corpus, NgramModel
from dragoman.serve.app import create_app
from dragoman.serve.limits import RequestLimits
from dragoman.serve.registry import ModelRegistry
from dragoman.serve.runs import MAX_ENTRIES, read_metrics
from dragoman.serve.service import Service


@pytest.fixture
def model() -> NgramModel:
    return NgramModel.train(Corpus.from_sentences(["a b c", "a c"]), order=1, smoothing="witten-bell")


def refused(answer: Any, told: str) -> None:
    assert answer.status_code == 404 and told in answer.json()["error"]


def test_of_a_long_training_some_entries_are_told_the_last_among_them(tmp_path: Path) -> None:
    entries = [
        {"update": n, "train_loss": 1.0} | ({"dev_loss": 2.0} if n % 10 == 0 else {}) for n in range(3 * MAX_ENTRIES)
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    told = read_metrics(tmp_path / "metrics.jsonl")
    assert len(told) < 2 * MAX_ENTRIES and told == sorted(told, key=lambda entry: int(entry["update"]))
    assert told[-1] == entries[-1] and [e for e in told if "dev_loss" in e] == entries[::10], "looks are few: all stay"


def test_the_report_of_a_run_and_models_that_come_later(tmp_path: Path, model: NgramModel) -> None:
    model.save(tmp_path / "rungs" / "kn-1")
    service = Service(ModelRegistry.from_arguments([f"night={tmp_path}"]), RequestLimits())
    with TestClient(create_app(service), base_url="http://127.0.0.1:5000") as web:
        assert web.get("/v1/runs").json() == {"runs": [{"name": "night", "report": False}]}
        refused(web.get("/v1/reports/night"), "night has no report.html")
        refused(web.get("/v1/reports/day"), "no run 'day'; there are night")
        refused(web.get("/v1/reports/night/../.."), "")
        model.save(tmp_path / "rungs" / "kn-2")
        (tmp_path / "rungs" / "half").mkdir()
        (tmp_path / "metrics.jsonl").write_text('{"update": 1}\n')
        (tmp_path / "report.html").write_text("<!DOCTYPE html><title>found</title>")
        assert [one["name"] for one in web.get("/v1/models").json()["models"]] == [
            "night/rungs/kn-1",
            "night/rungs/kn-2",
        ]
        assert web.get("/v1/metrics/night").json()["metrics"] == [{"update": 1}], "of models that are trained together"
        assert web.get("/v1/runs").json() == {"runs": [{"name": "night", "report": True}]}
        report = web.get("/v1/reports/night")
        assert report.text == "<!DOCTYPE html><title>found</title>" and report.headers["content-type"].startswith(
            "text/html"
        )
        policy = report.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script" not in policy and "sandbox" in policy
        (tmp_path / "rungs" / "half" / "config.yaml").write_text("kind: [")
        assert len(web.get("/v1/models").json()["models"]) == 2, "what is half there spoils nothing"
