# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Times of a library's collectives on many hosts, from simulations of fewer hosts.

The library chooses for the many hosts, because its choice depends on their number. The fewer hosts
run the same algorithm, protocol and channels. The time of a tree grows with its depth, and any
other time with the number of hosts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from towpath.collectives.threads import on_several_threads, threads_for

if TYPE_CHECKING:
    from towpath.api.clusters import GpuCluster
    from towpath.collectives.nccl.choice import Choice
    from towpath.collectives.nccl.imitation import Library
    from towpath.schedules.schedule_source import ScheduleSource

# The numbers of hosts bound the time of a row. Trees have no equal ranks, so that all ranks are
# simulated: up to 64 MiB on 16 hosts of 8 GPUs take a second, and 512 MiB take 10. On 8 hosts, the
# largest difference from all 128 DGX H100 is 6.6 % from 128 MiB on, and 5.4 % on 16.
HOSTS_OF_TREES = 16
_HOSTS_OF_LARGE_TREES = 8
_LARGE_BYTES = 128 << 20
_RANKS_PER_HOST_MAX = 8  # of smaller trees on HOSTS_OF_TREES
# All-to-alls take two seconds on this many hosts, and rings one.
HOSTS_OF_ALL_TO_ALL = 64
HOSTS_OF_RINGS = 128

SourceOn = Callable[["GpuCluster"], "ScheduleSource"]
"""Returns the schedule of a library's choice on a machine with fewer hosts."""


def extrapolated_us(
    machine: GpuCluster,
    size_bytes: int,
    source_on: SourceOn,
    most_hosts: int,
) -> float:
    """The time of a call in microseconds, from the times on `most_hosts` and half as many hosts.

    Args:
        machine: the machine with all hosts, more than `most_hosts`.
        size_bytes: size of the whole array.
        source_on: the schedules on fewer hosts.
        most_hosts: the larger number of hosts to simulate.
    """
    fewer = [machine.with_hosts(most_hosts), machine.with_hosts(most_hosts // 2)]
    sources = [source_on(each) for each in fewer]
    most_us, less_us = on_several_threads(
        lambda number: fewer[number].simulated_us(sources[number], size_bytes),
        range(len(fewer)), threads_for(None),
    )  # fmt: skip
    if is_tree(sources[0].algorithm):
        steps = float(math.ceil(math.log2(machine.hosts)) - math.ceil(math.log2(most_hosts)))
    else:
        steps = (machine.hosts - most_hosts) / (most_hosts - most_hosts // 2)
    return most_us + (most_us - less_us) * steps


def sources_of(
    library: Library | str, collective: str, size_bytes: int, choice: Choice
) -> SourceOn:
    """The schedules of a library's choice on fewer hosts.

    Args:
        library: the library.
        collective: name of the collective.
        size_bytes: size of the whole array.
        choice: its choice for all hosts.
    """
    return lambda fewer: fewer.imitate(library).source(collective, size_bytes, choice)


def hosts_of_trees(size_bytes: int, ranks_per_host: int) -> int:
    """The number of hosts on which a tree is simulated, instead of more hosts."""
    is_large = size_bytes >= _LARGE_BYTES or ranks_per_host > _RANKS_PER_HOST_MAX
    return _HOSTS_OF_LARGE_TREES if is_large else HOSTS_OF_TREES


def is_tree(algorithm: str | None) -> bool:
    """True if the time of an algorithm grows with the depth of a tree of hosts."""
    return "tree" in (algorithm or "")
