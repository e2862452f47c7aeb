# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Machines for other programs: JSON for towpath/machine/load.hpp, and SoC descriptors
for drivers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import yaml

from towpath.errors import ConfigError, quoted
from towpath.specs import catalogue, shipped
from towpath.specs.chip_spec import ChipSpec, Coordinate
from towpath.specs.kinds import Spec


def json_of(spec: Spec) -> str:
    """Converts a spec to JSON for the core: resolved, every value in its unit, without sources.

    Args:
        spec: a machine of any kind.

    Raises:
        ConfigError: the spec is a machine with GPUs and has too many devices or wires.
    """
    return _text(spec.data(), "") + "\n"


def soc_descriptor_of(chip: ChipSpec) -> str:
    """Converts a chip to tt-umd's format: its tiles and the sizes of its memories, as YAML.

    Args:
        chip: a chip with Wormhole's or Blackhole's architecture.

    Raises:
        ConfigError: the chip has no architecture.
    """
    if chip.architecture is None:
        raise ConfigError(f"chip {quoted(chip.name)} has no architecture, which a driver needs")
    tiles = chip.tiles
    harvested = [at for at, kind in chip.tile_kinds().items() if kind == "harvested"]
    channels = chip.dram.channels_per_group.value if tiles.dram else 1
    descriptor = {
        "grid": {"x_size": chip.grid.width, "y_size": chip.grid.height},
        "arc": _names(tiles.arc),
        "pcie": _names(tiles.pcie),
        "dram": [_names(group) for group in tiles.dram],
        "eth": _names(tiles.ethernet),
        "functional_workers": _names(chip.workers()),
        "harvested_workers": _names(harvested),
        "router_only": _names(tiles.router_only),
        "worker_l1_size": chip.l1_bytes.value,
        "dram_bank_size": chip.dram.channel_bytes.value * channels if tiles.dram else 0,
        "eth_l1_size": chip.ethernet_l1_bytes.value if chip.ethernet_l1_bytes else 0,
        "arch_name": chip.architecture.upper(),
        "features": {"noc": {"translation_id_enabled": False}},
    }
    return yaml.safe_dump(descriptor, sort_keys=False)


def write_shipped(folder: Path) -> list[Path]:
    """Writes the JSON of every shipped machine, as NAME.json.

    Args:
        folder: the target folder, which must exist.

    Returns:
        The files.
    """
    files = []
    for name in sorted(shipped.kinds()):
        files.append(folder / f"{name}.json")
        files[-1].write_text(json_of(catalogue.load_any(name)), encoding="utf-8")
    return files


def _names(tiles: Iterable[Coordinate]) -> list[str]:
    return [str(tile) for tile in tiles]


def _text(value: object, indent: str) -> str:
    """JSON with a line for each field, and for each item in a list of lists or blocks."""
    inner = indent + " "
    if isinstance(value, dict) and value and indent.count(" ") < 3:
        lines = [f"{inner}{json.dumps(key)}: {_text(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list) and value and isinstance(value[0], (list, dict)):
        small = all(not isinstance(item, dict) or "form" not in item for item in value)
        lines = [inner + (json.dumps(item) if small else _text(item, inner)) for item in value]
        return "[\n" + ",\n".join(lines) + f"\n{indent}]"
    return json.dumps(value)


if __name__ == "__main__":  # python -m towpath.specs.export FOLDER
    import sys

    write_shipped(Path(sys.argv[1]))
