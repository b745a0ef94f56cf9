"""Damaged files."""

from __future__ import annotations

import random


def damaged(whole: bytes, generator: random.Random, characters: bytes, max_changes: int) -> bytes:
    """Return a file in which some bytes are replaced, removed or repeated."""
    raw = bytearray(whole)
    for _ in range(generator.randrange(1, max_changes + 1)):
        place = generator.randrange(len(raw) + 1)
        match generator.randrange(3):
            case 0:
                raw[place : place + 1] = bytes([generator.choice(characters)])
            case 1:
                del raw[place : place + generator.randrange(1, 30)]
            case 2:
                raw[place:place] = raw[place : place + generator.randrange(1, 60)]
    return bytes(raw)
