# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Small kernels in source form, run for the effect of a call or of a mistake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from towpath.errors import TowpathError
from towpath.kernels.chip_kernel import MemoryBlock, SourceKernel

if TYPE_CHECKING:
    from towpath.api.chips import ChipCluster
    from towpath.kernels.chip_kernel import KernelRun

_HEADERS = '#include "eth/dataflow_api.h"\n'
# The kernel's words in L1 of an Ethernet core. The handshake's word is the first of its memory.
HANDSHAKE = 0x1A800
ASKS = f"eth_send_bytes({HANDSHAKE}, {HANDSHAKE}, 16); eth_wait_for_receiver_done();\n"
ANSWERS = "eth_wait_for_bytes(16); eth_receiver_channel_done(0);\n"


@dataclass(frozen=True)
class Outcome:
    """The end of a run of kernels.

    Attributes:
        run: its results. None if an error ended it.
        error: the sentence of that error.
    """

    run: KernelRun | None
    error: str = ""

    @property
    def printed(self) -> list[str]:
        """Texts that the kernels printed, in order."""
        return [line.text for line in self.run.lines] if self.run else []

    @property
    def bytes_read(self) -> list[bytes]:
        """The bytes that were asked for."""
        return self.run.read if self.run else []

    def zone(self, name: str) -> float:
        """Cycles of a kernel's zone. Not a number if it did not run."""
        zones = self.run.zones if self.run else []
        return next((float(zone.cycles) for zone in zones if zone.name == name), float("nan"))

    def refused(self, phrase: str) -> list[Any]:
        """True with the sentence, if an error with this phrase ended the run."""
        return [phrase in self.error, self.error or "the run ended without an error"]

    def accepted(self) -> list[Any]:
        """True if no error ended the run, with that error otherwise."""
        return [self.run is not None, self.error]


def run(machine: str | ChipCluster, kernels: Sequence[SourceKernel], **options: Any) -> Outcome:
    """Runs kernels on a machine. An error becomes part of the outcome."""
    chips = _machine(machine) if isinstance(machine, str) else machine
    try:
        return Outcome(chips.run_kernels(kernels, **options))
    except TowpathError as error:
        return Outcome(None, str(error))


@lru_cache(maxsize=8)
def _machine(name: str) -> Any:
    from towpath.api.machine import load

    return load(name)


def core(body: str, *, before: str = "", **options: Any) -> Outcome:
    """Runs a kernel on worker (0, 0) of a Wormhole.

    Args:
        body: the statements of its kernel_main().
        before: definitions before it.
        options: options of run_kernels().
    """
    text = f'#include "dataflow_api.h"\n{before}\nvoid kernel_main() {{\n{body}\n}}\n'
    kernels = [SourceKernel("kernel.cpp", core=(0, 0), text=text)]
    return run("wormhole", kernels, **{"cycles_max": 1_000_000, **options})


@lru_cache(maxsize=4)
def free_link(machine: str = "n300") -> tuple[tuple[int, int], tuple[int, int]]:
    """Chip and channel of both ends of the first link that kernels may use."""
    links = _machine(machine).spec.build().links
    one, other = next(link.ends for link in links if not link.is_reserved)
    return tuple(one), tuple(other)  # type: ignore[return-value]


def ethernet_kernel(
    body: str, end: int, *, before: str = "", machine: str = "n300", **options: Any
) -> SourceKernel:
    """A kernel on one end of the first free link: 0 or 1."""
    chip, channel = free_link(machine)[end]
    text = f"{_HEADERS}{before}\nvoid kernel_main() {{\n{body}\n}}\n"
    return SourceKernel(
        ("sender.cpp", "receiver.cpp")[end],
        chip=chip,
        core=(0, channel),
        processor="ethernet",
        text=text,
        **options,
    )


def pair(
    sender: str, receiver: str, *, before: str = "", machine: str = "n300", **options: Any
) -> Outcome:
    """Runs a kernel on each end of a link.

    Args:
        sender: statements of the kernel on the first chip.
        receiver: statements of the kernel on the other chip.
        before: definitions before both.
        machine: the cluster.
        options: options of run_kernels().
    """
    kernels = [
        ethernet_kernel(sender, 0, before=before, machine=machine),
        ethernet_kernel(receiver, 1, before=before, machine=machine),
    ]
    return run(machine, kernels, **{"cycles_max": 10_000_000, **options})


def word(tile: tuple[int, int], offset: int, chip: int = 0, size_bytes: int = 4) -> MemoryBlock:
    """Bytes to read after a run."""
    return MemoryBlock(tile, offset, size_bytes, chip)
