# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The choice of NCCL or RCCL on a cluster of GPUs: explained, and as a file for its plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from towpath.collectives.nccl import explanation
from towpath.collectives.nccl.choice import Choice
from towpath.collectives.nccl.explanation import Explanation
from towpath.errors import ConfigError
from towpath.schedules.words import collective_named
from towpath.specs.sizes import sizes_of
from towpath.tuning.export import NcclAdvice

if TYPE_CHECKING:
    from towpath.api.clusters import GpuCluster
    from towpath.collectives.nccl.imitation import Imitation, Library
    from towpath.collectives.result import RunRow

# Larger communicators take long to simulate; `explain` then gives the library's own times only.
_RANKS_SIMULATED_MAX = 128
_CANDIDATES_SIMULATED = 2
_POWERS = range(3, 35)  # 8 B to 16 GiB, what nccl-tests measures


def explain(
    machine: GpuCluster, collective: str, size_bytes: int | str, library: str | Library
) -> Explanation:
    """Implementation of `GpuCluster.explain`."""
    name = collective_named(collective)
    sizes = sizes_of(size_bytes)
    if len(sizes) != 1:
        raise ConfigError(f"explain takes one size; {len(sizes)} were given", field="size_bytes")
    imitation = machine.imitate(library)
    choice = imitation.choose(name, sizes[0])
    simulated_us: dict[str, float] = {}
    if machine.ranks <= _RANKS_SIMULATED_MAX:
        shown = [choice]
        for candidate in choice.alternatives[: _CANDIDATES_SIMULATED - 1]:
            shown.append(imitation.forced(name, sizes[0], candidate))
        for one in shown:
            time_us = _simulated_us(machine, imitation, name, sizes[0], one)
            if time_us is not None:
                simulated_us[one.name] = time_us
    where = _where(machine)
    return explanation.explain(imitation, where, name, sizes[0], simulated_us)


def nccl_advice(
    machine: GpuCluster, collective: str, sizes_bytes: list[int], library: str | Library
) -> NcclAdvice:
    """Additional data for a file of NCCL's tuner plugin: the model's error near each size, and
    NCCL's default choice at all sizes.

    Args:
        machine: a cluster of GPUs.
        collective: name of the collective.
        sizes_bytes: the tuned sizes.
        library: the library to imitate.

    Raises:
        ConfigError: the library does not support the machine.
    """
    imitation = machine.imitate(library)
    rows = machine.expect(collective, size_bytes=sizes_bytes, library=library).rows
    own = {1 << power: imitation.tuner_line(collective, 1 << power) for power in _POWERS}
    return NcclAdvice(
        {size: _error_text(row) for size, row in zip(sizes_bytes, rows, strict=True)},
        own,
    )


def _error_text(row: RunRow) -> str | None:
    if row.error_pct is None:
        return None
    median, p90 = row.error_pct
    return f"model error {median:.0f}% median, {p90:.0f}% p90 on {row.error_rows} measured rows"


def _where(machine: GpuCluster) -> str:
    hosts = "1 host" if machine.hosts == 1 else f"{machine.hosts} hosts"
    return f"{machine.name}, {machine.ranks} GPUs on {hosts}"


def _simulated_us(
    machine: GpuCluster, imitation: Imitation, collective: str, size_bytes: int, choice: Choice
) -> float | None:
    """The simulated time out of place; None if there is no schedule."""
    if not imitation.has_schedule(collective, choice):
        return None
    return machine.simulated_us(imitation.source(collective, size_bytes, choice), size_bytes)
