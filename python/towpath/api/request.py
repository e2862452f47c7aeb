# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What is to run, checked once, with full names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from towpath.api.schedule import Schedule
from towpath.collectives.element_types import operation_named, type_named
from towpath.errors import ConfigError
from towpath.schedules.words import (
    algorithm_named,
    check_channels,
    check_operation,
    check_root,
    collective_named,
    protocol_named,
)

if TYPE_CHECKING:
    from towpath.collectives.link_faults import LinkFault
    from towpath.collectives.nccl.imitation import Library

SYNTHESIS = "synthesis"


@dataclass(frozen=True)
class Request:
    """What is to run, checked and with full names.

    Attributes:
        collective: its name.
        schedule: run this one; None: one of Towpath's own.
        sizes_bytes: at least one.
        dtype: the element type.
        op: the reduction.
        root: of broadcast and reduce.
        algorithm: its full name; "auto" chooses per size, "synthesis" writes one per size; None
            is the collective's first.
        protocol: "Simple", "LL", "LL128", or "auto".
        channels: parallel channels; None: what the machine needs, or what "auto" finds.
        data: whether to carry and check bytes.
        fold: whether ranks that do the same at the same time may be simulated once.
        threads: of one simulation; None: chosen.
        network: how networks on chips are simulated: "flits" or "packets".
        link_faults: of links between chips.
        library: the library that chooses the schedule, size by size; None: Towpath.
    """

    collective: str
    schedule: Schedule | None
    sizes_bytes: tuple[int, ...]
    dtype: str = "float32"
    op: str = "sum"
    root: int = 0
    algorithm: str | None = "auto"
    protocol: str = "auto"
    channels: int | None = None
    data: bool = True
    fold: bool = True
    threads: int | None = None
    network: str = "flits"
    link_faults: tuple[LinkFault, ...] = ()
    library: Library | None = None

    @property
    def is_auto(self) -> bool:
        """Whether the schedule is chosen size by size."""
        if self.schedule is not None:
            return False
        is_searched = self.algorithm == SYNTHESIS or "auto" in (self.algorithm, self.protocol)
        return self.library is not None or is_searched


def checked_request(
    collective_or_schedule: str | Schedule,
    sizes_bytes: list[int],
    *,
    dtype: str,
    op: str,
    root: int,
    algorithm: str | None,
    protocol: str,
    channels: int | None,
    data: bool = True,
    fold: bool = True,
    threads: int | None = None,
    network: str = "flits",
    link_faults: Iterable[str | LinkFault] = (),
    library: str | Library | None = None,
) -> Request:
    """What is to run, with full names.

    Raises:
        ConfigError: an option is wrong, or has no effect on a schedule of the user's own.
    """
    if threads is not None and threads < 1:
        raise ConfigError(f"threads is {threads}; a simulation has at least 1", field="threads")
    check_channels(channels)
    faults = tuple(map(_link_fault, link_faults))
    own = {
        "algorithm": algorithm not in ("auto", None), "protocol": protocol != "auto",
        "channels": channels is not None,
    }  # fmt: skip
    chosen_by = _library(library, collective_or_schedule, own)
    common: dict[str, Any] = {
        "sizes_bytes": tuple(sizes_bytes), "dtype": type_named(dtype), "op": operation_named(op),
        "data": data, "fold": fold, "threads": threads, "network": network,
        "link_faults": faults,
    }  # fmt: skip
    if isinstance(collective_or_schedule, Schedule):
        schedule = collective_or_schedule
        check_operation(common["op"], schedule.collective)
        given = {**own, "root": root != 0}
        for option in (option for option, is_given in given.items() if is_given):
            raise ConfigError(
                f"{option} is for Towpath's own schedules; schedule '{schedule.name}' has its own",
                field=option,
            )
        return Request(schedule.collective, schedule, root=schedule.root, **common)
    collective = collective_named(collective_or_schedule)
    check_root(root, collective)
    check_operation(common["op"], collective)
    if algorithm not in (None, "auto", SYNTHESIS):
        algorithm = algorithm_named(str(algorithm), collective)
    if protocol != "auto":
        protocol = protocol_named(protocol)
    return Request(
        collective, None, root=root, algorithm=algorithm, protocol=protocol, channels=channels,
        library=chosen_by, **common,
    )  # fmt: skip


def _link_fault(fault: str | LinkFault) -> LinkFault:
    if not isinstance(fault, str):
        return fault
    from towpath.collectives.link_faults import parse_link_fault

    return parse_link_fault(fault)


def _library(
    library: str | Library | None, subject: str | Schedule, own: dict[str, bool]
) -> Library | None:
    """The library that chooses schedules.

    Raises:
        ConfigError: there is no such library, or something else chooses, too.
    """
    if library is None:
        return None
    from towpath.collectives.nccl.imitation import Library

    if isinstance(subject, Schedule):
        raise ConfigError(
            f"library chooses a schedule, and schedule '{subject.name}' is one; give either",
            field="library",
        )
    for option in (option for option, is_given in own.items() if is_given):
        raise ConfigError(
            f"{option} is for Towpath's own choice; a library takes its own, which variables such "
            "as NCCL_ALGO and NCCL_PROTO bend",
            field=option,
        )
    return Library.of(library) if isinstance(library, str) else library
