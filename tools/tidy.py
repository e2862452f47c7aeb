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
    "causality": {"base"},
    "noc/router": {"sim", "machine"},
    "noc/memory": {"sim", "machine"},
    "noc/niu": {"noc/router", "noc/memory"},
    "noc": {"noc/niu"},
    "ethernet": {"sim", "machine"},
    "pcie": {"noc"},
    "gpu_links": {"sim", "machine"},
    "gpu": {"machine", "sim", "transport", "os", "causality", "gpu/include"},
    "gpu/run": {"gpu", "transport/simulated/gpu"},
    "gpu/include": set(),
    "gpu/study": {"gpu", "transport/simulated/gpu"},
    "mailbox": {"sim", "machine"},
    "tenstorrent/core": {"noc", "ethernet"},
    "tenstorrent/hazards": {"tenstorrent/core", "causality"},
    "tenstorrent/device": {"tenstorrent/hazards"},
    "tenstorrent/dispatch": {"tenstorrent/device", "pcie"},
    "tenstorrent/cluster": {"tenstorrent/dispatch"},
    "tenstorrent/host": {"noc", "pcie"},
    "tenstorrent/kernels": {"tenstorrent/cluster", "tenstorrent/routing"},
    "tenstorrent/metalium/kernel_include": set(),
    "tenstorrent/metalium": {"tenstorrent/fabric", "tenstorrent/metalium/kernel_include", "os"},
    "tenstorrent/fabric": {"tenstorrent/kernels"},
    "tenstorrent/ccl": {"tenstorrent/fabric", "transport/simulated", "simulate"},
    "tenstorrent/routing": {"sim", "machine"},
    "tenstorrent/bench": {"tenstorrent/fabric"},
    "riscv_mailbox": {"mailbox"},
    "riscv_mailbox/live": {"transport"},
    "virtual_gpu/device": {"gpu/include"},
    "virtual_gpu": {"virtual_gpu/device"},
    "virtual_gpu/nccl": {"virtual_gpu"},
    "virtual_gpu/rccl": {"virtual_gpu"},
    "virtual_gpu/nccl/replicated": {"virtual_gpu"},
    "virtual_gpu/nccl/timed": {"virtual_gpu"},
    "transport": {"os"},
    "transport/shm": {"transport"},
    "transport/ucx": {"transport/shm"},
    "transport/simulated": {"transport", "sim"},
    "transport/simulated/gpu": {"transport/simulated", "gpu_links"},
    "transport/simulated/mailbox": {"transport/simulated", "riscv_mailbox"},
    "shmem": {"live", "shmem/include"},
    "shmem/include": set(),
    "collective/schedule": {"transport"},
    "collective/data": {"collective/schedule"},
    "collective/verify": {"collective/engine", "causality"},
    "collective/engine": {"collective/schedule"},
    "collective/execute": {"collective/engine"},
    "collective/time_only": {"collective/engine", "transport/simulated/gpu"},
    "collective/algorithms": {"collective/schedule"},
    "live": {"transport/shm", "transport/ucx"},
    "simulate": {
        "collective/execute", "collective/time_only", "transport/simulated/mailbox",
    },
    "bindings": {
        "simulate", "gpu/run", "gpu/study", "collective/data", "collective/verify",
        "collective/algorithms",
        "live", "riscv_mailbox/live", "tenstorrent/bench",
        "tenstorrent/host", "tenstorrent/routing", "tenstorrent/metalium", "tenstorrent/ccl",
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
    "operators": {"studies"},
    "pages": {"tuning", "validation", "operators"},
    "kernels": {"collectives"},
    "api": {"pages", "kernels"},
    "reproduce": {"api", "penny"},
    "cli": {"reproduce"},
    "torch": {"api"},
    "penny": {"kernels"},
    "vllm": {"torch"},
}
# What tests may import: the modules with a public `__all__`, and the folder that holds the rest.
PUBLIC_MODULES = {
    "towpath": "__init__.py",
    "towpath.penny": "penny/__init__.py",
    "towpath.torch": "torch/__init__.py",
    "towpath.vllm": "vllm/__init__.py",
}
FACADE = "tests/support/inside/"
# Imports in the text of a program, and names that `monkeypatch.setattr` and the like resolve.
IMPORT_IN_PROGRAM = re.compile(r"(?:from|import) (towpath[.\w]*)(?: import ([\w, ]+))?")
PRIVATE_NAME = re.compile(r"towpath\.(?!vllm\.)[a-z_]\w*[.:]\w+(?:\.\w+)*$")

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
# A vendor's words may occur where its chips are programmed, and in bindings of that. Elsewhere a
# comment may cite the vendor as the source of a figure: from `Source:` to the end of the comment.
VENDOR = re.compile(
    r"tenstorrent|wormhole|blackhole|noc_async|tensix|erisc|tt.?metal|ttnn"
    r"|\bfabric|\bEDM\b|\bCCL\b",
    re.IGNORECASE,
)
# NVML calls a domain of NVLinks a fabric.
VENDOR_LAYERS = ("tenstorrent/", "bindings", "virtual_gpu/")
# Files that still name a vendor, each with the reason. The list only shrinks.
VENDOR_ALLOWED = {
    "machine/chip_parameters.cpp": "sources of default values, which are texts of the table",
    "machine/chip.hpp": "the name of an architecture, as its compiler spells it",
}
CITATION = re.compile(r"\bSource:.*")
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
    if f"{layer_of(path)}/".startswith(VENDOR_LAYERS) or path in VENDOR_ALLOWED:
        return []
    return [
        f"src/towpath/{path}:{number}: names a vendor; its names belong in tenstorrent/ and specs, "
        "or behind `Source:` at the end of a comment"
        for number, line in enumerate(without_citations(text), 1)
        if VENDOR.search(line)
    ]


def without_citations(text: str) -> list[str]:
    """The lines of a C++ file, each without its part of a comment from `Source:` on."""
    lines = []
    is_citation = False
    for line in text.splitlines():
        code, slashes, comment = line.partition("//")
        is_citation = is_citation and not code.strip() and bool(slashes)
        lines.append(code if is_citation else code + CITATION.sub("", comment))
        is_citation = is_citation or "Source:" in comment
    return lines


def check_imports(path: str, text: str) -> list[str]:
    """Breaches of the layer rule in one file of the package, named by its path below it."""
    layer = Path(path).parts[0] if len(Path(path).parts) > 1 else ""
    if layer not in PYTHON_LAYERS:
        return [f"python/towpath/{path}:1: folder '{layer}' is no layer; add it to tools/tidy.py"]
    if layer == "" and Path(path).name in ("__init__.py", "__main__.py"):
        return []  # the doors: they name what the layers offer
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


def check_doors(path: str, text: str, public: dict[str, set[str]]) -> list[str]:
    """Private modules that a test imports, itself or in a program that it starts.

    `public` holds the public names of each module that tests may import.
    """
    imported = imports_of(text)
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        for module, names in IMPORT_IN_PROGRAM.findall(node.value):
            modules = [f"{module}.{name.split()[0]}" for name in names.split(",") if name.strip()]
            imported += [(node.lineno, each) for each in modules or [module]]
        if PRIVATE_NAME.match(node.value):
            imported.append((node.lineno, node.value))
    return [
        f"{path}:{line}: a test imports {module}; take it from `import towpath` or, if it is "
        f"private, from {FACADE}"
        for line, module in imported
        if not is_public(module, public)
    ]


def is_public(module: str, public: dict[str, set[str]]) -> bool:
    """Whether a module, or a name of one as MODULE.NAME, is part of the public door."""
    door, _, name = module.rpartition(".")
    return module in public or name in public.get(door, ())


def public_names(root: Path) -> dict[str, set[str]]:
    """`__all__` of each public module of the package, by the module's name."""
    found = {}
    for name, file in PUBLIC_MODULES.items():
        tree = ast.parse((root / "python" / "towpath" / file).read_text())
        lists = [
            ast.literal_eval(node.value) for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        ]  # fmt: skip
        found[name] = {each for names in lists for each in names}
    found["towpath.__main__"] = {"main"}
    return found


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
    public = public_names(root)
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
        if is_test(path):
            problems += check_doors(path, text, public)
    return problems


def is_test(path: str) -> bool:
    """Whether a file must enter by the public door or by the folder of private parts."""
    if path == "tests/unit/python/test_tidy.py":
        return False  # it holds imports that this file must find
    return path.startswith("tests/") and path.endswith(".py") and not path.startswith(FACADE)


if __name__ == "__main__":
    found = check(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent)
    print("\n".join(found))
    sys.exit(1 if found else 0)
