"""Several processes that train one model together, on one machine or on several, started by torchrun.

Each process has a copy of the model and reads the same texts. The pieces of a batch do not depend on the number of
processes. Each process computes the gradients of its pieces, gradients are summed over all processes, and each process
takes the same step. What depends on a clock, a file or a signal is decided by process 0 or by all processes together.

Gradients are summed by one all-reduce per bucket of parameters after the backward pass, and not by
`DistributedDataParallel`: a process may have several pieces of a batch or none, and a parameter without a gradient in any
piece must remain without one, so that the optimizer skips it as it does in one process.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from dragoman.core.errors import DataError, DragomanError, shorten
from dragoman.core.processes import local_rank, on_one_machine, process_count, process_rank
from dragoman.training.process_store import TIMEOUT, agree_on_prefix

T = TypeVar("T")

BUCKET_BYTES = 25 << 20  # of gradients that are summed at a time, as in DistributedDataParallel
LOOPBACK = "lo"  # the network interface within a machine
REPORT_DELAY = 0.3  # seconds in which process 0 may report an error that all processes have
REPORTS = "error reports"  # key of the store: how many processes have failed


class Communicator(Protocol):
    """The processes that train together. All of them call the same methods in the same order."""

    rank: int  # of this process, from 0
    world_size: int  # number of processes

    @property
    def is_main(self) -> bool: ...  # whether this is process 0, which writes files and messages
    def share(self, number: int, /) -> range: ...  # which of so many pieces this process computes
    def owner(self, piece: int, /) -> int: ...  # rank of the process that computes a piece
    def sum_gradients(self, parameters: Sequence[nn.Parameter], loss: float, /) -> float: ...  # and the losses
    def sum(self, values: Sequence[float], /) -> list[float]: ...  # over processes
    def max(self, value: int, /) -> int: ...  # over processes
    def from_main(self, compute: Callable[[], T], /) -> T: ...  # a value of plain JSON types, or an error
    def broadcast(self, tensors: Mapping[str, Tensor], source: int = 0) -> Mapping[str, Tensor]: ...
    def shared_clock(self, clock: Callable[[], float], /) -> Callable[[], float]: ...  # that of process 0
    def local_device(self, device: str, /) -> str: ...  # of this process


class SingleProcess:
    """A process that trains by itself."""

    rank, world_size, is_main = 0, 1, True

    def share(self, number: int, /) -> range:
        return range(number)

    def owner(self, piece: int, /) -> int:
        return 0

    def sum_gradients(self, parameters: Sequence[nn.Parameter], loss: float, /) -> float:
        return loss

    def sum(self, values: Sequence[float], /) -> list[float]:
        return list(values)

    def max(self, value: int, /) -> int:
        return value

    def from_main(self, compute: Callable[[], T], /) -> T:
        return compute()

    def broadcast(self, tensors: Mapping[str, Tensor], source: int = 0) -> Mapping[str, Tensor]:
        return tensors

    def shared_clock(self, clock: Callable[[], float], /) -> Callable[[], float]:
        return clock

    def local_device(self, device: str, /) -> str:
        return device


class ProcessLostError(DragomanError):
    """Another process has ended, or does not answer."""


class ProcessGroup:
    """The processes of torch's default process group.

    Args:
        control: The group for numbers and tensors in main memory.
    """

    def __init__(self, control: dist.ProcessGroup | None = None):
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        self._control = control

    @property
    def is_main(self) -> bool:
        return self.rank == 0

    def share(self, number: int, /) -> range:
        return range(self.rank, number, self.world_size)

    def owner(self, piece: int, /) -> int:
        return piece % self.world_size

    def sum_gradients(self, parameters: Sequence[nn.Parameter], loss: float, /) -> float:
        """Replace gradients by their sums over processes, and return the sum of the losses.

        A parameter that has no gradient in any process is left without one.
        """
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        total, *counts = self.sum([loss, *(float(parameter.grad is not None) for parameter in trained)])
        used = [parameter for parameter, count in zip(trained, counts, strict=True) if count]
        summed = []
        for bucket in _buckets(used):
            flat = torch.cat([_gradient(parameter).reshape(-1) for parameter in bucket])
            with self._connection_errors():
                summed.append((bucket, flat, dist.all_reduce(flat, async_op=True)))
        for bucket, flat, work in summed:
            assert work is not None
            with self._connection_errors():
                work.wait()
            parts = flat.split([parameter.numel() for parameter in bucket])
            for parameter, part in zip(bucket, parts, strict=True):
                parameter.grad = part.view_as(parameter)
        return total

    def sum(self, values: Sequence[float], /) -> list[float]:
        return self._reduce(torch.tensor(values, dtype=torch.float64), dist.ReduceOp.SUM)

    def max(self, value: int, /) -> int:
        return int(self._reduce(torch.tensor([value], dtype=torch.int64), dist.ReduceOp.MAX)[0])

    def _reduce(self, values: Tensor, operation: Any) -> list[float]:
        with self._connection_errors():
            dist.all_reduce(values, operation, group=self._control)
        return values.tolist()

    def from_main(self, compute: Callable[[], T], /) -> T:
        """Return what process 0 computes, or raise its error.  Lists take the place of tuples."""
        failure: DragomanError | None = None
        answer: dict[str, Any] = {}
        if self.is_main:
            try:
                answer = {"value": compute()}
            except DragomanError as error:
                failure, answer = error, {"error": str(error), "is_data_error": isinstance(error, DataError)}
        answer = self._broadcast_json(answer, 0)
        if failure is not None:
            raise failure
        if "error" in answer:
            raise (DataError if answer["is_data_error"] else DragomanError)(answer["error"])
        value: T = answer["value"]
        return value

    def broadcast(self, tensors: Mapping[str, Tensor], source: int = 0) -> Mapping[str, Tensor]:
        """Return the tensors of one process, in main memory. Those of the other processes are not used."""
        shapes = {name: [str(tensor.dtype).removeprefix("torch."), *tensor.shape] for name, tensor in tensors.items()}
        received: dict[str, Tensor] = {}
        for name, (dtype, *shape) in self._broadcast_json(shapes, source).items():
            is_source = self.rank == source
            tensor = tensors[name].detach().cpu() if is_source else torch.empty(shape, dtype=getattr(torch, dtype))
            received[name] = tensor.contiguous()
            self._broadcast_bytes(received[name].reshape(-1).view(torch.uint8), source)
        return received

    def _broadcast_json(self, value: dict[str, Any], source: int) -> dict[str, Any]:
        data = bytearray(json.dumps(value).encode()) if self.rank == source else bytearray()
        length = torch.tensor([len(data)])
        self._broadcast_bytes(length, source)
        text = torch.zeros(int(length), dtype=torch.uint8)
        if self.rank == source:
            text = torch.frombuffer(data, dtype=torch.uint8)
        self._broadcast_bytes(text, source)
        result: dict[str, Any] = json.loads(text.numpy().tobytes())
        return result

    def _broadcast_bytes(self, tensor: Tensor, source: int) -> None:
        if tensor.numel():
            with self._connection_errors():
                dist.broadcast(tensor, source, group=self._control)

    def shared_clock(self, clock: Callable[[], float], /) -> Callable[[], float]:
        """Return a clock that all processes read together, and that shows them the time of process 0."""

        def seconds() -> float:
            reading = torch.tensor([clock()], dtype=torch.float64)
            self._broadcast_bytes(reading, 0)
            return float(reading)

        return seconds

    def local_device(self, device: str, /) -> str:
        """Return the GPU of this process: the first process of a machine has the first one, and so on."""
        if device.startswith("cuda:"):
            raise DataError(f"device {device!r}: each of several processes has its own GPU; use cuda")
        return f"cuda:{local_rank()}" if device == "cuda" else device

    @contextmanager
    def _connection_errors(self) -> Iterator[None]:
        """Turn errors of torch's communication into one that says what has happened."""
        try:
            yield
        except RuntimeError as error:
            first_sentence = str(error).strip().splitlines()[0].partition(". ")[0]
            reason = shorten(re.sub(r"\[\S*/\S*:\d+\] ", "", first_sentence), 120)
            what = f"process {self.rank} of {self.world_size} has lost the connection to another process ({reason})"
            remedy = (
                "if that was not stopped on purpose, see its message; the same command resumes from the last checkpoint"
            )
            raise ProcessLostError(f"{what}; {remedy}") from error


def _buckets(parameters: Sequence[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """Yield neighbouring parameters of one type and device, so many that they are sent at once."""
    bucket, size = list[nn.Parameter](), 0
    for parameter in parameters:
        is_alike = not bucket or (parameter.dtype, parameter.device) == (bucket[0].dtype, bucket[0].device)
        if bucket and (size >= BUCKET_BYTES or not is_alike):
            yield bucket
            bucket, size = [], 0
        bucket.append(parameter)
        size += parameter.numel() * parameter.element_size()
    if bucket:
        yield bucket


def _gradient(parameter: nn.Parameter) -> Tensor:
    return torch.zeros_like(parameter, requires_grad=False) if parameter.grad is None else parameter.grad


# -- connecting --------------------------------------------------------------------------------------------------------

SINGLE_PROCESS = SingleProcess()
_connected: tuple[object, ProcessGroup] | None = None  # torch's default group, and its communicator
_store: Any = None  # shared by the processes, if they were connected here


def communicator(device: str = "cpu") -> Communicator:
    """Return the processes that train with this one.

    These are torch's default process group, if there is one. Otherwise, if this process was started by torchrun, it
    is connected to the others; this returns when all of them have called it.
    """
    global _connected
    if not dist.is_available():
        return SINGLE_PROCESS
    if not dist.is_initialized():
        if process_count() == 1:
            return SINGLE_PROCESS
        _connect(device)
    if dist.get_world_size() == 1:
        return SINGLE_PROCESS
    if _connected is None or _connected[0] is not dist.group.WORLD:
        has_cpu = "gloo" in str(dist.get_backend_config())
        control = None if has_cpu else dist.new_group(backend="gloo", timeout=TIMEOUT)
        _connected = dist.group.WORLD, ProcessGroup(control)
    return _connected[1]


def _connect(device: str) -> None:
    """Create torch's default process group, with gloo for main memory and nccl for GPUs."""
    global _store
    if on_one_machine() and (Path("/sys/class/net") / LOOPBACK).exists():
        os.environ.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK)  # so that no other machine can connect
    try:
        store, rank, world_size = next(rendezvous("env://", timeout=TIMEOUT))
        store = PrefixStore(f"attempt {agree_on_prefix(store, rank, world_size)}", store)
        backend = "cpu:gloo,cuda:nccl" if device.startswith("cuda") else "gloo"
        group_store = PrefixStore("group", store)
        dist.init_process_group(backend, store=group_store, rank=rank, world_size=world_size, timeout=TIMEOUT)
    except (RuntimeError, ValueError) as error:
        place = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        why = shorten(" ".join(str(error).split()), 120)
        remedy = "check that all of them were started, and that the machines can reach each other"
        raise DragomanError(f"process {process_rank()} cannot meet the others at {place} ({why}); {remedy}") from None
    _store = store


def disconnect() -> None:
    """Close the connections that `communicator` has made."""
    global _connected
    if _store is not None and dist.is_initialized():
        dist.destroy_process_group()
        _connected = None


def may_report(error: BaseException) -> bool:
    """Return whether this process reports its error: only the first one that fails does.

    The others fail because of it, or with the same error. Process 0 comes first if all have the same one. Before they
    are connected, the first process of each machine reports its error.
    """
    if _store is None:
        return local_rank() == 0
    if process_rank() and not isinstance(error, ProcessLostError):
        time.sleep(REPORT_DELAY)
    try:
        return int(_store.add(REPORTS, 1)) == 1
    except RuntimeError:
        return True  # the process that has the store was the first to end
