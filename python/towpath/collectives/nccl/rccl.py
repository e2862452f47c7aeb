# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""RCCL's choice on hosts of 8 MI300X, fully connected by xGMI.

RCCL has fixed rings and tables for each supported machine instead of a search. The facts are from
ROCm/rccl 2.21.5, commit 0cbce2a: src/graph/rome_models.cc (models 79 and 81: rings),
src/graph/tuning.cc (tuning_model_5: the cost model), tools/msccl-algorithms (schedules of MSCCL
that replace RCCL's own on one host). Other machines, and builds of RCCL with MSCCL++, are not
supported.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from towpath.collectives.nccl.choice import Candidate, Choice, Refused
from towpath.collectives.nccl.communicator import (
    CHANNELS_MAX,
    Channel,
    Communicator,
    Graph,
    Path,
    Pattern,
)
from towpath.collectives.nccl.environment import Environment
from towpath.collectives.nccl.facts import OF_AMD, Facts
from towpath.collectives.nccl.topology import topology_of
from towpath.collectives.nccl.tuner_file import TunerLine
from towpath.errors import ConfigError
from towpath.specs.machine_spec import MachineSpec

_GPUS = 8
_XGMI_GB_PER_S = 48.0  # GFX94X_XGMI_WIDTH, src/graph/topo.h
_ALL_LINKS_GB_PER_S = 7 * _XGMI_GB_PER_S
# Model 79, one host: 14 rings, twice in the model, and doubled again when they are joined.
_RINGS_ONE_HOST = (
    "01234567", "01234576", "02413657", "02461735", "03152746", "03516274", "04173625", "76543210",
    "67543210", "75631420", "53716420", "64725130", "47261530", "52637140",
)  # fmt: skip
_CHANNELS_ONE_HOST = 56
# Model 81, several hosts with 8 adapters each: 8 rings, which enter by the adapter of their first
# GPU and leave by that of their last; 64 channels, each group of 8 begins with the next ring.
_RINGS_HOSTS = (
    "01234567", "10243576", "25036174", "37042165", "46273051", "54713260", "63140752", "72064153",
)  # fmt: skip
_CHANNELS_HOSTS = 64
_PROTOCOLS = ("LL", "Simple")  # LL128 is off for MI300X
_THREADS = 256  # NCCL_MAX_NTHREADS, src/include/device.h
_BYTES_PER_THREAD = {"LL": 8, "Simple": 64}
_CHUNK_BYTES = {"LL": 32 << 10, "Simple": 512 << 10}

# Microseconds: per run, and per step over xGMI and between hosts, by algorithm and protocol.
_BASE_US = {"LL": 12.0, "Simple": 17.0}
_INSIDE_US = {
    ("tree", "LL"): 0.9, ("tree", "Simple"): 2.3, ("ring", "LL"): 0.8, ("ring", "Simple"): 2.1,
}  # fmt: skip
_BETWEEN_US = {
    ("tree", "LL"): 10.5, ("tree", "Simple"): 25.0,
    ("ring", "LL"): 9.5, ("ring", "Simple"): 320.0,
}  # fmt: skip
# Parts of the bandwidth of all links: up to two hosts, and more.
_PART = {
    ("tree", "LL"): (0.06, 0.06), ("tree", "Simple"): (0.11, 0.59),
    ("ring", "LL"): (0.08, 0.08), ("ring", "Simple"): (1.0, 1.0),
}  # fmt: skip
# What that is multiplied by, from 64 B upwards, one for each power of two.
_CORRECTION = {
    ("tree", "LL"): (
        0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1.0, 1.0, 1.0, 1.0, 1.0, 0.6, 1.0, 0.9, 1.0, 1.0, 0.1, 0.1,
        0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
    ),
    ("tree", "Simple"): (
        0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.7, 1.0, 1.0,
        1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.8,
    ),
    ("ring", "LL"): (
        0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1.0, 0.2, 1.0, 0.4, 0.4, 0.1, 0.2,
        0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
    ),
    ("ring", "Simple"): (
        0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
        0.1, 0.1, 0.1, 0.1, 0.1, 0.8, 1.0, 1.0, 1.0,
    ),
}  # fmt: skip
_BROADCAST_LL_FACTOR = 1.65  # of broadcast and reduce on one host


class _MscclRange(NamedTuple):
    """A schedule of MSCCL that comes with RCCL, and its sizes."""

    collective: str
    least_bytes: int
    most_bytes: int
    protocol: str
    channels: int


_MSCCL = (
    _MscclRange("all_reduce", 0, 65_536, "LL", 4),
    _MscclRange("all_reduce", 65_537, 524_287, "LL", 8),
    _MscclRange("all_reduce", 524_288, 16_777_216, "Simple", 8),
    _MscclRange("all_to_all", 0, 9_216, "LL", 1),
    _MscclRange("all_to_all", 9_217, 194_560, "LL", 2),
    _MscclRange("all_to_all", 194_561, 524_288, "LL", 4),
    _MscclRange("all_to_all", 524_289, 7_340_032, "Simple", 32),
    _MscclRange("all_to_all", 7_340_033, 45_088_768, "Simple", 8),
)
_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")


def facts_of(
    spec: MachineSpec, ranks_per_host: int | None = None, environment: Environment | None = None
) -> Facts:
    """RCCL's view of a machine.

    Raises:
        ConfigError: the machine is not supported.
    """
    words = " ".join((*spec.link_types, spec.name, spec.description)).lower()
    gpus = ranks_per_host or spec.gpus_per_host
    if not OF_AMD.search(words) or gpus != _GPUS:
        raise ConfigError(
            f"RCCL on machine '{spec.name}' with {gpus} GPUs per host is not supported; choose "
            "a machine with hosts of 8 MI300X"
        )
    topology = topology_of(spec, gpus, "amd")
    nodes = spec.host_count
    orders = _RINGS_ONE_HOST if nodes == 1 else _RINGS_HOSTS
    count = _CHANNELS_ONE_HOST if nodes == 1 else _CHANNELS_HOSTS
    environment = environment or Environment()
    ring = _graph(Pattern.RING, orders, count if nodes > 1 else 2 * len(orders))
    communicator = Communicator(
        ranks=gpus * nodes,
        nodes=nodes,
        generation="mi300",
        cpu="amd",
        graphs={"ring": ring, "tree": ring},
        channels=max(min(count, environment.channels_max), min(environment.channels_min, 64)),
        adapter_gb_per_s=max(topology.net_left, default=0.0),
    )
    notes = (
        "RCCL 2.21.5 is taken, without MSCCL++",
        "the rings are those that RCCL has for 8 MI300X on xGMI",
    )
    return Facts(communicator, topology, notes)


def _graph(pattern: Pattern, orders: tuple[str, ...], count: int) -> Graph:
    channels = []
    for channel in range(count):
        group, number = divmod(channel, len(orders))
        # Model 81 turns the rings by one in each group; model 79 repeats them.
        turned = number + group if count == _CHANNELS_HOSTS else number
        order = tuple(map(int, orders[turned % len(orders)]))
        nets = (order[0], order[-1]) if count == _CHANNELS_HOSTS else ()
        channels.append(Channel(order, nets))
    rate = _ALL_LINKS_GB_PER_S / count
    return Graph(pattern, count, rate, rate, Path.NVL, Path.PXB, channels=tuple(channels))


def choose(
    communicator: Communicator,
    collective: str,
    size_bytes: int,
    environment: Environment | None = None,
    tuner: tuple[TunerLine, ...] = (),
) -> Choice:
    """Chooses like RCCL for a single collective.

    Args:
        communicator: from `facts_of`.
        collective: such as "all_reduce".
        size_bytes: size of the whole array.
        environment: the user's settings.
        tuner: rejected, because RCCL's plugins are not supported.

    Raises:
        ConfigError: RCCL has no choice for the collective, or the user disabled all candidates.
    """
    environment = environment or Environment()
    if tuner:
        raise ConfigError("a tuner file applies to NCCL's plugin; RCCL's plugins are not supported")
    msccl = _msccl(communicator.nodes, collective, size_bytes, environment)
    if msccl is None and collective not in _COLLECTIVES:
        raise ConfigError(
            f"RCCL does not choose an algorithm for {collective} of {size_bytes} bytes, which "
            f"it builds from sends and receives; choose one of {', '.join(_COLLECTIVES)}"
        )
    candidates, refused = [], []
    for algorithm in ("tree", "ring"):
        for protocol in _PROTOCOLS:
            reason = _why_not(communicator, collective, algorithm, protocol, environment)
            if reason is None:
                time_us = _time_us(communicator, collective, (algorithm, protocol), size_bytes)
                candidates.append(Candidate(algorithm, protocol, time_us))
            else:
                refused.append(Refused(algorithm, protocol, reason))
    candidates.sort(key=lambda candidate: candidate.time_us)
    if msccl is not None:
        return Choice(
            "all_pairs", msccl.protocol, msccl.channels, msccl.channels, _THREADS,
            _CHUNK_BYTES[msccl.protocol], math.nan, tuple(candidates), tuple(refused),
        )  # fmt: skip
    if not candidates:
        raise ConfigError(
            f"no algorithm and protocol are left for {collective}; remove NCCL_ALGO or NCCL_PROTO"
        )
    best = candidates[0]
    threshold = _BYTES_PER_THREAD[best.protocol]
    if (best.algorithm, best.protocol) == ("ring", "LL"):
        threshold *= communicator.ranks
    channels = max(1, min(communicator.channels, size_bytes // (_THREADS * threshold)))
    return Choice(
        best.algorithm, best.protocol, channels, min(communicator.channels, CHANNELS_MAX), _THREADS,
        _CHUNK_BYTES[best.protocol], best.time_us, tuple(candidates[1:]), tuple(refused),
    )  # fmt: skip


def is_replaced(
    spec: MachineSpec, gpus: int, collective: str, size_bytes: int, environment: Environment
) -> bool:
    """True if a schedule of MSCCL takes the place of RCCL's choice."""
    found = _msccl(spec.host_count, collective, size_bytes, environment)
    return found is not None and gpus == _GPUS


def _msccl(
    nodes: int, collective: str, size_bytes: int, environment: Environment
) -> _MscclRange | None:
    """The schedule of MSCCL that replaces RCCL's own, on one host of 8."""
    is_on = environment.number("RCCL_MSCCL_ENABLE") == 1
    is_forced = environment.text("NCCL_ALGO") or environment.text("NCCL_PROTO")
    if nodes > 1 or not is_on or is_forced:
        return None
    for one in _MSCCL:
        if one.collective == collective and one.least_bytes <= size_bytes <= one.most_bytes:
            return one
    return None


def _why_not(
    communicator: Communicator, collective: str, algorithm: str, protocol: str,
    environment: Environment,
) -> str | None:  # fmt: skip
    algorithms, protocols = environment.algorithms(collective), environment.protocols(collective)
    if algorithms is not None and algorithm not in algorithms:
        return f"NCCL_ALGO={environment.text('NCCL_ALGO')}"
    if protocols is not None and protocol not in protocols:
        return f"NCCL_PROTO={environment.text('NCCL_PROTO')}"
    if collective not in _COLLECTIVES:
        return f"{algorithm} does not do {collective}"
    if algorithm == "tree" and collective != "all_reduce":
        return "the tree is for all_reduce only"
    if (algorithm, protocol) == ("tree", "Simple") and communicator.nodes == 1:
        return "RCCL leaves out the tree under Simple on one host"
    return None


def _time_us(
    communicator: Communicator, collective: str, candidate: tuple[str, str], size_bytes: int
) -> float:
    bandwidth = _bandwidth(communicator, collective, candidate, size_bytes)
    return _latency(communicator, collective, candidate) + size_bytes / (1000 * bandwidth)


def _steps(collective: str, ranks: int) -> int:
    return {"all_reduce": 2 * (ranks - 1), "broadcast": ranks, "reduce": ranks}.get(
        collective, ranks - 1
    )


def _bandwidth(
    communicator: Communicator, collective: str, candidate: tuple[str, str], size_bytes: int
) -> float:
    """Bandwidth of the whole array in GB/s."""
    nodes, ranks = communicator.nodes, communicator.ranks
    bandwidth = _ALL_LINKS_GB_PER_S * _PART[candidate][0 if nodes <= 2 else 1]
    if collective in ("broadcast", "reduce") and candidate == ("ring", "LL") and nodes == 1:
        bandwidth *= _BROADCAST_LL_FACTOR
    is_ring = candidate[0] == "ring"
    bandwidth *= ranks / _steps(collective, ranks) if is_ring else 0.5
    power = (size_bytes >> 6).bit_length() - 1
    if power >= 0 and (not is_ring or nodes > 1):
        factors = _CORRECTION[candidate]
        bandwidth *= factors[min(power, len(factors) - 1)]
    return bandwidth


def _latency(communicator: Communicator, collective: str, candidate: tuple[str, str]) -> float:
    """Latency in microseconds."""
    nodes, ranks = communicator.nodes, communicator.ranks
    algorithm, protocol = candidate
    inside, between = _INSIDE_US[candidate], _BETWEEN_US[candidate]
    base = _BASE_US[protocol]
    if algorithm == "tree":
        return base + 2 * ((ranks // nodes - 1) * inside + math.floor(math.log2(nodes)) * between)
    if collective in ("broadcast", "reduce"):
        return base + (inside if nodes == 1 else between)
    crossings = 0
    if nodes > 1:
        inside = max(inside, 2.0 * (3 if protocol == "Simple" else 1))  # posting, AMD's CPUs
        crossings = 2 * nodes if collective == "all_reduce" else nodes - 1
    return base + (_steps(collective, ranks) - crossings) * inside + crossings * between
