# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Layout of a machine with GPUs: every device and every wire."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from towpath.errors import quoted

NETWORK = -1  # the host number of what belongs to no host


class PlacedDevice(NamedTuple):
    """A device in a layout."""

    name: str
    kind: str
    host: int
    forwards: bool


class PlacedWire(NamedTuple):
    """A wire in a layout: `parallel` times the rate of its link type, in both directions."""

    a: int
    b: int
    link_type: str
    parallel: float


class Adapter(NamedTuple):
    """A network adapter that joins the fabric.

    Attributes:
        device: its position among the devices.
        link_type: the type of its link to the first switch; None: the fabric's type.
    """

    device: int
    link_type: str | None


class Placing(Protocol):
    """Receives a machine device by device and wire by wire."""

    def add(self, name: str, kind: str, host: int, forwards: bool = True) -> int:
        """Adds a device and returns its position."""
        ...

    def join(self, a: int, b: int, link_type: str, parallel: float = 1) -> None:
        """Adds a wire between two devices."""
        ...


class Layout(NamedTuple):
    """A machine of a certain size, device by device. Wires refer to devices by their position."""

    devices: list[PlacedDevice]
    wires: list[PlacedWire]

    def add(self, name: str, kind: str, host: int, forwards: bool = True) -> int:
        """Adds a device and returns its position."""
        self.devices.append(PlacedDevice(name, kind, host, forwards))
        return len(self.devices) - 1

    def join(self, a: int, b: int, link_type: str, parallel: float = 1) -> None:
        """Adds a wire between two devices."""
        self.wires.append(PlacedWire(a, b, link_type, parallel))


def without(layout: Layout, names: Iterable[str]) -> Layout:
    """The layout after the failure of some devices.

    A GPU that loses its last adapter and has no bridge uses the nearest remaining adapter of its
    host, over a wire of the same type.

    Args:
        layout: the whole machine.
        names: devices, as "host0/nic3"; without a host, this device in every host.

    Returns:
        Another layout.

    Raises:
        ValueError: there is no such device, or a GPU of only one host is removed.
    """
    lost: set[int] = set()
    for name in names:
        found = {n for n, device in enumerate(layout.devices) if _is_called(device, name)}
        if not found:
            raise ValueError(
                f"there is no device {quoted(name)}; names are of the form {_some(layout)}"
            )
        if layout.devices[min(found)].kind == "gpu" and "/" in name:
            raise ValueError(
                f"{quoted(name)} is a GPU of one host; a GPU can only be removed from all hosts"
            )
        lost |= found
    kept = [n for n in range(len(layout.devices)) if n not in lost]
    position = {device: number for number, device in enumerate(kept)}
    wires = [
        wire._replace(a=position[wire.a], b=position[wire.b])
        for wire in [*layout.wires, *_replacements(layout, lost)]
        if wire.a in position and wire.b in position
    ]
    return Layout([layout.devices[n] for n in kept], wires)


def _is_called(device: PlacedDevice, name: str) -> bool:
    full = device.name.lower()
    return name.lower() in (full, full.partition("/")[2] if device.host != NETWORK else full)


def _some(layout: Layout) -> str:
    """One device of each kind."""
    first = {device.kind: device.name for device in reversed(layout.devices)}
    return ", ".join(sorted(first.values()))


def _adapters_left(layout: Layout, host: int, lost: set[int]) -> list[int]:
    """The remaining adapters of a host."""
    return [
        number for number, device in enumerate(layout.devices)
        if device.kind == "nic" and device.host == host and number not in lost
    ]  # fmt: skip


def _replacements(layout: Layout, lost: set[int]) -> list[PlacedWire]:
    """A wire to the nearest adapter for each GPU that has lost its last one."""
    devices = layout.devices
    near: dict[int, list[tuple[int, PlacedWire]]] = {}
    for wire in layout.wires:
        for gpu, other in ((wire.a, wire.b), (wire.b, wire.a)):
            if devices[gpu].kind == "gpu" and devices[other].kind != "gpu":
                near.setdefault(gpu, []).append((other, wire))
    wires = []
    for gpu, ends in near.items():
        adapters = [(other, wire) for other, wire in ends if devices[other].kind == "nic"]
        has_bridge = any(devices[other].kind in ("pcie_bridge", "cpu") for other, _ in ends)
        if has_bridge or not adapters or any(nic not in lost for nic, _ in adapters):
            continue
        left = _adapters_left(layout, devices[gpu].host, lost)
        if left:
            nic, wire = adapters[0]
            nearest = min(left, key=lambda other: (abs(other - nic), other))
            wires.append(wire._replace(a=gpu, b=nearest))
    return wires
