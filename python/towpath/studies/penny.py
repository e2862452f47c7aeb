# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Measurements of `towpath bench penny`: the library's CUDA kernels, thread by thread with data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from towpath.errors import ConfigError, TowpathError
from towpath.kernels.penny_source import ALL_REDUCES, EXCHANGES, every_kernel
from towpath.specs.override import with_settings
from towpath.studies import exchange
from towpath.studies.progress import Progress, silent

if TYPE_CHECKING:
    from towpath.kernels.gpu_kernel import SymmetricArray
    from towpath.specs.machine_spec import MachineSpec

_VECTOR_BYTES = 16
_SIGNALS_OF_PE = 8192  # penny::kBlocksMax
_HALF_BYTES = 2

# The model's kernel of `bench exchange` beside each of the library's exchanges.
STAGE_OF = {
    "exchange_plain": "plain",
    "exchange_separate_signal": "separate_signal",
    "exchange_vectorised": "fused_signal",
}
KERNELS = (*EXCHANGES, *ALL_REDUCES)


@dataclass(frozen=True)
class Point:
    """One kernel in one shape.

    Attributes:
        kernel: name of the kernel, one of KERNELS.
        size_bytes: size of the array of each PE.
        threads: threads per block, "block_size".
        bytes_per_thread: bytes that a thread puts at once, "packet_size".
        rings: number of rings through the machine.
        pes: number of GPUs; an exchange uses two of them.
    """

    kernel: str
    size_bytes: int
    threads: int
    bytes_per_thread: int
    rings: int
    pes: int


@dataclass(frozen=True)
class Timed:
    """A point and its time.

    Attributes:
        point: the point.
        time_us: time until the last kernel has ended, without the launch.
        model_us: time of the model of `bench exchange`, which has no threads and no data; None if
            it has no such kernel.
    """

    point: Point
    time_us: float
    model_us: float | None

    @property
    def gb_per_s(self) -> float:
        """Twice the array over the time, the value that the worklog prints."""
        return 2 * self.point.size_bytes / self.time_us / 1e3


@dataclass(frozen=True)
class PennyStudy:
    """Results of a run.

    Attributes:
        machine: name of the machine.
        rows: every point.
        sizes_bytes: the requested sizes of the array.
    """

    machine: str
    rows: list[Timed]
    sizes_bytes: Sequence[int] = ()

    @property
    def not_divided(self) -> dict[str, list[int]]:
        """The requested sizes that a kernel's blocks cannot divide in any shape."""
        ran = {(row.point.kernel, row.point.size_bytes) for row in self.rows}
        missing = {
            kernel: [size for size in self.sizes_bytes if (kernel, size) not in ran]
            for kernel in dict.fromkeys(row.point.kernel for row in self.rows)
        }
        return {kernel: sizes for kernel, sizes in missing.items() if sizes}

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data for JSON."""
        rows = [{**asdict(row.point), "time_us": row.time_us, "model_us": row.model_us,
                 "gb_per_s": row.gb_per_s} for row in self.rows]  # fmt: skip
        return {"machine": self.machine, "rows": rows}


def points(
    kernels: Sequence[str],
    sizes_bytes: Sequence[int],
    shapes: tuple[Sequence[int], Sequence[int]],
    pes: int,
    rings: int,
) -> list[Point]:
    """Every kernel at every size in every shape whose blocks divide the array.

    Args:
        kernels: names of KERNELS.
        sizes_bytes: sizes of the array.
        shapes: threads per block, and bytes per thread.
        pes: number of GPUs.
        rings: number of rings of the ring kernels.

    Raises:
        ConfigError: there is no such kernel, or no block divides any size.
    """
    for name in kernels:
        if name not in KERNELS:
            raise ConfigError(f"there is no kernel '{name}'; choose one of {', '.join(KERNELS)}")
    found = []
    for name in kernels:
        own_rings = rings if "ring" in name else 1
        for size_bytes in sizes_bytes:
            for threads in shapes[0]:
                for each in shapes[1]:
                    point = Point(name, size_bytes, threads, each, own_rings, pes)
                    if _blocks(point) is not None:
                        found.append(point)
    if not found:
        raise ConfigError(
            "no block divides an array into 1 to 8192 slices; give multiples of PEs x threads x "
            "bytes per thread"
        )
    return found


def _parts(point: Point) -> int:
    """Number of parts into which the array is cut before blocks share a part."""
    return {
        "ring": point.pes * point.rings, "vectorised_ring": point.pes * point.rings,
        "simple_ring": point.rings, "two_shot": point.pes,
    }.get(point.kernel, 1)  # fmt: skip


def _blocks(point: Point) -> int | None:
    step = _parts(point) * point.threads * point.bytes_per_thread
    blocks, rest = divmod(point.size_bytes, step)
    fits = rest == 0 and 1 <= blocks * point.rings <= _SIGNALS_OF_PE
    return blocks if fits and point.bytes_per_thread % _VECTOR_BYTES == 0 else None


def measure(spec: MachineSpec, todo: Sequence[Point], progress: Progress = silent) -> PennyStudy:
    """Runs every point on a described machine and checks its data.

    Args:
        spec: the machine.
        todo: the points, on GPUs 0 to pes - 1.
        progress: a display of the number of completed points.

    Raises:
        ConfigError: kernels do not run on the machine, or it has too few GPUs. TowpathError: a
        kernel gave wrong data.
    """
    exchange.check_kernels(spec)
    rows = []
    with progress("kernels", len(todo)) as update:
        for done, point in enumerate(todo):
            update(done)
            rows.append(Timed(point, run(spec, point), model_us(spec, point)))
    return PennyStudy(spec.name, rows)


def run(spec: MachineSpec, point: Point) -> float:
    """Runs a point, checks its data, and returns its time in microseconds.

    Args:
        spec: the machine.
        point: the point.
    """
    import numpy as np

    blocks = _blocks(point)
    if blocks is None:
        raise ConfigError(f"blocks do not divide the array: {point}")
    bare = with_settings(spec, ["gpu_cost.launch_ns=0"])
    gpus = every_kernel("half").simulate(bare, point.pes)
    count = point.size_bytes // _HALF_BYTES
    buffer = gpus.symmetric(count, "float16")
    copies = point.pes if point.kernel == "one_shot" else 1
    destination = gpus.symmetric(count * copies, "float16")
    signals = gpus.symmetric(_SIGNALS_OF_PE * point.pes, "uint64")
    inputs = [(np.arange(count) + 3 * pe) % 7 for pe in range(point.pes)]
    for array, values in zip(buffer.on, inputs, strict=True):
        array[:] = values
    pair = _pair(spec, point)
    is_exchange = point.kernel in EXCHANGES
    time_us = gpus.launch(
        f"penny::{point.kernel}<half>", (blocks, point.rings), point.threads,
        _arguments(spec, point, (destination, buffer, signals)),
        on=pair if is_exchange else None,
    )  # fmt: skip
    found = destination.on if point.kernel == "exchange_plain" else buffer.on
    total = np.sum(inputs, axis=0)
    expected = {pe: total for pe in range(point.pes)}
    if is_exchange:
        expected = {pair[0]: inputs[pair[1]], pair[1]: inputs[pair[0]]}
    for pe, values in expected.items():
        if not np.array_equal(found[pe], values):
            raise TowpathError(f"PE {pe} has wrong data after {point}")
    return time_us


def _pair(spec: MachineSpec, point: Point) -> tuple[int, int]:
    """The two PEs of an exchange: on two hosts, or on one host if there is only one."""
    return (0, spec.gpus_per_host if point.pes > spec.gpus_per_host else 1)


def _arguments(
    spec: MachineSpec, point: Point, memory: tuple[SymmetricArray, SymmetricArray, SymmetricArray]
) -> list[Any]:
    """The arguments of the kernel for its first call."""
    destination, buffer, signals = memory
    vectors = point.size_bytes // _VECTOR_BYTES
    if point.kernel in EXCHANGES:
        pair = _pair(spec, point)
        peers = [pair[1] if pe == pair[0] else pair[0] for pe in range(point.pes)]
        if point.kernel == "exchange_plain":
            return [destination, buffer, vectors, peers]
        return [destination, buffer, signals, vectors, peers, 1]
    if point.kernel == "one_shot":
        return [destination, buffer, buffer, signals, vectors, 0]
    if point.kernel == "two_shot":
        return [buffer, signals, vectors, 0]
    return [destination, buffer, signals, vectors, min(point.pes, spec.gpus_per_host), 0]


def model_us(spec: MachineSpec, point: Point) -> float | None:
    """Time of a point in the model of `bench exchange`, in microseconds; None if it has no such
    kernel.

    Args:
        spec: the machine.
        point: a point on all GPUs of its hosts.
    """
    from towpath import _core

    hosts = -(-point.pes // spec.gpus_per_host)
    machine = spec.build(hosts=hosts)
    if point.kernel in STAGE_OF:
        stage = getattr(_core.ExchangeStage, STAGE_OF[point.kernel])
        pair = (0, spec.gpus_per_host if hosts > 1 else 1)
        return _core.kernel_exchange_us(
            machine, stage, point.size_bytes, point.threads, point.bytes_per_thread, pair
        )
    if point.kernel not in ("vectorised_ring", "simple_ring") or point.pes != machine.ranks:
        return None
    if point.kernel == "simple_ring" and point.rings > 1:
        return None
    is_simple = point.kernel == "simple_ring"
    kernel = _core.RingKernel.simple_ring if is_simple else _core.RingKernel.ring
    return _core.kernel_all_reduce_us(
        machine, kernel, point.size_bytes, point.threads, point.bytes_per_thread,
        alternates=point.rings > 1,
    )  # fmt: skip
