# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""NCCL's choice at a size: algorithm, protocol, channels and threads.

Follows topoGetAlgoInfo, scheduleCollTasksToPlan and calcCollChunking of src/enqueue.cc
(NVIDIA/nccl, commit 5067397c): it selects the candidate with the shortest time, then reduces
channels and threads if each would have too few bytes, and then removes channels with less than 32
KiB of traffic.
"""

from __future__ import annotations

from dataclasses import dataclass

from towpath.collectives.nccl.communicator import (
    ALGORITHM_WORDS,
    ALGORITHMS,
    COLLECTIVES,
    PROTOCOLS,
    Communicator,
)
from towpath.collectives.nccl.cost_model import cost, times_us, why_not, why_not_ll128
from towpath.collectives.nccl.environment import Environment
from towpath.collectives.nccl.tuner_file import TunerLine
from towpath.errors import ConfigError

_WARP = 32
_THREADS_MAX = 640  # NCCL_MAX_NTHREADS and NCCL_LL128_MAX_NTHREADS, src/include/device.h
_SIMPLE_THREADS = 512  # NCCL_SIMPLE_MAX_NTHREADS
_LL_THREADS = 512  # NCCL_LL_MAX_NTHREADS
_SLOW_RING_THREADS = 256  # where all rings together are no faster than PCIe 3.0
_SLOW_RING_GB_PER_S = 12.0
# Bytes that a thread should have, src/include/comm.h; LL in a ring: for each rank.
BYTES_PER_THREAD = {"LL": 8, "LL128": 8, "Simple": 64}
_COLLNET_BYTES_PER_THREAD = 512
_TRAFFIC_MIN_BYTES = 32 << 10  # per channel, src/enqueue.cc
# Buffers of a connection have 8 slots: NCCL_STEPS; sizes in src/init.cc.
_SLOT_BYTES = {"LL": 8 * 512 * 16, "LL128": 120 * 640 * 8, "Simple": (4 << 20) // 8}
_RING_SLOTS_PER_CHUNK = 4  # ALLREDUCE_CHUNKSTEPS of src/include/collectives.h, Simple only
_NVLS_CHUNK_BYTES = 128 << 10
_NVLS_TREE_CHUNK_BYTES = 64 << 10  # from 4 nodes on
_NVLS_PARTS = ((64, 65536), (8, 32768), (2, 16384))
_NVLS_TREE_PARTS = ((32, 262144), (16, 131072), (4, 65536), (1, 32768))


@dataclass(frozen=True)
class Candidate:
    """An algorithm with a protocol, and its time according to NCCL."""

    algorithm: str
    protocol: str
    time_us: float

    @property
    def name(self) -> str:
        """Name in NCCL's form: "Ring/LL"."""
        return f"{ALGORITHM_WORDS[self.algorithm]}/{self.protocol}"


@dataclass(frozen=True)
class Refused:
    """An algorithm with a protocol that NCCL excludes, and the reason."""

    algorithm: str
    protocol: str
    reason: str


@dataclass(frozen=True)
class Choice:
    """NCCL's choice.

    `channels` is the number of thread blocks with work, and `channels_max` the number before
    traffic is counted. `threads` is per thread block. `alternatives` contains the other candidates,
    the fastest first. `chunk_bytes` is the amount that a channel forwards at once. `is_tuned` is
    True if a tuner plugin selects a candidate other than NCCL's.
    """

    algorithm: str
    protocol: str
    channels: int
    channels_max: int
    threads: int
    chunk_bytes: int
    predicted_us: float
    alternatives: tuple[Candidate, ...]
    refused: tuple[Refused, ...]
    is_tuned: bool = False

    @property
    def name(self) -> str:
        """Name in NCCL's form: "Ring/LL"."""
        return f"{ALGORITHM_WORDS[self.algorithm]}/{self.protocol}"


def choose(
    communicator: Communicator,
    collective: str,
    size_bytes: int,
    environment: Environment | None = None,
    tuner: tuple[TunerLine, ...] = (),
) -> Choice:
    """Chooses like NCCL for a single collective.

    Args:
        communicator: ranks, nodes, graphs and channels.
        collective: such as "all_reduce".
        size_bytes: size of the whole array.
        environment: the user's settings.
        tuner: the configuration of NVIDIA's example tuner plugin; None if there is no plugin.

    Raises:
        ConfigError: NCCL has no cost model for the collective, or the user has disabled all
        candidates.
    """
    environment = environment or Environment()
    if collective not in COLLECTIVES:
        raise ConfigError(
            f"NCCL does not choose an algorithm for {collective}, which it builds from sends "
            f"and receives; choose one of {', '.join(COLLECTIVES)}"
        )
    if size_bytes < 1:
        raise ConfigError(f"size_bytes is {size_bytes}; it must be at least 1")
    if communicator.ranks < 2:
        return Choice("ring", "Simple", 1, 1, _SIMPLE_THREADS, size_bytes, 0.0, (), ())
    times = times_us(communicator, collective, size_bytes)
    refused, candidates = [], []
    for algorithm in ALGORITHMS:
        for protocol in PROTOCOLS:
            reason = _reason(communicator, collective, algorithm, protocol, environment)
            if reason is None:
                time_us = times[algorithm, protocol]
                candidates.append(Candidate(algorithm, protocol, time_us))
            else:
                refused.append(Refused(algorithm, protocol, reason))
    if not candidates:
        raise ConfigError(_nothing_left(collective, environment))
    candidates.sort(key=lambda candidate: candidate.time_us)  # stable: the first of equal ones
    best, tuned_channels = _tuned(communicator, collective, size_bytes, candidates, tuner)
    most, threads = _channels_and_threads(communicator, best.algorithm, best.protocol, size_bytes)
    most = tuned_channels or most
    channels = most
    if not best.algorithm.startswith("collnet"):
        channels = channels_with_work(communicator, collective, best.protocol, size_bytes, most)
    return Choice(
        algorithm=best.algorithm,
        protocol=best.protocol,
        channels=channels,
        channels_max=most,
        threads=threads,
        chunk_bytes=chunk_bytes(
            communicator.ranks,
            communicator.nodes,
            best.algorithm,
            best.protocol,
            -(-size_bytes // channels),
        ),
        predicted_us=best.time_us,
        alternatives=tuple(candidate for candidate in candidates if candidate is not best),
        refused=tuple(refused),
        is_tuned=bool(tuned_channels) and best is not candidates[0],
    )


def _tuned(
    communicator: Communicator,
    collective: str,
    size_bytes: int,
    candidates: list[Candidate],
    tuner: tuple[TunerLine, ...],
) -> tuple[Candidate, int]:
    """The candidate that the plugin selects, and its number of channels, 0 without a plugin.

    The plugin gives one channel if no line matches or if a line has -1.
    """
    if not tuner:
        return candidates[0], 0
    for line in tuner:
        if line.fits(collective, size_bytes, communicator.nodes, communicator.ranks):
            for candidate in candidates:
                if (candidate.algorithm, candidate.protocol) == (line.algorithm, line.protocol):
                    return candidate, max(line.channels, 1)
    return candidates[0], 1


def _reason(
    communicator: Communicator,
    collective: str,
    algorithm: str,
    protocol: str,
    environment: Environment,
) -> str | None:
    """The reason for excluding a candidate; None if it is allowed."""
    allowed_algorithms = environment.algorithms(collective)
    if allowed_algorithms is not None and algorithm not in allowed_algorithms:
        return f"NCCL_ALGO={environment.text('NCCL_ALGO')}"
    allowed_protocols = environment.protocols(collective)
    if allowed_protocols is not None and protocol not in allowed_protocols:
        return f"NCCL_PROTO={environment.text('NCCL_PROTO')}"
    if algorithm in ("nvls", "nvls_tree") and environment.number("NCCL_NVLS_ENABLE") == 0:
        return "NCCL_NVLS_ENABLE=0"
    reason = why_not(communicator, collective, algorithm, protocol)
    if reason is not None:
        return reason
    if protocol == "LL128" and allowed_protocols is None:
        reason = why_not_ll128(communicator, algorithm)
    if reason is not None:
        return reason
    if cost(communicator, collective, algorithm, protocol) is None:
        return "NCCL's model gives it no bandwidth"
    return None


def _nothing_left(collective: str, environment: Environment) -> str:
    named = [
        f"{name}={text}"
        for name in ("NCCL_ALGO", "NCCL_PROTO", "NCCL_NVLS_ENABLE")
        if (text := environment.text(name)) is not None
    ]
    because = f" under {' and '.join(named)}" if named else ""
    return f"no algorithm and protocol are left for {collective}{because}; leave out one of them"


def _channels_and_threads(
    communicator: Communicator, algorithm: str, protocol: str, size_bytes: int
) -> tuple[int, int]:
    threads = _threads_max(communicator, algorithm, protocol)
    threshold = BYTES_PER_THREAD[protocol]
    if algorithm == "ring" and protocol == "LL":
        threshold *= communicator.ranks
    if algorithm in ("nvls", "nvls_tree"):
        channels = communicator.nvls_channels
        if communicator.nodes > 1 and algorithm == "nvls":
            channels = min(channels, communicator.channels)
        return channels, threads
    if algorithm.startswith("collnet"):
        threshold = _COLLNET_BYTES_PER_THREAD
    channels = communicator.channels
    while channels > 1 and size_bytes < channels * threads * threshold:
        channels -= 1
    while size_bytes < channels * threads * threshold and threads % 128 == 0:
        threads //= 2
    if protocol == "Simple":  # warps beside those that copy
        threads += {"ring": _WARP, "tree": 4 * _WARP}.get(algorithm, 0)
    threads = max(threads, 3 * _WARP)
    return channels, _THREADS_MAX if algorithm in ("tree", "pat") else threads


def _threads_max(communicator: Communicator, algorithm: str, protocol: str) -> int:
    if algorithm not in ("ring", "tree") or protocol == "LL128":
        return _THREADS_MAX
    if protocol == "LL":
        return _LL_THREADS
    ring = communicator.graph("ring")
    if algorithm == "tree" or ring is None:
        return _SIMPLE_THREADS
    is_slow = ring.intra_gb_per_s * ring.channel_count <= _SLOW_RING_GB_PER_S
    return _SLOW_RING_THREADS if is_slow else _SIMPLE_THREADS


def channels_with_work(
    communicator: Communicator, collective: str, protocol: str, size_bytes: int, most: int
) -> int:
    """Number of channels with work: NCCL distributes cells with at least 32 KiB of traffic.

    Args:
        communicator: the ranks count if every rank's part passes every other rank.
        collective: such as "all_reduce".
        protocol: LL counts four times the traffic.
        size_bytes: size of the whole array.
        most: the number of channels.
    """
    ranks = communicator.ranks
    per_byte = {"all_reduce": 2, "all_gather": ranks, "reduce_scatter": ranks}.get(collective, 1)
    count_bytes = size_bytes
    if collective in ("all_gather", "reduce_scatter"):
        count_bytes = -(-size_bytes // ranks)  # NCCL counts one rank's part
    per_byte *= 4 if protocol == "LL" else 1
    traffic = max(_TRAFFIC_MIN_BYTES, count_bytes * per_byte)
    per_channel = _round_up(traffic // most, 16)
    cell_bytes = _round_up(-(-_TRAFFIC_MIN_BYTES // per_byte), 16)
    cells = -(-count_bytes // cell_bytes)
    cells_per_channel = min(cells, -(-per_channel // (cell_bytes * per_byte)))
    return max(1, min(most, -(-cells // cells_per_channel)))


def chunk_bytes(ranks: int, nodes: int, algorithm: str, protocol: str, channel_bytes: int) -> int:
    """Bytes that a channel forwards at once, out of the `channel_bytes` that it carries in
    total.
    """
    chunk = _SLOT_BYTES[protocol]
    if protocol == "LL":
        chunk //= 2  # half of each line is flags
    if protocol == "LL128":
        chunk = chunk // 16 * 15
    if algorithm == "ring" and protocol == "Simple":
        return chunk * _RING_SLOTS_PER_CHUNK
    heads = ranks // nodes
    if algorithm == "nvls":
        return _halved(min(chunk, _NVLS_CHUNK_BYTES), channel_bytes / heads, _NVLS_PARTS)
    if algorithm == "nvls_tree":
        chunk = _NVLS_CHUNK_BYTES if nodes < 4 else _NVLS_TREE_CHUNK_BYTES
        return _halved(chunk, channel_bytes / heads, _NVLS_TREE_PARTS)
    if algorithm == "tree" and protocol == "LL128":
        return _tree_chunk_bytes(ranks, nodes, chunk, channel_bytes)
    while algorithm == "pat" and chunk * 32 > channel_bytes and chunk > 65536:
        chunk //= 2
    return chunk


def _tree_chunk_bytes(ranks: int, nodes: int, chunk: int, channel_bytes: int) -> int:
    """Smaller chunks for deeper trees, with LL128."""
    heads = ranks // nodes
    depth = nodes.bit_length() + 0.1 * heads
    for times, limit in ((64, 131072), (16, 32768)):
        while channel_bytes // chunk < depth * times / heads and chunk > limit:
            chunk //= 2
    return chunk


def _halved(chunk: int, carried_bytes: float, parts: tuple[tuple[int, int], ...]) -> int:
    """Smaller chunks if the data would give too few: at least a number of parts, down to a number
    of bytes.
    """
    for least, limit in parts:
        if carried_bytes < least * chunk and chunk > limit:
            chunk = limit
    return chunk


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
