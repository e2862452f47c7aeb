# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A request: the collective, its sizes and its options. The options of `towpath run` are its
fields.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from towpath.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from towpath.api.schedule import Schedule
    from towpath.collectives.link_faults import LinkFault
    from towpath.collectives.nccl.imitation import Library
    from towpath.specs.sizes import Sizes

SYNTHESIS = "synthesis"
SIMULATED, LIVE = "simulated", "live"
_OWN = ("algorithm", "protocol", "channels")  # options of Towpath's own schedules


def _option(default: Any, help_text: str, *flags: str, only: str = "", **typer_options: Any) -> Any:
    """A field with its command-line option.

    Args:
        default: value if the option is not given.
        help_text: one line of help; the name of the option, a metavar and bounds are in
            `typer_options`.
        flags: the spellings of the option; the default is the field's name.
        only: "simulated" or "live" if it applies to one kind of run.
        typer_options: further arguments of `typer.Option`; `type`: the type of a value, by default
            the type of `default`; "" if the command line does not have the option.
    """
    metadata = {"help": help_text, "flags": flags, "only": only, **typer_options}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Request:
    """A collective or a schedule to run, with its options: the options of `run` and `run_live`.

    Attributes:
        subject: the name of a collective, or your own schedule.
        size_bytes: the whole array: bytes (64 << 20), a text ("64M"), several of them, or a range
            ("8:1G:4": from, to, factor).
        dtype: the element type, "int8" to "float64", "float16", "bfloat16".
        op: the reduction: "sum", "prod", "min", "max", "avg".
        root: the root rank of broadcast, reduce, gather and scatter.
        algorithm: "auto" selects the fastest candidate for each size. In live runs it uses no
            schedule: each rank reads the data of its peers. A name ("ring", "tree") selects that
            algorithm. "synthesis" writes a schedule for a machine with GPUs. None selects the
            collective's first algorithm. See `algorithms`.
        protocol: "auto", "Simple", "LL" or "LL128".
        channels: parallel channels; None: the number that the machine needs.
        data: simulated: True to carry and check data; without data, only time is simulated.
        fold: simulated without data: True to simulate ranks with identical behavior once, which
            does not change a result.
        threads: simulated: threads of one simulation, which do not change a result; None: one per
            processor, or one if other processes simulate at the same time.
        network: simulated: the model of networks on chips: "flits", or "packets", which is several
            times as fast with a difference of a few percent.
        link_faults: simulated: links between chips that fail: "0:9,every=100us,training=5us".
        launch: simulated on GPUs: "processes", one per GPU, "threads" of one process, "one-process"
            whose thread launches for all GPUs of a host, or "graph", a node of a CUDA graph.
        library: simulated: "nccl" or "rccl" runs the choice of that library on GPUs, and a
            `Library` also has its variables and files; None: Towpath chooses.
        iterations: live: number of timed calls per size.
        warmup: live: number of calls before the timed ones.
        timeout_s: live: seconds to wait for a silent peer.
        pin: live: True to give each rank its own core, if there are enough cores.
        transport: live: "shm", or "ucx" if it is built.
    """

    subject: str | Schedule = "all_reduce"
    size_bytes: Sizes = "8:64M"
    dtype: str = _option("float32", "int8 ... float64, float16, bfloat16", "-d", metavar="NAME")
    op: str = _option("sum", "sum, prod, min, max, avg", "-o", metavar="NAME")
    root: int = _option(
        0, "of broadcast, reduce, gather, scatter", "-r", metavar="RANK", min=0, advanced=True
    )
    algorithm: str | None = _option(
        "auto", "ring, tree, ... (`towpath algorithms`), synthesis; default: the fastest",
        metavar="NAME",
    )  # fmt: skip
    protocol: str = _option("auto", "Simple, LL, LL128; default: the fastest", metavar="NAME")
    channels: int | None = _option(
        None, "parallel channels; default: as the machine needs", metavar="N", type=int
    )
    data: bool = _option(True, "carry and check data; default", only=SIMULATED, advanced=True)
    fold: bool = _option(
        True, "without data, simulate equal ranks once; default", only=SIMULATED, advanced=True
    )
    threads: int | None = _option(
        None, "threads of a simulation; default: one per core", only=SIMULATED, metavar="N",
        type=int, advanced=True,
    )  # fmt: skip
    network: str = _option(
        "flits", "networks on chips by flits (default) or by packets, faster", only=SIMULATED,
        metavar="MODEL", advanced=True,
    )  # fmt: skip
    link_faults: tuple[LinkFault, ...] = _option(
        (), "a failing link between chips: loss=0.01, at=20us, every=100us, dead=5us, training=5us",
        "--link-fault", only=SIMULATED, metavar="CHIP:CHANNEL,...", type=list[str], advanced=True,
    )  # fmt: skip
    launch: str = _option(
        "processes", "of GPUs: processes (one per GPU), threads, one-process, graph",
        only=SIMULATED, metavar="WAY", advanced=True,
    )  # fmt: skip
    library: Library | str | None = _option(None, "", only=SIMULATED)
    iterations: int = _option(
        20, "live: measured calls; default: 20", "--iterations", "-n", only=LIVE, metavar="N",
        min=1, max=1_000_000_000, advanced=True,
    )  # fmt: skip
    warmup: int = _option(
        5, "live: calls before; default: 5", "--warmup", "-w", only=LIVE, metavar="N", min=0,
        max=1_000_000_000, advanced=True,
    )  # fmt: skip
    timeout_s: float = _option(
        30.0, "live: seconds to wait for a silent peer; default: 30", "--timeout", only=LIVE,
        metavar="SECONDS", min=0.1, max=86_400.0, advanced=True,
    )  # fmt: skip
    pin: bool = _option(
        True, "live: a core for each rank if there are enough", only=LIVE, advanced=True
    )
    transport: str = _option(
        "shm", "live: shm or ucx; default: shm", only=LIVE, metavar="NAME", advanced=True
    )

    @property
    def collective(self) -> str:
        """The name of the collective."""
        return self.subject if isinstance(self.subject, str) else self.subject.collective

    @property
    def schedule(self) -> Schedule | None:
        """The user's own schedule; None if Towpath chooses one."""
        return None if isinstance(self.subject, str) else self.subject

    @property
    def sizes_bytes(self) -> tuple[int, ...]:
        """The sizes in bytes."""
        from towpath.specs.sizes import sizes_of

        return tuple(sizes_of(self.size_bytes))

    @property
    def is_auto(self) -> bool:
        """True if the schedule is chosen for each size."""
        if self.schedule is not None:
            return False
        is_searched = self.algorithm == SYNTHESIS or "auto" in (self.algorithm, self.protocol)
        return self.library is not None or is_searched

    def checked(self, kind: str) -> Request:
        """The same request with full names.

        Args:
            kind: "simulated" or "live".

        Returns:
            The request.

        Raises:
            ConfigError: an option is wrong, or has no effect on this kind of run.
        """
        from towpath.collectives.element_types import operation_named, type_named
        from towpath.schedules.words import check_channels

        other = LIVE if kind == SIMULATED else SIMULATED
        for name in self._given(lambda each: each.metadata.get("only") == other):
            raise ConfigError(f"{name} applies to {other} runs, and this run is {kind}", field=name)
        if self.threads is not None and self.threads < 1:
            raise ConfigError(f"threads is {self.threads}; it must be at least 1", field="threads")
        check_channels(self.channels)
        return replace(
            self, size_bytes=self.sizes_bytes, dtype=type_named(self.dtype),
            op=operation_named(self.op), link_faults=tuple(map(_link_fault, self.link_faults)),
            library=self._checked_library(),
        )._checked_subject()  # fmt: skip

    def _given(self, counts: Any) -> Iterable[str]:
        """The options that differ from their defaults, among those that apply."""
        return (
            each.name for each in fields(self)
            if counts(each) and getattr(self, each.name) not in (each.default, None)
        )  # fmt: skip

    def _checked_subject(self) -> Request:
        from towpath.schedules.words import (
            algorithm_named,
            check_operation,
            check_root,
            collective_named,
            protocol_named,
        )

        if self.schedule is not None:
            check_operation(self.op, self.schedule.collective)
            for option in self._given(lambda each: each.name in (*_OWN, "root")):
                raise ConfigError(
                    f"{option} applies to Towpath's own schedules; schedule "
                    f"'{self.schedule.name}' has its own",
                    field=option,
                )
            return replace(self, root=self.schedule.root, algorithm="auto")
        collective = collective_named(self.collective)
        check_root(self.root, collective)
        check_operation(self.op, collective)
        algorithm = self.algorithm
        if algorithm not in (None, "auto", SYNTHESIS):
            algorithm = algorithm_named(str(algorithm), collective)
        protocol = self.protocol if self.protocol == "auto" else protocol_named(self.protocol)
        return replace(self, subject=collective, algorithm=algorithm, protocol=protocol)

    def _checked_library(self) -> Library | None:
        """The library that chooses schedules.

        Raises:
            ConfigError: there is no such library, or another option also makes the choice.
        """
        if self.library is None:
            return None
        from towpath.collectives.nccl.imitation import Library

        if self.schedule is not None:
            raise ConfigError(
                f"library chooses a schedule, and schedule '{self.schedule.name}' is given; "
                "give one of them",
                field="library",
            )
        for option in self._given(lambda each: each.name in _OWN):
            raise ConfigError(
                f"{option} applies to Towpath's own choice; to restrict the choice of a "
                "library, set variables such as NCCL_ALGO and NCCL_PROTO",
                field=option,
            )
        return Library.of(self.library) if isinstance(self.library, str) else self.library


def option_fields() -> list[Field[Any]]:
    """The fields that are options of the command line."""
    return [each for each in fields(Request) if each.metadata.get("help")]


def _link_fault(fault: str | LinkFault) -> LinkFault:
    if not isinstance(fault, str):
        return fault
    from towpath.collectives.link_faults import parse_link_fault

    return parse_link_fault(fault)
