# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles the host part of NCCL or RCCL with virtual GPUs into a program that decides.

The files of a release are compiled as they are, by the host's compiler. Kernels have addresses and
no code.
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

from towpath.collectives.nccl_itself.recipe import INSTALLED, OWN_SOURCE, Recipe, recipe_of
from towpath.collectives.nccl_itself.source import (
    RCCL_PREFIX,
    Version,
    release_name,
    release_order,
    unpack,
)
from towpath.compiled import cache_folder, is_intact, made_once
from towpath.errors import ConfigError
from towpath.processes import run_ending_with_this_one

OLDEST = (2, 19)
TIMEOUT_S = 3600.0  # of a build
_KEPT = 32
_GATHER = "towpath/virtual_gpu/nccl/replicated/gather.hpp"
_PROGRAM = "decide"
_REPLICATED = "decide_replicated"
_ARCHIVE = "host.a"

Update = Callable[[float], None]


@dataclass(frozen=True)
class NcclBuild:
    """A release that was built.

    Attributes:
        release: such as "2.28.9" or "rccl-2.21.5".
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
        path: the source of NCCL or RCCL: a checkout, a bare repository or the files of an archive.
        release: "2.28.9", or a tag such as "rocm-6.2.2". None: the files that are checked out.
        jobs: how many compilers run at once. None: one per processor.
        update: gets the part that is done, 0 to 1.

    Raises:
        ConfigError: the source is not of NCCL or RCCL, or does not compile.
    """
    with tempfile.TemporaryDirectory(prefix="towpath-nccl-") as scratch:
        folder = Path(scratch)
        version = unpack(path, release, folder)
        if (version.major, version.minor) < OLDEST:
            raise ConfigError(f"{version.name} is too old; 2.19 and later are built")
        update = update or (lambda done: None)
        recipe = recipe_of(version.is_rccl)
        own = _own_digest(recipe)
        job = Compilation(folder, version, jobs or os.cpu_count() or 1)
        program = cache() / f"{job.name}-{own[:16]}" / _PROGRAM
        subject = version.name

        def link(unfinished: Path, end: float) -> None:
            archive = job.archive(end, update)
            job.link(archive, unfinished, unfinished.with_name(_REPLICATED), end)

        made_once(
            program, link, subject=subject, timeout_s=TIMEOUT_S, kept=_KEPT, others=[_REPLICATED]
        )
        record = {"release": version.release, "own": own, "source": str(path.resolve())}
        (program.parent / "build.json").write_text(json.dumps(record), encoding="utf-8")
    return NcclBuild(version.release, program)


def built_releases(is_rccl: bool = False) -> list[str]:
    """The releases of NCCL or RCCL that are built by this version of Towpath, the oldest first."""
    own = _own_digest(recipe_of(is_rccl))
    found = {
        record["release"]
        for record, _ in _records()
        if record["own"] == own and record["release"].startswith(RCCL_PREFIX) == is_rccl
    }
    return sorted(found, key=release_order)


def find_build(release: str) -> NcclBuild:
    """A release that was built before.

    Raises:
        ConfigError: it was not, or by another version of Towpath.
    """
    others = None
    own = _own_digest(recipe_of(release.startswith(RCCL_PREFIX)))
    for record, program in _records():
        if record["release"] != release:
            continue
        if record["own"] == own and is_intact(program):
            return NcclBuild(release, program)
        others = record["source"]
    if others is not None:
        raise ConfigError(
            f"{release_name(release)} was built by another version of Towpath; build it again: "
            f"towpath nccl build {others} --release {release}"
        )
    raise _not_built(release)


def _not_built(release: str) -> ConfigError:
    known = ", ".join(built_releases(release.startswith(RCCL_PREFIX))) or "none"
    return ConfigError(
        f"{release_name(release)} is not built here (built: {known}); towpath nccl build PATH "
        "--release RELEASE builds it from its repository"
    )


def source_of(release: str) -> Path:
    """The source from which a release was built.

    Raises:
        ConfigError: it was not built.
    """
    for record, _ in _records():
        if record["release"] == release:
            return Path(record["source"])
    raise _not_built(release)


def _records() -> list[tuple[dict[str, str], Path]]:
    found = []
    for file in sorted(cache().glob("*/build.json"), key=lambda each: -each.stat().st_mtime):
        record = json.loads(file.read_text(encoding="utf-8"))
        found.append((record, file.with_name(_PROGRAM)))
    return found


def cache(kind: str = "nccl") -> Path:
    """The folder of builds of one kind: $TOWPATH_NCCL_CACHE, or the user's cache."""
    named = os.environ.get("TOWPATH_NCCL_CACHE")
    return cache_folder(kind, None if named is None else f"{named}/{kind}")


def _own_digest(recipe: Recipe) -> str:
    """The digest of the sources that are linked to the host part."""
    return _digest([OWN_SOURCE], f"{_host_digest(recipe)} {recipe.without_code.pattern}")


def _host_digest(recipe: Recipe) -> str:
    """The digest of the headers, options and compiler of the host part."""
    return _digest(recipe.headers, f"{_compiler_state()} {recipe.text}")


def link_digest(start: str) -> str:
    """The digest of all that is compiled with a release: sources, headers and options.

    Args:
        start: further options.
    """
    headers = INSTALLED / "gpu_include"
    return _digest([OWN_SOURCE, headers], f"{start} {_compiler_state()} {recipe_of(False).text}")


def compiler() -> str:
    """The command of the compiler: $CXX, or g++."""
    return os.environ.get("CXX", "g++")


def run_tool(command: Sequence[str], subject: str, end: float) -> subprocess.CompletedProcess[str]:
    """Runs a compiler or a tool of it to completion, with any status.

    Args:
        command: the tool and its arguments.
        subject: what is built, for the error.
        end: the time of `time.monotonic` at which it is ended.

    Raises:
        ConfigError: it runs longer.
    """
    done = run_ending_with_this_one(command, timeout_s=max(1.0, end - time.monotonic()))
    if done is None:
        raise ConfigError(f"{subject} takes more than {TIMEOUT_S / 60:.0f} minutes to compile")
    return done


def _compiler_state() -> str:
    """The compiler's file, size and time of change: another version has others.

    Raises:
        ConfigError: there is none.
    """
    name = compiler()
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


class Compilation:
    """Compiles one release, in a folder with its source.

    Args:
        folder: with `src` and `makefiles`.
        version: of the release.
        jobs: how many compilers run at once.
    """

    def __init__(self, folder: Path, version: Version, jobs: int) -> None:
        self._source = folder / "src"
        self._version = version
        self._recipe = recipe_of(version.is_rccl)
        self._jobs = jobs
        self._end = 0.0
        self._include = folder / "include"
        self._generated = folder / "generated"
        self._objects = folder / "objects"
        self._compiler = compiler()
        digest = _digest([self._source], _host_digest(self._recipe))
        self.name = f"{version.release}-{digest[:16]}"
        for each in (self._include, self._generated, self._objects):
            each.mkdir()
        self._write_headers()

    def archive(self, end: float, update: Update | None = None) -> Path:
        """The objects of the host part, which are compiled once.

        Raises:
            ConfigError: they do not compile.
        """
        found = cache("nccl-host") / self.name / _ARCHIVE

        def compile_host(unfinished: Path, end: float) -> None:
            self.compile_host(unfinished, end, update or (lambda done: None))

        subject = self._version.name
        made_once(found, compile_host, subject=subject, timeout_s=TIMEOUT_S, kept=_KEPT)
        self._end = end
        return found

    def compile_host(self, archive: Path, end: float, update: Update) -> None:
        """Compiles NCCL's files into an archive of objects."""
        self._end = end
        self._generate()
        files = [
            each
            for each in sorted(self._source.rglob("*.cc"))
            if not self._recipe.left_out.match(each.relative_to(self._source).as_posix())
        ]
        files += sorted(self._generated.rglob(self._recipe.generated))
        # The longest ones first, so that none is left over at the end.
        files.sort(key=lambda each: -each.stat().st_size)
        objects = self.compile_all(files, update)
        archive.unlink(missing_ok=True)
        done = self._run(["ar", "qcs", str(archive), *map(str, objects)])
        if done.returncode != 0:
            raise self._error("ar cannot write its objects")

    def link(self, archive: Path, program: Path, replicated: Path, end: float) -> None:
        """Links the archive with virtual GPUs into both programs."""
        self._end = end
        own = [each for each in self._recipe.own_sources() if each.parent.name != "timed"]
        first_node = [each for each in own if each.parent.name == "replicated"]
        objects = self.compile_all([each for each in own if each not in first_node])
        self._link(archive, objects, program)
        more = self.compile_all([self._source / "init.cc", *first_node], is_replicated=True)
        self._link(archive, [*more, *objects], replicated)

    def _link(self, archive: Path, objects: list[Path], program: Path) -> None:
        without_code = self._objects / "without_code.c"
        names = self.missing([archive, *objects])
        without_code.write_text(_text_without_code(names), encoding="utf-8")
        command = [
            self._compiler, "-rdynamic", "-x", "c", str(without_code), "-x", "none",
            *map(str, objects), "-Wl,--allow-multiple-definition", "-Wl,--whole-archive",
            str(archive), "-Wl,--no-whole-archive", "-Wl,--wrap=memset", "-lpthread", "-ldl",
            "-lrt", "-o", str(program),
        ]  # fmt: skip
        done = self._run(command)
        if done.returncode != 0:
            missing = re.search(r"undefined reference to `([^']+)'", done.stderr)
            why = f"it needs {missing[1]}, which virtual GPUs do not have" if missing else ""
            raise self._error(why or first_error(done.stderr, self._source.parent))

    def compile_all(
        self, files: Sequence[Path], update: Update | None = None, *, is_replicated: bool = False
    ) -> list[Path]:
        """Compiles files at once, and returns their objects."""
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
            text = text.replace(f"${{NCCL_{word.upper()}}}", str(value))
        for name in self._recipe.macros_left_out:
            text = re.sub(rf"^#define {name}\b.*$", "", text, flags=re.MULTILINE)
        (self._include / "nccl.h").write_text(text, encoding="utf-8")
        (self._include / "rccl").mkdir()
        (self._include / "rccl" / "rccl.h").write_text(text, encoding="utf-8")
        (self._include / "nccl_git_version.h").write_text("", encoding="utf-8")
        names = '#define GIT_BRANCH ""\n#define GIT_COMMIT_HASH ""\n#define rcclGitHash ""\n'
        (self._include / "git_version.h").write_text(names, encoding="utf-8")

    def _generate(self) -> None:
        """Runs the release's own programs that write the tables of its kernels."""
        device = self._source / "device"
        for script in (device / "generate.py", device / "symmetric" / "generate.py"):
            if script.is_file():
                self.generate(script.parent, self._generated / script.parent.name)

    def generate(self, folder: Path, target: Path) -> None:
        """Runs the release's generate.py of a folder, which writes into `target`.

        Raises:
            ConfigError: it does not run.
        """
        target.mkdir(exist_ok=True)
        command = 'cd "$1" && shift && exec "$@"'
        words = ["sh", str(folder), sys.executable, "./generate.py", str(target)]
        words += self._recipe.generator_words
        if self._run(["/bin/sh", "-c", command, *words]).returncode != 0:
            script = (folder / "generate.py").relative_to(self._source)
            raise self._error(f"its {script} does not run")

    def _flags(self, file: Path) -> list[str]:
        source, recipe = self._source, self._recipe
        is_own = file.is_relative_to(INSTALLED)
        includes = [
            self._include, INSTALLED / "gpu_include", OWN_SOURCE, source,
            source / "include", source / "include" / "plugin", source / "include" / "os",
            source / "device", self._generated / "device",
        ]  # fmt: skip
        if recipe.include is not None:
            includes.insert(0, recipe.include)
        inside = file.relative_to(source).as_posix() if file.is_relative_to(source) else ""
        optimization = "-O2" if is_own or inside.startswith(recipe.optimized) else "-O0"
        flags = [f"-std=gnu++{20 if is_own else 17}", "-w", "-fPIC", optimization]
        flags += ["-fno-semantic-interposition"] if is_own else []
        flags += ["-include", "dlfcn.h"]
        flags += [f"-D{define}" for define in recipe.defines]
        if inside == recipe.traced:
            flags.append("-DENABLE_TRACE")
        return [*flags, *(f"-I{folder}" for folder in includes)]

    def _compile(self, file: Path, made: Path, is_replicated: bool) -> None:
        flags = self._flags(file)
        if is_replicated and file.is_relative_to(self._source):
            header = OWN_SOURCE / _GATHER
            flags += ["-DbootstrapAllGather=towpath_all_gather", "-include", str(header)]
        done = self._run([self._compiler, *flags, "-c", str(file), "-o", str(made)])
        if done.returncode != 0:
            raise self._error(first_error(done.stderr, self._source.parent))

    def missing(self, objects: list[Path]) -> list[str]:
        """The symbols of functions without code here."""
        names: list[set[str]] = []
        for option in ("--undefined-only", "--defined-only"):
            done = self._run(["nm", "--format=posix", option, *map(str, objects)])
            if done.returncode != 0:
                raise self._error("nm cannot read its objects")
            words = (line.split() for line in done.stdout.splitlines())
            names.append({line[0] for line in words if line})
        return sorted(
            name for name in names[0] - names[1] if self._recipe.without_code.search(name)
        )

    def _run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return run_tool(command, self._version.name, self._end)

    def _error(self, why: str) -> ConfigError:
        return ConfigError(f"{self._version.name} cannot be built: {why}")


def _text_without_code(names: list[str]) -> str:
    """Functions in C that stop the run with their names."""
    lines = ["void towpath_function_without_code(const char* name);"]
    for number, name in enumerate(names):
        lines += [
            f'void without_code_{number}(void) __asm__("{name}");',
            f'void without_code_{number}(void) {{ towpath_function_without_code("{name}"); }}',
        ]  # fmt: skip
    return "\n".join([*lines, ""])


def first_error(text: str, folder: Path | None = None) -> str:
    """The first error of a compiler's messages, without the folder of its files."""
    lines = text.splitlines()
    found = [each for each in lines if "error:" in each and not each.startswith("collect2:")]
    found += [each for each in lines if "undefined reference" in each]
    line = (found or lines[-1:] or ["no message"])[0]
    return (line if folder is None else line.replace(f"{folder}/", ""))[:400]
