# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What NCCL or RCCL would do on a cluster of GPUs: explained, and as the table to expect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from towpath.api.sizes import Sizes, sizes_of
from towpath.collectives.nccl import explanation
from towpath.collectives.nccl.choice import Choice
from towpath.collectives.nccl.explanation import Explanation
from towpath.collectives.nccl.imitation import Imitation, Library
from towpath.collectives.result import bus_factor
from towpath.errors import ConfigError
from towpath.schedules.words import collective_named
from towpath.tuning.export import NcclAdvice
from towpath.validation.accuracy import Accuracy, accuracy_of
from towpath.validation.expectation import Expectation, ExpectedRow

if TYPE_CHECKING:
    from towpath.api.clusters import GpuCluster

# Larger communicators take long to simulate; `explain` then gives the library's own times only.
_RANKS_SIMULATED_MAX = 128
_CANDIDATES_SIMULATED = 2
_FLOAT_BYTES = 4
_POWERS = range(3, 35)  # 8 B to 16 GiB, what nccl-tests measures


def explain(
    machine: GpuCluster, collective: str, size_bytes: int | str, library: str | Library
) -> Explanation:
    """See `GpuCluster.explain`."""
    name = collective_named(collective)
    sizes = sizes_of(size_bytes)
    if len(sizes) != 1:
        raise ConfigError(f"explain takes one size; there are {len(sizes)}", field="size_bytes")
    imitation = machine.imitate(_library(library))
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


def expect(
    machine: GpuCluster, collective: str, size_bytes: Sizes, library: str | Library
) -> Expectation:
    """See `GpuCluster.expect`."""
    name = collective_named(collective)
    imitation = machine.imitate(_library(library))
    bent = imitation.library.graph_file is not None or bool(imitation.library.tuner)
    rows = []
    for size in sizes_of(size_bytes):
        choice = imitation.choose(name, size)
        simulated_us = _simulated_us(machine, imitation, name, size, choice)
        time = choice.predicted_us if simulated_us is None else simulated_us
        algorithm = imitation.algorithm(name, choice)
        rows.append(ExpectedRow(
            size_bytes=size,
            count=size // _FLOAT_BYTES,
            choice=choice.name,
            channels=choice.channels,
            time_us=time,
            algbw_gb_per_s=size / time / 1e3,
            busbw_gb_per_s=size / time / 1e3 * bus_factor(name, machine.ranks),
            is_simulated=simulated_us is not None,
            # Channels and choices from a user's files were not measured.
            accuracy=None if bent
            else accuracy_of(machine.spec, machine.ranks, name, algorithm, size),
        ))  # fmt: skip
    return Expectation(
        imitation.library.name, _where(machine), name, tuple(rows), imitation.facts.notes
    )


def nccl_advice(
    machine: GpuCluster, collective: str, sizes_bytes: list[int], library: str | Library
) -> NcclAdvice:
    """What a file for NCCL's tuner plugin needs besides tuned winners: the model's error near each
    size, and what NCCL would run by itself at all sizes.

    Args:
        machine: a cluster of GPUs.
        collective: its name.
        sizes_bytes: the sizes that were tuned.
        library: what to imitate.

    Raises:
        ConfigError: the library does not run there.
    """
    imitation = machine.imitate(_library(library))
    rows = expect(machine, collective, sizes_bytes, library).rows
    own = {1 << power: imitation.tuner_line(collective, 1 << power) for power in _POWERS}
    return NcclAdvice(
        {row.size_bytes: _error_text(row.accuracy) for row in rows},
        own,
    )


def _error_text(accuracy: Accuracy | None) -> str | None:
    if accuracy is None:
        return None
    return (
        f"model error {accuracy.median_pct:.0f}% median, {accuracy.p90_pct:.0f}% p90 on "
        f"{accuracy.rows} measured rows"
    )


def _library(library: str | Library) -> Library:
    return Library.of(library) if isinstance(library, str) else library


def _where(machine: GpuCluster) -> str:
    hosts = "1 host" if machine.hosts == 1 else f"{machine.hosts} hosts"
    return f"{machine.name}, {machine.ranks} GPUs on {hosts}"


def _simulated_us(
    machine: GpuCluster, imitation: Imitation, collective: str, size_bytes: int, choice: Choice
) -> float | None:
    """The simulated time out of place; None where there is no schedule."""
    if not imitation.has_schedule(collective, choice):
        return None
    return machine.simulated_us(imitation.source(collective, size_bytes, choice), size_bytes)
