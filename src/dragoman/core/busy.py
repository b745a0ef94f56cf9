"""How torch's threads wait for each other, depending on whether other programs use the cores.

The threads (of GNU OpenMP) wait in busy loops at the end of each parallel part. On an idle machine that is the fastest way:
giving up the core costs a fifth of the speed of training. If another program needs a core, the loops take it away
from the thread that the others wait for, and training is at 40 % of its speed. The policy is read when torch is
imported and cannot be changed later.
"""

from __future__ import annotations

import os
from pathlib import Path
from time import sleep

WAIT_SETTINGS = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")  # set by the user
LOAD_FILE = Path("/proc/loadavg")  # the fourth value is RUNNING/ALL threads of the system
MIN_OTHERS = 0.5  # threads that compete with ours, on average
SAMPLES, INTERVAL = 5, 0.001  # seconds between samples


def set_wait_policy() -> None:
    """Let threads give up their cores while they wait, if other programs use cores that the threads need.

    Must be called before torch is imported. Does nothing if the user has set a policy.
    """
    if any(name in os.environ for name in WAIT_SETTINGS):
        return
    all_cores = os.cpu_count() or 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else all_cores
    given = os.environ.get("OMP_NUM_THREADS", "")
    threads = int(given) if given.isdecimal() and int(given) else cores
    others = other_running_threads() * cores / all_cores  # on the cores that this process may use
    if threads > 1 and others >= cores - threads + MIN_OTHERS:
        os.environ["GOMP_SPINCOUNT"] = "0"


def other_running_threads() -> int:
    """Return how many threads of other programs run all the time; 0 if the system does not tell."""
    counts = []
    for number in range(SAMPLES):
        if number:
            sleep(INTERVAL)
        try:
            running = LOAD_FILE.read_text(encoding="ascii").split()[3].partition("/")[0]
            counts.append(int(running) - 1)  # without this thread
        except (OSError, ValueError, IndexError):
            return 0
    return min(counts)
