# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Executes runs in processes, and keeps their results under a hash of all that they depend on."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from towpath import _core
from towpath.compiled import cache_folder
from towpath.files import write_text
from towpath.reproduce.documents import CHECKOUTS, CannotRun, contents_of, library, material
from towpath.reproduce.runs import RUNS
from towpath.studies.parallel import in_processes, processors
from towpath.studies.progress import Progress, silent

Result = dict[str, Any]
_PACKAGE = Path(__file__).resolve().parents[1]
# Modules of this folder that the runs of several others use.
_SHARED_MODULES = (
    "core_programs",
    "documents",
    "guide_samples",
    "sequence",
    "worklog_kernels",
    "worklog_times",
)


@dataclass(frozen=True)
class Executed:
    """The results of runs.

    Attributes:
        results: values by run.
        kept: names of the runs whose results were kept from an earlier command.
    """

    results: dict[str, Result]
    kept: list[str]


def execute(
    names: Iterable[str], *, jobs: int = 0, progress: Progress = silent, afresh: bool = False
) -> Executed:
    """Executes runs whose results are not kept, the longest first.

    Args:
        names: keys of `RUNS`.
        jobs: number of processes. 0: one per core.
        progress: a display of the completed processor time.
        afresh: True to ignore kept results.
    """
    chosen = list(dict.fromkeys(names))
    results: dict[str, Result] = {}
    if not afresh:
        for name in chosen:
            if (found := _kept(name)) is not None:
                results[name] = found
    kept = list(results)
    waiting = sorted(
        (name for name in chosen if name not in results), key=lambda name: -RUNS[name].seconds
    )
    total = sum(RUNS[name].seconds for name in waiting)
    with progress("documents", total) as update:
        done = 0.0
        for number, result in _outcomes(waiting, jobs or processors()):
            name = waiting[number]
            results[name] = json.loads(json.dumps(result, default=_plain))
            done += RUNS[name].seconds
            update(done, f"documents: {name}")
            if "failed" not in result and "cannot" not in result:
                write_text(_file(name), json.dumps(result, default=_plain))
    return Executed(results, kept)


def _outcomes(waiting: list[str], jobs: int) -> Iterable[tuple[int, Result]]:
    if jobs == 1 or len(waiting) <= 1:
        return ((number, perform(name)) for number, name in enumerate(waiting))
    return in_processes(perform, waiting, min(jobs, len(waiting)))


def perform(name: str) -> Result:
    """Executes one run. An error becomes its result.

    Args:
        name: a key of `RUNS`.
    """
    module, _, function = RUNS[name].function.partition(".")
    try:
        with _without_output():
            return getattr(import_module(f"towpath.reproduce.{module}"), function)()
    except CannotRun as reason:
        if reason.need not in RUNS[name].needs:
            return {"failed": f"{reason} (the run is not listed as one that needs {reason.need})"}
        return {"cannot": str(reason)}
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        sentence = str(error).splitlines()[0] if str(error) else type(error).__name__
        return {"failed": f"{sentence} ({Path(where.filename).name}:{where.lineno})"}


@contextmanager
def _without_output() -> Iterator[None]:
    """Discards the text that simulated programs print, which is not part of a result."""
    sys.stdout.flush()
    own = os.dup(1)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(own, 1)
        os.close(own)


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python."""
    return value.item()


def _file(name: str) -> Path:
    return cache_folder("documents") / f"{name}-{_digest(name)}.json"


def _kept(name: str) -> Result | None:
    try:
        return json.loads(_file(name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _digest(name: str) -> str:
    """Digest of the inputs of a run: its module, and the shared inputs of all runs."""
    module = RUNS[name].function.partition(".")[0]
    own = (Path(__file__).parent / f"{module}.py").read_bytes()
    return hashlib.sha256(_shared().encode() + own).hexdigest()[:16]


@lru_cache(maxsize=1)
def _shared() -> str:
    """Digest of all that runs share: the package, machines, headers, documents and checkouts."""
    from towpath.specs.shipped import folder

    digest = hashlib.sha256(version("towpath").encode())
    here = Path(__file__).parent
    files = [Path(_core.__file__), *_files_of(here / "programs")]
    files += [here / f"{name}.py" for name in _SHARED_MODULES]
    for file in sorted(_PACKAGE.rglob("*.py")):
        if file.relative_to(_PACKAGE).parts[0] not in ("cli", "pages", "reproduce", "vllm"):
            files.append(file)
    files += _files_of(folder()) + _headers() + material()
    for file in files:
        digest.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    for variable in CHECKOUTS.values():
        place = os.environ.get(variable)
        digest.update(contents_of(Path(place)).encode() if place else b"\0")
    return digest.hexdigest()


def _files_of(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def _headers() -> list[Path]:
    """The sources that kernels and host programs are compiled with, and the library."""
    root = _PACKAGE.parents[1]
    folders = (_PACKAGE, root / "src", root / "build" / "generated")
    own = library()
    headers = [
        file
        for folder in folders
        for file in _files_of(folder)
        if file.suffix not in (".py", ".pyc") and Path(__file__).parent not in file.parents
    ]
    return headers if own is None else [*headers, own]
