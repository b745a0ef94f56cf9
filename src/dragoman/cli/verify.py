"""dragoman verify"""

from __future__ import annotations

import typer

from dragoman.cli import options
from dragoman.cli.errors import FAILED


def verify(models: options.Models) -> None:
    """Check that model directories are complete and undamaged.

    Checks the SHA-256 digests of all files, the structure of the model and of the models inside it, and that its
    distributions are finite and sum to one: all contexts of n-gram tables, and sampled contexts of any model. Also
    checks aligners and directories of two translators.

    Prints one line for each directory, or one for each problem. The exit code is 1 if there is a problem.

    Loading a model checks its structure and the digests of files up to 64 MB. This command checks the rest.

    \b
    Example:
      dragoman verify kn5 de-en
    """
    from dragoman.models.verification import verify as verify_directory

    results = [verify_directory(path) for path in models]
    for result in results:
        print(result)
    if any(result.problems for result in results):
        raise typer.Exit(FAILED)
