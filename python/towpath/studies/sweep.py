# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Many independent measurements, on all cores or on a cluster, which can be resumed.

A point is a dict for JSON, and measuring it gives another dict. Results are appended to a file of
JSON lines as they are completed, so no point is measured twice.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import inspect
import json
import math
import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from towpath.errors import ConfigError, SweepError, TowpathError
from towpath.studies.parallel import ProcessEnded, in_processes, processors
from towpath.studies.progress import Progress, silent

if TYPE_CHECKING:
    from distributed import Client, Future

Point = dict[str, Any]
Result = dict[str, Any]
Measure = Callable[[Point], Result]  # at the top level of a module, which processes import
_Outcomes = Generator[tuple[int, Result], None, None]


def digest_of(described: str, *files: str) -> str:
    """Digest of the inputs of results other than the point: a description, and this code."""
    code = b"".join(Path(file).read_bytes() for file in files)
    return hashlib.sha256(described.encode() + code).hexdigest()[:16]


@dataclass(frozen=True)
class SweepOptions:
    """Options for the place of a sweep.

    Attributes:
        jobs: number of processes; 0 is one per core. With 1 the points are measured in this
            process, where a debugger can follow them.
        scheduler: address of a dask scheduler that receives the points instead, "host:8786".
        scheduler_timeout_s: time limit for an answer of the scheduler and its first worker.
        workers_timeout_s: longest time for which the scheduler may be without a worker later.
        title: name of the points in the progress.
        progress: a display of the progress, in which a point counts with its cost.
    """

    jobs: int = 0
    scheduler: str | None = None
    scheduler_timeout_s: float = 10.0
    workers_timeout_s: float = 60.0
    title: str = "points"
    progress: Progress = silent


def sweep(
    measure: Callable[[dict[str, Any]], dict[str, Any]],
    points: Sequence[dict[str, Any]],
    file: str | os.PathLike[str],
    *,
    jobs: int = 0,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Measures every point that is not yet in the file.

    Results are appended to the file as they are completed. The same call resumes after an
    interruption, and measures again if the source of `measure` or Towpath has changed. See
    docs/sweeps.md.

    Args:
        measure: takes a point and returns its measurement, both as dicts for JSON. It is called in
            any process and order, so it must be a function at the top level of a module.
        points: the points; equal ones are measured once.
        file: a file of JSON lines, each with a digest, a point and its result.
        jobs: processes; 0: one per core, 1: this one.
        scheduler: address of a dask scheduler whose workers measure instead, "host:8786".
        progress: a display for long work; see `towpath.studies.progress`.

    Returns:
        The results in the order of the points.

    Raises:
        ConfigError: the file is not a sweep's or is in use, or the scheduler does not answer.
        SweepError: a point failed, or the cluster is lost. The file contains all results so far.
    """
    from towpath import _core

    function = inspect.unwrap(measure)
    return run_sweep(
        measure, list(points), Path(file),
        digest=digest_of(f"{function.__module__}.{function.__qualname__}",
                         inspect.getfile(function), _core.__file__),
        options=SweepOptions(jobs=jobs, scheduler=scheduler, progress=progress or silent),
    )  # fmt: skip


def run_sweep(
    measure: Measure,
    points: Sequence[Point],
    file: Path,
    *,
    digest: str = "",
    cost: Callable[[Point], float] = lambda point: 1.0,
    options: SweepOptions | None = None,
) -> list[Result]:
    """Measures all points that are not yet in `file`, the longest first.

    Args:
        measure: a function of only the point, callable in any process at any time.
        points: the points; equal points are measured once.
        file: receives a line per point. Its lines of other points or digests stay.
        digest: digest of all other inputs of results; a result is valid only for its digest.
        cost: time of a point relative to other points, in any unit.
        options: where to run.

    Returns:
        The results in the order of the points, as JSON returns them.

    Raises:
        SweepError: a point failed; the error names it, and the file contains all measurements.
        ConfigError: the file is not a sweep's or is in use, or the scheduler does not answer.
        KeyboardInterrupt: with a sentence that explains how to resume.
    """
    options = options or SweepOptions()
    keys = [_key(point, digest) for point in points]
    asked = dict(zip(keys, points, strict=True))
    with _ResultFile.opened(file) as results:
        waiting = [key for key in asked if key not in results.known]
        waiting.sort(key=lambda key: -cost(asked[key]))  # so that all cores end together
        todo = [asked[key] for key in waiting]
        try:
            with (
                _advancing(options, asked, cost) as advance,
                closing(_measured(measure, todo, options)) as outcomes,
            ):
                for key in asked.keys() & results.known.keys():
                    advance(key)
                for index, result in outcomes:
                    results.append(waiting[index], digest, todo[index], result)
                    advance(waiting[index])
        except KeyboardInterrupt:
            raise KeyboardInterrupt(how_to_resume(file)) from None
        return [results.known[key] for key in keys]


def how_to_resume(file: Path) -> str:
    """The message of an interrupted sweep to its user."""
    return f"interrupted; {file} keeps what is measured, and the same command goes on from there"


def name_of(point: Point) -> str:
    """A point in readable form.

    >>> name_of({"pattern": "one_to_one", "size_bytes": 64})
    'pattern one_to_one, size_bytes 64'
    """
    return ", ".join(f"{field} {value}" for field, value in point.items())


def _key(point: Point, digest: str) -> str:
    return json.dumps([digest, point], sort_keys=True, allow_nan=False)


def _sentence(error: BaseException) -> str:
    of_a_run = isinstance(error, TowpathError) or type(error) is RuntimeError
    expected = of_a_run or isinstance(error, (ValueError, OSError))
    # Anything else is a defect: say what kind.
    return str(error) if expected else f"{type(error).__name__}: {error}"


# --- results on disk ------------------------------------------------------------------------------


class _ResultFile:
    """Lines of {"digest", "point", "result"}, the last of which may be incomplete after a crash."""

    def __init__(self, stream: IO[bytes], known: dict[str, Result]) -> None:
        self._stream = stream
        self.known = known

    @classmethod
    @contextmanager
    def opened(cls, path: Path) -> Iterator[_ResultFile]:
        with open(path, "a+b") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConfigError("is in use by another sweep", file=str(path)) from None
            stream.seek(0)
            text = stream.read()
            whole = text.rfind(b"\n") + 1
            stream.truncate(whole)
            lines = enumerate(text[:whole].splitlines(), 1)
            known = dict(_parsed(line, str(path), number) for number, line in lines)
            yield cls(stream, known)

    def append(self, key: str, digest: str, point: Point, result: Result) -> None:
        entry = {"digest": digest, "point": point, "result": result}
        try:
            line = json.dumps(entry, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise SweepError(f"{name_of(point)}: the result is not JSON: {error}") from None
        self._stream.write(line.encode() + b"\n")
        self._stream.flush()
        # Read back, so that a resumed sweep returns exactly what an uninterrupted one does.
        self.known[key] = json.loads(line)["result"]


def _parsed(line: bytes, file: str, number: int) -> tuple[str, Result]:
    try:
        entry = json.loads(line)
        return _key(entry["point"], entry["digest"]), entry["result"]
    except (ValueError, TypeError, KeyError):
        problem = "is not a line of a sweep; delete it, or name another file"
        raise ConfigError(problem, file=file, line=number) from None


@contextmanager
def _advancing(
    options: SweepOptions, points: dict[str, Point], cost: Callable[[Point], float]
) -> Iterator[Callable[[str], None]]:
    """Progress in units of cost, so that a display can estimate the remaining time."""
    total = math.fsum(map(cost, points.values()))
    costs: list[float] = []
    with options.progress(options.title, total) as update:

        def advance(key: str) -> None:
            costs.append(cost(points[key]))
            update(math.fsum(costs), f"{options.title} {len(costs)}/{len(points)}")

        yield advance


# --- where points are measured --------------------------------------------------------------------


def _measured(measure: Measure, points: list[Point], options: SweepOptions) -> _Outcomes:
    """Numbers of points with their results, in order of completion."""
    processes = min(options.jobs or processors(), len(points))
    if not points:
        return
    if options.scheduler is not None:
        yield from _measured_on_cluster(measure, points, options)
    elif processes == 1:
        yield from _measured_here(measure, points)
    else:
        yield from _measured_in_processes(measure, points, processes)


def _measured_here(measure: Measure, points: list[Point]) -> _Outcomes:
    for index, point in enumerate(points):
        try:
            result = measure(point)
        except Exception as error:
            raise SweepError(f"{name_of(point)}: {_sentence(error)}") from error
        yield index, result


def _measured_in_processes(measure: Measure, points: list[Point], processes: int) -> _Outcomes:
    """Measures in one process per core."""
    try:
        with closing(in_processes(partial(_attempted, measure), points, processes)) as outcomes:
            for index, (result, problem) in outcomes:
                if problem is not None:
                    raise SweepError(f"{name_of(points[index])}: {problem}")
                yield index, result
    except ProcessEnded as ended:
        raise SweepError(f"{name_of(points[ended.item])}: its process {ended.how}") from None


def _attempted(measure: Measure, point: Point) -> tuple[Result, str | None]:
    """The result, or the error in one sentence."""
    try:
        return measure(point), None
    except Exception as error:
        return {}, _sentence(error)


# --- on a cluster ---------------------------------------------------------------------------------

_POLL_S = 0.05
_LOOK_S = 1.0  # between two looks for workers


def _measured_on_cluster(measure: Measure, points: list[Point], options: SweepOptions) -> _Outcomes:
    """Measures on the workers of a dask scheduler.

    dask reassigns the points of a lost worker. A point with which several workers were lost is
    rejected, because it could crash all of them.
    """
    try:
        from distributed import Client
    except ImportError:
        raise ConfigError(
            "--scheduler needs dask, which `pip install 'towpath[cluster]'` brings"
        ) from None
    address, timeout_s = options.scheduler, options.scheduler_timeout_s
    if not address:
        raise ConfigError("--scheduler is empty; it must be a dask scheduler's address, host:port")
    try:
        client = Client(address, timeout=timeout_s)
    except (OSError, ValueError, asyncio.TimeoutError) as error:
        raise ConfigError(f"no dask scheduler answers at {address!r}: {error}") from None
    try:
        try:
            client.wait_for_workers(1, timeout=timeout_s)
        except asyncio.TimeoutError:
            raise ConfigError(f"the dask scheduler at {address!r} has no workers") from None
        futures = {
            client.submit(measure, point, pure=False, priority=-index): index
            for index, point in enumerate(points)
        }
        for future, result in _completed(client, futures, points, options):
            yield futures.pop(future), result
    finally:
        client.close(timeout=timeout_s)


def _completed(
    client: Client, futures: dict[Future, int], points: list[Point], options: SweepOptions
) -> Iterator[tuple[Future, Result]]:
    """Completed futures with their results, as long as the cluster has workers."""
    from distributed import as_completed

    done = as_completed(list(futures))
    worker_seen = looked = time.monotonic()
    left = len(futures)
    while left > 0:
        for future in done.next_batch(block=False):
            result = _result_of(future, points[futures[future]], options)
            if result is None:
                done.add(future)
                continue
            yield future, result
            left -= 1
            worker_seen = time.monotonic()
        time.sleep(_POLL_S)
        if time.monotonic() - looked < _LOOK_S:
            continue
        looked = time.monotonic()
        if client.status == "running" and client.nthreads():
            worker_seen = looked
        elif looked - worker_seen > options.workers_timeout_s:
            raise SweepError(
                f"the dask scheduler at {options.scheduler!r} has had no worker for "
                f"{options.workers_timeout_s:g} s; start one with `dask worker "
                f"{options.scheduler}`, and the same command goes on"
            )


def _result_of(future: Future, point: Point, options: SweepOptions) -> Result | None:
    """The result of a future; None if the worker with the result was lost. The point is then
    measured again.
    """
    from distributed import KilledWorker

    try:
        result: Result = future.result(timeout=_LOOK_S)
    except (TimeoutError, asyncio.TimeoutError):
        return None
    except KilledWorker:
        raise SweepError(
            f"{name_of(point)}: several workers were lost with it, so it may need more memory "
            "than they have"
        ) from None
    except Exception as error:
        if future.status == "error":
            raise SweepError(f"{name_of(point)}: {_sentence(error)}") from error
        raise SweepError(
            f"the dask scheduler at {options.scheduler!r} is lost; start it again, and the same "
            "command goes on"
        ) from None
    return result
