# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a function on every rank of a group of processes of this host: `launch`."""

from __future__ import annotations

import os
import pickle
import secrets
from multiprocessing import spawn
from typing import TYPE_CHECKING, Any

from towpath.collectives.live import check_ranks, check_transport
from towpath.collectives.live_processes import RankProcesses
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def launch(
    function: Callable[..., Any],
    ranks: int,
    *,
    timeout_s: float = 30.0,
    transport: str = "shm",
    arguments: Sequence[Any] = (),
) -> list[Any]:
    """Calls `function(communicator, *arguments)` in `ranks` new processes of this host.

    Processes are spawned, as with multiprocessing: the function must be importable, from its module
    or from the main program, and the main program must call `launch` below `if __name__ ==
    "__main__":`. Output of the ranks goes to this process's standard output.

    Args:
        function: the function; its first argument is this rank's Communicator.
        ranks: number of processes.
        timeout_s: longest time that a rank waits without any progress of the other ranks, in
            seconds. The function itself may take any time.
        transport: the transport between ranks: "shm", the memory of this host.
        arguments: further arguments, the same on every rank. They are pickled.

    Returns:
        The return value of the function, by rank. It is pickled.

    Raises:
        ConfigError: this host cannot run that many ranks, there is no such transport, or the
        function cannot be pickled. RankError: a rank failed. It has `rank`, `reason`, and in
        `others` the reports of the other ranks. All processes have ended by then.
    """
    check_ranks(ranks)
    check_transport(transport)
    main = spawn.get_preparation_data("towpath rank")
    for name in ("authkey", "start_method"):  # multiprocessing's own
        main.pop(name, None)
    job = {
        "kind": "call", "rendezvous": f"{os.getpid()}-{secrets.token_hex(6)}", "ranks": ranks,
        "timeout_s": timeout_s, "transport": transport, "main": main,
        "call": _pickled(function, arguments),
    }  # fmt: skip
    results: list[Any] = [None] * ranks
    with RankProcesses([{**job, "rank": rank} for rank in range(ranks)], prints=True) as processes:
        for rank, message in processes.reports(silence_s=None):
            if "result" in message:
                results[rank] = pickle.loads(message["result"])
    return results


def _pickled(function: Callable[..., Any], arguments: Sequence[Any]) -> bytes:
    try:
        return pickle.dumps((function, tuple(arguments)))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ConfigError(
            "the function of launch or one of its arguments cannot be pickled for the ranks; "
            f"use names that a module or the main program defines: {error}"
        ) from error
