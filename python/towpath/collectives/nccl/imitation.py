# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The choice of NCCL or RCCL as a schedule of Towpath's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from towpath import _core
from towpath.collectives.nccl import connect, rccl
from towpath.collectives.nccl.choice import Candidate, Choice, choose, chunk_bytes
from towpath.collectives.nccl.communicator import ALGORITHM_WORDS
from towpath.collectives.nccl.environment import Environment
from towpath.collectives.nccl.facts import Assumptions, Facts, facts_of, host_facts, is_of_amd
from towpath.collectives.nccl.graph_file import check_gpus, load_graphs
from towpath.collectives.nccl.tuner_file import TunerLine, load_tuner
from towpath.collectives.nccl_itself.build import built_releases, find_build
from towpath.collectives.nccl_itself.decide import REPLICATED_MAX, Question, decide
from towpath.collectives.nccl_itself.host import NcclHost, host_of
from towpath.collectives.nccl_itself.source import RCCL_PREFIX, release_name
from towpath.collectives.nccl_itself.table import (
    TableChoice,
    TableEntry,
    entry_of,
    find_entry,
    operations,
)
from towpath.errors import ConfigError, quoted
from towpath.schedules.schedule_source import ScheduleSource
from towpath.specs.machine_spec import MachineSpec

LibraryName = Literal["nccl", "rccl"]
LIBRARIES: tuple[LibraryName, ...] = ("nccl", "rccl")
# Where the schedule here has another name than the library's algorithm.
_OWN_NAMES = {("all_pairs", "all_reduce"): "two_shot"}
# More pieces than this cost events and change no time (16 MiB to 1 GiB on two H100 hosts).
_CHUNKS_MAX = 64
# A thread block sends the first lines of a chunk on while the last are still on their way. The
# simulator hands on whole chunks, so trees cut theirs into parts of this size.
_LINES_BYTES = {"LL": 2 << 10, "LL128": 4 << 10}


@dataclass(frozen=True)
class Library:
    """A library to imitate, with the settings of its user.

    Attributes:
        name: "nccl" or "rccl".
        environment: variables such as NCCL_ALGO.
        assumptions: properties that a machine file does not contain.
        graph_file: a graph file that replaces the search (NCCL_GRAPH_FILE).
        tuner: lines of the tuner plugin's configuration.
        release: a release whose own choices are taken, such as "2.27.5". None: the newest one.
    """

    name: LibraryName = "nccl"
    environment: Environment = field(default_factory=Environment)
    assumptions: Assumptions = field(default_factory=Assumptions)
    graph_file: str | None = None
    tuner: tuple[TunerLine, ...] = ()
    release: str | None = None

    @property
    def has_files(self) -> bool:
        """True if channels or choices come from a user's files."""
        return self.graph_file is not None or bool(self.tuner)

    @classmethod
    def of(
        cls,
        name: str = "nccl",
        *,
        variables: Mapping[str, str] | None = None,
        generation: str | None = None,
        cpu: str | None = None,
        graph_file: str | None = None,
        tuner_file: str | None = None,
        release: str | None = None,
    ) -> Library:
        """A library by its name, with its settings.

        Args:
            name: "nccl" or "rccl".
            variables: NCCL_ALGO, NCCL_PROTO, NCCL_MIN_NCHANNELS and others.
            generation: generation of the GPUs: volta, ampere, hopper, blackwell; None: from the
                machine.
            cpu: vendor of the CPUs: intel, amd, arm, other; None: Intel.
            graph_file: the file that NCCL_GRAPH_FILE would name.
            tuner_file: a configuration of NVIDIA's example tuner plugin.
            release: a release with a table or a build, whose own choices are taken: "2.27.5".

        Raises:
            ConfigError: a word, variable or file is wrong.
        """
        known = next((one for one in LIBRARIES if one == name.lower()), None)
        if known is None:
            raise ConfigError(f"there is no library {quoted(name)}; choose nccl or rccl")
        if release is not None and (graph_file is not None or tuner_file is not None):
            raise ConfigError("a release makes its own choices; give no graph file or tuner file")
        return cls(
            known,
            Environment.of(variables),
            Assumptions.of(generation, cpu),
            graph_file,
            () if tuner_file is None else load_tuner(tuner_file),
            release,
        )


class Imitation:
    """A library on a machine."""

    def __init__(
        self, spec: MachineSpec, library: Library, ranks_per_host: int | None = None
    ) -> None:
        """Finds the channels.

        Args:
            spec: a machine of the size of the communicator.
            library: the library to imitate.
            ranks_per_host: number of GPUs of each host with ranks; None: all.

        Raises:
            ConfigError: the library does not run on the machine, or its behavior there is unknown.
        """
        self.library = library
        self._spec = spec
        self._ranks_per_host = ranks_per_host
        self._table, notes = _table_of(spec, library, ranks_per_host)
        if library.release is not None and self._table is None:
            raise ConfigError(
                f"{release_name(library.release)} has no choices of its own on machine "
                f"{quoted(spec.name)}"
            )
        self._notes = notes if self._table is not None else (*notes, *self.facts.notes)

    @cached_property
    def facts(self) -> Facts:
        """The machine as the library sees it, after the search for channels.

        Raises:
            ConfigError: the library does not run on the machine, or its behavior there is unknown.
        """
        spec, library, graphs = self._spec, self.library, None
        if library.name == "rccl":
            return rccl.facts_of(spec, self._ranks_per_host, library.environment)
        if library.graph_file is not None:
            graphs = load_graphs(library.graph_file)
            gpus = self._ranks_per_host or spec.gpus_per_host
            check_gpus(graphs, gpus, library.graph_file)
        return facts_of(
            spec, self._ranks_per_host, library.environment, library.assumptions, graphs
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """The source of the choices and the assumptions about the machine, a sentence each."""
        return (self.source_note, *self._notes)

    @property
    def _nodes(self) -> int:
        return self._spec.host_count

    @property
    def _ranks(self) -> int:
        return self._nodes * (self._ranks_per_host or self._spec.gpus_per_host)

    @property
    def release(self) -> str | None:
        """The release whose own choices are taken. None: they are imitated."""
        return None if self._table is None else self._table.release

    @property
    def channels(self) -> int:
        """Number of channels of its rings."""
        return self.facts.communicator.channels if self._table is None else self._table.channels

    def launch(self, collective: str, size_bytes: int) -> Choice:
        """The choice without other candidates, which a table gives without a search.

        Raises:
            ConfigError: the library has no choice for the collective, or no candidate is left.
        """
        found = self._found(collective, size_bytes)
        if found is None:
            return self.choose(collective, size_bytes)
        chunk = chunk_bytes(
            self._ranks, self._nodes, found.algorithm, found.protocol,
            -(-size_bytes // found.channels),
        )  # fmt: skip
        choice = Choice(
            found.algorithm, found.protocol, found.channels, found.channels, found.threads, chunk,
            math.nan, (), (),
        )  # fmt: skip
        # Without a schedule, the caller needs the library's own time.
        has_schedule = self.has_schedule(collective, choice)
        return choice if has_schedule else self.choose(collective, size_bytes)

    def choose(self, collective: str, size_bytes: int) -> Choice:
        """Chooses like the library.

        Raises:
            ConfigError: the library has no choice for the collective, or no candidate is left.
        """
        chooser = rccl.choose if self.library.name == "rccl" else choose
        imitated = chooser(
            self.facts.communicator, collective, size_bytes, self.library.environment,
            self.library.tuner,
        )  # fmt: skip
        found = self._found(collective, size_bytes)
        return imitated if found is None else self._decided(collective, size_bytes, imitated, found)

    def _found(self, collective: str, size_bytes: int) -> TableChoice | None:
        """The library's own choice. None if there is none, or MSCCL replaces it."""
        if self._table is None or (
            self.library.name == "rccl"
            and rccl.is_replaced(
                self._spec,
                self._ranks // self._nodes,
                collective,
                size_bytes,
                self.library.environment,
            )  # fmt: skip
        ):
            return None
        return self._table.choice(collective, size_bytes)

    def _decided(
        self, collective: str, size_bytes: int, imitated: Choice, found: TableChoice
    ) -> Choice:
        """NCCL's own choice, with the chunks and candidates of the imitation."""
        choice = imitated
        if (imitated.algorithm, imitated.protocol) != (found.algorithm, found.protocol):
            candidate = Candidate(found.algorithm, found.protocol, imitated.predicted_us)
            try:
                forced = self.forced(collective, size_bytes, candidate)
            except ConfigError:
                forced = replace(imitated, algorithm=found.algorithm, protocol=found.protocol)
            others = [Candidate(imitated.algorithm, imitated.protocol, imitated.predicted_us)]
            others += [
                one
                for one in imitated.alternatives
                if (one.algorithm, one.protocol) != (found.algorithm, found.protocol)
            ]
            choice = replace(forced, alternatives=tuple(others))
        return replace(
            choice, channels=found.channels, threads=found.threads,
            channels_max=max(found.channels, choice.channels_max),
        )  # fmt: skip

    @property
    def source_note(self) -> str:
        """The source of the choices, a sentence."""
        if self._table is None:
            name = self.library.name.upper()
            return (
                f"no table of {name} has this machine with these settings; its choice is imitated"
            )
        when = self._table.date or "built on this computer"
        return f"{release_name(self._table.release)} itself made the choices ({when})"

    def forced(self, collective: str, size_bytes: int, candidate: Candidate) -> Choice:
        """The choice if the user requested a candidate with NCCL_ALGO and NCCL_PROTO.

        Raises:
            ConfigError: the candidate cannot run.
        """
        word = ALGORITHM_WORDS[candidate.algorithm]
        variables = dict(self.library.environment.variables)
        variables |= {"NCCL_ALGO": word, "NCCL_PROTO": candidate.protocol}
        chooser = rccl.choose if self.library.name == "rccl" else choose
        return chooser(self.facts.communicator, collective, size_bytes, Environment.of(variables))

    def candidates(self, collective: str, sizes_bytes: list[int]) -> list[ScheduleSource]:
        """Schedules of all algorithms and protocols that the library considers, with its own number
        of channels and fewer, divided as the library divides arrays of these sizes.

        Args:
            collective: such as "all_reduce".
            sizes_bytes: sizes of the whole array.

        Raises:
            ConfigError: Towpath has no schedule for any of them.
        """
        found: dict[ScheduleSource, None] = {}
        for size_bytes in sizes_bytes:
            choice = self.choose(collective, size_bytes)
            named = [Candidate(choice.algorithm, choice.protocol, 0.0), *choice.alternatives]
            for candidate in named:
                forced = self.forced(collective, size_bytes, candidate)
                if not self.has_schedule(collective, forced):
                    continue
                for channels in _powers_to(self.facts.communicator.channels):
                    fewer = replace(forced, channels=channels)
                    found[self.source(collective, size_bytes, fewer)] = None
        if not found:
            raise ConfigError(
                f"Towpath has no schedule for any candidate of {self.library.name.upper()} for "
                f"{collective}"
            )
        return list(found)

    def tuner_line(self, collective: str, size_bytes: int) -> TunerLine:
        """The library's choice at a size, as a line for its tuner plugin."""
        choice = self.choose(collective, size_bytes)
        communicator = self.facts.communicator
        return TunerLine(
            collective, size_bytes, size_bytes, choice.algorithm, choice.protocol,
            choice.channels_max, communicator.nodes, communicator.ranks,
        )  # fmt: skip

    def has_schedule(self, collective: str, choice: Choice) -> bool:
        """True if Towpath has a schedule for the algorithm of a choice."""
        return _own_name(collective, choice) in known_algorithms(collective)

    def algorithm(self, collective: str, choice: Choice) -> str:
        """Towpath's name for the algorithm of a choice."""
        return f"{_own_name(collective, choice)}_{collective}"

    def sentence(self, choice: Choice) -> str:
        """A choice as text."""
        channels = f"{choice.channels} channel{'' if choice.channels == 1 else 's'}"
        return f"what {self.library.name.upper()} would run: {choice.name}, {channels}"

    def source(
        self, collective: str, size_bytes: int, choice: Choice, root: int = 0
    ) -> ScheduleSource:
        """The schedule of a choice.

        Args:
            collective: such as "all_reduce".
            size_bytes: size of the whole array.
            choice: from `choose`.
            root: root rank of broadcast and reduce.

        Raises:
            ConfigError: Towpath has no schedule for the algorithm.
        """
        if not self.has_schedule(collective, choice):
            raise ConfigError(
                f"{self.library.name.upper()} runs {choice.name} for {collective} of {size_bytes} "
                f"bytes, for which Towpath has no schedule; {_way_out(choice)} selects its "
                "next choice"
            )
        rings = self.rings(choice.channels) if choice.algorithm == "ring" else []
        return ScheduleSource(
            collective=collective,
            algorithm=self.algorithm(collective, choice),
            ranks=self._ranks,
            channels=choice.channels,
            protocol=choice.protocol,
            root=root,
            hosts=self._nodes,
            chunks_per_channel=self._chunks(collective, size_bytes, choice),
            rings=tuple(map(tuple, rings)),
            chain_ranks=self._ranks // self._nodes,
        )

    def rings(self, channels: int) -> list[list[int]]:
        """The order of ranks in the rings of the first channels."""
        gpus = self._ranks // self._nodes
        own = [] if self._table is None else self._table.rings(self._nodes, gpus, channels)
        return own or connect.rings(self.facts.communicator.graphs["ring"], self._nodes, channels)

    def _chunks(self, collective: str, size_bytes: int, choice: Choice) -> int:
        """The chunks into which a channel divides its share."""
        if choice.algorithm == "ring" and collective not in ("broadcast", "reduce"):
            return 1  # its chunks are per rank
        is_in_switch = choice.algorithm.startswith("nvls")
        heads = self._ranks // self._nodes if is_in_switch else 1
        each_bytes = _LINES_BYTES.get(choice.protocol, choice.chunk_bytes)
        return max(1, min(_CHUNKS_MAX, size_bytes // (choice.channels * heads * each_bytes)))


def _table_of(
    spec: MachineSpec, library: Library, ranks_per_host: int | None
) -> tuple[TableEntry | None, tuple[str, ...]]:
    """The library's own choices, and the assumptions about the machine.

    They are from a table if the user has set nothing, else from the user's build. Without choices,
    the notes have the reason why a build makes none.
    """
    is_rccl = library.name == "rccl"
    of_release = library.release is not None and library.release.startswith(RCCL_PREFIX)
    if library.has_files or is_rccl != is_of_amd(spec):
        return None, ()
    if library.release is not None and of_release != is_rccl:
        return None, ()
    gpus = ranks_per_host or spec.gpus_per_host
    if gpus * spec.host_count < 2 or len(spec.host_kinds()) > 1:
        return None, ()
    facts = host_facts(spec, gpus, library.assumptions)
    host = host_of(facts.topology, facts.generation, facts.cpu)
    variables = dict(library.environment.variables)
    found = None if variables else find_entry(host, spec.host_count, library.release)
    if found is not None:
        return found, facts.notes
    try:
        found = _asked(host, spec.host_count, variables, library.release)
    except ConfigError as error:
        if library.release is not None:
            raise
        return None, (str(error),)
    return found, () if found is None else facts.notes


def _asked(
    host: NcclHost, nodes: int, variables: dict[str, str], release: str | None
) -> TableEntry | None:
    """The decisions of a release that the user has built. None without a build.

    Raises:
        ConfigError: the release does not run there.
    """
    ranks = host.gpus * nodes
    if ranks > REPLICATED_MAX:
        return None
    releases = [release] if release is not None else built_releases(host.is_of_amd)
    if not releases:
        return None
    question = Question(host, nodes, operations(ranks), variables, is_replicated=True)
    return entry_of(decide(find_build(releases[-1]), question), nodes)


def _powers_to(most: int) -> list[int]:
    """1, 2, 4 and so on, and the maximum itself."""
    return sorted({*(1 << power for power in range(most.bit_length())), most})


def _own_name(collective: str, choice: Choice) -> str:
    return _OWN_NAMES.get((choice.algorithm, collective), choice.algorithm)


def known_algorithms(collective: str) -> set[str]:
    """NCCL's names of the algorithms for which Towpath has a schedule."""
    names = _core.algorithm_names(_core.collective_from(collective))
    return {name.removesuffix(f"_{collective}") for name in names}


def _way_out(choice: Choice) -> str:
    if choice.algorithm in ("nvls", "nvls_tree"):
        return "NCCL_NVLS_ENABLE=0"
    return f"NCCL_ALGO=^{choice.name.split('/', maxsplit=1)[0]}"
