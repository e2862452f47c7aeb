# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The decisions of a release of NCCL on a machine, with the simulated times of its schedules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from towpath.collectives.nccl_itself.decide import Decision, Decisions


@dataclass(frozen=True)
class DecisionRow:
    """A decision, and the time of the same schedule in the simulation.

    `simulated_us` is None where Towpath has no such schedule or the machine is too large.
    """

    decision: Decision
    simulated_us: float | None

    @property
    def disagreement(self) -> float | None:
        """The simulated time over NCCL's estimate, less one."""
        if self.simulated_us is None or self.decision.estimate_us <= 0:
            return None
        return self.simulated_us / self.decision.estimate_us - 1


@dataclass(frozen=True)
class NcclAnswer:
    """The decisions of a release on a machine, for one collective.

    Attributes:
        where: a phrase about the machine and its ranks.
        decisions: of all sizes, with rings, trees and costs.
        rows: the decisions with simulated times.
        notes: what is assumed of the machine.
    """

    where: str
    decisions: Decisions
    rows: tuple[DecisionRow, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything but the log as plain data that JSON can hold."""
        found = self.decisions
        return {
            "release": found.release,
            "where": self.where,
            "channels": found.channels,
            "nvls_channels": found.nvls_channels,
            "rings": found.rings,
            "trees": found.trees,
            "costs": [
                {
                    "collective": collective, "algorithm": algorithm, "protocol": protocol,
                    "latency_us": cost.latency_us, "bandwidth_gb_per_s": cost.bandwidth_gb_per_s,
                }
                for (collective, algorithm, protocol), cost in found.costs.items()
            ],
            "rows": [
                {**vars(row.decision), "simulated_us": row.simulated_us} for row in self.rows
            ],
            "notes": self.notes,
        }  # fmt: skip
