# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What to expect of a library on a machine: times, each with the model's error near it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from towpath.validation.accuracy import Accuracy


@dataclass(frozen=True)
class ExpectedRow:
    """One size of the table.

    Attributes:
        size_bytes: the whole array.
        count: elements of float32.
        choice: what the library runs, such as "Ring/LL".
        channels: thread blocks with work.
        time_us: simulated, or by the library's own model where Towpath has no schedule.
        algbw_gb_per_s: size over time.
        busbw_gb_per_s: as nccl-tests counts it.
        is_simulated: whether the time is simulated.
        accuracy: the model's errors on measured rows near this one; None: not validated.
    """

    size_bytes: int
    count: int
    choice: str
    channels: int
    time_us: float
    algbw_gb_per_s: float
    busbw_gb_per_s: float
    is_simulated: bool
    accuracy: Accuracy | None


@dataclass(frozen=True)
class Expectation:
    """The table that nccl-tests should print.

    Attributes:
        library: "nccl" or "rccl".
        where: the machine and its ranks.
        collective: its name.
        rows: a row per size.
        notes: what is assumed of the machine.
    """

    library: str
    where: str
    collective: str
    rows: tuple[ExpectedRow, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data that JSON can hold."""
        return asdict(self)
