"""Entry point of the command `dragoman`.

Answers `--version` and `--help` with the standard library only. Any other command imports the modules it uses.
"""

import atexit
import gc
import os
import sys
from time import perf_counter

import dragoman
from dragoman.cli.commands import program_help
from dragoman.core.busy import set_wait_policy
from dragoman.core.memory import limit_kernel_caches

_start_time = perf_counter()  # of the command

# At exit Python searches for cyclic garbage several times. With torch and numba loaded this can take seconds, and the
# system frees the memory anyway.
atexit.register(gc.freeze)


def seconds_since_start() -> float:
    """Return the seconds since the command was started."""
    return perf_counter() - _start_time


def main(argv: list[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    global _start_time
    _start_time = perf_counter()
    arguments = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    try:
        if "_DRAGOMAN_COMPLETE" not in os.environ and arguments in (["--version"], ["--help"], ["-h"]):
            print(f"dragoman {dragoman.__version__}" if arguments == ["--version"] else program_help())
            code = 0
        else:
            from dragoman.cli.processes import prepare_process

            prepare_process(arguments)
            set_wait_policy()
            limit_kernel_caches()
            from dragoman.cli.app import run

            code = run(arguments)
        sys.stdout.flush()  # here, so that a full disk or a closed pipe is reported
        return code
    except BaseException as error:
        from dragoman.cli.errors import report_error

        return report_error(error)


if __name__ == "__main__":
    sys.exit(main())
