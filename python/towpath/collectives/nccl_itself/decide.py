# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Asks a built release of NCCL or RCCL for its decisions, in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from towpath.collectives.nccl.communicator import ALGORITHMS, PROTOCOLS
from towpath.collectives.nccl_itself.build import NcclBuild
from towpath.collectives.nccl_itself.host import NcclHost
from towpath.collectives.nccl_itself.source import release_name
from towpath.errors import ConfigError
from towpath.processes import run_ending_with_this_one

# The order of NCCL's functions and tables (src/include/nccl_common.h).
COLLECTIVES = ("broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce")
GPUS_MAX = 32  # of a host, ncclNvmlMaxDevices in src/include/nvmlwrap.h
RANKS_MAX = 32  # each has a communicator with its threads and memory
REPLICATED_MAX = 16_384
_DEADLINE_S = 120
_ALARM_STATUS = 128 + signal.SIGALRM  # of a shell whose command its own deadline ended
_MEMORY_MAX_MIB = 6144
# The lines of rank 0: the start of a call, and its choices. The last choice counts.
_CALL_OR_CHOICE = re.compile(
    r"\[0\] .*NCCL (?:INFO \w+: (opCount) |TRACE [0-9]+ Bytes -> Algo ([0-9]+) proto ([0-9]+) "
    r"time ([0-9.]+))"
)
_WARNING = re.compile(r"NCCL WARN (.*)")
_SUBSYSTEMS = "INIT,GRAPH,TUNING,ENV,COLL,NVLS,NET"


@dataclass(frozen=True)
class Decision:
    """The launch of NCCL for one array.

    Attributes:
        collective: such as "all_reduce".
        size_bytes: of the whole array.
        algorithm: as in NCCL's tuner files: "ring".
        protocol: "LL", "LL128" or "Simple".
        channels: thread blocks of the launch.
        threads: of each.
        estimate_us: NCCL's own time.
    """

    collective: str
    size_bytes: int
    algorithm: str
    protocol: str
    channels: int
    threads: int
    estimate_us: float

    @property
    def name(self) -> str:
        """Such as "ring/LL"."""
        return f"{self.algorithm}/{self.protocol}"


@dataclass(frozen=True)
class Cost:
    """NCCL's latency and bandwidth of an algorithm under a protocol."""

    latency_us: float
    bandwidth_gb_per_s: float


@dataclass(frozen=True)
class Decisions:
    """The decisions of a release on a machine.

    Attributes:
        release: such as "2.28.9".
        ranks: of the communicator.
        ranks_run: the first ranks, which have trees.
        channels: of rings and trees.
        nvls_channels: of the switch. 0 without it.
        rings: the ranks of each channel's ring, from rank 0.
        trees: for each channel, the parent of each rank. -1 for the root.
        costs: by collective, algorithm and protocol.
        decisions: in the order of the question.
        log: NCCL's INFO log of the first node.
        warnings: of the log, each once.
    """

    release: str
    ranks: int
    ranks_run: int
    channels: int
    nvls_channels: int
    rings: tuple[tuple[int, ...], ...]
    trees: tuple[tuple[int, ...], ...]
    costs: Mapping[tuple[str, str, str], Cost]
    decisions: tuple[Decision, ...]
    log: str = field(repr=False, default="")
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """A machine and the calls whose launches are asked for.

    Attributes:
        host: each node.
        nodes: how many there are.
        operations: collectives with the size of the whole array in bytes.
        variables: of NCCL, added to the environment.
        gpus: ranks on each node. None: all GPUs.
        is_replicated: only the ranks of the first node run. The entries of all other nodes are
            made from their entries, and no transport is connected.
    """

    host: NcclHost
    nodes: int
    operations: Sequence[tuple[str, int]]
    variables: Mapping[str, str] = field(default_factory=dict)
    gpus: int | None = None
    is_replicated: bool = False

    @property
    def ranks(self) -> int:
        """Number of ranks on all nodes."""
        return self.nodes * (self.gpus or self.host.gpus)


def decide(build: NcclBuild, question: Question) -> Decisions:
    """Asks a release.

    Raises:
        ConfigError: NCCL does not run there, takes too long or too much memory.
    """
    gpus = question.gpus or question.host.gpus
    ranks = gpus * question.nodes
    most = REPLICATED_MAX if question.is_replicated else RANKS_MAX
    if not 2 <= ranks <= most:
        raise ConfigError(f"NCCL is asked for {ranks} ranks; it must be 2 to {most}")
    if question.host.gpus > GPUS_MAX:
        raise ConfigError(
            f"NCCL takes at most {GPUS_MAX} GPUs of a host, and this one has {question.host.gpus}; "
            "an NVLink domain that spans hosts is not described to it"
        )
    with tempfile.TemporaryDirectory(prefix="towpath-nccl-") as scratch:
        folder = Path(scratch)
        text = _question_text(question, gpus, folder / "log")
        (folder / "question").write_text(text, encoding="utf-8")
        (folder / "topology.xml").write_text(question.host.topology, encoding="utf-8")
        (folder / "gpus").write_text(question.host.description, encoding="utf-8")
        variables = _variables(question, folder)
        program = build.replicated if question.is_replicated else build.program
        command = ["env", *variables, str(program), str(folder / "question")]
        done = run_ending_with_this_one(command, timeout_s=_DEADLINE_S + 5)
        log_file = folder / "log.0"
        log = log_file.read_text(encoding="utf-8", errors="replace") if log_file.exists() else ""
    if done is None or done.returncode != 0 or not done.stdout.endswith("end\n"):
        errors = None if done is None or done.returncode == _ALARM_STATUS else done.stderr
        raise ConfigError(_problem(build, errors, log))
    ranks_run = gpus if question.is_replicated else ranks
    return _read(build.release, ranks, ranks_run, done.stdout, log)


def _question_text(question: Question, gpus: int, log: Path) -> str:
    memory_mib = int(os.environ.get("TOWPATH_NCCL_MEMORY_MIB", str(_MEMORY_MAX_MIB)))
    lines = [
        f"replicated {int(question.is_replicated)}",
        f"nodes {question.nodes}", f"gpus_per_node {gpus}", f"deadline_s {_DEADLINE_S}",
        f"memory_max_bytes {memory_mib << 20}", f"log_file {log}",
    ]  # fmt: skip
    lines += [f"operation {name} {size_bytes}" for name, size_bytes in question.operations]
    return "\n".join([*lines, ""])


def _variables(question: Question, folder: Path) -> list[str]:
    """Assignments: NCCL reads its own variables, the topology file, and where to log."""
    values = dict(question.variables)
    values.setdefault("NCCL_TOPO_FILE", str(folder / "topology.xml"))
    values.setdefault("NCCL_SOCKET_IFNAME", "lo")
    values |= {
        "TOWPATH_VIRTUAL_GPU_FILE": str(folder / "gpus"),
        "NCCL_DEBUG": "TRACE",
        "NCCL_DEBUG_SUBSYS": _SUBSYSTEMS,
        "NCCL_RAS_ENABLE": "0",
        "RCCL_MSCCL_ENABLE": "0",  # its schedules are files, which no build has
    }
    return [f"{name}={value}" for name, value in values.items()]


def _problem(build: NcclBuild, errors: str | None, log: str) -> str:
    subject = f"{release_name(build.release)} does not decide"
    if errors is None:
        return f"{subject}: it does not end in {_DEADLINE_S} s"
    own = [line[9:] for line in errors.splitlines() if line.startswith("towpath: ")]
    warnings = _WARNING.findall(log)
    why = own[0] if own else "it ended early"
    first = f"; its first warning is: {warnings[0].strip()}" if warnings else ""
    return f"{subject}: {why}{first}"


class _Answer:
    """The lines of the program, sorted by their subjects."""

    def __init__(self, ranks: int, text: str) -> None:
        self.rings: dict[int, tuple[int, ...]] = {}
        self.trees: dict[int, list[int]] = {}
        self.costs: dict[tuple[str, str, str], Cost] = {}
        self.channels: tuple[int, int] = (0, 0)
        self.operations: list[tuple[str, int]] = []
        self.launches: list[tuple[int, int]] = []
        self._ranks = ranks
        for line in text.splitlines():
            keyword, *words = line.split()
            self._add(keyword, words)

    def _add(self, keyword: str, words: list[str]) -> None:
        match keyword:
            case "ring":
                self.rings[int(words[0])] = tuple(map(int, words[1:]))
            case "tree":
                tree = self.trees.setdefault(int(words[0]), [-1] * self._ranks)
                tree[int(words[1])] = int(words[2])
            case "channels":
                self.channels = int(words[0]), int(words[1])
            case "cost":
                self._add_cost(words)
            case "operation":
                self.operations.append((words[0], int(words[1])))
                self.launches.append((0, 0))
            case "launch" if self.launches and self.launches[-1] == (0, 0):
                self.launches[-1] = (int(words[0]), int(words[1]))

    def _add_cost(self, words: list[str]) -> None:
        function, algorithm, protocol = map(int, words[:3])
        if function < len(COLLECTIVES) and algorithm < len(ALGORITHMS):
            key = (COLLECTIVES[function], ALGORITHMS[algorithm], PROTOCOLS[protocol])
            self.costs[key] = Cost(float(words[3]), float(words[4]))


def _choices(log: str) -> list[tuple[int, int, float] | None]:
    """Algorithm, protocol and time of each call of rank 0, by NCCL's numbers."""
    found: list[tuple[int, int, float] | None] = []
    for is_call, algorithm, protocol, time_us in _CALL_OR_CHOICE.findall(log):
        if is_call:
            found.append(None)
        elif found:
            found[-1] = int(algorithm), int(protocol), float(time_us)
    return found


def _read(release: str, ranks: int, ranks_run: int, text: str, log: str) -> Decisions:
    answer = _Answer(ranks, text)
    choices = _choices(log)
    if len(choices) != len(answer.operations) or None in choices:
        raise ConfigError(
            f"{release_name(release)} logged {len(choices)} calls for {len(answer.operations)} "
            "calls, or no choice for one of them; this release writes another log than known here"
        )
    decisions = [
        Decision(name, size_bytes, ALGORITHMS[choice[0]], PROTOCOLS[choice[1]], blocks, threads,
                 choice[2])
        for (name, size_bytes), (blocks, threads), choice
        in zip(answer.operations, answer.launches, choices, strict=True)
        if choice is not None
    ]  # fmt: skip
    return Decisions(
        release=release,
        ranks=ranks,
        ranks_run=ranks_run,
        channels=answer.channels[0],
        nvls_channels=answer.channels[1],
        rings=tuple(answer.rings[channel] for channel in sorted(answer.rings)),
        trees=tuple(tuple(answer.trees[channel]) for channel in sorted(answer.trees)),
        costs=answer.costs,
        decisions=tuple(decisions),
        log="\n".join(line for line in log.splitlines() if "NCCL TRACE" not in line) + "\n",
        warnings=tuple(dict.fromkeys(text.strip() for text in _WARNING.findall(log))),
    )
