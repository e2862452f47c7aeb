# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Runs programs that use NCCL and CUDA's runtime on the virtual GPUs of a described host."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from towpath.collectives.nccl_itself.host import NcclHost
from towpath.collectives.nccl_itself.library import NcclLibrary
from towpath.collectives.nccl_itself.times import CallTime, TimeServer
from towpath.errors import ConfigError
from towpath.processes import ending_with_parent

_MEMBERS_BYTES = 1 << 20  # sparse (src/towpath/virtual_gpu/nccl/timed/members.hpp)
_GRACE_S = 2.0  # for processes to end before they are killed
# The place of a process, by which programs choose their GPU. Virtual GPUs read some of them
# (src/towpath/virtual_gpu/place.hpp).
_RANK_NAMES = ("RANK", "OMPI_COMM_WORLD_RANK")
_SIZE_NAMES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE")
_LOCAL_RANK_NAMES = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")
_LOCAL_SIZE_NAMES = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE")
_PLACE_NAMES = (
    *_RANK_NAMES, *_SIZE_NAMES, *_LOCAL_RANK_NAMES, *_LOCAL_SIZE_NAMES, "PMI_RANK", "PMI_SIZE"
)  # fmt: skip


@dataclass(frozen=True)
class Processes:
    """The processes of a run.

    Attributes:
        hosts: equal hosts, whose processes are numbered consecutively.
        per_host: processes on each host. None: the program is started once, and starts or forks its
            processes itself.
    """

    hosts: int = 1
    per_host: int | None = None

    def places(self) -> Iterator[dict[str, str]]:
        """The variables of each process that is started."""
        if self.per_host is None:
            yield {}
            return
        count = self.hosts * self.per_host
        for rank in range(count):
            yield {
                **dict.fromkeys(_RANK_NAMES, str(rank)),
                **dict.fromkeys(_SIZE_NAMES, str(count)),
                **dict.fromkeys(_LOCAL_RANK_NAMES, str(rank % self.per_host)),
                **dict.fromkeys(_LOCAL_SIZE_NAMES, str(self.per_host)),
            }


ONE_PROCESS = Processes()


def run_program(
    command: Sequence[str],
    host: NcclHost,
    library: NcclLibrary,
    *,
    processes: Processes = ONE_PROCESS,
    variables: Mapping[str, str] | None = None,
    time_us: CallTime | None = None,
) -> int:
    """Runs a program to completion.

    Args:
        command: the program and its arguments.
        host: each host with its GPUs.
        library: the release of NCCL that the program gets.
        processes: how often it is started, and on which hosts.
        variables: added to the environment, such as NCCL_ALGO.
        time_us: the simulated times of NCCL's calls, which the program's clocks then show. None:
            they show real time.

    Returns:
        The status of the program, as a shell has it: of the first process that fails, whose end
        ends the other ones.

    Raises:
        ConfigError: the program cannot be started.
    """
    with ExitStack() as stack:
        environment = {
            **{name: value for name, value in os.environ.items() if name not in _PLACE_NAMES},
            "NCCL_SOCKET_IFNAME": "lo",
            "NCCL_RAS_ENABLE": "0",
            **(variables or {}),
            "NCCL_TOPO_FILE": stack.enter_context(_file_of_this_process(host.topology)),
            "TOWPATH_VIRTUAL_GPU_FILE": stack.enter_context(
                _file_of_this_process(host.description)
            ),
            "TOWPATH_MEMBERS": stack.enter_context(_file_of_this_process("", _MEMBERS_BYTES)),
            "TOWPATH_HOSTS": str(processes.hosts),
            **library.variables(),
        }
        if time_us is not None:
            environment["TOWPATH_TIMES"] = stack.enter_context(TimeServer(time_us)).name
        started: list[subprocess.Popen[bytes]] = []
        stack.callback(_end, started)
        for place in processes.places():
            try:
                started.append(
                    subprocess.Popen(
                        command, env=environment | place, preexec_fn=ending_with_parent()
                    )
                )
            except OSError as error:
                raise ConfigError(f"cannot start {command[0]}: {error.strerror}") from None
        return _wait(started)


@contextmanager
def _file_of_this_process(text: str, size_bytes: int = 0) -> Iterator[str]:
    """The path of a file that ends with this process, for its user."""
    file = os.memfd_create("towpath")
    try:
        os.truncate(file, size_bytes)
        os.write(file, text.encode())
        yield f"/proc/{os.getpid()}/fd/{file}"
    finally:
        os.close(file)


def _wait(started: Sequence[subprocess.Popen[bytes]]) -> int:
    """Waits until all processes have ended, or one has failed, whose status is returned."""
    ended: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()

    def watch(rank: int) -> None:
        ended.put((rank, started[rank].wait()))

    for rank in range(len(started)):
        threading.Thread(target=watch, args=(rank,), daemon=True).start()
    for _ in started:
        rank, status = ended.get()
        if status == 0:
            continue
        if len(started) > 1:
            _report(rank, started[rank].pid, status)
        return status if status > 0 else 128 - status
    return 0


def _report(rank: int, process: int, status: int) -> None:
    how = f"ended with status {status}"
    if status < 0:
        how = f"was killed by signal {-status} ({signal.strsignal(-status)})"
    print(f"towpath: rank {rank} (process {process}) {how}; all ranks end", file=sys.stderr)


def _end(started: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ends processes that still run."""
    for process in started:
        process.terminate()
    for process in started:
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
