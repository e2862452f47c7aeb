# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The place of NVSHMEM on this host, for programs that nvcc compiles."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path


def nvshmem_home() -> Path | None:
    """The folder with NVSHMEM's headers and libraries: $NVSHMEM_HOME, or the package from PyPI.

    Returns:
        The folder. None if the variable is not set and the package is not installed.
    """
    if home := os.environ.get("NVSHMEM_HOME"):
        return Path(home)
    found = importlib.util.find_spec("nvidia")
    for place in (found.submodule_search_locations or ()) if found else ():
        if (Path(place) / "nvshmem" / "include" / "nvshmem.h").is_file():
            return Path(place) / "nvshmem"
    return None
