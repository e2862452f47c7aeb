# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Verdict on a schedule: its correctness at a size, and the smallest size at which it hangs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from towpath import _core
from towpath.api.schedule import Schedule
from towpath.collectives.call import Call
from towpath.collectives.element_types import type_bytes, type_named
from towpath.errors import ConfigError
from towpath.names import unknown
from towpath.specs.sizes import SIZE_BYTES_MAX, Size, size_of

if TYPE_CHECKING:
    from towpath.api.cluster import Cluster

# An executor's slots of a connection within a host, and of one between hosts, where the adapters of
# both ends have FIFOs of their own. Towpath's live ranks are in one host.
EXECUTORS = {"towpath": (8, 16), "nccl": (8, 16), "msccl": (8, 16)}
_MANY_SLOTS = 1 << 20  # more than a schedule of the largest size fills
_PLACE = ("rank", "block", "channel", "step", "other_rank", "other_block", "other_step")


@dataclass(frozen=True)
class Problem:
    """One problem of a schedule.

    Attributes:
        kind: "structure", "mismatch", "deadlock", "race", "wrong_data" or "input_overwritten".
        sentence: the problem and its place.
        rank: the rank with the problem, or None. The fields below may also be None.
        block: its thread block.
        channel: its channel.
        step: its step in the thread block.
        other_rank: the other side of a race, a mismatch or a deadlock.
        other_block: its thread block.
        other_step: its step.
    """

    kind: str
    sentence: str
    rank: int | None = None
    block: int | None = None
    channel: int | None = None
    step: int | None = None
    other_rank: int | None = None
    other_block: int | None = None
    other_step: int | None = None


@dataclass(frozen=True, repr=False)
class Verdict:
    """The result of `verify`.

    Attributes:
        schedule: name of the schedule.
        collective: the collective that it should compute.
        protocol: "Simple", "LL" or "LL128".
        ranks: number of ranks.
        steps: number of steps of all ranks together.
        size_bytes: size of the whole array, rounded to a size that the schedule can divide.
        problems: the problems, the first of each kind of place.
        omitted: number of further problems.
        not_checked: properties that could not be checked, with the reason, as sentences.
        remarks: properties of a correct schedule that may be unexpected, as sentences. For example,
            ranks that add in different orders get floating-point results with different last bits.
        hangs_from_bytes: the smallest array for which the schedule hangs for lack of FIFO slots;
            None if it does not hang at any size.
        assumption: the assumed number of FIFO slots of connections as text.
        hangs_with_any_slots: True if it hangs with any number of slots; None if it does not hang at
            this size.
    """

    schedule: str
    collective: str
    protocol: str
    ranks: int
    steps: int
    size_bytes: int
    problems: tuple[Problem, ...]
    omitted: int
    not_checked: tuple[str, ...]
    remarks: tuple[str, ...]
    hangs_from_bytes: int | None
    assumption: str = ""
    hangs_with_any_slots: bool | None = None

    @property
    def is_correct(self) -> bool:
        """True if no problem was found: right data, no race, no deadlock, in bounds."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data for JSON.

        Returns:
            The attributes and `is_correct`.
        """
        problems = [dict(vars(problem)) for problem in self.problems]
        return {
            **vars(self), "problems": problems, "not_checked": list(self.not_checked),
            "remarks": list(self.remarks), "is_correct": self.is_correct,
        }  # fmt: skip

    def __repr__(self) -> str:
        found = "correct" if self.is_correct else f"{len(self.problems) + self.omitted} problems"
        return f"Verdict({self.schedule!r}, {self.size_bytes} bytes, {found})"


def verify(
    schedule: Schedule,
    *,
    size_bytes: Size = "64M",
    dtype: str = "float32",
    machine: Cluster | None = None,
    executor: str | None = None,
    hosts: int = 1,
) -> Verdict:
    """Verifies that a schedule computes its collective for every order of events.

    A schedule may hang if connections have too few FIFO slots. Without a machine or an executor,
    each connection has 8 slots, like NCCL's connections within a host.

    Args:
        schedule: from `Schedule.generate` or `Schedule.load`.
        size_bytes: the whole array: bytes, or a text such as "64M".
        dtype: the element type; its size determines the division of the array.
        machine: use the slots of this machine, on which connections between hosts have twice as
            many.
        executor: use the slots of this executor: "towpath", "nccl" or "msccl".
        hosts: with an executor, the number of hosts over which the ranks are spread evenly.

    Returns:
        Races, deadlocks, wrong data and accesses out of bounds, if any, and the smallest size at
        which the schedule hangs.

    Raises:
        ConfigError: the size or the type is wrong, the schedule cannot be divided for it, or its
        ranks do not fit the machine or the hosts.

    >>> verify(Schedule.generate("all_gather", ranks=4), size_bytes="1M")
    Verdict('ring_all_gather', 1048576 bytes, correct)
    """
    core = schedule._core
    type_name = type_named(dtype)
    element_bytes = type_bytes(type_name)
    elements = Call(core, type_name).elements(size_of(size_bytes))
    slots, assumption = _slots(schedule, machine, executor, hosts)
    verdict = _core.verify(core, elements, element_bytes, slots)
    kinds = {finding.kind.name for finding in verdict.findings}
    hanging = None
    if "structure" not in kinds:
        largest = SIZE_BYTES_MAX // element_bytes
        hanging = _core.smallest_hanging_size(core, element_bytes, largest, slots)
    hangs_anyway = None
    if "deadlock" in kinds:
        many = _core.SlotCounts(within_host=_MANY_SLOTS, between_hosts=_MANY_SLOTS)
        found = _core.verify(core, elements, element_bytes, many).findings
        hangs_anyway = any(finding.kind.name == "deadlock" for finding in found)
    return Verdict(
        schedule=schedule.name,
        collective=schedule.collective,
        protocol=schedule.protocol,
        ranks=schedule.ranks,
        steps=_core.step_count(core),
        size_bytes=elements * element_bytes,
        problems=tuple(map(_problem, verdict.findings)),
        omitted=verdict.omitted,
        not_checked=tuple(verdict.not_checked),
        remarks=tuple(verdict.remarks),
        hangs_from_bytes=None if hanging is None else hanging * element_bytes,
        assumption=assumption,
        hangs_with_any_slots=hangs_anyway,
    )


def _slots(
    schedule: Schedule, machine: Cluster | None, executor: str | None, hosts: int
) -> tuple[_core.SlotCounts, str]:
    """The slots of each connection, and the assumption as text."""
    if machine is not None and executor is not None:
        raise ConfigError(
            "machine and executor exclude each other, because a machine has Towpath's slots; "
            "give one of them"
        )
    ranks = schedule.ranks
    if machine is not None:
        if ranks > machine.ranks:
            problem = f"schedule '{schedule.name}' has {ranks} ranks; '{machine.name}' has room for"
            raise ConfigError(f"{problem} {machine.ranks}", field="machine")
        within, between = EXECUTORS["towpath"]
        per_host = machine.ranks_per_host
        where = f"on {machine.name}"
    elif executor is not None:
        if executor not in EXECUTORS:
            raise unknown("there is no executor", executor, list(EXECUTORS))
        if hosts < 1 or ranks % hosts:
            raise ConfigError(
                f"{ranks} ranks cannot be spread evenly over {hosts} hosts", field="hosts"
            )
        within, between = EXECUTORS[executor]
        per_host = ranks // hosts
        where = f"with the executor {executor}"
    else:
        usual = EXECUTORS["towpath"][0]
        words = f"{usual} FIFO slots per connection, as NCCL has within a host; --machine and "
        return _core.SlotCounts(), f"{words}--executor count others"
    counts = _core.SlotCounts(within_host=within, between_hosts=between, ranks_per_host=per_host)
    if per_host == 0 or per_host >= ranks:
        return counts, f"{within} FIFO slots per connection, {where}, all ranks in one host"
    text = f"{within} FIFO slots per connection within a host of {per_host} ranks and {between} "
    return counts, f"{text}between hosts, {where}"


def _problem(finding: Any) -> Problem:
    place = {name: getattr(finding, name) for name in _PLACE}
    return Problem(
        finding.kind.name, finding.sentence,
        **{name: None if value < 0 else value for name, value in place.items()},
    )  # fmt: skip
