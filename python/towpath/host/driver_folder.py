# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A folder that tt-umd opens as a simulator: a described chip behind a described host's link."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

from towpath.host.host_cluster import check_host_link
from towpath.specs import catalogue
from towpath.specs.chip_spec import ChipSpec
from towpath.specs.export import json_of, soc_descriptor_of
from towpath.specs.host_spec import HostSpec

LIBRARY = "libttsim.so"


def write_driver_folder(folder: Path, chip: str | ChipSpec, host: str | HostSpec) -> Path:
    """Writes the files that tt-umd needs to open a chip of Towpath as a simulated chip.

    Args:
        folder: the folder; it is created if it does not exist, and files of these names in it are
            replaced.
        chip: a Wormhole or Blackhole: a shipped one, a file, or a spec.
        host: the host of the chip.

    Returns:
        The library in the folder: `tt_umd.TTSimTTDevice.create(library)` opens it.

    Raises:
        ConfigError: there is no such chip or host, or the chip has no architecture or host link.
    """
    chip_spec = catalogue.load_chip(chip) if isinstance(chip, str) else chip
    host_spec = catalogue.load_host(host) if isinstance(host, str) else host
    check_host_link(chip_spec)
    descriptor = soc_descriptor_of(chip_spec)
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / LIBRARY
    # A copy: the library looks for its chip where it lies, and two of them are two chips.
    # Behind another name first: a process may have the old one open.
    unfinished = library.with_suffix(".tmp")
    shutil.copy(_installed_library(), unfinished)
    unfinished.replace(library)
    (folder / "chip.json").write_text(json_of(chip_spec), encoding="utf-8")
    (folder / "host.json").write_text(json_of(host_spec), encoding="utf-8")
    (folder / "soc_descriptor.yaml").write_text(descriptor, encoding="utf-8")
    return library


def simulated_time_ns(library: Path) -> float:
    """Simulated time since a driver opened a library from `write_driver_folder` in this process.

    Args:
        library: the library that the driver has opened.
    """
    function = ctypes.CDLL(str(library)).towpath_simulated_time_ps
    function.restype = ctypes.c_uint64
    return float(function()) / 1000


def _installed_library() -> Path:
    from towpath import _core

    return Path(_core.__file__).parent / "libtowpath_ttsim.so"
