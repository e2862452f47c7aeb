# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A described host with chips in its slots, with the interface of tt-umd's Cluster, in simulated
time.

Calls move real bytes: written data is in the simulated L1 or DRAM and can be read back. Each call
returns a Transfer with its time, divided by cause.

>>> cluster = HostCluster("n300-xeon-host", ["wormhole"])
>>> _ = cluster.configure_tlb(0, (1, 1), 1 << 20, 0x1000)
>>> write = cluster.write_to_device(b"towpath!", 0, (1, 1), 0x1000)
>>> back = bytearray(8)
>>> read = cluster.read_from_device(back, 0, (1, 1), 0x1000)
>>> bytes(back), write.time_ns < read.time_ns
(b'towpath!', True)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np
import numpy.typing as npt

from towpath.errors import ConfigError, quoted
from towpath.specs import catalogue
from towpath.specs.chip_spec import ChipSpec
from towpath.specs.host_spec import HostSpec

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from towpath import _core
    from towpath.kernels.chip_kernel import KernelRun, SourceKernel

Core = tuple[int, int]
# Contiguous memory; of an array of any shape and dtype its bytes count.
Data = bytes | bytearray | memoryview | npt.NDArray[Any]
Ordering = Literal["default", "strict", "posted"]
Mapping = Literal["write_combining", "uncached"]
Load = Literal["copy", "stream"]
TrafficKind = Literal["write", "read"]


class TransferOptions(TypedDict, total=False):
    """Options of a transfer, all of them keyword arguments.

    Attributes:
        ordering: ordering of the windows that the transfer allocates for itself.
        mapping: mapping of these windows.
        window_bytes: size of each of these windows.
        load: loads of a read: those of memcpy, or streaming ones.
        misalignment_bytes: distance of a read's buffer from the beginning of a line.
    """

    ordering: Ordering
    mapping: Mapping
    window_bytes: int
    load: Load
    misalignment_bytes: int


class HostCluster:
    """A host and its chips.

    A core is given by its position (x, y) on the grid of NoC 0. The options of a transfer are those
    of `TransferOptions`. Every invalid call raises ValueError with one sentence.
    """

    def __init__(
        self,
        host: str | HostSpec,
        chips: Sequence[str | ChipSpec],
        *,
        num_host_mem_ch_per_mmio_device: int = 1,
        carries_data: bool = True,
        limits_posted_writes: bool = True,
        limits_noc: bool = True,
    ) -> None:
        """Opens the host.

        Args:
            host: a spec, or the name or file of a host.
            chips: specs, or names or files of chips.
            num_host_mem_ch_per_mmio_device: channels of host memory for DMA per chip; 0 allocates
                none.
            carries_data: False to simulate only time, without access to buffers.
            limits_posted_writes: False to let a core never wait for a write to leave.
            limits_noc: False to let the chip accept data at the rate of the link.

        Raises:
            ConfigError: there is no such host or chip, or a chip has no host link.
        """
        from towpath import _core

        self.host = host if isinstance(host, HostSpec) else catalogue.load_host(host)
        self.chips = [
            chip if isinstance(chip, ChipSpec) else catalogue.load_chip(chip) for chip in chips
        ]
        for chip in self.chips:
            check_host_link(chip)
        self._cluster = _core.HostCluster(
            host=self.host.build(),
            chips=[chip.build() for chip in self.chips],
            carries_data=carries_data,
            host_memory_channels=num_host_mem_ch_per_mmio_device,
            limits_posted_writes=limits_posted_writes,
            limits_noc=limits_noc,
        )

    @property
    def now_ns(self) -> float:
        """Simulated time so far."""
        return self._cluster.now_ns

    def core(self, chip: int, kind: str, number: int = 0) -> Core:
        """Finds a chip's n-th core of a kind.

        Args:
            chip: number of the chip.
            kind: worker, dram or ethernet.
            number: number of the core, from 0.

        Returns:
            Its position (x, y).

        Raises:
            ConfigError: there is no such kind. ValueError: there is no such core; the error lists
            the available and the harvested ones.
        """
        from towpath import _core

        return self._cluster.core(chip, _member(_core.TileKind, "kind", kind), number)

    def configure_tlb(
        self, chip: int, core: Core, size_bytes: int, address: int, *,
        ordering: Ordering = "default", mapping: Mapping = "write_combining",
    ) -> int:  # fmt: skip
        """Configures a window until free_tlb; transfers within it need no other window.

        Args:
            chip: number of the chip.
            core: position of the core that the window shows.
            size_bytes: size of the window, one of the chip's sizes.
            address: first byte that the window shows, in the core's memory.
            ordering: ordering of accesses through the window.
            mapping: mapping of the window by the processor.

        Returns:
            The number of the window.
        """
        from towpath import _core

        return self._cluster.configure_tlb(
            chip, core, size_bytes, address, _member(_core.Ordering, "ordering", ordering),
            _member(_core.Mapping, "mapping", mapping),
        )  # fmt: skip

    def free_tlb(self, chip: int, window: int) -> None:
        """Releases a window.

        Args:
            chip: number of the chip.
            window: number that configure_tlb returned.
        """
        self._cluster.free_tlb(chip, window)

    def write_to_device(
        self, data: Data, chip: int, core: Core, address: int,
        **options: Unpack[TransferOptions],
    ) -> _core.Transfer:  # fmt: skip
        """Writes with stores of the processor to a window.

        Args:
            data: the bytes: any contiguous buffer, of any dtype.
            chip: number of the chip.
            core: position of the core.
            address: first byte in the core's memory.
            options: see TransferOptions.

        Returns:
            The time of the transfer, divided by cause.
        """
        return self._cluster.write_to_device(_bytes(data), chip, core, address, _options(options))

    def read_from_device(
        self, to: Data, chip: int, core: Core, address: int,
        **options: Unpack[TransferOptions],
    ) -> _core.Transfer:  # fmt: skip
        """Reads with loads of the processor from a window.

        Args:
            to: a writable contiguous buffer, which the bytes fill.
            chip: number of the chip.
            core: position of the core.
            address: first byte in the core's memory.
            options: see TransferOptions.

        Returns:
            The time of the transfer, divided by cause.
        """
        return self._cluster.read_from_device(_bytes(to), chip, core, address, _options(options))

    def dma_write_to_device(
        self, data: Data, chip: int, core: Core, address: int,
        **options: Unpack[TransferOptions],
    ) -> _core.Transfer:  # fmt: skip
        """Writes with the DMA engine, through the driver's bounce buffer.

        If that is not possible, the processor writes. The transfer's `used` records this, and its
        `obstacle` the reason.

        Args:
            data: the bytes: any contiguous buffer, of any dtype.
            chip: number of the chip.
            core: position of the core.
            address: first byte in the core's memory.
            options: see TransferOptions.

        Returns:
            The time of the transfer, divided by cause.
        """
        return self._cluster.dma_write_to_device(
            _bytes(data), chip, core, address, _options(options)
        )

    def dma_read_from_device(
        self, to: Data, chip: int, core: Core, address: int,
        **options: Unpack[TransferOptions],
    ) -> _core.Transfer:  # fmt: skip
        """Reads with the DMA engine, through the driver's bounce buffer.

        If that is not possible, the processor reads. The transfer's `used` records this, and its
        `obstacle` the reason.

        Args:
            to: a writable contiguous buffer, which the bytes fill.
            chip: number of the chip.
            core: position of the core.
            address: first byte in the core's memory.
            options: see TransferOptions.

        Returns:
            The time of the transfer, divided by cause.
        """
        return self._cluster.dma_read_from_device(
            _bytes(to), chip, core, address, _options(options)
        )

    def allocate_sysmem_buffer(self, chip: int, size_bytes: int) -> SysmemBuffer:
        """Allocates host memory that the chip can reach: pinned, zeroed, mapped.

        Args:
            chip: number of the chip.
            size_bytes: size of the memory.

        Returns:
            The memory.
        """
        number = self._cluster.allocate_sysmem_buffer(chip, size_bytes)
        return SysmemBuffer(self._cluster, chip, number, size_bytes)

    def map_sysmem_buffer(self, chip: int, memory: Data) -> SysmemBuffer:
        """Pins and maps memory of the program so that the chip can reach it, without a copy.

        Args:
            chip: number of the chip.
            memory: a writable contiguous buffer; it is assumed to begin at a page boundary.

        Returns:
            The memory, which the chip can reach until `unmap`.
        """
        view = _bytes(memory)
        number = self._cluster.map_sysmem_buffer(chip, view)
        return SysmemBuffer(self._cluster, chip, number, len(view), view)

    def start_traffic(
        self, chip: int, cores: Sequence[Core], to: Core, *,
        kind: TrafficKind = "write", size_bytes: int = 8192, count: int = 1, noc: int = 0,
    ) -> Traffic:  # fmt: skip
        """Makes cores of a chip write to, or read from, one core while the host continues.

        From the first call on, the host's transfers to that chip are also requests on its NoC. The
        transfers and the kernels wait for each other, and a transfer takes longer to simulate.

        Args:
            chip: number of the chip.
            cores: positions of the cores, each of which runs a kernel.
            to: position of the core that all of them write to or read from.
            kind: write or read.
            size_bytes: size of each request.
            count: number of requests of each core, back to back, before it waits for their answers.
            noc: the NoC they use; the host's requests are on NoC 0.

        Returns:
            The kernels, whose state advances as the calls of the host let time pass.

        Raises:
            ConfigError: there is no such kind. ValueError: the chip cannot carry out the requests,
            or limits of the link are switched off.
        """
        from towpath import _core

        if kind not in ("write", "read"):
            raise ConfigError(f"is {quoted(kind)}; it must be write or read", field="kind")
        steps = [
            _core.TrafficStep(kind, to=to, size_bytes=size_bytes, count=count),
            _core.TrafficStep(f"{kind}_barrier"),
        ]
        programs = [_core.TrafficProgram(core=core, noc=noc, steps=steps) for core in cores]
        clock_mhz = self.chips[chip].clock_mhz.value if 0 <= chip < len(self.chips) else 1
        return Traffic(_core.TrafficBeside(self._cluster, chip, programs), 1e3 / clock_mhz)

    def start_kernels(
        self, chip: int, kernels: Sequence[SourceKernel], *, semaphores: Sequence[int] = (),
    ) -> Kernels:  # fmt: skip
        """Runs kernels in TT-Metalium's source form on workers of a chip while the host continues.

        They reach the memory of `allocate_sysmem_buffer` and `map_sysmem_buffer` at the PCIe tile.
        From the first call on, the host's transfers to that chip are also requests on its NoC. A
        kernel's mistake is raised by the call of the host during which it happens.

        Args:
            chip: number of the chip.
            kernels: files and the workers that run them; their chip is ignored.
            semaphores: initial values of the semaphores 0, 1, ... of every worker.

        Returns:
            The kernels, whose state advances as the calls of the host let time pass.

        Raises:
            ConfigError: a kernel does not compile, or cannot run on the worker. ValueError: limits
            of the link are switched off.
        """
        from towpath import _core
        from towpath.kernels.chip_kernel import source_program

        program = source_program(kernels, semaphores=list(semaphores))
        try:
            return Kernels(_core.KernelsBeside(self._cluster, chip, program))
        except ValueError as error:
            raise ConfigError(str(error)) from None

    def flush(self) -> None:
        """Waits until all posted data has arrived and all kernels have ended."""
        self._cluster.flush()

    def memory(self, chip: int, core: Core, address: int, size_bytes: int) -> bytes:
        """Copies the chip's memory, after flush().

        Args:
            chip: number of the chip.
            core: position of the core.
            address: first byte in the core's memory.
            size_bytes: number of bytes.

        Returns:
            The bytes.
        """
        self._cluster.flush()
        to = np.empty(size_bytes, np.uint8)
        self._cluster.memory(chip, core, address, to)
        return to.tobytes()


class Traffic:
    """Kernels on a chip that run during a host's transfers. Created by
    HostCluster.start_traffic.
    """

    def __init__(self, traffic: _core.TrafficBeside, cycle_ns: float) -> None:
        self._traffic = traffic
        self._cycle_ns = cycle_ns

    @property
    def is_over(self) -> bool:
        """True if all kernels have ended."""
        return self._traffic.is_over

    @property
    def times_ns(self) -> list[float]:
        """Time of each kernel; 0 for kernels that have not ended."""
        times = zip(self._traffic.begin_cycles, self._traffic.end_cycles, strict=True)
        return [max(0.0, (end - begin) * self._cycle_ns) for begin, end in times]


class Kernels:
    """Kernels in source form that run during a host's transfers. Created by
    HostCluster.start_kernels.
    """

    def __init__(self, kernels: _core.KernelsBeside) -> None:
        self._kernels = kernels

    @property
    def is_over(self) -> bool:
        """True if all kernels have ended."""
        return self._kernels.is_over

    @property
    def run(self) -> KernelRun:
        """Times, zones, values and lines so far; the end is 0 for kernels and zones that have not
        ended.
        """
        from towpath.kernels.chip_kernel import kernel_run

        return kernel_run(self._kernels.result)


def check_host_link(chip: ChipSpec) -> None:
    """Checks that the chip has a PCIe tile and its parameters.

    Raises:
        ConfigError: the chip lacks one of them.
    """
    if chip.pcie is None or not chip.tiles.pcie:
        lacks = "block pcie" if chip.pcie is None else "PCIe tile"
        raise ConfigError(f"has no {lacks}, so no host link", field=f"chip '{chip.name}'")


class SysmemBuffer:
    """Host memory that a chip reaches without a copy. Created by HostCluster.

    Attributes:
        size_bytes: size of the memory.
    """

    def __init__(
        self, cluster: _core.HostCluster, chip: int, number: int, size_bytes: int,
        programs_own: npt.NDArray[np.uint8] | None = None,
    ) -> None:  # fmt: skip
        self._cluster = cluster
        self._programs_own = programs_own
        self._chip = chip
        self._number = number
        self.size_bytes = size_bytes

    @property
    def array(self) -> npt.NDArray[np.uint8]:
        """The memory itself: shape (size_bytes,), uint8, writable, not a copy."""
        if self._programs_own is not None:
            return self._programs_own
        return self._cluster.buffer_bytes(self._chip, self._number)

    @property
    def map_time_ns(self) -> float:
        """Time that pinning and mapping took."""
        return self._cluster.buffer_map_time_ns(self._chip, self._number)

    @property
    def noc_address(self) -> int | None:
        """Address at which the chip's cores reach it through the PCIe tile; None if the window has
        no room left.

        Kernels add the lower 32 bits to `NOC_XY_PCIE_ENCODING`.
        """
        return self._cluster.buffer_noc_address(self._chip, self._number)

    def dma_write_to_device(
        self, offset: int, size_bytes: int, core: Core, address: int,
        **options: Unpack[TransferOptions],
    ) -> _core.Transfer:  # fmt: skip
        """Moves data by the DMA engine from this buffer to the core's memory."""
        return self._cluster.buffer_dma_write(
            self._chip, self._number, offset, size_bytes, core, address, _options(options)
        )

    def dma_read_from_device(
        self, offset: int, size_bytes: int, core: Core, address: int,
        **options: Unpack[TransferOptions],
    ) -> _core.Transfer:  # fmt: skip
        """Moves data by the DMA engine from the core's memory to this buffer."""
        return self._cluster.buffer_dma_read(
            self._chip, self._number, offset, size_bytes, core, address, _options(options)
        )

    def noc_write(self, offset: int, size_bytes: int, core: Core, address: int) -> _core.Transfer:
        """Makes the core write its memory to this buffer."""
        return self._cluster.buffer_noc_write(
            self._chip, self._number, offset, size_bytes, core, address
        )

    def noc_read(self, offset: int, size_bytes: int, core: Core, address: int) -> _core.Transfer:
        """Makes the core read this buffer into its memory."""
        return self._cluster.buffer_noc_read(
            self._chip, self._number, offset, size_bytes, core, address
        )

    def unmap(self) -> None:
        """Ends the mapping; the chip can no longer reach the buffer."""
        self._cluster.unmap_sysmem_buffer(self._chip, self._number)


def _bytes(buffer: Data) -> npt.NDArray[np.uint8]:
    view: Any = buffer  # mypy before Python 3.12 does not know arrays as buffers
    return np.frombuffer(memoryview(view).cast("B"), np.uint8)


def _options(given: TransferOptions) -> _core.TransferOptions:
    from towpath import _core

    allowed = TransferOptions.__annotations__
    for name in given:
        if name not in allowed:
            raise ConfigError(f"{name} is not an option; choose one of {', '.join(allowed)}")
    words = {"ordering": _core.Ordering, "mapping": _core.Mapping, "load": _core.Load}
    values: dict[str, Any] = {
        name: _member(words[name], name, value) if name in words else value
        for name, value in given.items()
    }
    return _core.TransferOptions(**values)


def _member(kind: Any, name: str, word: object) -> Any:
    """The member of an enumeration that a word names."""
    known = kind.__members__
    if word not in known:
        raise ConfigError(f"{name} is {quoted(word)}; choose one of {', '.join(known)}")
    return known[word]
