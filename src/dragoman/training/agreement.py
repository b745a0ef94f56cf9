"""What processes that train together must agree on: texts, model, output, and whether a training run is replaced."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import nn

from dragoman.core.errors import DataError
from dragoman.core.processes import was_restarted
from dragoman.data.corpus import Corpus, ParallelCorpus
from dragoman.training.distributed import Communicator
from dragoman.training.process_store import has_replaced
from dragoman.training.protocols import Examples, StorableModel


def check_same_data(
    processes: Communicator, model: nn.Module, texts: Mapping[str, Examples | None], output: str | Path | None
) -> None:
    """Raise an error unless all processes have the same texts, the same model, and an output directory or none."""
    if processes.world_size == 1:
        return
    contents: dict[str, object] = {
        f"{name} text": [text.fingerprint() if isinstance(text, Corpus | ParallelCorpus) else text.sizes.tolist()]
        for name, text in texts.items()
        if text is not None
    }
    contents["parameters"] = [[name, str(tensor.dtype), *tensor.shape] for name, tensor in model.state_dict().items()]
    contents["model settings"] = model.settings.model_dump(mode="json") if isinstance(model, StorableModel) else None
    contents["output directory"] = output is not None
    main = processes.from_main(lambda: contents)
    names = [*(f"{name} text" for name in texts), "model settings", "parameters", "output directory"]
    counts = processes.sum([contents.get(name) != main.get(name) for name in names])
    if different := [name for name, count in zip(names, counts, strict=True) if count]:
        remedy = "give all of them the same command and the same files"
        raise DataError(f"the processes do not have the same {', '.join(different)}; {remedy}")


def replaces_run(processes: Communicator, output: str | Path | None, *, force: bool) -> bool:
    """Return whether a training run in a directory is replaced: if process 0 has `force`.

    If torchrun has restarted this job, the run that it has begun is resumed. It is replaced if the job failed before
    that.
    """
    is_restarted = bool(processes.max(int(was_restarted())))

    def is_left() -> bool:
        return not (is_restarted and output is not None and has_replaced(Path(output)))

    return processes.from_main(lambda: force and is_left())
