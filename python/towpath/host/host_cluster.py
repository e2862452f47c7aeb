# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A described host with chips in its slots, as tt-umd's Cluster shows them, in simulated time.

Calls move real bytes: what was written lies in the simulated L1 or DRAM and can be read back. Each
returns a Transfer that says how long it took, and where the time went.

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
from typing import TYPE_CHECKING, Any

import numpy as np

from towpath.errors import ConfigError, quoted
from towpath.specs import catalogue
from towpath.specs.chip_spec import ChipSpec
from towpath.specs.host_spec import HostSpec

if TYPE_CHECKING:
    from towpath import _core

Core = tuple[int, int]


class HostCluster:
    """A host and its chips.

    A core is its place (x, y) on the grid of NoC 0. Options of a transfer, all of keywords:
    `ordering` ("default", "strict", "posted") and `mapping` ("write_combining", "uncached") of the
    windows that it takes for itself, of `window_bytes` each; `load` ("copy", "stream") and
    `misalignment_bytes`, the buffer's from a line, of a read.

    Raises:
        ConfigError: there is no such host, or chip.
        ValueError: by every call that cannot be carried out, in one sentence.
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
            host: a spec, or the name or file of one.
            chips: specs, or names or files of some.
            num_host_mem_ch_per_mmio_device: 0: no memory for DMA is allocated.
            carries_data: False keeps time only, and touches no buffer.
            limits_posted_writes: False: a core never waits for a write to leave.
            limits_noc: False: the chip takes whatever the link brings.
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
        """A chip's n-th core of a kind: worker, dram, ethernet.

        Raises:
            ValueError: there is none; says how many are left, and what is harvested.
        """
        from towpath import _core

        return self._cluster.core(chip, _member(_core.TileKind, "kind", kind), number)

    def configure_tlb(
        self, chip: int, core: Core, size_bytes: int, address: int, ordering: str = "default",
        mapping: str = "write_combining",
    ) -> int:  # fmt: skip
        """Takes a window for good; transfers that it holds need no other. Its number."""
        from towpath import _core

        return self._cluster.configure_tlb(
            chip, core, size_bytes, address, _member(_core.Ordering, "ordering", ordering),
            _member(_core.Mapping, "mapping", mapping),
        )  # fmt: skip

    def free_tlb(self, chip: int, window: int) -> None:
        """Gives a window back."""
        self._cluster.free_tlb(chip, window)

    def write_to_device(
        self, data: Any, chip: int, core: Core, address: int, **options: Any
    ) -> _core.Transfer:
        """Stores of the processor to a window."""
        return self._cluster.write_to_device(_bytes(data), chip, core, address, _options(options))

    def read_from_device(
        self, to: Any, chip: int, core: Core, address: int, **options: Any
    ) -> _core.Transfer:
        """Loads of the processor from a window, into a writable buffer."""
        return self._cluster.read_from_device(_bytes(to), chip, core, address, _options(options))

    def dma_write_to_device(
        self, data: Any, chip: int, core: Core, address: int, **options: Any
    ) -> _core.Transfer:
        """By the DMA engine, through the driver's bounce buffer.

        Where that is not possible the processor writes; the transfer's `used` and `obstacle` say.
        """
        return self._cluster.dma_write_to_device(
            _bytes(data), chip, core, address, _options(options)
        )

    def dma_read_from_device(
        self, to: Any, chip: int, core: Core, address: int, **options: Any
    ) -> _core.Transfer:
        """By the DMA engine, through the driver's bounce buffer; see dma_write_to_device."""
        return self._cluster.dma_read_from_device(
            _bytes(to), chip, core, address, _options(options)
        )

    def allocate_sysmem_buffer(self, chip: int, size_bytes: int) -> SysmemBuffer:
        """Host memory that the chip reaches: pinned, zeroed, mapped."""
        number = self._cluster.allocate_sysmem_buffer(chip, size_bytes)
        return SysmemBuffer(self._cluster, chip, number, size_bytes)

    def memory(self, chip: int, core: Core, address: int, size_bytes: int) -> bytes:
        """What is in the chip's memory once everything posted has landed."""
        self._cluster.flush()
        to = np.empty(size_bytes, np.uint8)
        self._cluster.memory(chip, core, address, to)
        return to.tobytes()


def check_host_link(chip: ChipSpec) -> None:
    """Only a chip with a PCIe tile, and figures for it, has a host link.

    Raises:
        ConfigError: it has none.
    """
    if chip.pcie is None or not chip.tiles.pcie:
        lacks = "block pcie" if chip.pcie is None else "PCIe tile"
        raise ConfigError(f"has no {lacks}, so no host link", field=f"chip '{chip.name}'")


class SysmemBuffer:
    """Host memory that a chip reaches without a copy. Made by HostCluster."""

    def __init__(self, cluster: _core.HostCluster, chip: int, number: int, size_bytes: int) -> None:
        self._cluster = cluster
        self._chip = chip
        self._number = number
        self.size_bytes = size_bytes

    @property
    def bytes(self) -> np.ndarray:
        """The memory itself, as uint8."""
        return self._cluster.buffer_bytes(self._chip, self._number)

    @property
    def map_time_ns(self) -> float:
        """What pinning and mapping took."""
        return self._cluster.buffer_map_time_ns(self._chip, self._number)

    def dma_write_to_device(
        self, offset: int, size_bytes: int, core: Core, address: int, **options: Any
    ) -> _core.Transfer:
        """The engine reads this buffer and writes the core's memory."""
        return self._cluster.buffer_dma_write(
            self._chip, self._number, offset, size_bytes, core, address, _options(options)
        )

    def dma_read_from_device(
        self, offset: int, size_bytes: int, core: Core, address: int, **options: Any
    ) -> _core.Transfer:
        """The engine reads the core's memory and writes this buffer."""
        return self._cluster.buffer_dma_read(
            self._chip, self._number, offset, size_bytes, core, address, _options(options)
        )

    def noc_write(self, offset: int, size_bytes: int, core: Core, address: int) -> _core.Transfer:
        """The core itself writes its memory to this buffer."""
        return self._cluster.buffer_noc_write(
            self._chip, self._number, offset, size_bytes, core, address
        )

    def noc_read(self, offset: int, size_bytes: int, core: Core, address: int) -> _core.Transfer:
        """The core itself reads this buffer into its memory."""
        return self._cluster.buffer_noc_read(
            self._chip, self._number, offset, size_bytes, core, address
        )

    def unmap(self) -> None:
        """The chip does not reach it any more."""
        self._cluster.unmap_sysmem_buffer(self._chip, self._number)


def _bytes(buffer: Any) -> np.ndarray:
    return np.frombuffer(memoryview(buffer).cast("B"), np.uint8)


_OPTIONS = ("ordering", "mapping", "window_bytes", "load", "misalignment_bytes")


def _options(given: dict[str, Any]) -> _core.TransferOptions:
    from towpath import _core

    for name in given:
        if name not in _OPTIONS:
            raise ConfigError(f"{name} is no option; allowed are {', '.join(_OPTIONS)}")
    words = {"ordering": _core.Ordering, "mapping": _core.Mapping, "load": _core.Load}
    for name, kind in words.items():
        if name in given:
            given = {**given, name: _member(kind, name, given[name])}
    return _core.TransferOptions(**given)


def _member(kind: Any, name: str, word: str) -> Any:
    """The member of an enumeration that a word names."""
    known = kind.__members__
    if word not in known:
        raise ConfigError(f"{name} is {quoted(word)}; allowed are {', '.join(known)}")
    return known[word]
