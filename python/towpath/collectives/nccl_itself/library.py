# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A release of NCCL as a library whose kernels run on virtual GPUs.

The library holds the host part of the release, virtual GPUs, and a small part of the device code.
The kernels and device functions of a file of the release are compiled when the first of them is
called. Until then they have an address each.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from towpath import _core
from towpath.collectives.nccl_itself.build import (
    TIMEOUT_S,
    Compilation,
    cache,
    compiler,
    first_error,
    link_digest,
    run_tool,
    source_of,
)
from towpath.collectives.nccl_itself.recipe import INSTALLED, OWN_SOURCE, recipe_of
from towpath.collectives.nccl_itself.source import RCCL_PREFIX, Version, unpack
from towpath.compiled import is_intact, made_once
from towpath.errors import ConfigError

_NAME = "libnccl.so.2"
_KEPT = 8
_UNITS_KEPT = 4096
_WAITING = OWN_SOURCE / "towpath" / "virtual_gpu" / "nccl" / "waiting.cu"
_DEVICE_FLAGS = (
    "-std=gnu++20", "-O2", "-g1", "-w", "-fPIC", "-march=native", "-fno-strict-aliasing",
    "-ffp-contract=off", "-DTOWPATH_VIRTUAL_GPU", "-DTOWPATH_DEVICE_CODE",
)  # fmt: skip
_HOST_FLAGS = ("-std=gnu++17", "-O2", "-g", "-w", "-fPIC", "-DTOWPATH_VIRTUAL_GPU")
# Functions between which and their callers virtual_gpu/nccl/ stands.
_WRAPPED = (
    "_Z16ncclEnqueueCheckP8ncclInfo", "_Z9ArgsCheckP8ncclInfo", "pthread_create", "memset"
)  # fmt: skip
# The files whose code is in the library itself.
_ALWAYS = ("common", "onerank", "device_table")
_DEFINITION = re.compile(r"DEFINE_nccl(DevFunc|DevKernel)\(\s*(\w+)|__global__ void (nccl\w+)\(")
# A spin of a thread is seen at its loads of the abort flag. NCCL loads it after many spins. A store
# of C++ to multicast memory is not seen. Lanes of a GPU end a loop together, even if they differ in
# the number of iterations, and shared memory that they have read is then overwritten.
_CHANGES = {
    "src/device/primitives.h": (
        r"(#define\s+NCCL_SPINS_BEFORE_CHECK_ABORT)\s+\d+",
        r"\1 8",
    ),
    "src/include/device.h": (
        r"volatile\s+uint32_t\s*\*\s*abortFlag;",
        "towpath_gpu::Volatile<uint32_t>* abortFlag;",
    ),
    "src/device/prims_simple.h": (
        r"\*connStepPtr = step;",
        "st_relaxed_sys_global(connStepPtr, step);",
    ),
    "src/device/prims_ll128.h": (
        r"(dst\[i\] = shm\[i\];)",
        r"\1\n    if (misalignment != 0) __syncwarp();",
    ),
}
# Not all releases have these. The threads of a kernel share its arguments. blockIdx is a macro
# here, and no name of a parameter. g++ takes no destructor after `template`.
_CHANGES_OF_SOME = {
    "src/device/common.h": (
        r"//(#define NCCL_GRID_CONSTANT __grid_constant__)\s+#define NCCL_GRID_CONSTANT\b",
        r"\1",
    ),
    "src/device/symmetric/primitives.cuh": (r"\bblockIdx\b(?!\.)", "block_index"),
    "src/device/symmetric/reduce_scatter_gin.cuh": (r"\.template\s+~", ".~"),
}


class NcclLibrary:
    """A release in the cache.

    Attributes:
        release: such as "2.27.5".
        folder: its files: libnccl.so.2, nccl.h, device code that is compiled on demand.
    """

    def __init__(self, release: str, folder: Path) -> None:
        self.release = release
        self.folder = folder

    @property
    def header_folder(self) -> Path:
        """The folder of nccl.h."""
        return self.folder / "include"

    def variables(self) -> dict[str, str]:
        """The environment in which programs find the library and its device code."""
        earlier = os.environ.get("LD_LIBRARY_PATH")
        command = [sys.executable, "-m", __name__, str(self.folder)]
        return {
            "LD_LIBRARY_PATH": f"{self.folder}:{earlier}" if earlier else str(self.folder),
            "TOWPATH_DEVICE_UNITS": str(self.folder / "units"),
            "TOWPATH_DEVICE_UNIT_COMMAND": "\n".join(command),
        }

    def units(self) -> list[str]:
        """The files of device code that are compiled on demand, by name."""
        return sorted(json.loads((self.folder / "units.json").read_text(encoding="utf-8")))


def library_of(release: str) -> NcclLibrary:
    """The library of a release that was built (`towpath nccl build`). It is made at the first call.

    Raises:
        ConfigError: the release was not built, its source is gone or does not compile.
    """
    changes = f"{_CHANGES} {_CHANGES_OF_SOME}"
    flags = f"{' '.join(_DEVICE_FLAGS)} {changes} {_processor()}"
    name = f"{release}-{link_digest(flags)[:16]}"
    library = cache("nccl-library") / name / _NAME
    if not is_intact(library):
        source = source_of(release)
        print(f"towpath: compiling NCCL {release} for virtual GPUs; once", file=sys.stderr)

        def make(unfinished: Path, end: float) -> None:
            with tempfile.TemporaryDirectory(prefix="towpath-nccl-") as scratch:
                _Library(source, release, Path(scratch), library.parent, end).make(unfinished)

        made_once(
            library, make, subject=f"NCCL {release}", timeout_s=TIMEOUT_S, kept=_KEPT,
            others=["units.json"],
        )  # fmt: skip
    return NcclLibrary(release, library.parent)


def compile_unit(folder: Path, unit: str) -> Path:
    """Compiles a file of device code, unless that was done before.

    Args:
        folder: of the library.
        unit: the name of the file without its ending.

    Raises:
        ConfigError: it does not compile.
    """
    made = folder / "units" / unit / f"{unit}.so"

    def make(unfinished: Path, end: float) -> None:
        source = folder / "source" / "generated" / f"{unit}.cu"
        with tempfile.TemporaryDirectory(prefix="towpath-nccl-") as scratch:
            objects = [_compiled_device_file(folder, source, Path(scratch), end)]
            # Its functions call each other, not the stubs of the library.
            command = [compiler(), "-shared", "-Wl,-Bsymbolic", *map(str, objects)]
            command += [str(folder / _NAME), "-o", str(unfinished)]
            _run(command, f"{unit} of NCCL", end)

    return made_once(made, make, subject=f"{unit} of NCCL", timeout_s=TIMEOUT_S, kept=_UNITS_KEPT)


def compile_program(
    files: Sequence[Path], program: Path, library: NcclLibrary, flags: Sequence[str] = ()
) -> None:
    """Compiles a program for virtual GPUs, its kernels included, and links it to NCCL.

    Args:
        files: C++ and CUDA sources.
        program: the result, which `towpath nccl run` starts.
        library: of the release whose nccl.h is used.
        flags: further options of the compiler, such as -I and -D.

    Raises:
        ConfigError: a file is missing or does not compile.
    """
    with tempfile.TemporaryDirectory(prefix="towpath-nccl-") as scratch:
        build = _ProgramBuild(library, Path(scratch), flags)
        build.link(build.objects(files), program)


def compile_nccl_tests(
    source: Path, folder: Path, library: NcclLibrary, flags: Sequence[str] = ()
) -> list[Path]:
    """Compiles the programs of NVIDIA's nccl-tests.

    Args:
        source: a checkout of nccl-tests.
        folder: for the programs: all_reduce_perf and the like.
        library: of the release whose nccl.h is used.
        flags: further options of the compiler, such as -DMPI_SUPPORT and -lmpi.

    Returns:
        The programs.

    Raises:
        ConfigError: `source` is not nccl-tests, or does not compile.
    """
    common = source / "src" / "common.cu"
    if not common.is_file():
        raise ConfigError(f"{source} is not a checkout of nccl-tests: it has no src/common.cu")
    files = [common, source / "src" / "timer.cc", source / "verifiable" / "verifiable.cu"]
    files += [source / "src" / "util.cu", source / "os" / "linux.cc"]
    folders = ("src", "verifiable", "os")
    flags = ["-DNCCL_OS_LINUX", *(f"-I{source / name}" for name in folders), *flags]
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    with tempfile.TemporaryDirectory(prefix="towpath-nccl-") as scratch:
        build = _ProgramBuild(library, Path(scratch), flags)
        shared = build.objects([file for file in files if file.is_file()])
        others = ("common", "util")
        mains = [each for each in sorted(common.parent.glob("*.cu")) if each.stem not in others]
        for main, own in zip(mains, build.objects(mains), strict=True):
            made.append(folder / f"{main.stem}_perf")
            build.link([own, *shared], made[-1])
    return made


class _ProgramBuild:
    """Compiles files for virtual GPUs in a scratch folder, several at once."""

    def __init__(self, library: NcclLibrary, scratch: Path, flags: Sequence[str]) -> None:
        self._library = library
        self._scratch = scratch
        self._flags = list(flags)
        self._count = 0
        self._end = time.monotonic() + TIMEOUT_S

    def objects(self, files: Sequence[Path]) -> list[Path]:
        """The objects of C++ and CUDA sources."""
        names = []
        for file in files:
            if not file.is_file():
                raise ConfigError(f"there is no file {file}")
            self._count += 1
            names.append(self._scratch / f"{self._count}.o")
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(self._compile, files, names))
        return names

    def link(self, objects: Sequence[Path], program: Path) -> None:
        """Links objects and the library."""
        command = [compiler(), *map(str, objects), "-o", str(program)]
        libraries = [str(self._library.folder / _NAME), "-lpthread", "-ldl", "-lrt"]
        links = [flag for flag in self._flags if flag.startswith(("-L", "-l", "-Wl,"))]
        _run([*command, *libraries, *links], str(program), self._end)

    def _compile(self, file: Path, made: Path) -> None:
        includes = [f"-I{self._library.header_folder}", f"-I{INSTALLED / 'gpu_include'}"]
        if file.suffix == ".cu":
            flags = [*_DEVICE_FLAGS, *includes, *self._flags]
            return _compile_cuda(file, made, flags, self._end)
        command = [compiler(), *_HOST_FLAGS, *includes, *self._flags, "-c", str(file)]
        _run([*command, "-o", str(made)], str(file), self._end)
        return None


def _compile_cuda(file: Path, made: Path, flags: Sequence[str], end: float) -> None:
    preprocess = [compiler(), "-E", "-x", "c++", *flags, "-include", "cuda_runtime.h", str(file)]
    text = _run(preprocess, str(file), end)
    cpp = made.with_suffix(".ii")
    cpp.write_text(_core.translate_cuda(text, []), encoding="utf-8")
    command = [compiler(), "-fpreprocessed", "-x", "c++", *flags, "-c", str(cpp), "-o", str(made)]
    _run(command, str(file), end)


def _compiled_device_file(folder: Path, file: Path, scratch: Path, end: float) -> Path:
    """The object of a file of NCCL's device code."""
    source = folder / "source"
    includes = [folder / "include", INSTALLED / "gpu_include"]
    includes += [source / "src" / name for name in ("", "include", "include/plugin", "device")]
    flags = [*_DEVICE_FLAGS, *(f"-D{define}" for define in recipe_of(False).defines)]
    flags += [f"-I{include}" for include in includes]
    made = scratch / f"{file.stem}.o"
    _compile_cuda(file, made, flags, end)
    return made


def _processor() -> str:
    """The instructions of this host's processor, on which compiled code depends."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    return next((line for line in text.splitlines() if line.startswith("flags")), "")


def _run(command: Sequence[str], subject: str, end: float) -> str:
    """The output of a tool that has done its work."""
    done = run_tool(command, subject, end)
    if done.returncode != 0:
        raise ConfigError(f"{subject} does not compile: {first_error(done.stderr)}")
    return done.stdout


class _Library:
    """Makes a library in a folder."""

    def __init__(self, source: Path, release: str, scratch: Path, folder: Path, end: float) -> None:
        self._scratch = scratch
        self._folder = folder
        self._end = end
        if release.startswith(RCCL_PREFIX):
            raise ConfigError("programs run with NCCL, not with RCCL; name a release of NCCL")
        self._version: Version = unpack(source, release, scratch)
        self._job = Compilation(scratch, self._version, os.cpu_count() or 1)

    def make(self, unfinished: Path) -> None:
        archive = self._job.archive(self._end)
        self._write_sources()
        symbols = self._write_units()
        files = [*(self._device_file(name) for name in _ALWAYS), _WAITING]
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            compiled = pool.map(self._compiled, files)
        objects = list(compiled)
        own = [
            each
            for each in recipe_of(False).own_sources()
            if each.parent.name != "replicated" and each.stem not in ("decide", "question")
        ]
        objects += self._job.compile_all(own)
        stubs = self._scratch / "stubs.c"
        names = self._job.missing([archive, *objects])
        stubs.write_text(_stubs(names, symbols), encoding="utf-8")
        command = [
            compiler(), "-shared", f"-Wl,-soname,{_NAME}", "-x", "c", "-O1", "-fPIC", str(stubs),
            "-x", "none", *map(str, objects), "-Wl,--allow-multiple-definition",
            "-Wl,--whole-archive", str(archive), "-Wl,--no-whole-archive", "-Wl,-z,defs",
            *(f"-Wl,--wrap={name}" for name in _WRAPPED),
            "-lstdc++", "-lm", "-lpthread", "-ldl", "-lrt", "-o", str(unfinished),
        ]  # fmt: skip
        _run(command, f"NCCL {self._version.release}", self._end)

    def _compiled(self, file: Path) -> Path:
        return _compiled_device_file(self._folder, file, self._scratch, self._end)

    def _device_file(self, name: str) -> Path:
        generated = self._folder / "source" / "generated" / f"{name}.cu"
        return generated if generated.is_file() else self._source / "device" / f"{name}.cu"

    @property
    def _source(self) -> Path:
        return self._folder / "source" / "src"

    def _write_sources(self) -> None:
        """Keeps the device code, which is compiled later."""
        for name in ("source", "include", "units"):
            shutil.rmtree(self._folder / name, ignore_errors=True)
        self._source.mkdir(parents=True)
        for name in ("device", "include"):
            shutil.copytree(self._scratch / "src" / name, self._source / name, symlinks=True)
        shutil.copytree(self._scratch / "include", self._folder / "include")
        for name, (pattern, text) in _CHANGES.items():
            if self._change(name, pattern, text) != 1:
                raise ConfigError(
                    f"NCCL {self._version.release} has another {name} than known here; name a "
                    "release that runs, such as 2.21.5"
                )
        for name, (pattern, text) in _CHANGES_OF_SOME.items():
            if (self._folder / "source" / name).is_file():
                self._change(name, pattern, text)
        generated = self._folder / "source" / "generated"
        generated.mkdir()
        self._job.generate(self._source / "device", generated)
        symmetric = self._source / "device" / "symmetric"
        if (symmetric / "generate.py").is_file():
            self._job.generate(symmetric, self._scratch / "symmetric")
            # Both programs write files of the same names.
            for file in (self._scratch / "symmetric").glob("*.cu"):
                file.rename(generated / f"symmetric_{file.name}")

    def _change(self, name: str, pattern: str, text: str) -> int:
        """Replaces a pattern in a file of the source. Returns how often."""
        file = self._folder / "source" / name
        changed, count = re.subn(pattern, text, file.read_text(encoding="utf-8"))
        file.write_text(changed, encoding="utf-8")
        return count

    def _write_units(self) -> dict[str, str]:
        """The file of each kernel and device function."""
        symbols: dict[str, str] = {}
        units = []
        for file in sorted((self._folder / "source" / "generated").glob("*.cu")):
            if file.stem in _ALWAYS:
                continue
            units.append(file.stem)
            for kind, name, kernel in _DEFINITION.findall(file.read_text(encoding="utf-8")):
                symbols[kernel or f"nccl{kind}_{name}"] = file.stem
        (self._folder / "units.json").write_text(json.dumps(units), encoding="utf-8")
        return symbols


def _stubs(names: Sequence[str], symbols: dict[str, str]) -> str:
    """Functions in C with the names of device code. They load it when they are called."""
    lines = [
        "void towpath_function_without_code(const char* name);",
        "void* towpath_unit_function(const char* unit, const char* name);",
        "void towpath_add_stub(const void* stub, const char* unit, const char* name);",
        "static void add_stubs(void) __attribute__((constructor));",
    ]
    added = []
    for number, name in enumerate(names):
        plain = re.match(r"_Z(\d+)(\w+)", name)
        found = plain and symbols.get(plain[2][: int(plain[1])])
        lines.append(f'void stub_{number}(void) __asm__("{name}");')
        if not found:
            lines.append(f'void stub_{number}(void) {{ towpath_function_without_code("{name}"); }}')
            continue
        added.append(f'  towpath_add_stub((const void*)&stub_{number}, "{found}", "{name}");')
        lines.append(
            f"void stub_{number}(void) {{ static void* code; "
            "void* found = __atomic_load_n(&code, __ATOMIC_ACQUIRE); "
            f'if (!found) {{ found = towpath_unit_function("{found}", "{name}"); '
            "__atomic_store_n(&code, found, __ATOMIC_RELEASE); } ((void (*)(void))found)(); }"
        )
    return "\n".join([*lines, "static void add_stubs(void) {", *added, "}", ""])


if __name__ == "__main__":
    try:
        compile_unit(Path(sys.argv[1]), sys.argv[2])
    except ConfigError as problem:
        print(problem, file=sys.stderr)
        sys.exit(1)
