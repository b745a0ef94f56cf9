"""Run all campaigns, one after the other: `make torture`, or `make torture MINUTES=60`."""

from __future__ import annotations

import argparse
import subprocess
import sys

# Campaigns, and the share of the time that each may take.
CAMPAIGNS = {
    "crash_points": 0.25,
    "torn_writes": 0.2,
    "kills": 0.1,
    "concurrency": 0.05,
    "inputs": 0.2,
    "model_directories": 0.1,
    "service": 0.1,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=480.0, help="time for all campaigns")
    options = parser.parse_args()
    failed = []
    for name, share in CAMPAIGNS.items():
        print(f"== {name}", flush=True)
        command = [sys.executable, "-m", f"torture.{name}", "--minutes", f"{share * options.minutes:g}"]
        if subprocess.run(command, check=False).returncode != 0:
            failed.append(name)
    print(f"problems in: {', '.join(failed)}" if failed else "no problems")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
