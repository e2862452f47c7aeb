# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath verify`: whether a schedule is correct at a size, and from which size it would hang."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from towpath import _core
from towpath.collectives.call import Call
from towpath.collectives.data import TYPES, type_bytes
from towpath.errors import ConfigError, quoted
from towpath.schedules.msccl_xml import load_schedule
from towpath.specs.sizes import SIZE_BYTES_MAX

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class VerifyResult:
    """What the verifier found. Sizes are in bytes of the whole array."""

    name: str
    collective: str
    protocol: str
    ranks: int
    steps: int
    size_bytes: int
    findings: list[dict[str, Any]]
    omitted: int
    not_checked: list[str]
    hangs_from_bytes: int | None

    @property
    def is_correct(self) -> bool:
        """Nothing was found."""
        return not self.findings

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "is_correct": self.is_correct}

    def text(self) -> str:
        """A few lines for a person."""
        lines = [
            f"{self.name}: {self.collective} of {self.ranks} ranks, {self.protocol}, "
            f"{self.steps} steps, {self.size_bytes} bytes"
        ]
        lines += [f"  {finding['kind']}: {finding['sentence']}" for finding in self.findings]
        if self.omitted:
            lines.append(f"  and {self.omitted} more")
        lines += [f"  not checked: {sentence}" for sentence in self.not_checked]
        if self.is_correct:
            lines.append("  correct: right data, no race, no deadlock, in bounds")
        if self.hangs_from_bytes is None:
            lines.append("  does not hang for lack of FIFO slots at any size")
        else:
            lines.append(f"  hangs for lack of FIFO slots from {self.hangs_from_bytes} bytes on")
        return "\n".join(lines)


def verify_schedule(
    schedule: _core.Schedule, size_bytes: int, type_name: str = "float32"
) -> VerifyResult:
    """Verifies a schedule for an array of about `size_bytes`.

    Raises:
        ValueError: the schedule cannot be cut for that size.
    """
    element_bytes = type_bytes(type_name)
    elements = Call(schedule, type_name).elements(size_bytes)
    verdict = _core.verify(schedule, elements, element_bytes)
    hanging = None
    if not any(finding.kind.name == "structure" for finding in verdict.findings):
        hanging = _core.smallest_hanging_size(
            schedule, element_bytes, SIZE_BYTES_MAX // element_bytes
        )
    return VerifyResult(
        name=schedule.name,
        collective=_core.name_of(schedule.collective),
        protocol=_core.name_of(schedule.protocol),
        ranks=schedule.rank_count,
        steps=_core.step_count(schedule),
        size_bytes=elements * element_bytes,
        findings=[_as_dict(finding) for finding in verdict.findings],
        omitted=verdict.omitted,
        not_checked=list(verdict.not_checked),
        hangs_from_bytes=None if hanging is None else hanging * element_bytes,
    )


def _as_dict(finding: _core.Finding) -> dict[str, Any]:
    names = ("rank", "block", "channel", "step", "other_rank", "other_block", "other_step")
    fields = {name: getattr(finding, name) for name in names}
    return {"kind": finding.kind.name, "sentence": finding.sentence, **fields}


def verify_file(path: Path, size_bytes: int, type_name: str) -> VerifyResult:
    """Reads an MSCCL XML file and verifies it.

    Raises:
        ConfigError: the file or the type is wrong.
    """
    if type_name not in TYPES:
        raise ConfigError(f"--dtype is {quoted(type_name)}; allowed are {', '.join(TYPES)}")
    return verify_schedule(load_schedule(path), size_bytes, type_name)
