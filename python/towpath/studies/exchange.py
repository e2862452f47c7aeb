# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Measurements of `towpath bench exchange`: kernels of puts with signals on a cluster of GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from towpath.errors import ConfigError
from towpath.specs.override import with_settings
from towpath.studies.progress import Progress, silent

if TYPE_CHECKING:
    from towpath._core import Machine
    from towpath.specs.machine_spec import MachineSpec

THREADS = (128, 256, 512, 1024)
BYTES_PER_THREAD = (16, 32, 64, 128, 256, 512, 2048)
_BLOCKS_MAX = 16_384  # of an exchange; smaller slices are never the fastest
_RING_BLOCKS_MAX = 1024

INSIDE = "inside a host"
PROXY = "between hosts, by a proxy"
INITIATED = "between hosts, initiated by GPUs"
_BY_GPUS = "gpu_cost.kernel.gpu_initiated_adapters=true"

STAGES = {
    "plain": "put alone",
    "separate_signal": "put, fence, separate signal, all threads wait, copy by 2 bytes",
    "fused_signal": "put with signal, one thread waits, copy by 16 bytes",
}
# GB/s, sent and received together: the worklog "Writing my own communications library", part 1.
# Its sizes are not known; its script begins at 2 MiB and doubles.
DOCUMENT_MACHINE = "dgx-h100"
DOCUMENT = {
    (INSIDE, "plain"): 733.0,
    (INSIDE, "separate_signal"): 560.0,
    (INSIDE, "fused_signal"): 733.0,
    (PROXY, "plain"): 87.0,
    (INITIATED, "plain"): 96.0,
    (INITIATED, "separate_signal"): 80.0,
    (INITIATED, "fused_signal"): 96.0,
}


@dataclass(frozen=True)
class Exchange:
    """An exchange of a buffer between two GPUs.

    Attributes:
        route: places of the GPUs, and the agent that passes puts to an adapter.
        stage: the kernel, a key of `STAGES`.
        size_bytes: size of the buffer of each GPU.
        threads: threads per block.
        bytes_per_thread: bytes that a block puts, divided by its threads.
        time_us: time of the slower kernel, without launch, barriers and copies of the host.
    """

    route: str
    stage: str
    size_bytes: int
    threads: int
    bytes_per_thread: int
    time_us: float

    @property
    def gb_per_s(self) -> float:
        """Sent and received data together, per GPU."""
        return 2 * self.size_bytes / self.time_us / 1e3


@dataclass(frozen=True)
class Ring:
    """An all-reduce in rings, with the fastest of the tested blocks.

    Attributes:
        variant: kernel and place of the rings.
        size_bytes: size of the buffer of each GPU.
        threads: threads per block.
        bytes_per_thread: bytes that a block puts at once, divided by its threads.
        time_us: time of the slowest kernel.
    """

    variant: str
    size_bytes: int
    threads: int
    bytes_per_thread: int
    time_us: float


@dataclass(frozen=True)
class ExchangeStudy:
    """Results of a run.

    Attributes:
        machine: name of the machine.
        exchanges: every tested combination.
        inside: rings in one host, by size.
        between: rings over two hosts, by size, and NCCL's predicted times.
    """

    machine: str
    exchanges: list[Exchange]
    inside: list[Ring]
    between: list[Ring]

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data for JSON."""
        plain = asdict(self)
        for row, one in zip(plain["exchanges"], self.exchanges, strict=True):
            row["gb_per_s"] = one.gb_per_s
        return plain

    @property
    def is_the_documents(self) -> bool:
        """True if the document measured this machine."""
        return self.machine == DOCUMENT_MACHINE


def check_kernels(spec: MachineSpec) -> None:
    """Checks that kernels can run on a machine, on two GPUs of a host.

    Args:
        spec: the machine.

    Raises:
        ConfigError: the machine does not describe the costs of kernels, or has too few GPUs.
    """
    where = f"machine '{spec.name}'"
    if spec.gpu_cost.kernel is None:
        raise ConfigError(
            "has no costs of kernels; add the block 'kernel' to its gpu_cost", field=where
        )
    if spec.gpus_per_host < 2:
        raise ConfigError("has hosts of one GPU; each host must have at least two", field=where)


def routes(spec: MachineSpec) -> dict[str, tuple[Machine, tuple[int, int]]]:
    """The machines and pairs of GPUs for the exchanges, by name.

    Args:
        spec: the machine; if it has several hosts, GPUs of the first two also exchange.

    Returns:
        The machine and the numbers of both GPUs, by the name of the route.
    """
    found = {INSIDE: (spec.build(hosts=1), (0, 1))}
    if spec.host_count > 1:
        pair = (0, spec.gpus_per_host)
        for name, value in ((PROXY, "false"), (INITIATED, "true")):
            setting = f"gpu_cost.kernel.gpu_initiated_adapters={value}"
            found[name] = (with_settings(spec, [setting]).build(hosts=2), pair)
    return found


def exchanges(
    spec: MachineSpec, sizes_bytes: Sequence[int], progress: Progress = silent
) -> list[Exchange]:
    """Runs every stage on every route, swept over blocks and slices.

    Args:
        spec: the machine.
        sizes_bytes: sizes of the buffer.
        progress: a display of the number of completed sweeps.

    Returns:
        One exchange for each combination that divides the buffer.

    Raises:
        ConfigError: no combination divides a size.
    """
    sweeps = list(product(routes(spec).items(), STAGES, sizes_bytes))
    rows: list[Exchange] = []
    with progress("exchanges", len(sweeps)) as update:
        for done, ((route, (machine, gpus)), stage, size_bytes) in enumerate(sweeps):
            update(done)
            found = list(_sweep(Sweep(route, stage, size_bytes), machine, gpus))
            if not found:
                raise ConfigError(
                    f"a buffer of {size_bytes} bytes cannot be divided into 1 to {_BLOCKS_MAX} "
                    f"slices; use a multiple of {THREADS[0] * BYTES_PER_THREAD[0]} bytes, up "
                    "to 32 GiB"
                )
            rows += found
    return rows


class Sweep(NamedTuple):
    """Subject of a sweep over blocks and slices."""

    route: str
    stage: str
    size_bytes: int


def _sweep(sweep: Sweep, machine: Machine, gpus: tuple[int, int]) -> Iterator[Exchange]:
    from towpath import _core

    stage = getattr(_core.ExchangeStage, sweep.stage)
    for threads, each in product(THREADS, BYTES_PER_THREAD):
        blocks, rest = divmod(sweep.size_bytes, threads * each)
        if rest or not 1 <= blocks <= _BLOCKS_MAX:
            continue
        time_us = _core.kernel_exchange_us(machine, stage, sweep.size_bytes, threads, each, gpus)
        yield Exchange(*sweep, threads, each, time_us)


def best(rows: Sequence[Exchange], *key: str) -> list[Exchange]:
    """The fastest exchange for each route and stage, and for each value of further attributes.

    Args:
        rows: the measurements.
        key: names of attributes.
    """
    found: dict[tuple[object, ...], Exchange] = {}
    for row in rows:
        place = (row.route, row.stage, *(getattr(row, name) for name in key))
        if place not in found or row.gb_per_s > found[place].gb_per_s:
            found[place] = row
    return list(found.values())


# --- rings ----------------------------------------------------------------------------------------

RING = "ring, inside a host"
SIMPLE_RING = "simple ring, inside a host"
ONE_RING = "one ring over two hosts"


def alternating(queue_pairs: int) -> str:
    """The name of a variant with alternating rings."""
    return f"alternating rings over two hosts, {queue_pairs} queue pairs"


QUEUE_PAIRS = (2, 32)


def rings_inside(spec: MachineSpec, sizes_bytes: Sequence[int]) -> Iterator[Ring]:
    """Ring and simple ring by size.

    Args:
        spec: the machine.
        sizes_bytes: sizes of the buffer; sizes that no block divides are left out.

    Yields:
        The fastest of the tested blocks, for each variant and size.
    """
    machine = spec.build(hosts=1)
    for size_bytes in sizes_bytes:
        yield from fastest(RING, machine, size_bytes, rings=1)
        yield from fastest(SIMPLE_RING, machine, size_bytes, rings=1)


def rings_between(spec: MachineSpec, sizes_bytes: Sequence[int]) -> Iterator[Ring]:
    """One ring and alternating rings, on GPUs that drive the adapters themselves.

    Args:
        spec: the machine, with at least two hosts.
        sizes_bytes: sizes of the buffer; sizes that no block divides are left out.

    Yields:
        The fastest of the tested blocks, for each variant and size.
    """
    machines = {
        pairs: with_settings(spec, [_BY_GPUS, f"gpu_cost.kernel.queue_pairs={pairs}"]).build(2)
        for pairs in QUEUE_PAIRS
    }
    rings = spec.gpus_per_host // 2 * 2
    for size_bytes in sizes_bytes:
        yield from fastest(ONE_RING, machines[QUEUE_PAIRS[0]], size_bytes, rings=1)
        for pairs, machine in machines.items():
            yield from fastest(alternating(pairs), machine, size_bytes, rings)


def fastest(
    variant: str,
    machine: Machine,
    size_bytes: int,
    rings: int,
    threads_of: Sequence[int] = THREADS[1:],
) -> Iterator[Ring]:
    """A ring in its fastest blocks, if there are blocks that divide the array.

    Args:
        variant: name of the ring.
        machine: the machine.
        size_bytes: size of the array of a PE.
        rings: number of rings over the adapters.
        threads_of: numbers of threads of a block that are tried.
    """
    from towpath import _core

    is_simple = variant == SIMPLE_RING
    kernel = _core.RingKernel.simple_ring if is_simple else _core.RingKernel.ring
    parts = rings if is_simple else rings * machine.ranks
    found = []
    for threads, each in product(threads_of, BYTES_PER_THREAD[:-1]):
        blocks, rest = divmod(size_bytes, threads * each * parts)
        if rest or blocks * rings > _RING_BLOCKS_MAX:
            continue
        time_us = _core.kernel_all_reduce_us(
            machine, kernel, size_bytes, threads, each, alternates=rings > 1
        )
        found.append(Ring(variant, size_bytes, threads, each, time_us))
    if found:
        yield min(found, key=lambda ring: ring.time_us)
