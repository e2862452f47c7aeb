# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The function that torch.distributed calls to create a process group."""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from towpath import _core
from towpath.errors import ConfigError
from towpath.torch.build import group_api, load_extension

BACKEND = "towpath"


def register() -> None:
    """Registers the backend in torch.distributed, for CPU tensors."""
    dist.Backend.register_backend(BACKEND, _create, extended_api=True, devices=["cpu"])


def _create(options: Any, _: Any) -> Any:
    return create(BACKEND, options)


def create(name: str, options: Any, timeline: Any = None) -> Any:
    """Creates a c10d Backend for this rank of a group; blocks until all ranks have joined.

    Args:
        name: name of the backend, for its errors.
        options: torch's DistributedBackendOptions.
        timeline: records the calls of the backend; None: no record.
    """
    extension = load_extension()
    chosen = extension.Options()
    chosen.name = name
    chosen.rank = options.group_rank
    chosen.ranks = options.group_size
    timeout = options.timeout
    chosen.timeout = timeout if isinstance(timeout, timedelta) else timedelta(seconds=timeout)
    chosen.global_ranks = list(options.global_ranks_in_group or range(options.group_size))
    chosen.timeline = timeline
    chosen.transport = _transport()
    chosen.address = _address() if chosen.transport == "ucx" else ""
    return extension.create(group_api(), options.store, chosen)


def sum_in_place(group: dist.ProcessGroup) -> Callable[[torch.Tensor], None]:
    """Returns a function that sums a CPU tensor over the ranks of `group`. It is equivalent to a
    blocking all_reduce, and takes a third of the time if the code is no longer in the caches.

    Args:
        group: a group of the backend `towpath` or `towpath-sim`.

    Returns:
        A function of a dense tensor of any shape, which it changes in place. It raises the errors
        of all_reduce, and RuntimeError if the group has another backend.
    """
    backend = group._get_backend(torch.device("cpu"))
    return functools.partial(load_extension().sum_in_place, backend)


def _transport() -> str:
    """The transport of a group. Rank 0's value applies to all ranks."""
    named = os.environ.get("TOWPATH_TRANSPORT", "shm")
    allowed = _core.live_transports()
    if named not in allowed:
        raise ConfigError(f"TOWPATH_TRANSPORT is '{named}'; choose one of {', '.join(allowed)}")
    return named


def _address() -> str:
    """An address of this host that the other ranks can reach: the one from which it reaches the
    master.
    """
    named = os.environ.get("TOWPATH_ADDRESS")
    if named:
        return named
    master = os.environ.get("MASTER_ADDR")
    if not master:
        raise ConfigError(
            "ranks on several hosts need an address of this one; name it in TOWPATH_ADDRESS"
        )
    reason: OSError | None = None
    try:
        for family, kind, _, _, place in socket.getaddrinfo(master, 9, type=socket.SOCK_DGRAM):
            try:
                with socket.socket(family, kind) as probe:
                    probe.connect(place)  # sends nothing
                    return str(probe.getsockname()[0])
            except OSError as error:
                reason = error
    except OSError as error:
        reason = error
    raise ConfigError(
        f"MASTER_ADDR '{master}' cannot be reached ({reason}); name an address of this host in "
        "TOWPATH_ADDRESS"
    )
