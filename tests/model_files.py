"""Changes of the files of model directories that their digests do not reveal."""

from __future__ import annotations

from pathlib import Path

import yaml
from safetensors.numpy import load_file, save_file


def remove_digests(directory: Path) -> None:
    """Make a model directory, and the models inside it, look like one of an earlier version."""
    for path in directory.rglob("config.yaml"):
        if not path.is_symlink():
            config = yaml.safe_load(path.read_text(encoding="utf-8"))
            config.pop("files", None)
            path.write_text(yaml.safe_dump(config, sort_keys=False, allow_unicode=True), encoding="utf-8")
    for path in directory.rglob("*.safetensors"):
        save_file(load_file(path), path)
