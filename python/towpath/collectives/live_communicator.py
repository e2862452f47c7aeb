# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Communication between live processes, for other programs: `connect`, `Communicator`."""

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
    """Joins the processes with the same job. Returns when all of them have connected.

    Args:
        job: a name of up to 64 bytes that no other group uses at this time; with "ucx" it may be
            "HOST:PORT", where rank 0 listens for ranks of other hosts. None: $TOWPATH_JOB.
        rank: number of this process, from 0. None: the value from torchrun ($RANK), mpirun or srun.
        ranks: number of processes. None: the value from the launcher ($WORLD_SIZE).
        timeout_s: longest wait for the other ranks, in seconds; later, the longest time that a call
            waits without any progress.
        heap_bytes: size of each rank's symmetric heap in bytes, the same on every rank; only used
            pages take memory. None: 64 GiB, or the limit of RLIMIT_AS and RLIMIT_FSIZE.
        transport: the transport between ranks: "shm", the memory of this host; "ucx", the network
            between hosts, if UCX is installed.
        token: a secret of the job for ranks that connect at a HOST:PORT. A process without the
            token cannot join, and its messages are ignored. Data on the network is not encrypted.
            None: $TOWPATH_TOKEN.

    Returns:
        The communicator. Use it as a context manager, or close it.

    Raises:
        ConfigError: job, rank or ranks is missing or wrong, or there is no such transport.
        TransportError: a rank is missing ("timeout"), has ended ("peer_died"), or made a different
        call ("disagreement"); see `kind` and `peer`.
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
    """Connects like `connect`, with a launcher that may post notices about other ranks."""
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
    """One rank's one-sided access to the other ranks, and collectives over numpy arrays.

    Every rank makes the same collective calls, and the same calls of `allocate` and `signals`, in
    the same order. A call that cannot complete raises TransportError. Its `kind` is "peer_died" (a
    rank has ended, failed or left), "timeout" (a rank is stopped, slow or elsewhere) or
    "disagreement" (ranks made different calls), and `peer` is the responsible rank, or None. If an
    exception leaves the `with` block of a rank, the rank gives up, and the errors of the other
    ranks name it with its reason.

    An object belongs to one thread.

    Attributes:
        rank: number of this process, from 0.
        ranks: number of ranks.
        timeout_s: longest time that a call waits without any progress, in seconds.
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
        _existing.add(self)

    def __repr__(self) -> str:
        state = "" if self._transport is not None else ", closed"
        return f"<towpath.Communicator rank {self.rank} of {self.ranks}{state}>"

    # --- its end ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Leaves the group. Ranks that still wait for this one get an error that it has left."""
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
                f"this process is forked from rank {self.rank} and is not a rank; connect it "
                "to a separate job"
            )
        return self._transport

    # --- symmetric memory -------------------------------------------------------------------------

    def allocate(self, shape: int | tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
        """Allocates an array on the symmetric heap: peers can put to it, and get from it.

        Returns when every rank has called it. The contents are undefined, and a peer that has
        already returned may have put to it.

        Args:
            shape: shape of the array, the same on every rank.
            dtype: any numpy type, the same on every rank.

        Returns:
            This rank's copy. Its memory lives as long as the array or the communicator.

        Raises:
            MemoryError: the heap is full. TransportError: see Communicator.
        """
        kind = np.dtype(dtype)
        count = math.prod(shape) if isinstance(shape, tuple) else shape
        size_bytes = count * kind.itemsize
        self._synchronize(f"allocate of {size_bytes} bytes")
        offset = self._open.allocate(max(size_bytes, 1))
        self._allocated[offset] = size_bytes
        return self._open.bytes_at(offset, size_bytes).view(kind).reshape(shape)

    def signals(self, count: int = 1) -> int:
        """Creates signals with the value zero: numbers that peers raise and this rank waits for.

        Args:
            count: number of signals, the same on every rank.

        Returns:
            The first signal; the rest follow it.

        Raises:
            TransportError: see Communicator.
        """
        self._synchronize(f"signals of {count}")
        return self._open.allocate_signals(count)

    def _offset_of(self, array: np.ndarray, what: str) -> int:
        """Offset of an array, or of a contiguous part of one, in the symmetric heap."""
        if not array.flags.c_contiguous:
            raise ConfigError(f"{what} is not contiguous")
        offset = array.__array_interface__["data"][0] - self._base
        size_bytes = array.nbytes
        for start, length in self._allocated.items():
            if start <= offset and offset + size_bytes <= start + length:
                return offset
        raise ConfigError(f"{what} is not on the symmetric heap; use an array from allocate")

    # --- one-sided --------------------------------------------------------------------------------

    def put(self, target: np.ndarray, source: Any, peer: int) -> None:
        """Copies `source` to the peer's copy of `target`. It is visible there after `quiet`.

        Args:
            target: an array from `allocate`, or a contiguous part of one.
            source: an array of the same shape and dtype, or an equivalent list.
            peer: a rank, possibly this one.

        Raises:
            ConfigError: the arrays do not match, or `target` is not on the heap. IndexError: there
            is no such rank. TransportError: see Communicator.
        """
        offset = self._offset_of(target, "target")
        self._open.put(peer, offset, like(target, source), self.timeout_s)

    def get(self, source: np.ndarray, peer: int, out: np.ndarray | None = None) -> np.ndarray:
        """Reads the peer's copy of `source`.

        Args:
            source: an array from `allocate`, or a contiguous part of one.
            peer: a rank, possibly this one.
            out: target array, of the same shape and dtype; None: a new array.

        Returns:
            `out`.

        Raises:
            ConfigError: the arrays do not match, or `source` is not on the heap. IndexError: there
            is no such rank.
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
        """Works like `put`, and then raises a signal at the peer: its waiter sees the data.

        Args:
            target, source, peer: see `put`.
            signal: a number from `signals`.
            value: value to set or to add.
            operation: "set" or "add".

        Raises:
            ValueError: there is no such operation. ConfigError, IndexError, TransportError: see
            `put`.
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
            signal: a number from `signals`.
            value: value for the comparison.
            comparison: ">=", "==" or "!=".
            peer: the rank that should raise it. An error names this rank.
            timeout_s: limit in seconds; None: the communicator's.

        Returns:
            The signal's value.

        Raises:
            ValueError: there is no such comparison. TransportError: see Communicator.
        """
        patience_s = self.timeout_s if timeout_s is None else timeout_s
        self._open.wait_signal(signal, comparison, value, patience_s, peer)
        return self._open.signal_fetch(signal)

    def fence(self) -> None:
        """Orders puts: earlier puts to a peer are visible there before later puts to that peer."""
        self._open.fence()

    def quiet(self) -> None:
        """Returns when all puts of this rank are visible at its peers."""
        self._open.quiet(self.timeout_s)

    def barrier(self, *, timeout_s: float | None = None) -> None:
        """Calls `quiet`, and returns when every rank has called it.

        Args:
            timeout_s: limit in seconds; None: the communicator's.

        Raises:
            TransportError: see Communicator.
        """
        self._synchronize("barrier", timeout_s)

    def _synchronize(self, statement: str, timeout_s: float | None = None) -> None:
        """Barrier of ranks that make the same statement."""
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
        """Gives every rank the reduction of all ranks' arrays.

        Args:
            array: any shape, the same on every rank; int8, uint8, int32, uint32, int64, uint64,
                float16, bfloat16, float32 or float64.
            op: "sum", "prod", "min", "max" or "avg".
            out: a similar array for the result; None: `array` itself.
            algorithm: a name that `towpath algorithms` lists; None: the fastest way on this host,
                without a schedule.
            dtype: "bfloat16" if `array` stores it as uint16.

        Returns:
            `out`, or `array`.

        Raises:
            ConfigError: an argument cannot be used. TransportError: see Communicator.
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
        """Gives the root the reduction of all ranks' arrays. The result of the other ranks is
        undefined.

        Args:
            array, op, algorithm, dtype: see `all_reduce`.
            root: the rank that gets the result.
            out: an array like `array`; None: a new one.

        Returns:
            `out`.

        Raises:
            ConfigError, TransportError: see `all_reduce`.
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
        """Copies the root's array to every rank's array, in place.

        Args:
            array, algorithm, dtype: see `all_reduce`.
            root: the source rank.

        Returns:
            `array`.

        Raises:
            ConfigError, TransportError: see `all_reduce`.
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
        """Gives every rank the arrays of all ranks, one after the other.

        Args:
            array, algorithm, dtype: see `all_reduce`.
            out: of shape (ranks, *array.shape); None: a new array. `array` may be row `rank` of it.

        Returns:
            `out`.

        Raises:
            ConfigError, TransportError: see `all_reduce`.
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
        """Gives rank r row r of the reduction of all ranks' arrays.

        Args:
            array: of shape (ranks, *rest).
            op, algorithm, dtype: see `all_reduce`.
            out: of shape rest; None: a new array. `out` may be row `rank` of `array`.

        Returns:
            `out`.

        Raises:
            ConfigError, TransportError: see `all_reduce`.
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
        """Gives rank r row r of every rank's array.

        Args:
            array: of shape (ranks, *rest); row p is for rank p.
            algorithm, dtype: see `all_reduce`.
            out: a similar array, or `array` itself; None: a new one.

        Returns:
            `out`; row p is from rank p.

        Raises:
            ConfigError, TransportError: see `all_reduce`.
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
        """Runs a collective from `array` to `result`, which may be the same array, and returns
        `result`.
        """
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
        buffers = as_bytes(source), as_bytes(result)
        if self._open.reaches_all:
            executor.run(plan, *buffers, self.timeout_s)
        else:
            self._collectives().run_announced(plan, executor, *buffers, self.timeout_s)
        return result

    def _run_direct(
        self, request: Request, array: np.ndarray, result: np.ndarray, element_type: str
    ) -> np.ndarray:
        """Runs without a schedule: the ranks read each other's memory, which is the fastest way
        here.
        """
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
        """The collectives, created at the first collective call, which all ranks make."""
        if self._direct is None:
            self._direct = _core.LiveCollectives(self._open, self.timeout_s)
        return self._direct


# The communicators of this process. A closed one is forgotten with its last reference.
_existing: weakref.WeakSet[Communicator] = weakref.WeakSet()


def _abandon_at_exit() -> None:
    """Gives up if a program ends without closing its communicators; the other ranks get the
    reason.
    """
    for communicator in list(_existing):
        communicator._abandon(getattr(sys, "last_value", None) or SystemExit(0))


atexit.register(_abandon_at_exit)
