# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a schedule is correct at a size, and from which size on it would hang."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from towpath import _core
from towpath.api.schedule import Schedule
from towpath.api.sizes import Size, size_of
from towpath.collectives.call import Call
from towpath.collectives.data import type_bytes, type_named
from towpath.specs.sizes import SIZE_BYTES_MAX

_PLACE = ("rank", "block", "channel", "step", "other_rank", "other_block", "other_step")


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a schedule.

    Attributes:
        kind: "structure", "mismatch", "deadlock", "race", "wrong_data" or "input_overwritten".
        sentence: what is wrong and where.
        rank: where it is, or None; likewise the fields below.
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
    """What `verify` found.

    Attributes:
        schedule: its name.
        collective: what it is to compute.
        protocol: "Simple", "LL" or "LL128".
        ranks: how many take part.
        steps: steps of all ranks together.
        size_bytes: the whole array, rounded to what the schedule can cut.
        problems: what is wrong, the first of each kind of place.
        omitted: how many more problems there are.
        not_checked: what could not be decided, and why, in sentences.
        hangs_from_bytes: the smallest array for which the schedule hangs for lack of FIFO slots;
            None where it hangs at no size.
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
    hangs_from_bytes: int | None

    @property
    def is_correct(self) -> bool:
        """Whether nothing was found: right data, no race, no deadlock, in bounds."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """It as plain data for JSON.

        Returns:
            The attributes and `is_correct`.
        """
        problems = [dict(vars(problem)) for problem in self.problems]
        return {
            **vars(self), "problems": problems, "not_checked": list(self.not_checked),
            "is_correct": self.is_correct,
        }  # fmt: skip

    def __repr__(self) -> str:
        found = "correct" if self.is_correct else f"{len(self.problems) + self.omitted} problems"
        return f"Verdict({self.schedule!r}, {self.size_bytes} bytes, {found})"


def verify(schedule: Schedule, *, size_bytes: Size = "64M", dtype: str = "float32") -> Verdict:
    """Whether a schedule computes its collective in every order of events.

    Args:
        schedule: from `Schedule.generate` or `Schedule.load`.
        size_bytes: the whole array: bytes, or a text such as "64M".
        dtype: the element type; its size decides how the array is cut.

    Returns:
        Races, deadlocks, wrong data and accesses out of bounds, if any, and from which size on the
        schedule hangs.

    Raises:
        ConfigError: the size or the type is wrong, or the schedule cannot be cut for it.

    >>> verify(Schedule.generate("all_gather", ranks=4), size_bytes="1M")
    Verdict('ring_all_gather', 1048576 bytes, correct)
    """
    core = schedule._core
    type_name = type_named(dtype)
    element_bytes = type_bytes(type_name)
    elements = Call(core, type_name).elements(size_of(size_bytes))
    verdict = _core.verify(core, elements, element_bytes)
    hanging = None
    if not any(finding.kind.name == "structure" for finding in verdict.findings):
        hanging = _core.smallest_hanging_size(core, element_bytes, SIZE_BYTES_MAX // element_bytes)
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
        hangs_from_bytes=None if hanging is None else hanging * element_bytes,
    )


def _problem(finding: Any) -> Problem:
    place = {name: getattr(finding, name) for name in _PLACE}
    return Problem(
        finding.kind.name, finding.sentence,
        **{name: None if value < 0 else value for name, value in place.items()},
    )  # fmt: skip
