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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from towpath.result import Measurement, Row, measure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from towpath.schedule_source import ScheduleSource

# What the other ranks get to say why they ended after one of them failed, in seconds.
_LAST_WORDS_S = 5.0


class LiveError(RuntimeError):
    """A live run that failed. `reasons` holds one sentence per rank that could still speak."""

    def __init__(self, reasons: dict[int, str]) -> None:
        super().__init__("; ".join(dict.fromkeys(reasons.values())))
        self.reasons = reasons


@dataclass(frozen=True)
class LiveOptions:
    """How often to measure, and how long to wait for a silent peer (seconds)."""

    iterations: int = 20
    warmup: int = 5
    timeout_s: float = 30.0


@dataclass(frozen=True)
class LiveJob:
    """What one rank is asked to do. All ranks get the same, unless a test wants to see them
    disagree."""

    source: ScheduleSource
    type_name: str
    operation: str
    sizes_bytes: list[int]


class LiveGroup:
    """The processes of one live run. A context manager: nobody outlives it."""

    def __init__(self, jobs: list[LiveJob], options: LiveOptions) -> None:
        self._partial = [b""] * len(jobs)
        rendezvous = f"{os.getpid()}-{secrets.token_hex(6)}"
        self.processes = [_start_rank() for _ in jobs]
        for rank, (process, job) in enumerate(zip(self.processes, jobs, strict=True)):
            _send(process, {
                "rendezvous": rendezvous, "rank": rank, "ranks": len(jobs),
                "source": job.source.to_json(), "type_name": job.type_name,
                "operation": job.operation, "sizes_bytes": job.sizes_bytes,
                "iterations": options.iterations, "warmup": options.warmup,
                "timeout_s": options.timeout_s,
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
    return subprocess.Popen(
        [sys.executable, "-m", "towpath.live_rank"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


def _send(process: subprocess.Popen[bytes], job: dict[str, Any]) -> None:
    try:
        process.stdin.write(json.dumps(job).encode() + b"\n")
        process.stdin.flush()
    except BrokenPipeError:
        pass  # it has ended already; messages() will tell


def measure_sizes(job: LiveJob, ranks: int, options: LiveOptions) -> Iterator[Row]:
    """One row per size, the mean over ranks as nccl-tests prints it.

    Raises:
        LiveError: a rank died, was silent past its deadline, or the ranks disagreed.
    """
    collective = job.source.schedule().collective.name
    collected: dict[int, list[dict[str, Any]]] = {}
    rows = 0
    with LiveGroup([job] * ranks, options) as group:
        # A rank without news for this long is past every deadline of its own.
        for rank, message in group.messages(4 * options.timeout_s + 60):
            failure = _failure(group, rank, message)
            if failure is not None:
                raise LiveError({rank: failure} | last_words(group))
            if message is None:
                continue
            of_size = collected.setdefault(message["index"], [])
            of_size.append(message)
            if len(of_size) == ranks:
                rows += 1
                yield _row(of_size, collective, ranks)
    if rows < len(job.sizes_bytes):
        raise LiveError({0: f"the ranks fell silent after {rows} of {len(job.sizes_bytes)} sizes"})


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


def _row(messages: list[dict[str, Any]], collective: str, ranks: int) -> Row:
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
