# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Other libraries that carry small messages between processes of a host, measured if installed.

Programs in benchmarks/mailbox/peers measure ZeroMQ and Open MPI. UCX has its own tool.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from towpath.studies.mailbox_live import LiveRequest

Row = dict[str, Any]

_PATIENCE_S = 120
# A library whose processes wait in the kernel takes some ten microseconds each way.
_ITERATIONS_MAX = 20_000
_BLOCKS = 50
_UCX_RESULT = re.compile(
    r"^Final:\s+\d+\s+([0-9.]+)\s+[0-9.]+\s+([0-9.]+)(?:\s+[0-9.]+){3}\s+(\d+)"
)


class _Skip(Exception):
    """The reason for not measuring a library."""


def peer_measurements(request: LiveRequest, folder: Path) -> list[Callable[[], Row]]:
    """One function per library that measures it: it returns a row of results, or `skipped` with the
    reason.

    Args:
        request: parameters of the mailbox's own measurement.
        folder: folder in which the programs of benchmarks/mailbox/peers were built.
    """
    measured: dict[str, Callable[[LiveRequest, Path], Row]] = {
        "ZeroMQ, ipc": _zeromq,
        "Open MPI, shared memory": _open_mpi,
        "UCX, shared memory": _ucx,
    }

    def row(name: str) -> Row:
        try:
            return {"name": name, **measured[name](request, folder)}
        except _Skip as reason:
            return {"name": name, "skipped": str(reason)}

    return [partial(row, name) for name in measured]


def _sizes(request: LiveRequest) -> list[str]:
    iterations = min(request.iterations, _ITERATIONS_MAX)
    numbers = (iterations, _BLOCKS, request.block_messages // 10, request.size_bytes)
    return [str(max(number, 1)) for number in numbers]


def _cores(request: LiveRequest) -> list[str]:
    """Cores of the initiator and the responder; None: chosen by the system."""
    return [str(core) for core in request.cores or ()]


def _program(folder: Path, name: str, package: str) -> str:
    path = folder / name
    if not path.is_file():
        raise _Skip(f"{path} is not built; it needs {package} and -DTOWPATH_BUILD_BENCHMARKS=ON")
    return str(path.resolve())


def _run(command: list[str], environment: dict[str, str] | None = None) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE_S,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise _Skip(f"{Path(command[0]).name} did not end within {_PATIENCE_S} s") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise _Skip(f"{Path(command[0]).name} failed: {said[-1] if said else done.returncode}")
    return done.stdout


def _zeromq(request: LiveRequest, folder: Path) -> Row:
    program = _program(folder, "zeromq_peer", "libzmq3-dev")
    with tempfile.TemporaryDirectory() as place:
        output = _run([program, f"ipc://{place}/socket", *_sizes(request), *_cores(request)])
    return json.loads(output)


def _open_mpi(request: LiveRequest, folder: Path) -> Row:
    program = _program(folder, "mpi_peer", "libopenmpi-dev")
    if shutil.which("mpirun") is None:
        raise _Skip("there is no mpirun; it is in openmpi-bin")
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    transport = ["--mca", "pml", "ob1", "--mca", "btl", "vader,self"]
    place = ["-np", "2", "--bind-to", "none"]  # each pins itself
    command = ["mpirun", *as_root, *place, *transport, program, *_sizes(request), *_cores(request)]
    return json.loads(_run(command).strip().splitlines()[-1])


def _ucx(request: LiveRequest, folder: Path) -> Row:
    if shutil.which("ucx_perftest") is None:
        raise _Skip("there is no ucx_perftest; it is in ucx-utils")
    iterations = str(min(request.iterations, _ITERATIONS_MAX))
    messages = str(_BLOCKS * request.block_messages // 10)
    median_us, _, _ = _ucx_test(request, "tag_lat", 50, iterations)
    p99_us, _, _ = _ucx_test(request, "tag_lat", 99, iterations)
    _, _, rate = _ucx_test(request, "tag_bw", 50, messages)
    return {"median_ns": 1e3 * median_us, "p99_ns": 1e3 * p99_us, "messages_per_s": rate}


def _ucx_test(
    request: LiveRequest, test: str, percent: int, iterations: str
) -> tuple[float, float, float]:
    """The percentile and mean in microseconds, and messages per second over the whole test."""
    port = str(20_000 + secrets.randbelow(20_000))
    environment = {"UCX_TLS": "posix,sysv,self"}
    pins = [["taskset", "-c", core] for core in _cores(request)] or [[], []]
    common = ["ucx_perftest", "-p", port]
    server = subprocess.Popen(
        [*pins[1], *common], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )  # fmt: skip
    try:
        time.sleep(0.5)  # it says nothing when it listens
        output = _run(
            [*pins[0], *common, "localhost", "-t", test, "-s", str(request.size_bytes),
             "-n", iterations, "-R", str(percent)],
            environment,
        )  # fmt: skip
    finally:
        server.kill()
        server.wait()
    found = next(filter(None, map(_UCX_RESULT.match, output.splitlines())), None)
    if found is None:
        raise _Skip("ucx_perftest printed no result that is understood")
    return float(found[1]), float(found[2]), float(found[3])
