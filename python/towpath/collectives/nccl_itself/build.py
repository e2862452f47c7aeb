# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles the host part of a release of NCCL with virtual GPUs into a program that decides.

NCCL's files are compiled as they are, by the host's compiler. Kernels have addresses and no code.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from towpath import _core
from towpath.collectives.nccl_itself.source import Version, unpack
from towpath.compiled import cache_folder, is_intact, made_once
from towpath.errors import ConfigError
from towpath.processes import run_ending_with_this_one

OLDEST = (2, 19)
_TIMEOUT_S = 3600.0
_KEPT = 32
_GATHER = "towpath/virtual_gpu/nccl/replicated/gather.hpp"
_PROGRAM = "decide"
_REPLICATED = "decide_replicated"
_ARCHIVE = "host.a"
# Other platforms, separate programs, device code, and code for one network card. The weak functions
# of enhcompat.cc would take the place of virtual GPUs' functions.
_LEFT_OUT = re.compile(
    r"device/|collectives/device/|enhcompat\.cc|ras/client\.cc|param/ncclparam\.cc|.*windows|"
    r".*_stub\.cc|.*gdaki"
)
_DEFINES = (
    "TOWPATH_VIRTUAL_GPU", "CUDA_MAJOR=12", "CUDA_MINOR=8", "NCCL_OS_LINUX", "PROFAPI",
    "NCCL_GIN_GDAKI_ENABLE=0", "NCCL_GIN_PROXY_ENABLE=0", "NVTX_DISABLE",
    'NCCL_GIT_BRANCH=""', 'NCCL_GIT_COMMIT_HASH=""',
)  # fmt: skip
# The search of channels takes most of the time of a run.
_OPTIMIZED = "graph/"
# The choice at each size, with its time, is in the trace of this file.
_TRACED = "enqueue.cc"
# Device code, and the functions of a network that GPUs drive.
_WITHOUT_CODE = re.compile(
    r"nccl(Symk?)?DevKernel|ncclLaunchOneRank|ncclDevFunc|ncclKernel|[gG]daki|ncclGinResetSignals"
)

# The headers that a host program on virtual GPUs includes.
_HEADERS = (
    "cuda", "cuda.h", "cudaTypedefs.h", "cuda_bf16.h", "cuda_fp16.h", "cuda_fp8.h",
    "cuda_runtime.h", "cuda_runtime_api.h", "towpath_cuda_driver.h", "towpath_cuda_types.h",
    "towpath_cuda_virtual.h", "towpath_gpu.h", "towpath_narrow_float.h", "towpath_vector_types.h",
)  # fmt: skip

Update = Callable[[float], None]


@dataclass(frozen=True)
class NcclBuild:
    """A release that was built.

    Attributes:
        release: such as "2.28.9".
        program: asks NCCL (src/towpath/virtual_gpu/nccl/decide.cpp).
    """

    release: str
    program: Path

    @property
    def replicated(self) -> Path:
        """The program for many equal nodes. Only the first node has ranks there."""
        return self.program.with_name(_REPLICATED)


def build(
    path: Path,
    release: str | None = None,
    *,
    jobs: int | None = None,
    update: Update | None = None,
) -> NcclBuild:
    """Builds a release, or finds it built.

    Args:
        path: NCCL's source: a checkout, a bare repository or the files of an archive.
        release: "2.28.9", or a tag. None: the files that are checked out.
        jobs: how many compilers run at once. None: one per processor.
        update: gets the part that is done, 0 to 1.

    Raises:
        ConfigError: the source is not NCCL's, or does not compile.
    """
    with tempfile.TemporaryDirectory(prefix="towpath-nccl-") as scratch:
        folder = Path(scratch)
        version = unpack(path, release, folder)
        if (version.major, version.minor) < OLDEST:
            raise ConfigError(f"NCCL {version.release} is too old; 2.19 and later are built")
        update = update or (lambda done: None)
        name = f"{version.release}-{_digest([folder / 'src'], _recipe())[:16]}"
        archive = _cache("nccl-host") / name / _ARCHIVE
        program = _cache() / f"{name}-{_own_digest()[:16]}" / _PROGRAM
        job = _Compilation(folder, version, jobs or os.cpu_count() or 1)
        subject = f"NCCL {version.release}"

        def compile_host(unfinished: Path, end: float) -> None:
            job.compile_host(unfinished, end, update)

        def link(unfinished: Path, end: float) -> None:
            made_once(archive, compile_host, subject=subject, timeout_s=_TIMEOUT_S, kept=_KEPT)
            job.link(archive, unfinished, unfinished.with_name(_REPLICATED), end)

        made_once(
            program, link, subject=subject, timeout_s=_TIMEOUT_S, kept=_KEPT, others=[_REPLICATED]
        )
        own = _own_digest()
        record = {"release": version.release, "own": own, "source": str(path.resolve())}
        (program.parent / "build.json").write_text(json.dumps(record), encoding="utf-8")
    return NcclBuild(version.release, program)


def built_releases() -> list[str]:
    """The releases that are built by this version of Towpath, the oldest first."""
    own = _own_digest()
    found = {record["release"] for record, _ in _records() if record["own"] == own}
    return sorted(found, key=lambda release: tuple(map(int, release.split("."))))


def find_build(release: str) -> NcclBuild:
    """A release that was built before.

    Raises:
        ConfigError: it was not, or by another version of Towpath.
    """
    others = None
    own = _own_digest()
    for record, program in _records():
        if record["release"] != release:
            continue
        if record["own"] == own and is_intact(program):
            return NcclBuild(release, program)
        others = record["source"]
    if others is not None:
        raise ConfigError(
            f"NCCL {release} was built by another version of Towpath; build it again: towpath "
            f"nccl build {others} --release {release}"
        )
    known = ", ".join(built_releases()) or "none"
    raise ConfigError(
        f"NCCL {release} is not built here (built: {known}); towpath nccl build PATH --release "
        f"{release} builds it from NCCL's repository"
    )


def _records() -> list[tuple[dict[str, str], Path]]:
    found = []
    for file in sorted(_cache().glob("*/build.json"), key=lambda each: -each.stat().st_mtime):
        record = json.loads(file.read_text(encoding="utf-8"))
        found.append((record, file.with_name(_PROGRAM)))
    return found


def _cache(kind: str = "nccl") -> Path:
    named = os.environ.get("TOWPATH_NCCL_CACHE")
    return cache_folder(kind, None if named is None else f"{named}/{kind}")


def _installed() -> Path:
    return Path(_core.__file__).parent


def _own_sources() -> list[Path]:
    return sorted((_installed() / "virtual_gpu_source").rglob("*.cpp"))


def _own_digest() -> str:
    """The digest of the sources that are linked to NCCL's host part."""
    start = f"{_recipe()} {_WITHOUT_CODE.pattern}"
    return _digest([_installed() / "virtual_gpu_source"], start)


def _recipe() -> str:
    """The digest of the headers, options and compiler of NCCL's host part."""
    words = (*_DEFINES, _LEFT_OUT.pattern, _OPTIMIZED, _TRACED)
    own = [_installed() / "gpu_include" / name for name in _HEADERS]
    return _digest(own, f"{_compiler()} {' '.join(words)}")


def _compiler() -> str:
    """The compiler's file, size and time of change: another version has others.

    Raises:
        ConfigError: there is none.
    """
    name = os.environ.get("CXX", "g++")
    found = shutil.which(name)
    if found is None:
        raise ConfigError(f"there is no compiler {name}; $CXX names another one")
    state = os.stat(found)
    return f"{os.path.realpath(found)} {state.st_size} {state.st_mtime_ns}"


def _digest(folders: Sequence[Path], start: str) -> str:
    digest = hashlib.sha256(start.encode())
    for folder in folders:
        files = [folder] if folder.is_file() else sorted(folder.rglob("*"))
        for file in files:
            if file.is_file():
                digest.update(f"{file.name} {file.stat().st_size}\n".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()


class _Compilation:
    """One release, in a folder with its source."""

    def __init__(self, folder: Path, version: Version, jobs: int) -> None:
        self._source = folder / "src"
        self._version = version
        self._jobs = jobs
        self._end = 0.0
        self._include = folder / "include"
        self._generated = folder / "generated"
        self._objects = folder / "objects"
        self._compiler = os.environ.get("CXX", "g++")
        for each in (self._include, self._generated, self._objects):
            each.mkdir()
        self._write_headers()

    def compile_host(self, archive: Path, end: float, update: Update) -> None:
        """Compiles NCCL's files into an archive of objects."""
        self._end = end
        self._generate()
        files = [
            each
            for each in sorted(self._source.rglob("*.cc"))
            if not _LEFT_OUT.match(each.relative_to(self._source).as_posix())
        ]
        files += sorted(self._generated.rglob("*.cc"))
        # The longest ones first, so that none is left over at the end.
        files.sort(key=lambda each: -each.stat().st_size)
        objects = self._compile_all(files, update)
        archive.unlink(missing_ok=True)
        done = self._run(["ar", "qcs", str(archive), *map(str, objects)])
        if done.returncode != 0:
            raise self._error("ar cannot write its objects")

    def link(self, archive: Path, program: Path, replicated: Path, end: float) -> None:
        """Links the archive with virtual GPUs into both programs."""
        self._end = end
        own = _own_sources()
        first_node = [each for each in own if each.parent.name == "replicated"]
        objects = self._compile_all([each for each in own if each not in first_node])
        self._link(archive, objects, program)
        more = self._compile_all([self._source / "init.cc", *first_node], is_replicated=True)
        self._link(archive, [*more, *objects], replicated)

    def _link(self, archive: Path, objects: list[Path], program: Path) -> None:
        without_code = self._objects / "without_code.c"
        names = self._missing([archive, *objects])
        without_code.write_text(_text_without_code(names), encoding="utf-8")
        command = [
            self._compiler, "-rdynamic", "-x", "c", str(without_code), "-x", "none",
            *map(str, objects), "-Wl,--allow-multiple-definition", "-Wl,--whole-archive",
            str(archive), "-Wl,--no-whole-archive", "-lpthread", "-ldl", "-lrt", "-o", str(program),
        ]  # fmt: skip
        done = self._run(command)
        if done.returncode != 0:
            missing = re.search(r"undefined reference to `([^']+)'", done.stderr)
            why = f"it needs {missing[1]}, which virtual GPUs do not have" if missing else ""
            raise self._error(why or _first_error(done.stderr, self._source.parent))

    def _compile_all(
        self, files: Sequence[Path], update: Update | None = None, *, is_replicated: bool = False
    ) -> list[Path]:
        kind = "replicated" if is_replicated else "part"
        objects = [
            self._objects / f"{kind}-{number}-{file.stem}.o" for number, file in enumerate(files)
        ]
        with ThreadPoolExecutor(self._jobs) as pool:
            tasks = [
                pool.submit(self._compile, file, made, is_replicated)
                for file, made in zip(files, objects, strict=True)
            ]
            try:
                for done, task in enumerate(as_completed(tasks)):
                    task.result()
                    if update is not None:
                        update((done + 1) / len(tasks))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return objects

    def _write_headers(self) -> None:
        version = self._version
        text = (self._source / "nccl.h.in").read_text(encoding="utf-8")
        for word, value in (
            ("Major", version.major), ("Minor", version.minor), ("Patch", version.patch),
            ("Suffix", version.suffix), ("Version", version.code),
        ):  # fmt: skip
            text = text.replace(f"${{nccl:{word}}}", str(value))
        (self._include / "nccl.h").write_text(text, encoding="utf-8")
        (self._include / "nccl_git_version.h").write_text("", encoding="utf-8")
        names = '#define GIT_BRANCH ""\n#define GIT_COMMIT_HASH ""\n'
        (self._include / "git_version.h").write_text(names, encoding="utf-8")

    def _generate(self) -> None:
        """Runs the release's own programs that write the tables of its kernels."""
        device = self._source / "device"
        for script in (device / "generate.py", device / "symmetric" / "generate.py"):
            if not script.is_file():
                continue
            target = self._generated / script.parent.name
            target.mkdir()
            command = 'cd "$1" && exec "$2" ./generate.py "$3"'
            words = ["sh", str(script.parent), sys.executable, str(target)]
            if self._run(["/bin/sh", "-c", command, *words]).returncode != 0:
                raise self._error(f"its {script.relative_to(self._source)} does not run")

    def _flags(self, file: Path) -> list[str]:
        source, own = self._source, _installed()
        is_own = file.is_relative_to(own)
        includes = [
            self._include, own / "gpu_include", own / "virtual_gpu_source", source,
            source / "include", source / "include" / "plugin", source / "include" / "os",
            source / "device",
        ]  # fmt: skip
        inside = file.relative_to(source).as_posix() if file.is_relative_to(source) else ""
        optimization = "-O0"
        if is_own:
            optimization = "-O1"
        elif inside.startswith(_OPTIMIZED):
            optimization = "-O2"
        flags = [f"-std=gnu++{20 if is_own else 17}", "-w", "-fPIC", optimization]
        flags += ["-include", "dlfcn.h"]
        flags += [f"-D{define}" for define in _DEFINES]
        if inside == _TRACED:
            flags.append("-DENABLE_TRACE")
        return [*flags, *(f"-I{folder}" for folder in includes)]

    def _compile(self, file: Path, made: Path, is_replicated: bool) -> None:
        flags = self._flags(file)
        if is_replicated and file.is_relative_to(self._source):
            header = _installed() / "virtual_gpu_source" / _GATHER
            flags += ["-DbootstrapAllGather=towpath_all_gather", "-include", str(header)]
        done = self._run([self._compiler, *flags, "-c", str(file), "-o", str(made)])
        if done.returncode != 0:
            raise self._error(_first_error(done.stderr, self._source.parent))

    def _missing(self, objects: list[Path]) -> list[str]:
        """The symbols of functions without code here."""
        names: list[set[str]] = []
        for option in ("--undefined-only", "--defined-only"):
            done = self._run(["nm", "--format=posix", option, *map(str, objects)])
            if done.returncode != 0:
                raise self._error("nm cannot read its objects")
            words = (line.split() for line in done.stdout.splitlines())
            names.append({line[0] for line in words if line})
        return sorted(name for name in names[0] - names[1] if _WITHOUT_CODE.search(name))

    def _run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        left_s = self._end - time.monotonic()
        done = run_ending_with_this_one(command, timeout_s=max(1.0, left_s))
        if done is None:
            raise self._error(f"it takes more than {_TIMEOUT_S / 60:.0f} minutes")
        return done

    def _error(self, why: str) -> ConfigError:
        return ConfigError(f"NCCL {self._version.release} cannot be built: {why}")


def _text_without_code(names: list[str]) -> str:
    """Functions in C that stop the run with their names."""
    lines = ["void towpath_function_without_code(const char* name);"]
    for number, name in enumerate(names):
        lines += [
            f'void without_code_{number}(void) __asm__("{name}");',
            f'void without_code_{number}(void) {{ towpath_function_without_code("{name}"); }}',
        ]  # fmt: skip
    return "\n".join([*lines, ""])


def _first_error(text: str, folder: Path) -> str:
    lines = text.splitlines()
    line = next((each for each in lines if "error:" in each), (lines or ["no message"])[-1])
    return line.replace(f"{folder}/", "")[:400]
