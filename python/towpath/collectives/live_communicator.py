# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Data between live processes, for other programs: `connect`, `Communicator`."""

from __future__ import annotations

import atexit
import math
import os
import sys
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from towpath import _core
from towpath.collectives import launchers
from towpath.collectives.live_arrays import as_bytes, checked_out, like, shape_of, type_name
from towpath.collectives.live_plans import LivePlans, Request
from towpath.collectives.live_rank import abandon
from towpath.errors import ConfigError, TransportError

if TYPE_CHECKING:
    from types import TracebackType

_forks = 0  # of this process's ancestors since the first one imported this


def _note_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_note_fork)


def connect(
    job: str | None = None,
    rank: int | None = None,
    ranks: int | None = None,
    *,
    timeout_s: float = 30.0,
    heap_bytes: int | None = None,
    transport: str = "shm",
    token: str | None = None,
) -> Communicator:
    """Joins the processes that give the same job; returns when all are there.

    Args:
        job: a name of up to 64 bytes that no other group has at this time; over "ucx" it may be
            "HOST:PORT", where rank 0 listens for ranks of other hosts. None: $TOWPATH_JOB.
        rank: this process's number, from 0. None: what torchrun ($RANK), mpirun or srun says.
        ranks: how many processes take part. None: what the launcher says ($WORLD_SIZE).
        timeout_s: how long to wait for the others, in seconds; later, how long a call waits
            without any progress.
        heap_bytes: size of each rank's symmetric heap in bytes, the same on every rank; only what
            is touched takes memory. None: 64 GiB, or what RLIMIT_AS and RLIMIT_FSIZE allow.
        transport: what joins the ranks: "shm", the memory of this host; "ucx", the network between
            hosts, where UCX is installed.
        token: a secret of the job, which joins ranks at a HOST:PORT; others cannot join, and are
            not heard. What goes over the network is not encrypted. None: $TOWPATH_TOKEN.

    Returns:
        The communicator. Use it as a context manager, or close it.

    Raises:
        ConfigError: job, rank or ranks is missing or wrong, or there is no such transport.
        TransportError: a rank is missing ("timeout"), has ended ("peer_died"), or wants something
            else than the others ("disagreement"); `kind` and `peer` say which.
    """
    job = job if job is not None else os.environ.get("TOWPATH_JOB")
    if job is None:
        raise ConfigError("connect needs a job: an argument, or $TOWPATH_JOB")
    rank, ranks = launchers.rank(rank), launchers.ranks(ranks)
    if heap_bytes is not None and heap_bytes < 1:
        raise ConfigError(f"heap_bytes is {heap_bytes}; it must be at least 1")
    token = token if token is not None else os.environ.get("TOWPATH_TOKEN", "")
    return join(
        job, rank, ranks, timeout_s, heap_bytes=heap_bytes or 0, transport=transport, token=token
    )


def join(
    job: str,
    rank: int,
    ranks: int,
    timeout_s: float,
    *,
    transport: str,
    heap_bytes: int = 0,
    notice: _core.FailureNotice | None = None,
    token: str = "",
) -> Communicator:
    """As `connect`, where a launcher may post what happens to other ranks."""
    try:
        joined = _core.connect_live(
            transport, job, rank, ranks, heap_bytes=heap_bytes, timeout_s=timeout_s, notice=notice,
            token=token,
        )  # fmt: skip
    except (ConfigError, TransportError):
        raise
    except RuntimeError as error:
        raise ConfigError(str(error)) from None
    return Communicator(joined, timeout_s)


class Communicator:
    """One rank's one-sided view of the others, and collectives over numpy arrays.

    Every rank makes the same collective calls, and the same calls of `allocate` and `signals`, in
    the same order. A call that cannot end raises TransportError: `kind` is "peer_died" (a rank
    has ended, failed or left), "timeout" (a rank is stopped, slow or elsewhere) or "disagreement"
    (ranks asked for different things), and `peer` is the culprit, or None. A rank that leaves
    its `with` block by an exception gives up, and the others name it with its reason.

    Belongs to one thread.

    Attributes:
        rank: this process's number, from 0.
        ranks: how many take part.
        timeout_s: how long a call waits without any progress, in seconds.
    """

    def __init__(self, transport: _core.LiveTransport, timeout_s: float) -> None:
        self._transport: _core.LiveTransport | None = transport
        self._plans = LivePlans()
        self._direct: _core.LiveCollectives | None = None
        self._base = transport.address_of(0)
        self._allocated: dict[int, int] = {}  # offset -> bytes
        self._forks = _forks
        self.rank: int = transport.rank
        self.ranks: int = transport.ranks
        self.timeout_s = timeout_s
        atexit.register(_abandon_at_exit, weakref.ref(self))

    def __repr__(self) -> str:
        state = "" if self._transport is not None else ", closed"
        return f"<towpath.Communicator rank {self.rank} of {self.ranks}{state}>"

    # --- its end ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Leaves in good order. Ranks that still wait for this one are told that it has left."""
        transport = self._forget()
        if transport is not None:
            transport.leave()

    def __enter__(self) -> Communicator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self._abandon(error)

    def _abandon(self, error: BaseException) -> None:
        transport = self._forget()
        if transport is not None:
            abandon(transport, error)

    def _forget(self) -> _core.LiveTransport | None:
        self._plans.clear()
        self._direct = None
        transport, self._transport = self._transport, None
        return transport

    @property
    def _open(self) -> _core.LiveTransport:
        if self._transport is None:
            raise ConfigError("the communicator is closed")
        if self._forks != _forks:
            raise ConfigError(
                f"this process is forked from rank {self.rank}; a child is no rank, and connects "
                "to a job of its own"
            )
        return self._transport

    # --- symmetric memory -------------------------------------------------------------------------

    def allocate(self, shape: int | tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
        """An array on the symmetric heap: peers can put to it, and get from it.

        Returns when every rank has called it. Its contents are undefined, and a peer that has
        returned already may have put to it.

        Args:
            shape: of the array, the same on every rank.
            dtype: any numpy type, the same on every rank.

        Returns:
            This rank's copy. Its memory lives as long as the array or the communicator does.

        Raises:
            MemoryError: the heap is full.
            TransportError: see Communicator.
        """
        kind = np.dtype(dtype)
        count = math.prod(shape) if isinstance(shape, tuple) else shape
        size_bytes = count * kind.itemsize
        self._synchronize(f"allocate of {size_bytes} bytes")
        offset = self._open.allocate(max(size_bytes, 1))
        self._allocated[offset] = size_bytes
        return self._open.bytes_at(offset, size_bytes).view(kind).reshape(shape)

    def signals(self, count: int = 1) -> int:
        """New signals, which are zero: numbers that peers raise and this rank waits for.

        Args:
            count: how many, the same on every rank.

        Returns:
            The first one; the others follow it.

        Raises:
            TransportError: see Communicator.
        """
        self._synchronize(f"signals of {count}")
        return self._open.allocate_signals(count)

    def _offset_of(self, array: np.ndarray, what: str) -> int:
        """Where an array, or a contiguous part of one, is in the symmetric heap."""
        if not array.flags.c_contiguous:
            raise ConfigError(f"{what} is not contiguous")
        offset = array.__array_interface__["data"][0] - self._base
        size_bytes = array.nbytes
        for start, length in self._allocated.items():
            if start <= offset and offset + size_bytes <= start + length:
                return offset
        raise ConfigError(f"{what} is not on the symmetric heap; use an array made by allocate")

    # --- one-sided --------------------------------------------------------------------------------

    def put(self, target: np.ndarray, source: Any, peer: int) -> None:
        """Copies `source` to the peer's copy of `target`. It is visible there after `quiet`.

        Args:
            target: an array made by `allocate`, or a contiguous part of one.
            source: an array of the same shape and dtype, or a list that makes one.
            peer: a rank; it may be this one.

        Raises:
            ConfigError: the arrays do not fit together, or `target` is not on the heap.
            IndexError: there is no such rank.
            TransportError: see Communicator.
        """
        offset = self._offset_of(target, "target")
        self._open.put(peer, offset, like(target, source), self.timeout_s)

    def get(self, source: np.ndarray, peer: int, out: np.ndarray | None = None) -> np.ndarray:
        """The peer's copy of `source`.

        Args:
            source: an array made by `allocate`, or a contiguous part of one.
            peer: a rank; it may be this one.
            out: where to copy it, of the same shape and dtype; None: a new array.

        Returns:
            `out`.

        Raises:
            ConfigError: the arrays do not fit together, or `source` is not on the heap.
            IndexError: there is no such rank.
        """
        offset = self._offset_of(source, "source")
        if out is None:
            out = np.empty_like(source)
        target = as_bytes(checked_out(out, source.shape, source.dtype))
        self._open.get(peer, offset, target, self.timeout_s)
        return out

    def put_signal(
        self,
        target: np.ndarray,
        source: Any,
        peer: int,
        signal: int,
        value: int = 1,
        *,
        operation: str = "set",
    ) -> None:
        """As `put`, and raises a signal there afterwards: its waiter sees the data.

        Args:
            target, source, peer: as for `put`.
            signal: a number that `signals` gave.
            value: what it is set to, or what is added to it.
            operation: "set" or "add".

        Raises:
            ValueError: there is no such operation.
            ConfigError, IndexError, TransportError: as for `put`.
        """
        offset = self._offset_of(target, "target")
        self._open.put_signal(
            peer, offset, like(target, source), signal, value, operation, self.timeout_s
        )

    def wait_signal(
        self,
        signal: int,
        value: int = 1,
        comparison: str = ">=",
        *,
        peer: int | None = None,
        timeout_s: float | None = None,
    ) -> int:
        """Waits until a signal of this rank has a value.

        Args:
            signal: a number that `signals` gave.
            value: what it is compared with.
            comparison: ">=", "==" or "!=".
            peer: the rank that is expected to raise it. An error names it.
            timeout_s: in seconds; None: the communicator's.

        Returns:
            The signal's value.

        Raises:
            ValueError: there is no such comparison.
            TransportError: see Communicator.
        """
        patience_s = self.timeout_s if timeout_s is None else timeout_s
        self._open.wait_signal(signal, comparison, value, patience_s, peer)
        return self._open.signal_fetch(signal)

    def fence(self) -> None:
        """Puts to a peer before it are visible there before puts to that peer after it."""
        self._open.fence()

    def quiet(self) -> None:
        """Returns when all that this rank put is visible at its peers."""
        self._open.quiet(self.timeout_s)

    def barrier(self, *, timeout_s: float | None = None) -> None:
        """`quiet`, and returns when every rank has called it.

        Args:
            timeout_s: in seconds; None: the communicator's.

        Raises:
            TransportError: see Communicator.
        """
        self._synchronize("barrier", timeout_s)

    def _synchronize(self, statement: str, timeout_s: float | None = None) -> None:
        """A barrier of ranks that say the same."""
        patience_s = self.timeout_s if timeout_s is None else timeout_s
        self._collectives().synchronize(statement, patience_s)

    # --- collectives ------------------------------------------------------------------------------

    def all_reduce(
        self,
        array: np.ndarray,
        op: str = "sum",
        *,
        out: np.ndarray | None = None,
        algorithm: str | None = None,
        dtype: str | None = None,
    ) -> np.ndarray:
        """Every rank gets the reduction of all ranks' arrays.

        Args:
            array: any shape, the same on every rank; int8, uint8, int32, uint32, int64, uint64,
                float16, bfloat16, float32 or float64.
            op: "sum", "prod", "min", "max" or "avg".
            out: an array like it for the result; None: `array` itself.
            algorithm: a name that `towpath algorithms` lists; None: what is fastest on this host,
                without a schedule.
            dtype: "bfloat16" where `array` holds that as uint16.

        Returns:
            `out`, or `array`.

        Raises:
            ConfigError: an argument cannot be used.
            TransportError: see Communicator.
        """
        result = array if out is None else out
        request = Request("all_reduce", op, 0, algorithm, dtype)
        return self._run(request, array, result, shape_of(array))

    def reduce(
        self,
        array: np.ndarray,
        op: str = "sum",
        *,
        root: int = 0,
        out: np.ndarray | None = None,
        algorithm: str | None = None,
        dtype: str | None = None,
    ) -> np.ndarray:
        """The root gets the reduction of all ranks' arrays. The result of others is undefined.

        Args:
            array, op, algorithm, dtype: as for `all_reduce`.
            root: the rank that gets it.
            out: an array like `array`; None: a new one.

        Returns:
            `out`.

        Raises:
            ConfigError, TransportError: as for `all_reduce`.
        """
        result = np.empty_like(array, order="C") if out is None else out
        request = Request("reduce", op, root, algorithm, dtype)
        return self._run(request, array, result, shape_of(array))

    def broadcast(
        self,
        array: np.ndarray,
        *,
        root: int = 0,
        algorithm: str | None = None,
        dtype: str | None = None,
    ) -> np.ndarray:
        """Every rank's array becomes that of the root, in place.

        Args:
            array, algorithm, dtype: as for `all_reduce`.
            root: the rank whose array it is.

        Returns:
            `array`.

        Raises:
            ConfigError, TransportError: as for `all_reduce`.
        """
        request = Request("broadcast", "sum", root, algorithm, dtype)
        return self._run(request, array, array, array.shape)

    def all_gather(
        self,
        array: np.ndarray,
        *,
        out: np.ndarray | None = None,
        algorithm: str | None = None,
        dtype: str | None = None,
    ) -> np.ndarray:
        """Every rank gets the arrays of all, one after the other.

        Args:
            array, algorithm, dtype: as for `all_reduce`.
            out: of shape (ranks, *array.shape); None: a new array. `array` may be row `rank` of it.

        Returns:
            `out`.

        Raises:
            ConfigError, TransportError: as for `all_reduce`.
        """
        shape = (self.ranks, *shape_of(array))
        result = np.empty(shape, array.dtype) if out is None else out
        request = Request("all_gather", "sum", 0, algorithm, dtype)
        return self._run(request, array, result, shape)

    def reduce_scatter(
        self,
        array: np.ndarray,
        op: str = "sum",
        *,
        out: np.ndarray | None = None,
        algorithm: str | None = None,
        dtype: str | None = None,
    ) -> np.ndarray:
        """Rank r gets row r of the reduction of all ranks' arrays.

        Args:
            array: of shape (ranks, *rest).
            op, algorithm, dtype: as for `all_reduce`.
            out: of shape rest; None: a new array. It may be row `rank` of `array`.

        Returns:
            `out`.

        Raises:
            ConfigError, TransportError: as for `all_reduce`.
        """
        shape = self._rows("reduce_scatter", array)
        result = np.empty(shape, array.dtype) if out is None else out
        request = Request("reduce_scatter", op, 0, algorithm, dtype)
        return self._run(request, array, result, shape)

    def all_to_all(
        self,
        array: np.ndarray,
        *,
        out: np.ndarray | None = None,
        algorithm: str | None = None,
        dtype: str | None = None,
    ) -> np.ndarray:
        """Rank r gets row r of every rank's array.

        Args:
            array: of shape (ranks, *rest); row p is for rank p.
            algorithm, dtype: as for `all_reduce`.
            out: an array like it, or `array` itself; None: a new one.

        Returns:
            `out`; its row p is from rank p.

        Raises:
            ConfigError, TransportError: as for `all_reduce`.
        """
        self._rows("all_to_all", array)
        result = np.empty_like(array, order="C") if out is None else out
        request = Request("all_to_all", "sum", 0, algorithm, dtype)
        return self._run(request, array, result, shape_of(array))

    def _rows(self, collective: str, array: np.ndarray) -> tuple[int, ...]:
        shape = shape_of(array)
        if shape[:1] != (self.ranks,):
            raise ConfigError(
                f"{collective} takes an array with a row per rank; its shape is {shape}, "
                f"and there are {self.ranks} ranks"
            )
        return shape[1:]

    def _run(
        self, request: Request, array: np.ndarray, result: np.ndarray, shape: tuple[int, ...]
    ) -> np.ndarray:
        """Runs a collective from `array` to `result`, which may be the same, and returns that."""
        element_type = type_name(array, request.dtype)
        checked_out(result, shape, array.dtype)
        elements = max(array.size, result.size)
        if elements == 0:
            self._synchronize(f"{request.collective} of 0 bytes")
            return result
        if request.algorithm is None and self._open.reaches_all:
            return self._run_direct(request, array, result, element_type)
        source = np.ascontiguousarray(array)
        _core.check_overlap(
            request.collective, self.rank, self.ranks, as_bytes(source), as_bytes(result)
        )
        schedule, plan, executor = self._plans.plan(
            self._open, request, elements, element_type, self._synchronize
        )
        is_in_place = np.may_share_memory(source, result)
        if is_in_place and not (schedule.in_place and source.nbytes == result.nbytes):
            source = source.copy()
            is_in_place = False
        if not is_in_place and not schedule.out_of_place:
            result[...] = source
            source = result
        executor.run(plan, as_bytes(source), as_bytes(result), self.timeout_s)
        return result

    def _run_direct(
        self, request: Request, array: np.ndarray, result: np.ndarray, element_type: str
    ) -> np.ndarray:
        """Without a schedule: the ranks read each other's memory, the way that is fastest here."""
        source = np.ascontiguousarray(array)
        if request.collective == "broadcast" and not np.shares_memory(source, result):
            result[...] = source
            source = result
        collectives = self._collectives()
        collectives.run(
            request.collective, element_type, request.operation, request.root,
            as_bytes(source), as_bytes(result), self.timeout_s,
        )  # fmt: skip
        return result

    def _collectives(self) -> _core.LiveCollectives:
        """Made at the first collective, which all ranks call."""
        if self._direct is None:
            self._direct = _core.LiveCollectives(self._open, self.timeout_s)
        return self._direct


def _abandon_at_exit(reference: weakref.ref[Communicator]) -> None:
    """A program that ends without closing its communicator gives up; the others hear why."""
    communicator = reference()
    if communicator is None:
        return
    communicator._abandon(getattr(sys, "last_value", None) or SystemExit(0))
