# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What torch.distributed calls to make a process group."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch.distributed as dist

from towpath.torch.build import group_api, load_extension

BACKEND = "towpath"


def register() -> None:
    """Makes the backend known to torch.distributed, for CPU tensors."""
    dist.Backend.register_backend(BACKEND, _create, extended_api=True, devices=["cpu"])


def _create(options: Any, _: Any) -> Any:
    return create(BACKEND, options)


def create(name: str, options: Any, timeline: Any = None) -> Any:
    """A c10d Backend for this rank of a group; blocks until all ranks have come.

    Args:
        name: the backend's, for its errors.
        options: torch's DistributedBackendOptions.
        timeline: where the backend notes what it is asked for; None: nowhere.
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
    return extension.create(group_api(), options.store, chosen)
