# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Best use of the links between chips of one machine, in two phases of measurements.

The first phase measures everything that does not depend on an answer. The second phase needs the
number of channels that the first phase selected for each packet size.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from towpath.studies.sweep import Point, SweepOptions, run_sweep
from towpath.tuning.answers import Answer, answers, packet_count_points, packets_per_channel
from towpath.tuning.link_bench import LinkBench, steady_points
from towpath.tuning.rule import RULE


@dataclass(frozen=True)
class EthernetTuning:
    """The answers for one machine.

    Attributes:
        machine: name of the machine.
        link: the two chips whose link was measured.
        ring: the chips of a ring through all of them; empty if there is no ring.
        answers: one per question.
    """

    machine: str
    link: tuple[int, int]
    ring: tuple[int, ...]
    answers: list[Answer]

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as plain data for JSON."""
        return {
            "machine": self.machine, "link": self.link, "ring": self.ring, "rule": RULE,
            "answers": [answer.to_dict() for answer in self.answers],
        }  # fmt: skip


def tune_ethernet(
    bench: LinkBench, file: Path, options: SweepOptions | None = None
) -> EthernetTuning:
    """Measures all candidates on one link and on the ring of a machine, and chooses.

    Args:
        bench: the link and the ring, from `LinkBench.on(machine)`.
        file: file for the measurements, a JSON line per point; a later call continues from it.
        options: where the measurements run.

    Returns:
        The answers, in the order in which they are printed.

    Raises:
        ConfigError: the file is not a sweep's, or another sweep uses it. SweepError: a measurement
        failed.
    """
    options = options or SweepOptions()
    measured: dict[str, float] = {}

    def measure(points: list[Point]) -> None:
        results = run_sweep(bench, points, file, digest=bench.digest(), options=options)
        for point, result in zip(points, results, strict=True):
            measured[json.dumps(point)] = result["value"]

    def value(point: Point) -> float:
        return measured[json.dumps(point)]

    measure(steady_points(has_ring=bool(bench.ring)))
    found = answers(value, bench.line_gb_per_s, len(bench.ring))
    channels_of = next(
        answer.chosen["channels_of_packet_bytes"]
        for answer in found
        if "channels_of_packet_bytes" in answer.chosen
    )
    measure(packet_count_points(channels_of))
    found.append(packets_per_channel(value, channels_of))
    return EthernetTuning(bench.name, bench.link, bench.ring, found)
