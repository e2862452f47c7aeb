# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Measures mailboxes between two processes of this host, compared with a cache line and other
libraries.

Two processes alternate between a ping-pong with a cache line that both poll, and one with a message
through their mailboxes. Then one process sends at its maximum rate. One way is half of a round
trip.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from towpath.collectives.live import LiveError
from towpath.errors import ConfigError
from towpath.studies.interrupts import children_without_interrupts
from towpath.studies.page import PlainTable

MESSAGE_BYTES_MAX = 56
_PATIENCE_S = 30.0
_RUN_S_MAX = 600.0


@dataclass(frozen=True)
class LiveRequest:
    """Parameters of a measurement.

    Attributes:
        iterations: number of iterations of each ping-pong.
        size_bytes: payload of a message.
        cores: cores of the initiator and of the responder; None: chosen by the system.
        rounds: number of turns of line and mailbox.
        blocks: number of blocks, each of which gives one rate.
        block_messages: messages per block, few enough that most blocks are not interrupted.
    """

    iterations: int = 200_000
    size_bytes: int = 32
    cores: tuple[int, int] | None = None
    rounds: int = 10
    blocks: int = 200
    block_messages: int = 10_000


@dataclass(frozen=True)
class LiveStudy:
    """Results: statistics and histograms in ns, and rows about other libraries."""

    request: LiveRequest
    line: dict[str, Any]
    message: dict[str, Any]
    local_ns: float
    rates_per_s: dict[str, float]
    peers: list[dict[str, Any]] = field(default_factory=list)

    def median_ratio(self) -> float:
        return self.message["median_ns"] / self.line["median_ns"]

    def p99_ratio(self) -> float:
        """The 99th percentile of messages relative to the median transfer of a line."""
        return self.message["p99_ns"] / self.line["median_ns"]


def default_cores() -> tuple[int, int] | None:
    """Two of the cores available to this process; None if there is only one."""
    cores = sorted(os.sched_getaffinity(0))
    return (cores[0], cores[1]) if len(cores) > 1 else None


def parse_cores(text: str | None) -> tuple[int, int] | None:
    """Two core numbers from a text, or the default ones.

    Raises:
        ConfigError: the text does not name two different cores available to this process.
    """
    if text is None:
        return default_cores()
    allowed = sorted(os.sched_getaffinity(0))
    parts = text.split(",")
    numbers = [int(part) for part in parts if part.strip().isdecimal()]
    if len(parts) != 2 or len(set(numbers)) != 2 or not set(numbers) <= set(allowed):
        known = ", ".join(map(str, allowed))
        raise ConfigError(f"--cores is {text!r}; it must be two different cores of {known}")
    return numbers[0], numbers[1]


def measure_live(request: LiveRequest) -> LiveStudy:
    """Runs both processes and returns their results.

    Raises:
        ConfigError: the message does not fit. LiveError: a process failed.
    """
    if not 0 <= request.size_bytes <= MESSAGE_BYTES_MAX:
        most = MESSAGE_BYTES_MAX
        raise ConfigError(
            f"a live message has {request.size_bytes} bytes; it must have 0 to {most}"
        )
    names = [f"bench-{os.getpid()}-{secrets.token_hex(4)}-{side}" for side in range(2)]
    processes: list[subprocess.Popen[str]] = []
    try:
        with children_without_interrupts():
            processes += [_start(request, names, side) for side in range(2)]
        answers = [_answer(process, side) for side, process in enumerate(processes)]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    rates = np.asarray(answers[1]["rates"])
    return LiveStudy(
        request=request,
        line=_statistics(answers[0]["line"]),
        message=_statistics(answers[0]["message"]),
        local_ns=answers[0]["local_ns"],
        rates_per_s={
            "median": float(np.median(rates)),
            "p10": float(np.percentile(rates, 10)),
            "best": float(rates.max()),
        },
    )


def _start(request: LiveRequest, names: list[str], side: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "towpath.studies.mailbox_live_process"], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONSAFEPATH": "1"},
    )  # fmt: skip
    job = {
        "own": names[side], "other": names[1 - side], "is_initiator": side == 0,
        "core": request.cores[side] if request.cores else None, "timeout_s": _PATIENCE_S,
        "iterations": request.iterations, "size_bytes": request.size_bytes,
        "rounds": request.rounds, "blocks": request.blocks,
        "block_messages": request.block_messages,
    }  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(json.dumps(job) + "\n")
    process.stdin.flush()
    return process


def _answer(process: subprocess.Popen[str], side: int) -> dict[str, Any]:
    try:
        output, _ = process.communicate(timeout=_RUN_S_MAX)
    except subprocess.TimeoutExpired:
        raise LiveError({side: f"process {side} of the measurement did not end"}) from None
    answer = json.loads(output) if output else {"error": f"process {side} ended early"}
    if "error" in answer:
        raise LiveError({side: answer["error"]})
    return answer


def _statistics(counted: dict[str, list[float]]) -> dict[str, Any]:
    times, counts = np.asarray(counted["times_ns"]), np.asarray(counted["counts"])
    passed = np.cumsum(counts)

    def percentile(percent: float) -> float:
        return float(times[np.searchsorted(passed, passed[-1] * percent / 100)])

    return {
        "median_ns": percentile(50),
        "p99_ns": percentile(99),
        "p999_ns": percentile(99.9),
        "min_ns": float(times[0]),
        "max_ns": float(times[-1]),
        **counted,
    }


# --- tables ---------------------------------------------------------------------------------------


def live_tables(study: LiveStudy) -> list[PlainTable]:
    """Latency, its components, the rate, and a comparison with other libraries."""
    return [_latency_table(study), _parts_table(study), _peer_table(study)]


def _latency_table(study: LiveStudy) -> PlainTable:
    columns = ("min_ns", "median_ns", "p99_ns", "p999_ns", "max_ns")
    lines = [
        (name, *(f"{row[column]:.0f}" for column in columns))
        for name, row in (("cache line", study.line), ("mailbox", study.message))
    ]
    median, p99 = study.median_ratio(), study.p99_ratio()
    lines.append(("mailbox over the line's median", "", f"{median:.2f}", f"{p99:.2f}", "", ""))
    headings = ("one way (ns)", "least", "median", "99 %", "99.9 %", "most")
    return PlainTable(headings, lines, "Latency")


def _parts_table(study: LiveStudy) -> PlainTable:
    line, whole = study.line["median_ns"], study.message["median_ns"]
    rest = whole - line - study.local_ns
    lines = [
        ("transfer of a cache line, polled", f"{line:.1f}"),
        ("send and receive, all in one cache", f"{study.local_ns:.1f}"),
        ("the rest: a line that is new to both, and what overlaps", f"{rest:+.1f}"),
        ("one way", f"{whole:.1f}"),
    ]
    return PlainTable(("part", "median (ns)"), lines, "What a message is made of")


def _peer_table(study: LiveStudy) -> PlainTable:
    message, rates = study.message, study.rates_per_s
    lines = [(
        "towpath mailbox", f"{message['median_ns']:.0f}", f"{message['p99_ns']:.0f}",
        f"{rates['median'] / 1e6:.1f}", "",
    )]  # fmt: skip
    for peer in study.peers:
        if "skipped" in peer:
            lines.append((peer["name"], "-", "-", "-", peer["skipped"]))
            continue
        ratio = peer["median_ns"] / message["median_ns"]
        lines.append((
            peer["name"], f"{peer['median_ns']:.0f}", f"{peer['p99_ns']:.0f}",
            f"{peer['messages_per_s'] / 1e6:.2f}", f"{ratio:.1f} times as long",
        ))  # fmt: skip
    headings = ("library", "median (ns)", "99 % (ns)", "messages (M/s)", "")
    title = "Messages of the same size in the same run, one way"
    return PlainTable(headings, lines, title)
