# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The group of processes that reduce tensors together. Each process has one group."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import secrets
import sys
from typing import Any

import torch
import torch.distributed as dist

from towpath.collectives.live_communicator import Communicator, connect
from towpath.errors import ConfigError
from towpath.penny.library import GpuLibrary, HostLibrary, Library, checked_call

# As in penny::Algorithm.
ALGORITHMS = {"vectorised_ring": 2, "simple_ring": 3, "one_shot": 4, "two_shot": 5}
_TYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}
_CAPACITY_BYTES = 64 << 20
_ID_BYTES = 128


class Group:
    """The object that `begin` creates: a library that has started on every process."""

    def __init__(
        self, library: Library, is_host: bool, capacity_bytes: int, communicator: Any = None
    ) -> None:
        self.library = library
        self.is_host = is_host
        self.capacity_bytes = capacity_bytes
        self.communicator: Communicator | None = communicator
        self.addresses: list[int] = []

    def reduce(self, tensor: torch.Tensor, shape: tuple[int, int, int, int]) -> None:
        """Reduces a contiguous tensor, in parts if it is larger than the capacity.

        Raises:
            TransportError: another process makes a different call, or has ended.
        """
        if self.communicator is not None:
            self.communicator._synchronize(
                f"penny all_reduce of {tensor.numel()} {tensor.dtype} by {shape}"
            )
        stream = 0 if self.is_host else torch.cuda.current_stream(tensor.device).cuda_stream
        step = self.capacity_bytes // tensor.element_size()
        for first in range(0, tensor.numel(), step):
            count = min(step, tensor.numel() - first)
            address = tensor.data_ptr() + first * tensor.element_size()
            checked_call(
                self.library, "penny_all_reduce", address, count, _TYPES[tensor.dtype], *shape,
                stream,
            )  # fmt: skip

    def end(self) -> None:
        """Releases the allocated memory; every process calls it."""
        if self.communicator is not None:
            self.communicator._synchronize("penny end")
        for address in reversed(self.addresses):
            checked_call(self.library, "penny_release", address)
        checked_call(self.library, "penny_end")
        if self.communicator is not None:
            self.communicator.close()


_group: Group | None = None


def begin(
    job: str | None = None,
    rank: int | None = None,
    ranks: int | None = None,
    *,
    device: str = "cpu",
    capacity_bytes: int = _CAPACITY_BYTES,
    timeout_s: float = 30.0,
) -> None:
    """Joins the processes; every process calls it. `all_reduce` calls it if torch.distributed runs.

    Args:
        job: a name that no other group uses at this time; None: a name from torch.distributed's
            rank 0, or $TOWPATH_JOB without torch.distributed.
        rank: number of this process, from 0; None: the rank of torch.distributed, or $RANK.
        ranks: number of processes; None: the number of torch.distributed, or $WORLD_SIZE.
        device: "cpu", or "cuda" for tensors of this process's current GPU.
        capacity_bytes: the largest part of a tensor that is reduced at once, the same on all
            processes.
        timeout_s: on the CPU, the longest time that a call waits without any progress, in seconds.

    Raises:
        ConfigError: a group exists already, or the library cannot be compiled or started.
        TransportError: a process is missing.
    """
    global _group
    if _group is not None:
        raise ConfigError("penny has already started; call end first")
    if device not in ("cpu", "cuda"):
        raise ConfigError(f"device is '{device}'; choose 'cpu' or 'cuda'")
    is_joined = dist.is_available() and dist.is_initialized()
    if is_joined:
        rank = dist.get_rank() if rank is None else rank
        ranks = dist.get_world_size() if ranks is None else ranks
    if device == "cpu":
        if job is None and is_joined:
            job = _from_rank_0(f"penny-{secrets.token_hex(6)}")
        communicator = connect(job, rank, ranks, timeout_s=timeout_s)
        # After the communicator's own function, so that it runs before.
        atexit.register(_end_at_exit)
        group = Group(HostLibrary(communicator), True, capacity_bytes, communicator)
        rank, ranks, unique = communicator.rank, communicator.ranks, bytes(_ID_BYTES)
    else:
        if rank is None or ranks is None or not is_joined:
            raise ConfigError(
                "penny on GPUs needs torch.distributed; call init_process_group first"
            )
        major, minor = torch.cuda.get_device_capability()
        group = Group(GpuLibrary(f"sm_{major}{minor}"), False, capacity_bytes)
        own = ctypes.create_string_buffer(_ID_BYTES)
        if rank == 0:
            group.library.call("penny_unique_id", [ctypes.addressof(own)])
        unique = _from_rank_0(own.raw)
    words = ctypes.create_string_buffer(unique, _ID_BYTES)
    checked_call(
        group.library, "penny_begin", ctypes.addressof(words), rank, ranks, capacity_bytes,
        int(group.is_host),
    )  # fmt: skip
    _group = group


def _from_rank_0(value: Any) -> Any:
    box = [value]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def end() -> None:
    """Leaves the group; every process calls it. Without a group it has no effect.

    Tensors from `empty` are invalid afterwards.
    """
    global _group
    if _group is not None:
        group, _group = _group, None
        group.end()


def _begun(device: str) -> Group:
    if _group is None:
        if not (dist.is_available() and dist.is_initialized()):
            raise ConfigError("penny has not started; call begin, or init_process_group of torch")
        begin(device=device)
    assert _group is not None
    if _group.is_host != (device == "cpu"):
        raise ConfigError(f"the tensor is on {device}; penny was started for the other device")
    return _group


def all_reduce(
    tensor: torch.Tensor,
    *,
    algorithm: str | None = None,
    threads: int = 512,
    blocks: int = 32,
    rings: int = 1,
) -> torch.Tensor:
    """Replaces a tensor by the sum over all processes.

    Args:
        tensor: a contiguous tensor of float32, float16 or bfloat16, with the same shape and type on
            all processes.
        algorithm: a key of ALGORITHMS; None: the fastest one for the size on this machine.
        threads: threads per block, if an algorithm is given.
        blocks: blocks per ring, or in total, if an algorithm is given.
        rings: 1, or one for each process of a node, if a ring is given.

    Returns:
        The tensor. On a GPU it is complete when the current stream reaches this point.

    Raises:
        ConfigError: the tensor or the algorithm is not supported. TransportError: a process has
        ended, or does not make the call.
    """
    if tensor.dtype not in _TYPES:
        raise ConfigError(f"the tensor is {tensor.dtype}; choose float32, float16 or bfloat16")
    if not tensor.is_contiguous():
        raise ConfigError("the tensor is not contiguous; pass tensor.contiguous()")
    if algorithm is not None and algorithm not in ALGORITHMS:
        names = ", ".join(ALGORITHMS)
        raise ConfigError(f"there is no algorithm '{algorithm}'; choose one of {names}")
    group = _begun(tensor.device.type)
    shape = (0, 0, 0, 0) if algorithm is None else (ALGORITHMS[algorithm], threads, blocks, rings)
    group.reduce(tensor, shape)
    return tensor


def empty(count: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Allocates a tensor in symmetric memory, which is reduced without a copy. Every process calls
    it.

    Args:
        count: number of elements.
        dtype: float32, float16 or bfloat16.

    Raises:
        ConfigError: the group has not started for the CPU, or no memory is left.
    """
    if dtype not in _TYPES:
        raise ConfigError(f"dtype is {dtype}; choose float32, float16 or bfloat16")
    group = _begun("cpu")
    if group.communicator is not None:
        group.communicator._synchronize(f"penny empty of {count} {dtype}")
    address = ctypes.c_uint64()
    size_bytes = count * torch.tensor([], dtype=dtype).element_size()
    checked_call(group.library, "penny_allocate", size_bytes, ctypes.addressof(address))
    group.addresses.append(address.value)
    memory = (ctypes.c_byte * size_bytes).from_address(address.value)
    return torch.frombuffer(memory, dtype=dtype, count=count)


def _end_at_exit() -> None:
    """Ends the group with all processes, unless this one ends by an exception."""
    global _group
    if _group is not None and _group.communicator is not None:
        error = getattr(sys, "last_value", None)
        with contextlib.suppress(Exception):
            if error is None:
                end()
            else:
                _group.communicator._abandon(error)
    _group = None
