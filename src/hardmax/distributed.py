"""Several processes on one problem: the group of processes, and their exchange of numbers.

The processes are started by ``torchrun`` (or anything else that sets its environment variables) and communicate by
:mod:`torch.distributed`: by gloo for tensors on the CPU, by nccl for tensors on a GPU. A process that dies closes its
connections, so the others raise an error at their next exchange; for one that hangs they do so after a timeout.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist

from .errors import HardmaxError, InputError, ProcessError
from .inputs import as_positive

if TYPE_CHECKING:
    from torch._C._distributed_c10d import PrefixStore, TCPStore

# How long the first process waits for the last to start.
_JOIN_SECONDS = 30.0
_JOINED = itertools.count()
_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_Rows = TypeVar("_Rows", torch.Tensor, np.ndarray)


@dataclass(frozen=True, eq=False)
class Processes:
    """The processes of a group that works on one problem; returned by :func:`processes`."""

    rank: int
    """Number of this process, from 0."""
    count: int
    """Number of processes."""
    device: torch.device
    """Device of this process: its own GPU if there is one, otherwise the CPU."""

    @property
    def first(self) -> bool:
        """Whether this process has rank 0, which writes files and prints."""
        return self.rank == 0

    def __deepcopy__(self, memo: dict[int, Any]) -> Processes:
        return self  # connections cannot be copied, and estimators copy their settings

    def part(self, total: int) -> slice:
        """Rows of this process: equal parts, in the order of ranks.

        Parameters
        ----------
        total
            Number of rows of all processes.

        Returns
        -------
        slice
            First row, and one past the last.
        """
        return slice(self.rank * total // self.count, (self.rank + 1) * total // self.count)

    def share(self, rows: _Rows) -> _Rows:
        """Rows of this process from an array that every process has.

        Parameters
        ----------
        rows
            Array or tensor with at least one row per process.

        Returns
        -------
        array or tensor
            ``rows[self.part(len(rows))]``.

        Examples
        --------
        >>> ALONE.share(np.arange(3)).tolist()
        [0, 1, 2]
        """
        if len(rows) < self.count:
            raise InputError(
                "rows", f"{len(rows)} for {self.count} processes", "must be at least one each", "start fewer processes"
            )
        return rows[self.part(len(rows))]

    def gather(self, own: torch.Tensor) -> torch.Tensor:
        """Rows of all processes, in the order of ranks, on every process.

        Parameters
        ----------
        own
            Rows of this process; the number of rows may differ between processes.

        Returns
        -------
        Tensor
            All rows, with the dtype and device of ``own``.
        """
        if self.count == 1:
            return own
        if own.dtype == torch.bool:
            return self.gather(own.to(torch.uint8)).to(torch.bool)
        sizes = self.counts(len(own))
        whole = own.new_empty((sum(sizes), *own.shape[1:]))
        parts = list(torch.split(whole, sizes))
        parts[self.rank].copy_(own)
        if min(sizes) == max(sizes):
            self._exchange(partial(dist.all_gather, parts, own.contiguous()))
        else:
            for rank, part in enumerate(parts):
                if len(part):
                    self._exchange(partial(dist.broadcast, part, src=rank))
        return whole

    def counts(self, own: int) -> list[int]:
        """Integers passed by all processes, in the order of ranks.

        Parameters
        ----------
        own
            Integer of this process.

        Returns
        -------
        list of int
            One integer per process.
        """
        if self.count == 1:
            return [own]
        told = torch.zeros(self.count, dtype=torch.int64)
        told[self.rank] = own
        self._exchange(partial(dist.all_reduce, told))
        return [int(number) for number in told]

    def largest(self, value: float) -> float:
        """Largest of the numbers that the processes passed.

        Parameters
        ----------
        value
            Number of this process.

        Returns
        -------
        float
            The same on every process.
        """
        if self.count == 1:
            return value
        told = torch.tensor([value], dtype=torch.float64)
        self._exchange(partial(dist.all_reduce, told, op=dist.ReduceOp.MAX))
        return float(told)

    def add(self, tensor: torch.Tensor) -> None:
        """Replace a tensor, in place, by the sum over the processes.

        Parameters
        ----------
        tensor
            Tensor of this process, of the same shape on every process.
        """
        if self.count > 1:
            self._exchange(partial(dist.all_reduce, tensor))

    def words(self, own: str) -> list[str]:
        """Texts passed by all processes, in the order of ranks.

        Parameters
        ----------
        own
            Text of this process.

        Returns
        -------
        list of str
            One text per process.
        """
        data = torch.tensor(list(own.encode()), dtype=torch.uint8)
        sizes = self.counts(len(data))
        return [bytes(part.tolist()).decode() for part in torch.split(self.gather(data), sizes)]

    def agree(self, **values: object) -> None:
        """Raise an InputError on every process unless all passed the same values.

        Parameters
        ----------
        **values
            Arguments by name; arrays are compared to the last bit.
        """
        if self.count == 1:
            return
        own = {name: [str(value), fingerprint(value)] for name, value in values.items()}
        told = [json.loads(text) for text in self.words(json.dumps(own))]
        for name in values:
            theirs = [one.get(name, ["nothing", ""]) for one in told]
            if len({mark for _, mark in theirs}) > 1:
                alike = len({shown for shown, _ in theirs}) == 1
                shown = [f"{text} (numbers {mark[:8]})" if alike else text for text, mark in theirs]
                found = ", ".join(f"{text} in process {rank}" for rank, text in enumerate(shown))
                raise InputError(name, found, "must be the same in every process", "pass the same to all of them")

    @contextmanager
    def together(self) -> Iterator[None]:
        """Context in which an error of one process is raised on all, so that no process waits for it.

        Yields
        ------
        None
            The block is run by every process.
        """
        problem: HardmaxError | None = None
        try:
            yield
        except HardmaxError as error:
            problem = error
        if self.count > 1:
            told = self.words("" if problem is None else str(problem))
            if problem is None and any(told):
                rank = next(rank for rank, text in enumerate(told) if text)
                raise ProcessError(f"process {rank} stopped: {told[rank]}", "correct its input and start again")
        if problem is not None:
            raise problem

    def _exchange(self, work: Callable[[], object]) -> None:
        try:
            work()
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, ValueError) as error:
            raise ProcessError(
                f"process {self.rank} of {self.count} lost its connection to the others ({_first_line(error)})",
                "one of them stopped: its own message says why; start all of them again",
            ) from error


ALONE = Processes(0, 1, torch.device("cpu"))
"""The group of a single process."""


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def fingerprint(value: object) -> str:
    """SHA-256 of a value down to the last bit of its arrays, equal in every process that has the same value.

    >>> fingerprint(np.eye(2)) == fingerprint(torch.eye(2, dtype=torch.float64)), fingerprint(1.0) == fingerprint(1.5)
    (True, False)
    """
    return hashlib.sha256("".join(_spelled(value)).encode()).hexdigest()


def _spelled(value: object) -> Iterator[str]:
    """Parts of a value as text: fields of dataclasses and entries of collections, one after the other."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().contiguous()
        value = value.numpy() if value.dtype != torch.bfloat16 else value.float().numpy()
    if isinstance(value, np.ndarray):
        data = np.ascontiguousarray(value)
        yield f"array {data.dtype.str} {data.shape} {hashlib.sha256(data.tobytes()).hexdigest()};"
    elif is_dataclass(value) and not isinstance(value, type):
        yield f"{type(value).__qualname__}("
        for field in fields(value):
            yield f"{field.name}="
            yield from _spelled(getattr(value, field.name))
        yield ");"
    elif isinstance(value, Mapping):
        yield "{"
        for key in sorted(value, key=repr):
            yield f"{key!r}:"
            yield from _spelled(value[key])
        yield "};"
    elif isinstance(value, list | tuple):
        yield "["
        for entry in value:
            yield from _spelled(entry)
        yield "];"
    else:
        yield f"{value};"


def launched() -> bool:
    """Whether this process was started as one of several, by ``torchrun`` or a similar launcher."""
    return all(os.environ.get(name) for name in _VARIABLES)


@contextmanager
def processes(*, timeout: float = 600.0) -> Iterator[Processes]:
    """Context that joins the other processes of the group for the length of the block.

    Start the script by ``torchrun --nproc-per-node 2 script.py``; started without ``torchrun`` it is a group of one
    process. Functions and estimators with the parameter ``processes`` (:func:`hardmax.equilibrium`,
    :func:`hardmax.simulate`, :class:`hardmax.LeaderClassifier`) split their work over the group.

    Parameters
    ----------
    timeout
        Seconds after which a process that does not answer raises an error in the others; a process that exits does so
        at once.

    Yields
    ------
    Processes
        The group, to be passed as ``processes=``.

    Examples
    --------
    >>> with processes() as ranks:
    ...     ranks.rank, ranks.count
    (0, 1)
    """
    patience = timedelta(seconds=as_positive("timeout", timeout))
    if dist.is_available() and dist.is_initialized():
        yield Processes(dist.get_rank(), dist.get_world_size(), _device())
        return
    if not launched():
        yield ALONE
        return
    rank, count = _whole("RANK"), _whole("WORLD_SIZE")
    if not 0 <= rank < count:
        raise InputError("RANK", rank, f"must lie below WORLD_SIZE = {count}", "start the processes by torchrun")
    if not dist.is_available():
        raise ProcessError("this build of torch has no torch.distributed", "install a build that has it")
    store = _joined_store(rank, count)
    device = _device()
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    try:
        dist.init_process_group(backend, store=store, rank=rank, world_size=count, timeout=patience)
    except RuntimeError as error:
        raise ProcessError(
            f"process {rank} of {count} cannot reach the others ({_first_line(error)})",
            "check that they can reach one another over the network",
        ) from error
    try:
        yield Processes(rank, count, device)
    finally:
        dist.destroy_process_group()


def _whole(variable: str) -> int:
    text = os.environ[variable]
    if not text.isdecimal():
        raise InputError(variable, repr(text), "must be a whole number", "start the processes by torchrun")
    return int(text)


def _device() -> torch.device:
    if not (torch.cuda.is_available() and dist.is_nccl_available()):
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


@cache
def _shared_store(rank: int) -> TCPStore:
    """Store that the processes share until they exit."""
    from torch._C._distributed_c10d import TCPStore

    # torchrun runs the store itself; without torchrun the first process does.
    is_master = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    host, port, patience = os.environ["MASTER_ADDR"], _whole("MASTER_PORT"), timedelta(seconds=_JOIN_SECONDS)
    return TCPStore(host, port, is_master=is_master, timeout=patience, wait_for_workers=False)


def _joined_store(rank: int, count: int) -> PrefixStore:
    """Store of the group, once all processes have joined and agree on their number."""
    from torch._C._distributed_c10d import PrefixStore  # not in every build

    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    remedy = "start as many processes as WORLD_SIZE says, all with the same WORLD_SIZE and another RANK each"
    ends = time.monotonic() + _JOIN_SECONDS
    try:
        # A prefix per join, so that keys of an earlier group are not read.
        store = PrefixStore(f"hardmax/{attempt}/{next(_JOINED)}", _shared_store(rank))
        if store.add(f"taken/{rank}", 1) > 1:
            raise InputError("RANK", rank, "is the number of two processes", remedy)
        store.set(f"count/{rank}", str(count))
        for other in range(count):
            store.wait([f"count/{other}"], timedelta(seconds=max(0.1, ends - time.monotonic())))
            theirs = int(store.get(f"count/{other}"))
            if theirs != count:
                found = f"{count} in process {rank} and {theirs} in process {other}"
                raise InputError("WORLD_SIZE", found, "must be the same in every process", remedy)
    except RuntimeError as error:
        raise ProcessError(f"the {count} processes did not all join ({_first_line(error)})", remedy) from error
    return store
