#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The house rules that a program can check. Prints one line per breach; exits 1 if there is one.

Usage: tools/tidy.py [ROOT]
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

# What each layer may include besides itself: the map of ARCHITECTURE.md, read downwards.
LAYERS: dict[str, set[str]] = {
    "units": set(),
    "sim": {"units"},
    "machine": {"units"},
    "noc": {"sim", "machine", "units"},
    "ethernet": {"sim", "machine", "units"},
    "pcie": {"sim", "machine", "units"},
    "cluster": {"sim", "machine", "units"},
    "routing": {"sim", "machine", "units"},
    "mailbox": {"sim", "machine", "units"},
    "device/mailbox": {"mailbox", "sim", "machine", "units"},
    "device/tenstorrent": {"noc", "ethernet", "sim", "machine", "units"},
    "kernels": {"device/tenstorrent", "noc", "ethernet", "sim", "machine", "units"},
    "transport": {"units"},
    "transport/shm": {"transport", "units"},
    "mailbox/live": {"transport/shm", "transport", "units"},
    "transport/simulated": {"transport", "cluster", "sim", "machine", "units"},
    "transport/simulated/mailbox": {
        "transport/simulated", "transport", "device/mailbox", "mailbox", "sim", "machine", "units",
    },
    "transport/simulated/ethernet": {
        "transport", "transport/simulated", "kernels", "device/tenstorrent", "noc", "ethernet",
        "sim", "machine", "units",
    },
    "collective": {"transport", "units"},
    "collective/algorithms": {"collective", "units"},
    "run": {
        "collective", "transport", "transport/simulated", "transport/simulated/ethernet",
        "transport/simulated/mailbox", "device/mailbox", "mailbox", "cluster",
        "kernels",
        "device/tenstorrent", "noc", "ethernet", "pcie", "sim", "machine", "units",
    },
    "bindings": {
        "run", "collective", "collective/algorithms", "transport", "transport/shm", "cluster",
        "transport/simulated/mailbox", "transport/simulated",
        "routing", "kernels", "device/tenstorrent", "noc", "ethernet", "pcie", "device/mailbox",
        "mailbox", "mailbox/live", "machine", "sim", "units",
    },
}  # fmt: skip
# Libraries of other people that a layer may use; the standard library and POSIX are free to all.
LIBRARIES: dict[str, set[str]] = {
    "sim": {"fmt", "boost"},
    "transport": {"fmt", "hwy"},
    "bindings": {"fmt", "nanobind"},
}
DEFAULT_LIBRARIES = {"fmt"}
NO_LIBRARIES = {"units"}

INCLUDE = re.compile(r'^\s*#include\s+(?:"towpath/([^"]+)"|<((?:fmt|boost|hwy|nanobind)/[^>]*)>)')
SPDX = "SPDX-License-Identifier: Apache-2.0"
LINE_MAX = 100
FILE_MAX = 600
BUILT_FOLDERS = {".git", ".venv", "build", "out"}
BANNED_FOLDERS = {"utils", "util", "common", "misc", "helpers"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b|#if 0")


def layer_of(path: str) -> str:
    """The layer of a file below src/towpath: its folder."""
    return str(Path(path).parent)


def check_includes(path: str, text: str) -> list[str]:
    """Breaches of the layer rule in one file, named by its path below src/towpath."""
    layer = layer_of(path)
    if layer not in LAYERS:
        return [f"src/towpath/{path}:1: folder '{layer}' is no layer; add it to tools/tidy.py"]
    problems = []
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match is None:
            continue
        where = f"src/towpath/{path}:{number}"
        if match[1] is not None:
            included = layer_of(match[1])
            if included != layer and included not in LAYERS[layer]:
                allowed = ", ".join(sorted(LAYERS[layer])) or "nothing"
                problems.append(f"{where}: {layer} includes {included}; it may include {allowed}")
        else:
            library = match[2].split("/")[0]
            top = layer.split("/")[0]
            allowed = set() if top in NO_LIBRARIES else LIBRARIES.get(top, DEFAULT_LIBRARIES)
            if library not in allowed:
                problems.append(f"{where}: {layer} uses {library}; it may use {sorted(allowed)}")
    return problems


def check_text(path: str, text: str) -> list[str]:
    """Breaches of the rules for every source file."""
    problems = []
    lines = text.splitlines()
    if SPDX not in "\n".join(lines[:4]) and text.strip():
        problems.append(f"{path}:1: no SPDX header")
    if len(lines) > FILE_MAX:
        problems.append(f"{path}: {len(lines)} lines; at most {FILE_MAX}")
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_MAX and "noqa: E501" not in line:
            problems.append(f"{path}:{number}: {len(line)} columns; at most {LINE_MAX}")
        if UNFINISHED.search(line) and path != "tools/tidy.py":
            problems.append(f"{path}:{number}: unfinished work")
    for folder in Path(path).parts[:-1]:
        if folder in BANNED_FOLDERS:
            problems.append(f"{path}: folder '{folder}' says nothing about what is in it")
    return problems


def check_map(root: Path) -> list[str]:
    """Every layer is in ARCHITECTURE.md."""
    text = (root / "ARCHITECTURE.md").read_text()
    return [
        f"ARCHITECTURE.md: layer '{layer}/' is missing from the map"
        for layer in LAYERS
        if f"{layer}/" not in text
    ]


def source_files(root: Path) -> list[str]:
    """The files that git knows or would add; without git, all but what is built here."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
        return sorted(set(listed.stdout.splitlines()))
    except (FileNotFoundError, subprocess.CalledProcessError):
        files = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
        return sorted(str(path) for path in files if path.parts[0] not in BUILT_FOLDERS)


def check(root: Path) -> list[str]:
    """All breaches in the source files."""
    problems = check_map(root)
    for path in source_files(root):
        if Path(path).suffix not in (".cpp", ".hpp", ".py", ".sh") or not (root / path).is_file():
            continue
        text = (root / path).read_text()
        problems += check_text(path, text)
        if path.startswith("src/towpath/"):
            problems += check_includes(path.removeprefix("src/towpath/"), text)
    return problems


if __name__ == "__main__":
    found = check(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent)
    print("\n".join(found))
    sys.exit(1 if found else 0)
