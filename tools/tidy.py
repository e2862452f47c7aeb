#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The house rules that a program can check. Prints one line per breach; exits 1 if there is one.

Usage: tools/tidy.py [ROOT]
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

# What each layer of the C++ library may include besides itself and what that includes: the map of
# ARCHITECTURE.md, read downwards.
LAYERS: dict[str, set[str]] = {
    "base": set(),
    "os": {"base"},
    "sim": {"base"},
    "machine": {"base"},
    "noc/router": {"sim", "machine"},
    "noc/memory": {"sim", "machine"},
    "noc/niu": {"noc/router", "noc/memory"},
    "noc": {"noc/niu"},
    "ethernet": {"sim", "machine"},
    "pcie": {"noc"},
    "gpu_links": {"sim", "machine"},
    "gpu": {"machine", "sim", "transport", "os", "gpu/include"},
    "gpu/run": {"gpu", "transport/simulated/gpu"},
    "gpu/include": set(),
    "gpu/study": {"gpu", "transport/simulated/gpu"},
    "mailbox": {"sim", "machine"},
    "tenstorrent/device": {"noc", "ethernet", "pcie"},
    "tenstorrent/host": {"noc", "pcie"},
    "ttsim": {"tenstorrent/host"},
    "tenstorrent/kernels": {"tenstorrent/device", "tenstorrent/routing"},
    "tenstorrent/metalium/kernel_include": set(),
    "tenstorrent/metalium": {"tenstorrent/fabric", "tenstorrent/metalium/kernel_include", "os"},
    "tenstorrent/fabric": {"tenstorrent/kernels"},
    "tenstorrent/ccl": {"tenstorrent/fabric", "transport/simulated"},
    "tenstorrent/routing": {"sim", "machine"},
    "tenstorrent/bench": {"tenstorrent/fabric"},
    "riscv_mailbox": {"mailbox"},
    "riscv_mailbox/live": {"os", "transport"},
    "transport": {"base"},
    "transport/waiting": {"transport", "os"},
    "transport/shm": {"transport/waiting"},
    "transport/ucx": {"transport/shm"},
    "transport/live": {"transport/shm", "transport/ucx"},
    "transport/simulated": {"transport", "sim"},
    "transport/simulated/gpu": {"transport/simulated", "gpu_links"},
    "transport/simulated/mailbox": {"transport/simulated", "riscv_mailbox"},
    "shmem": {"transport/live", "shmem/include"},
    "shmem/include": set(),
    "collective/schedule": {"transport"},
    "collective/data": {"collective/schedule"},
    "collective/verify": {"collective/engine"},
    "collective/engine": {"collective/schedule"},
    "collective/execute": {"collective/engine"},
    "collective/time_only": {"collective/engine", "transport/simulated/gpu"},
    "collective/algorithms": {"collective/schedule"},
    "collective/direct": {"transport/live"},
    "simulate": {
        "collective/execute", "collective/time_only", "transport/simulated/mailbox",
        "tenstorrent/ccl",
    },
    "bindings": {
        "simulate", "gpu/run", "gpu/study", "collective/data", "collective/verify",
        "collective/algorithms",
        "collective/direct", "transport/live", "riscv_mailbox/live", "tenstorrent/bench",
        "tenstorrent/host", "tenstorrent/routing", "tenstorrent/metalium",
    },
}  # fmt: skip

# What each folder of the Python package may import besides itself and what that imports.
PYTHON_LAYERS: dict[str, set[str]] = {
    "": set(),
    "specs": {""},
    "schedules": {""},
    "collectives": {"schedules", "specs"},
    "host": {"specs", "kernels"},
    "studies": {"host", "kernels"},
    "tuning": {"studies"},
    "validation": {"studies"},
    "pages": {"tuning", "validation"},
    "kernels": {"collectives"},
    "api": {"pages", "kernels"},
    "cli": {"api"},
    "torch": {"api"},
    "penny": {"kernels"},
    "vllm": {"torch"},
}
# The compiled core stands below all of them.
COMPILED = "_core"


def reachable(layers: dict[str, set[str]], layer: str) -> set[str]:
    """A layer, what it names, and what that names in turn."""
    found = {layer}
    for below in layers[layer]:
        found |= reachable(layers, below)
    return found


# Libraries of other people that a layer may use; the standard library and POSIX are free to all.
LIBRARIES: dict[str, set[str]] = {
    "sim": {"fmt", "boost"},
    "gpu": {"fmt", "boost"},
    "machine": {"fmt"},
    "transport": {"fmt", "hwy"},
    "bindings": {"fmt", "nanobind"},
}
DEFAULT_LIBRARIES = {"fmt"}
NO_LIBRARIES: set[str] = set()

INCLUDE = re.compile(r'^\s*#include\s+(?:"towpath/([^"]+)"|<((?:fmt|boost|hwy|nanobind)/[^>]*)>)')
# A vendor's words may occur where its chips are programmed, and in bindings and transports of that.
VENDOR = re.compile(r"tenstorrent|wormhole|blackhole|noc_async|erisc|tensix", re.IGNORECASE)
VENDOR_LAYERS = ("tenstorrent/", "bindings")
# The sources of default figures name the vendor's documents.
VENDOR_SOURCES = ("machine/chip_parameters.cpp",)
# What names a vendor's layer rather than its chips: joining the layers needs it.
VENDOR_NAMES = re.compile(r'#include "towpath/tenstorrent/|\btenstorrent::|namespace .*tenstorrent')
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
            allowed_layers = reachable(LAYERS, layer) - {layer}
            if included != layer and included not in allowed_layers:
                allowed = ", ".join(sorted(allowed_layers)) or "nothing"
                problems.append(f"{where}: {layer} includes {included}; it may include {allowed}")
        else:
            library = match[2].split("/")[0]
            top = layer.split("/")[0]
            allowed = set() if top in NO_LIBRARIES else LIBRARIES.get(top, DEFAULT_LIBRARIES)
            if library not in allowed:
                problems.append(f"{where}: {layer} uses {library}; it may use {sorted(allowed)}")
    return problems


def check_vendor(path: str, text: str) -> list[str]:
    """Names of a vendor where the library is about any machine; `path` is below src/towpath."""
    if f"{layer_of(path)}/".startswith(VENDOR_LAYERS) or path in VENDOR_SOURCES:
        return []
    return [
        f"src/towpath/{path}:{number}: names a vendor; its names belong in tenstorrent/ and specs"
        for number, line in enumerate(text.splitlines(), 1)
        if VENDOR.search(line) and not VENDOR_NAMES.search(line)
    ]


def check_imports(path: str, text: str) -> list[str]:
    """Breaches of the layer rule in one file of the package, named by its path below it."""
    layer = Path(path).parts[0] if len(Path(path).parts) > 1 else ""
    if layer not in PYTHON_LAYERS:
        return [f"python/towpath/{path}:1: folder '{layer}' is no layer; add it to tools/tidy.py"]
    if layer == "" and Path(path).name == "__init__.py":
        return []  # the door: it names what the layers offer
    allowed = reachable(PYTHON_LAYERS, layer)
    problems = []
    for number, imported in imports_of(text):
        parts = imported.split(".")
        named = parts[1] if len(parts) > 1 else ""
        below = named if named in PYTHON_LAYERS else ""
        if named != COMPILED and below not in allowed:
            problems.append(
                f"python/towpath/{path}:{number}: {layer} imports {below}; it may import "
                f"{', '.join(sorted(allowed - {layer, ''})) or 'nothing'}"
            )
    return problems


def imports_of(text: str) -> list[tuple[int, str]]:
    """(line, module) of everything of towpath that a file imports, wherever it does."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return [(line, module) for line, module in found if module.split(".")[0] == "towpath"]


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
            problems += check_vendor(path.removeprefix("src/towpath/"), text)
        if path.startswith("python/towpath/") and path.endswith(".py"):
            problems += check_imports(path.removeprefix("python/towpath/"), text)
    return problems


if __name__ == "__main__":
    found = check(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent)
    print("\n".join(found))
    sys.exit(1 if found else 0)
