# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The extension that joins torch to the library: compiled once per version of torch, then kept."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import torch

from towpath import _core
from towpath.errors import ConfigError

_NAME = "towpath_torch"
_SOURCES = (
    "combination.cpp", "rendezvous.cpp", "work.cpp", "backend.cpp", "messages.cpp", "module.cpp",
)  # fmt: skip
_FOLDER = Path(__file__).parent / "csrc"
# In a wheel the header lies beside the sources, in a checkout where it belongs.
_HEADER_FOLDERS = (_FOLDER, Path(__file__).parents[3] / "src/towpath/collective/direct")


@functools.cache
def load_extension() -> Any:
    """The compiled module; the first time, this takes a minute and needs a C++ compiler.

    Raises:
        ConfigError: there is no compiler, or it fails.
    """
    library = _cache_folder() / _key() / f"{_NAME}.so"
    if not library.exists():
        _build(library)
    spec = importlib.util.spec_from_file_location(_NAME, library)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _cache_folder() -> Path:
    named = os.environ.get("TOWPATH_TORCH_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base) / "towpath" if base else Path.home() / ".cache" / "towpath"


def _header_folder() -> Path:
    return next(folder for folder in _HEADER_FOLDERS if (folder / "group_api.h").exists())


def _key() -> str:
    """Names what the module was made of: its sources, and the binary interfaces it is made for."""
    digest = hashlib.sha256()
    for path in (*sorted(_FOLDER.glob("*.[ch]pp")), _header_folder() / "group_api.h"):
        digest.update(path.read_bytes())
    for part in (
        *_command(Path(), Path()),
        torch.__version__,
        sys.version,
        sysconfig.get_platform(),
        torch.__file__,
    ):
        digest.update(part.encode())
    return f"torch-{torch.__version__}-{digest.hexdigest()[:16]}"


def _build(library: Path) -> None:
    """Compiles under a lock, so that of many ranks that start at once one does the work."""
    library.parent.mkdir(parents=True, exist_ok=True)
    with (library.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if library.exists():
            return
        whole = library.parent / "all.cpp"
        whole.write_text("".join(f'#include "{name}"\n' for name in _SOURCES), encoding="utf-8")
        unfinished = library.with_suffix(".tmp")
        done = subprocess.run(_command(whole, unfinished), capture_output=True, text=True)
        if done.returncode != 0:
            log = library.parent / "compiler.log"
            log.write_text(done.stderr, encoding="utf-8")
            raise ConfigError(
                f"the C++ compiler cannot build towpath's extension for torch {torch.__version__}; "
                f"what it says is in {log}"
            )
        unfinished.replace(library)


def _command(source: Path, library: Path) -> list[str]:
    """The compiler's command line."""
    compiler = shutil.which(os.environ.get("CXX", "")) or shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        raise ConfigError(
            "the torch backend needs a C++ compiler the first time it is used; "
            "install g++ or clang++, or name one in $CXX"
        )
    home = Path(torch.__file__).parent
    includes = [
        _FOLDER, _header_folder(), home / "include", home / "include/torch/csrc/api/include",
        Path(sysconfig.get_path("include")),
    ]  # fmt: skip
    libraries = ["c10", "torch", "torch_cpu", "torch_python"]
    return [
        compiler, "-O2", "-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", "-pthread",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        f"-DTORCH_EXTENSION_NAME={_NAME}", "-DUSE_DISTRIBUTED", "-DUSE_C10D",
        *(f"-I{folder}" for folder in includes[:2]),
        *(word for folder in includes[2:] for word in ("-isystem", str(folder))),
        str(source), "-o", str(library), f"-L{home / 'lib'}", f"-Wl,-rpath,{home / 'lib'}",
        *(f"-l{library}" for library in libraries),
    ]  # fmt: skip


def group_api() -> object:
    """The functions of the library that the extension calls, as a capsule."""
    return _core.group_api()
