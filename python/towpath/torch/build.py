# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The extension that joins torch to the library: compiled once per version of torch, and then
stored.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

import torch

from towpath import _core
from towpath.compiled import cache_folder, compiled, python_headers
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
    """Loads the compiled module. The first call takes a minute and needs a C++ compiler.

    Raises:
        ConfigError: there is no compiler, it fails or takes more than 15 minutes, or other users
        may write to the folder of compiled code.
    """
    library = compiled(
        cache_folder("torch", os.environ.get("TOWPATH_TORCH_CACHE")) / _key() / f"{_NAME}.so",
        _command, subject=f"the backend for torch {torch.__version__}", timeout_s=_BUILD_TIMEOUT_S,
    )  # fmt: skip
    spec = importlib.util.spec_from_file_location(_NAME, library)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.register_symmetric_memory(group_api())
    return module


def _header_folder() -> Path:
    return next(folder for folder in _HEADER_FOLDERS if (folder / "group_api.h").exists())


def _key() -> str:
    """Key of the module: its sources, and its binary interfaces."""
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


def _command(library: Path) -> list[str]:
    """The compiler's command line. One file next to the library includes all sources."""
    whole = library.parent / "all.cpp"
    whole.write_text("".join(f'#include "{name}"\n' for name in _SOURCES), encoding="utf-8")
    return [*_compiler(), *_arguments(whole, library)]


def _compiler() -> list[str]:
    """The words at the start of the command line; $CXX may be `ccache g++`."""
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
    """Arguments of the compiler's command line."""
    home = Path(torch.__file__).parent
    includes = [
        _FOLDER, _header_folder(), home / "include", home / "include/torch/csrc/api/include",
        python_headers(),
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
