# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A schedule written for one machine and size, with its lower bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from towpath.api.schedule import Schedule
from towpath.collectives import simulated
from towpath.collectives.call import Call
from towpath.collectives.result import bus_factor

if TYPE_CHECKING:
    from towpath.api.cluster import Cluster
    from towpath.schedules.schedule_source import ScheduleSource
    from towpath.tuning.synthesis.search import Listed, SearchOptions


@dataclass(frozen=True)
class Synthesis:
    """The fastest schedule found for a collective on a machine at one size.

    Attributes:
        machine: the machine and its ranks as text.
        schedule: the schedule. It is verified at this size: right data, no race, no deadlock.
        made_of: its composition, such as "24 trees, 64 chunks through each, Simple".
        size_bytes: the size of the array for which it was made.
        time_us: its simulated time in microseconds.
        bound_us: lower bound on the time of any schedule, unless a switch combines or copies the
            data that passes through it.
        bandwidth_us: part of the bound: the time that the links need for the bytes.
        latency_us: part of the bound: a message between the two most distant ranks.
        launch_us: part of the bound: the time of every call before its first step.
        bound_reason: the links that determine the bandwidth.
        listed: the fastest of the listed algorithms as text.
        listed_us: its time.
        is_listed: True if `schedule` is that algorithm, because no synthesized schedule is faster.
        tried: number of timed candidates in addition to the listed ones.
        left_out: number of candidates that were not timed for lack of time.
    """

    machine: str
    schedule: Schedule
    made_of: str
    size_bytes: int
    time_us: float
    bound_us: float
    bandwidth_us: float
    latency_us: float
    launch_us: float
    bound_reason: str
    listed: str
    listed_us: float
    is_listed: bool
    tried: int
    left_out: int

    @property
    def distance(self) -> float:
        """Relative distance from the bound: 0.25 means that it takes 25 % longer."""
        return self.time_us / self.bound_us - 1 if self.bound_us > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data for JSON.

        Returns:
            The attributes, the schedule's name, and the distance.
        """
        return {**vars(self), "schedule": self.schedule.name, "distance": self.distance}

    def sentence(self) -> str:
        """The result in one sentence."""
        gain = (
            "nothing written for the machine is faster than the listed algorithm"
            if self.is_listed
            else f"{self.listed_us / self.time_us:.2f} times as fast as {self.listed}"
        )
        return f"{self.made_of}; {gain}; {self.distance:.0%} above the lower bound"

    def text(self) -> str:
        """The result as lines of text.

        Returns:
            The text that `towpath run --algorithm synthesis` prints.
        """
        schedule = self.schedule
        rate = self.size_bytes / self.time_us / 1e3
        bus = rate * bus_factor(schedule.collective, schedule.ranks)
        if self.is_listed:
            gain = "nothing written for the machine is faster"
        else:
            gain = f"this one is {self.listed_us / self.time_us:.2f} times as fast"
        parts = (
            f"bandwidth {self.bandwidth_us:.1f}, as {self.bound_reason}; latency "
            f"{self.latency_us:.1f}; launch {self.launch_us:.1f}"
        )
        left_out = f", {self.left_out} left out when the time was over" if self.left_out else ""
        return "\n".join([
            f"{schedule.collective} of {self.size_bytes} bytes on {self.machine}",
            f"schedule     {schedule.name}: {self.made_of}",
            f"time         {self.time_us:.1f} us, {rate:.1f} GB/s, bus bandwidth {bus:.1f} GB/s",
            "verified     right data, no race, no deadlock at this size",
            f"best listed  {self.listed}: {self.listed_us:.1f} us; {gain}",
            f"lower bound  {self.bound_us:.1f} us ({parts})",
            f"distance     {self.distance:.1%} above the lower bound",
            f"search       {self.tried} candidates timed{left_out}",
        ])  # fmt: skip


def synthesize(
    machine: Cluster, choice: tuple[ScheduleSource, str | None], collective: str, size_bytes: int,
    *, type_name: str, options: SearchOptions,
) -> Synthesis:  # fmt: skip
    """Searches for a schedule.

    Args:
        machine: a machine with GPUs.
        choice: the fastest of the listed algorithms, from `Chooser`.
        collective: name of the collective.
        size_bytes: size of the whole array.
        type_name: the element type.
        options: options of the search.

    Raises:
        ConfigError: the collective is not supported, or there are too many ranks.
    """
    from towpath.tuning.synthesis.search import Listed, check_collective
    from towpath.tuning.synthesis.search import synthesize as search

    check_collective(collective, machine.ranks)
    source = choice[0]
    schedule = source.schedule()
    place: Any = machine._place_for(schedule, source)
    outcome = simulated.invoke(
        place, Call(schedule, type_name), size_bytes, in_place=False, with_data=False
    )
    found = search(
        place, collective, size_bytes, Listed(source, outcome.time_us), type_name=type_name,
        options=options,
    )  # fmt: skip
    return Synthesis(
        machine=machine._where(machine.ranks), schedule=Schedule(found.schedule),
        made_of=found.words,
        size_bytes=found.size_bytes, time_us=found.time_us, bound_us=found.bound.time_us,
        bandwidth_us=found.bound.bandwidth_us, latency_us=found.bound.latency_us,
        launch_us=found.bound.launch_us, bound_reason=found.bound.reason,
        listed=_words(found.listed), listed_us=found.listed.time_us, is_listed=found.is_listed,
        tried=found.tried, left_out=found.left_out,
    )  # fmt: skip


def _words(listed: Listed) -> str:
    source = listed.source
    channels = f"{source.channels} channel{'' if source.channels == 1 else 's'}"
    return f"{source.algorithm_name()}, {source.protocol}, {channels}"
