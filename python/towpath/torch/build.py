# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The extension that joins torch to the library: compiled once per version of torch, then kept."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any, TextIO

import torch

from towpath import _core
from towpath.errors import ConfigError

_NAME = "towpath_torch"
_SOURCES = (
    "combination.cpp", "rendezvous.cpp", "work.cpp", "backend.cpp", "messages.cpp",
    "symmetric_memory.cpp", "module.cpp",
)  # fmt: skip
# A compiler takes a minute; ranks that start at once share two cores with it.
_BUILD_TIMEOUT_S = 900.0
_FOLDER = Path(__file__).parent / "csrc"
# In a wheel the header lies beside the sources, in a checkout where it belongs.
_HEADER_FOLDERS = (_FOLDER, Path(__file__).parents[3] / "src/towpath/live")


@functools.cache
def load_extension() -> Any:
    """The compiled module; the first time, this takes a minute and needs a C++ compiler.

    Raises:
        ConfigError: there is no compiler, it fails, or the module is not there in 15 minutes.
    """
    library = _cache_folder() / _key() / f"{_NAME}.so"
    if not library.exists():
        _build(library)
    spec = importlib.util.spec_from_file_location(_NAME, library)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.register_symmetric_memory(group_api())
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
        *_arguments(Path(), Path()),
        os.environ.get("CXX", ""),
        torch.__version__,
        sys.version,
        sysconfig.get_platform(),
        torch.__file__,
    ):
        digest.update(part.encode())
    return f"torch-{torch.__version__}-{digest.hexdigest()[:16]}"


def _build(library: Path) -> None:
    """Compiles under a lock, so that of many ranks that start at once one does the work."""
    end = time.monotonic() + _BUILD_TIMEOUT_S
    compiler = _compiler()
    library.parent.mkdir(parents=True, exist_ok=True)
    with (library.parent / "lock").open("a+") as lock:
        _take(lock, end)
        if library.exists():
            return
        whole = library.parent / "all.cpp"
        whole.write_text("".join(f'#include "{name}"\n' for name in _SOURCES), encoding="utf-8")
        unfinished = library.with_suffix(".tmp")
        command = [*compiler, *_arguments(whole, unfinished)]
        left_s = max(1.0, end - time.monotonic())
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=left_s)
        except subprocess.TimeoutExpired as error:
            raise ConfigError(
                f"{' '.join(compiler)} did not finish towpath's extension in {left_s:.0f} s; "
                "name another compiler in $CXX"
            ) from error
        if done.returncode != 0:
            log = library.parent / "compiler.log"
            log.write_text(done.stderr, encoding="utf-8")
            raise ConfigError(
                f"the C++ compiler cannot build towpath's extension for torch {torch.__version__}; "
                f"what it says is in {log}"
            )
        unfinished.replace(library)


def _take(lock: TextIO, end: float) -> None:
    """Locks the file before `end`, of the monotonic clock, and writes this process into it."""
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() < end:
                time.sleep(0.1)
                continue
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            raise ConfigError(
                f"process {holder} has been building towpath's extension for "
                f"{_BUILD_TIMEOUT_S:.0f} s and holds {lock.name}; end it and start again"
            ) from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()


def _compiler() -> list[str]:
    """The words with which its command line begins; $CXX may be `ccache g++`."""
    named = shlex.split(os.environ.get("CXX", ""))
    if named:
        if shutil.which(named[0]) is None:
            raise ConfigError(f"$CXX names '{named[0]}', which is no program; name a C++ compiler")
        return named
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise ConfigError(
            "the torch backend needs a C++ compiler the first time it is used; "
            "install g++ or clang++, or name one in $CXX"
        )
    return [compiler]


def _arguments(source: Path, library: Path) -> list[str]:
    """Of the compiler's command line."""
    home = Path(torch.__file__).parent
    includes = [
        _FOLDER, _header_folder(), home / "include", home / "include/torch/csrc/api/include",
        Path(sysconfig.get_path("include")),
    ]  # fmt: skip
    libraries = ["c10", "torch", "torch_cpu", "torch_python"]
    return [
        "-O2", "-std=c++20", "-Werror=narrowing", "-shared", "-fPIC", "-fvisibility=hidden",
        "-pthread",
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
