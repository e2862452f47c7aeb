# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The library's CUDA kernels on a cluster of GPUs, swept over blocks, packets and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from towpath.api.sizes import Sizes, sizes_of
from towpath.studies import penny
from towpath.studies.progress import Progress

if TYPE_CHECKING:
    from towpath.api.clusters import GpuCluster


def bench_penny(
    machine: GpuCluster,
    kernels: Sequence[str],
    size_bytes: Sizes,
    shapes: tuple[Sizes, Sizes],
    pes: int,
    rings: int,
    progress: Progress,
) -> penny.PennyStudy:
    """See `GpuCluster.bench_penny`."""
    todo = penny.points(
        kernels, sizes_of(size_bytes), (sizes_of(shapes[0]), sizes_of(shapes[1])), pes, rings
    )
    return penny.measure(machine.spec, todo, progress)
