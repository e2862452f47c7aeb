# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a schedule for real: one process per rank on this host, joined by shared memory.

The launcher (this module) starts `python -m towpath.live_rank` per rank, gives each its job as one
line of JSON on standard input, and reads lines of JSON back. It moves no data itself; a rank that
dies is noticed and named by its peers.
"""

from __future__ import annotations

import json
import os
import secrets
import selectors
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from towpath.collectives.result import Measurement, Row, measure
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from towpath.schedules.schedule_source import ScheduleSource

# What the other ranks get to say why they ended after one of them failed, in seconds.
_LAST_WORDS_S = 5.0
# Ranks per processor that still make progress, and what every host may have, to try things.
_RANKS_PER_PROCESSOR_MAX = 2
_RANKS_ANYWHERE = 64


class LiveError(RuntimeError):
    """A live run that failed. `reasons` holds one sentence per rank that could still speak."""

    def __init__(self, reasons: dict[int, str]) -> None:
        super().__init__("; ".join(dict.fromkeys(reasons.values())))
        self.reasons = reasons


def check_ranks(ranks: int) -> None:
    """Raises:
    ConfigError: this host cannot sensibly run so many processes at once.
    """
    processors = len(os.sched_getaffinity(0))
    most = max(_RANKS_ANYWHERE, _RANKS_PER_PROCESSOR_MAX * processors)
    if not 1 <= ranks <= most:
        raise ConfigError(
            f"{ranks} live ranks are asked for; allowed is 1 to {most} on the {processors} "
            "processors of this host"
        )


@dataclass(frozen=True)
class LiveOptions:
    """How often to measure, and how long to wait for a silent peer (seconds)."""

    iterations: int = 20
    warmup: int = 5
    timeout_s: float = 30.0


@dataclass(frozen=True)
class LiveCall:
    """One schedule, measured at some sizes (bytes of the whole array)."""

    source: ScheduleSource
    sizes_bytes: tuple[int, ...]
    type_name: str = "float32"
    operation: str = "sum"


class LiveGroup:
    """The processes of one live run. A context manager: nobody outlives it."""

    def __init__(self, calls_of_rank: list[list[LiveCall]], options: LiveOptions) -> None:
        """Starts a process per entry. All entries are the same, unless ranks are to disagree."""
        ranks = len(calls_of_rank)
        self._partial = [b""] * ranks
        rendezvous = f"{os.getpid()}-{secrets.token_hex(6)}"
        self.processes: list[subprocess.Popen[bytes]] = []
        try:
            for _ in range(ranks):
                self.processes.append(_start_rank())
        except OSError as error:
            self.__exit__()
            reason = f"rank {len(self.processes)} of {ranks} cannot be started: {error.strerror}"
            raise LiveError({len(self.processes): reason}) from None
        for rank, (process, calls) in enumerate(zip(self.processes, calls_of_rank, strict=True)):
            _send(process, {
                "rendezvous": rendezvous, "rank": rank, "ranks": ranks,
                "calls": [asdict(call) for call in calls], **asdict(options),
            })  # fmt: skip

    def __enter__(self) -> LiveGroup:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def messages(self, patience_s: float) -> Iterator[tuple[int, dict[str, Any] | None]]:
        """(rank, message) as they come; the message is None when a rank has ended.

        Ends when all have ended, or when nobody said anything for `patience_s`.
        """
        with selectors.DefaultSelector() as selector:
            for rank, process in enumerate(self.processes):
                if not process.stdout.closed:
                    selector.register(process.stdout, selectors.EVENT_READ, rank)
            while selector.get_map():
                ready = selector.select(patience_s)
                if not ready:
                    return
                for key, _ in ready:
                    rank = key.data
                    received = os.read(key.fd, 1 << 16)
                    *lines, self._partial[rank] = (self._partial[rank] + received).split(b"\n")
                    for line in lines:
                        yield rank, json.loads(line)
                    if not received:
                        selector.unregister(key.fileobj)
                        key.fileobj.close()
                        yield rank, None


def _start_rank() -> subprocess.Popen[bytes]:
    # A session of its own: ctrl-C in a terminal is for the launcher, whose end ends the rank.
    # Safe path: a random.py in the user's folder is none of the rank's business.
    return subprocess.Popen(
        [sys.executable, "-m", "towpath.collectives.live_rank"], start_new_session=True,
        env={**os.environ, "PYTHONSAFEPATH": "1"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


def _send(process: subprocess.Popen[bytes], job: dict[str, Any]) -> None:
    try:
        process.stdin.write(json.dumps(job).encode() + b"\n")
        process.stdin.flush()
    except BrokenPipeError:
        pass  # it has ended already; messages() will tell


def measure_calls(
    calls: list[LiveCall], ranks: int, options: LiveOptions
) -> Iterator[tuple[LiveCall, Row]]:
    """One row per call and size, in order; the mean over ranks, as nccl-tests prints it.

    Raises:
        LiveError: a rank died, was silent past its deadline, or the ranks disagreed.
    """
    expected = [call for call in calls for _ in call.sizes_bytes]
    collected: list[list[dict[str, Any]]] = [[] for _ in expected]
    rows = 0
    with LiveGroup([calls] * ranks, options) as group:
        # A rank without news for this long is past every deadline of its own.
        for rank, message in group.messages(4 * options.timeout_s + 60):
            failure = _failure(group, rank, message)
            if failure is not None:
                raise LiveError({rank: failure} | last_words(group))
            if message is None:
                continue
            reports = collected[message["index"]]
            reports.append(message)
            if len(reports) == ranks:
                rows += 1
                yield expected[message["index"]], _row(reports, ranks)
    if rows < len(expected):
        raise LiveError({0: f"the ranks fell silent after {rows} of {len(expected)} measurements"})


def _failure(group: LiveGroup, rank: int, message: dict[str, Any] | None) -> str | None:
    if message is not None:
        return message.get("error")
    code = group.processes[rank].wait()
    if code == 0:
        return None
    return f"rank {rank} was killed by signal {-code}" if code < 0 else f"rank {rank} ended early"


def last_words(group: LiveGroup) -> dict[int, str]:
    """What the ranks still say after one of them failed, given a moment to notice."""
    return {
        rank: message["error"]
        for rank, message in group.messages(_LAST_WORDS_S)
        if message is not None and "error" in message
    }


def _row(messages: list[dict[str, Any]], ranks: int) -> Row:
    collective = messages[0]["collective"]

    def column(name: str) -> Measurement | None:
        parts = [message[name] for message in messages]
        if parts[0] is None:
            return None
        mean_us = sum(part["time_us"] for part in parts) / ranks
        wrong = sum(part["wrong"] for part in parts)
        return measure(mean_us, messages[0]["size_bytes"], collective, ranks, wrong)

    return Row(
        size_bytes=messages[0]["size_bytes"],
        count=messages[0]["count"],
        out_of_place=column("out_of_place"),
        in_place=column("in_place"),
    )
