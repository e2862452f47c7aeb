# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Explanation of a library's choice: its candidates with their times, the limit of the best
candidate, and the related lines of its log.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from towpath.collectives.nccl import cost_model
from towpath.collectives.nccl.choice import BYTES_PER_THREAD, Choice
from towpath.collectives.nccl.communicator import (
    ALGORITHM_WORDS,
    ALGORITHMS,
    COLLECTIVE_WORDS,
    COLLECTIVES,
    PROTOCOLS,
    Communicator,
    Graph,
)
from towpath.collectives.nccl.imitation import Imitation

_RINGS_SHOWN = 4
_RANKS_SHOWN = 16


@dataclass(frozen=True)
class CandidateTime:
    """A candidate, the library's time for it, and its simulated time if it was simulated.

    `latency_us` and `bandwidth_gb_per_s` are the components of the library's time; None if they are
    unknown.
    """

    name: str
    time_us: float
    latency_us: float | None
    bandwidth_gb_per_s: float | None
    simulated_us: float | None = None


@dataclass(frozen=True)
class Explanation:
    """A library's choice at a size, with its reasons.

    Attributes:
        library: "nccl" or "rccl".
        where: the machine and its ranks.
        collective: name of the collective.
        size_bytes: size of the whole array.
        choice: the chosen candidate.
        candidates: the candidates that the library compared, the fastest first.
        limit: a sentence about the components of the time of the choice.
        log: facts that the library's log would contain, one per line.
        notes: assumptions about the machine.
    """

    library: str
    where: str
    collective: str
    size_bytes: int
    choice: Choice
    candidates: tuple[CandidateTime, ...]
    limit: str
    log: tuple[str, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as plain data for JSON."""
        plain = asdict(self)
        plain["choice"] = {
            "name": self.choice.name,
            "algorithm": self.choice.algorithm,
            "protocol": self.choice.protocol,
            "channels": self.choice.channels,
            "threads": self.choice.threads,
            "chunk_bytes": self.choice.chunk_bytes,
            "is_tuned": self.choice.is_tuned,
            "refused": [asdict(refused) for refused in self.choice.refused],
        }
        return plain


def explain(
    imitation: Imitation, where: str, collective: str, size_bytes: int,
    simulated_us: dict[str, float],
) -> Explanation:  # fmt: skip
    """Explains a choice.

    Args:
        imitation: the library on a machine.
        where: the machine and its ranks as text.
        collective: such as "all_reduce".
        size_bytes: size of the whole array.
        simulated_us: simulated times, by the candidate's name.

    Raises:
        ConfigError: the library has no choice for the collective.
    """
    choice = imitation.choose(collective, size_bytes)
    communicator = imitation.facts.communicator
    is_nccl = imitation.library.name == "nccl"
    pairs = [(choice.algorithm, choice.protocol, choice.predicted_us)]
    pairs += [(one.algorithm, one.protocol, one.time_us) for one in choice.alternatives]
    candidates = []
    for algorithm, protocol, time_us in pairs:
        cost = cost_model.cost(communicator, collective, algorithm, protocol) if is_nccl else None
        name = f"{ALGORITHM_WORDS[algorithm]}/{protocol}"
        candidates.append(CandidateTime(
            name, time_us, cost and cost.latency_us, cost and cost.bandwidth_gb_per_s,
            simulated_us.get(name),
        ))  # fmt: skip
    if is_nccl:
        limit = limit_of(communicator, collective, choice, size_bytes)
    else:
        limit = "what RCCL's model is made of is not split here"
    return Explanation(
        library=imitation.library.name,
        where=where,
        collective=collective,
        size_bytes=size_bytes,
        choice=choice,
        candidates=tuple(candidates),
        limit=limit,
        log=tuple(log_lines(imitation, collective, size_bytes, choice, is_nccl)),
        notes=imitation.facts.notes,
    )


def limit_of(communicator: Communicator, collective: str, choice: Choice, size_bytes: int) -> str:
    """The components of the time that NCCL predicts for its choice, as a sentence."""
    cost = cost_model.cost(communicator, collective, choice.algorithm, choice.protocol)
    if cost is None:
        return "NCCL's model has no time for it"
    time_us = cost_model.time_us(
        communicator, collective, choice.algorithm, choice.protocol, size_bytes
    )
    assert time_us is not None
    bytes_us = size_bytes / (1000 * cost.bandwidth_gb_per_s)
    latency_us = min(cost.latency_us, time_us)
    rest_us = time_us - latency_us
    if latency_us >= rest_us:
        return (
            f"latency: {latency_us:.1f} of {time_us:.1f} us are the launch and the steps one after "
            f"the other ({_steps_of(communicator, collective, choice)}), whatever the size"
        )
    rate = cost.bandwidth_gb_per_s * bytes_us / rest_us
    return (
        f"bandwidth: {rest_us:.1f} of {time_us:.1f} us are bytes at {rate:.1f} GB/s; "
        f"{_bound_of(communicator, choice)}"
    )


def _steps_of(communicator: Communicator, collective: str, choice: Choice) -> str:
    nodes, ranks = communicator.nodes, communicator.ranks
    depth = math.floor(math.log2(nodes))
    match choice.algorithm:
        case "ring" if collective not in ("broadcast", "reduce"):
            steps = cost_model.steps(collective, ranks)
            between = (2 if collective == "all_reduce" else 1) * (nodes - 1)
            return f"{steps - between} inside a node, {between} between nodes"
        case "tree":
            return f"{2 * (ranks // nodes - 1)} inside a node, {2 * depth} between nodes"
        case "nvls" | "nvls_tree":
            return f"through the switch, {2 * depth} between nodes"
        case _:
            return "those of its pattern"


def _bound_of(communicator: Communicator, choice: Choice) -> str:
    """The bound of the model that applies, as text."""
    graph = communicator.graph(choice.algorithm)
    if graph is None:
        return "the bound is not known"
    several = communicator.nodes > 2
    per_channel = graph.inter_gb_per_s if several else graph.intra_gb_per_s
    line = f"{graph.channel_count} paths of {per_channel:g} GB/s"
    where = "through adapters" if communicator.nodes > 1 else "over NVLink or PCIe in the node"
    if choice.algorithm in ("nvls", "nvls_tree"):
        return (
            f"the switch reduces for {graph.channel_count} GPUs, each with "
            f"{graph.intra_gb_per_s:g} GB/s of its links"
        )
    if choice.protocol == "LL":
        return "half of each line of LL is flags, and what looks at them has a bound"
    if choice.protocol == "LL128":
        return f"{line} {where}, less the flags of LL128 and the bound of a thread block"
    return f"{line} {where}"


def log_lines(
    imitation: Imitation, collective: str, size_bytes: int, choice: Choice, is_nccl: bool
) -> Iterator[str]:
    """The facts in the lines that NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING print."""
    communicator = imitation.facts.communicator
    if is_nccl:
        for name in ("ring", "tree", "nvls"):
            graph = communicator.graphs.get(name)
            if graph is not None:
                yield from _graph_lines(graph)
    rings = imitation.rings(min(communicator.channels, _RINGS_SHOWN))
    for channel, ring in enumerate(rings):
        shown = " ".join(map(str, ring[:_RANKS_SHOWN]))
        more = " ..." if len(ring) > _RANKS_SHOWN else ""
        yield f"Channel {channel:02d}/{communicator.channels:02d} : {shown}{more}"
    if len(rings) < communicator.channels:
        yield f"(and {communicator.channels - len(rings)} more channels)"
    thresholds = [BYTES_PER_THREAD[protocol] for protocol in PROTOCOLS]
    of_ring = [thresholds[0] * communicator.ranks, *thresholds[1:]]
    if is_nccl:
        yield (f"threadThresholds {_slashed(thresholds)} | {_slashed(of_ring)} | 512 | 512")
        yield (f"{communicator.channels} coll channels, {communicator.nvls_channels} nvls channels")
        yield from _tuning_lines(communicator)
    word = COLLECTIVE_WORDS.get(collective, collective)
    yield (
        f"{word}: {size_bytes} Bytes -> Algo {ALGORITHM_WORDS[choice.algorithm].upper()} proto "
        f"{choice.protocol.upper()} channel{{Lo..Hi}}={{0..{choice.channels - 1}}}"
    )


def _graph_lines(graph: Graph) -> Iterator[str]:
    yield (
        f"Pattern {int(graph.pattern)}, crossNic {graph.cross_nic}, nChannels "
        f"{graph.channel_count}, bw {graph.intra_gb_per_s:g}/{graph.inter_gb_per_s:g}, type "
        f"{graph.intra_path.name}/{graph.inter_path.name}, sameChannels {int(graph.same_channels)}"
    )
    for number, channel in enumerate(graph.channels[:_RINGS_SHOWN]):
        words = [f"GPU/{gpu}" for gpu in channel.gpus[:_RANKS_SHOWN]]
        if channel.nets:
            words = [f"NET/{channel.nets[0]}", *words, f"NET/{channel.nets[-1]}"]
        yield f"  {number:2d} : {' '.join(words)}"
    if graph.channel_count > _RINGS_SHOWN:
        yield f"  (and {graph.channel_count - _RINGS_SHOWN} more)"


def _tuning_lines(communicator: Communicator) -> Iterator[str]:
    """Latency in us and bandwidth in GB/s; 0/0 for candidates that NCCL excludes."""
    yield "latency/bandwidth of each algorithm under LL, LL128, Simple:"
    for collective in COLLECTIVES:
        cells = []
        for algorithm in ALGORITHMS:
            costs = []
            for protocol in PROTOCOLS:
                cost = cost_model.cost(communicator, collective, algorithm, protocol)
                latency, bandwidth = cost or (0.0, 0.0)
                costs.append(f"{latency:.1f}/{bandwidth:.1f}")
            if any(text != "0.0/0.0" for text in costs):
                cells.append(f"{ALGORITHM_WORDS[algorithm]} {' '.join(costs)}")
        yield f"{COLLECTIVE_WORDS[collective]:>13} | {' | '.join(cells)}"


def _slashed(values: list[int]) -> str:
    return "/".join(map(str, values))
