"""What the processor can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def cpu_capabilities() -> Mapping[str, Any]:
    """Return the name and the instructions of the processor; empty for versions of torch that do not report them."""
    import torch

    capabilities: Mapping[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return capabilities
