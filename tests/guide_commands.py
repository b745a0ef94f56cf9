"""The commands in the code blocks of a guide."""

from __future__ import annotations

import re
from pathlib import Path

GUIDES = Path(__file__).parent.parent / "docs" / "guides"


def guide_commands(page: str) -> list[str]:
    """Return the lines of blocks without a language, without comments; of blocks with output, those after `$ `."""
    blocks = re.findall(r"^```\n(.*?)^```$", (GUIDES / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    commands = []
    for block in blocks:
        lines = re.sub(r"\\\n\s*", "", block).splitlines()
        has_output = any(line.startswith("$ ") for line in lines)
        commands += [line.removeprefix("$ ") for line in lines if line.startswith("$ ") or not has_output]
    return [re.sub(r"\s+# .*", "", command) for command in commands]
