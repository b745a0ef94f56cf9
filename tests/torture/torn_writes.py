"""What a power failure can leave of a writing command, at each of its file operations, and whether it recovers.

    python -m torture.torn_writes [--minutes M] [COMMAND ...]

The command runs once. Before each of its file operations, the states of the disk are saved that are possible if the
power fails at this moment:

- synced: only what was synchronised with fsync has survived, of files and of directories.
- truncated: all names have survived, but what was not synchronised of the files is cut off at a page boundary.
- zeroed: all names and lengths have survived, but what was not synchronised of the files is zero.

In each state the command is run again. It must end as a run that was never disturbed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISDIR
from time import perf_counter

from torture.commands import COMMANDS, run_forked
from torture.crash_points import Campaign, FileOperations, campaigns

PAGE = 4096
VARIANTS = ("synced", "truncated", "zeroed")


@dataclass
class Node:
    """A file or directory, with what is known to be on the disk of it."""

    is_directory: bool
    content: bytes | None = None  # of a file, when it was synchronised; None: never
    entries: dict[str, Node] = field(default_factory=dict)  # of a directory, when it was synchronised


class DiskModel:
    """What is on the disk of the files below a directory."""

    def __init__(self, root: Path):
        self.root, self._nodes = root, dict[int, Node]()
        for path in [*sorted(root.rglob("*"), reverse=True), root]:  # everything that is there is on the disk
            self.synchronised(path)

    def _node(self, path: Path) -> Node:
        status = path.stat(follow_symlinks=False)
        node, is_directory = self._nodes.get(status.st_ino), S_ISDIR(status.st_mode)
        if node is None or node.is_directory != is_directory:
            node = self._nodes[status.st_ino] = Node(is_directory)
        return node

    def synchronised(self, path: Path) -> None:
        """Note that a file or directory is synchronised with the disk."""
        node = self._node(path)
        if node.is_directory:
            node.entries = {child.name: self._node(child) for child in path.iterdir()}
        else:
            node.content = path.read_bytes()

    def removed(self, path: Path) -> None:
        """Note that a file or directory is about to be removed: its number may be used again."""
        if path.exists():
            self._nodes.pop(path.stat(follow_symlinks=False).st_ino, None)

    def write(self, target: Path, variant: str) -> None:
        """Write a state that is possible after a power failure."""
        if variant == "synced":
            _write_synced(self._node(self.root), target)
        else:
            self._write_current(self.root, target, variant)

    def _write_current(self, path: Path, target: Path, variant: str) -> None:
        node = self._node(path)
        if node.is_directory:
            target.mkdir()
            for child in path.iterdir():
                self._write_current(child, target / child.name, variant)
            return
        content = path.read_bytes()
        if content != node.content:
            old = node.content or b""
            kept = old if content.startswith(old) else b""  # a file is written again, or lines are added
            if variant == "truncated":
                content = content[: max(len(kept), (len(content) - 1) // PAGE * PAGE)] if kept else b""
            else:
                content = kept + bytes(len(content) - len(kept))
        target.write_bytes(content)


def _write_synced(node: Node, target: Path) -> None:
    if node.is_directory:
        target.mkdir()
        for name, child in node.entries.items():
            _write_synced(child, target / name)
    else:
        target.write_bytes(node.content or b"")


@dataclass
class PowerFailures(FileOperations):
    """Saves the possible states of the disk before each file operation."""

    states: Path = Path()

    def install(self) -> None:
        self._disk: DiskModel | None = None
        self._busy = True
        super().install()
        self._disk = DiskModel(Path(self.directory))
        self._busy = False

    def _count(self, name: str, path: str) -> None:
        if self._disk is None or self._busy or not self.is_inside(path):
            return
        self._busy = True  # what follows is not an operation of the command
        self.names.append(name)
        for variant in VARIANTS:
            self._disk.write(self.states / f"{len(self.names):04}-{variant}", variant)
        if name == "fsync":
            self._disk.synchronised(Path(path))
        elif name in ("os.remove", "os.rmdir"):
            self._disk.removed(Path(path))
        self._busy = False


def try_power_failures(campaign: Campaign, end: float, every: int = 1) -> None:
    """Save all states that a power failure can leave, and run the command again in each, or in every n-th."""
    expected = campaign.undisturbed()
    place, states = campaign.start("disturbed"), campaign.directory / "states"
    shutil.rmtree(states, ignore_errors=True)
    states.mkdir()
    operations = PowerFailures(f"{place}{os.sep}", 0, lambda: None, states=states)
    finished = run_forked(campaign.arguments, place, operations.install)
    if finished.code != 0:
        campaign.note(f"ended with {finished.code}: {finished.last_line}")
    for state in sorted(states.iterdir())[::every]:
        if perf_counter() < end:
            campaign.check_second_run(state, expected, f"power failure {state.name}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commands", nargs="*", default=list(COMMANDS), help="commands to try, by default all")
    parser.add_argument("--minutes", type=float, default=600.0, help="stop after this time")
    options = parser.parse_args()
    end, tried, problems = perf_counter() + 60 * options.minutes, 0, list[str]()
    for command in options.commands:
        for campaign in _each_campaign(command):
            try_power_failures(campaign, end)
            what = f"{campaign.name}: {campaign.tried} states, {len(campaign.states)} of them different"
            print(what, *campaign.problems, sep="\n  ", flush=True)
            tried += campaign.tried
            problems += campaign.problems
    print(f"{tried:,} states, {len(problems)} problems")
    return 1 if problems else 0


def _each_campaign(command: str) -> Iterator[Campaign]:
    with tempfile.TemporaryDirectory() as directory:
        yield from campaigns(Path(directory), [command])


if __name__ == "__main__":
    sys.exit(main())
