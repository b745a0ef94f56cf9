"""`python -m dragoman` is the command `dragoman`."""

import sys

from dragoman.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
