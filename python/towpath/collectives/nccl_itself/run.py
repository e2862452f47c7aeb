# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Runs programs that use NCCL and CUDA's runtime on the virtual GPUs of a described host."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from towpath.collectives.nccl_itself.host import NcclHost
from towpath.collectives.nccl_itself.library import NcclLibrary
from towpath.collectives.nccl_itself.times import CallTime, TimeServer
from towpath.errors import ConfigError
from towpath.processes import ending_with_parent

_SOCKET_PATH_MAX = 107  # sun_path of a Unix socket, less the zero at its end


def run_program(
    command: Sequence[str],
    host: NcclHost,
    library: NcclLibrary,
    variables: Mapping[str, str] | None = None,
    time_us: CallTime | None = None,
) -> int:
    """Runs a program to completion.

    Args:
        command: the program and its arguments.
        host: the host with its GPUs.
        library: the release of NCCL that the program gets.
        variables: added to the environment, such as NCCL_ALGO.
        time_us: the simulated times of NCCL's calls, which the program's clocks then show. None:
            they show real time.

    Returns:
        The status of the program, as a shell has it.

    Raises:
        ConfigError: the program cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="towpath-nccl-") as scratch:
        folder = Path(scratch)
        (folder / "topology.xml").write_text(host.topology, encoding="utf-8")
        (folder / "gpus").write_text(host.description, encoding="utf-8")
        environment = {
            **os.environ,
            "NCCL_SOCKET_IFNAME": "lo",
            "NCCL_RAS_ENABLE": "0",
            **(variables or {}),
            "NCCL_TOPO_FILE": str(folder / "topology.xml"),
            "TOWPATH_VIRTUAL_GPU_FILE": str(folder / "gpus"),
            **library.variables(),
        }
        with ExitStack() as stack:
            if time_us is not None:
                socket = folder / "times"
                if len(str(socket)) > _SOCKET_PATH_MAX:
                    raise ConfigError(
                        f"the folder of temporary files, {tempfile.gettempdir()}, has a path too "
                        "long for a socket; set TMPDIR to a shorter one"
                    )
                stack.enter_context(TimeServer(socket, time_us))
                environment["TOWPATH_TIMES"] = str(socket)
            try:
                status = subprocess.run(
                    command, env=environment, check=False, preexec_fn=ending_with_parent()
                ).returncode
            except OSError as error:
                raise ConfigError(f"cannot start {command[0]}: {error.strerror}") from None
    return status if status >= 0 else 128 - status
