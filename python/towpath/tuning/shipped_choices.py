# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The choices of the search on shipped machines of GPUs, so that they need not be searched again.

`choices.json` in this folder has a group for each machine, number of hosts and collective:
`ranks`, the digest of the machine and its candidates, and `choices`, a list of [from size in bytes,
algorithm, protocol, channels, chunks per channel, both ways]. A choice holds for the powers of two
from its size to the next one. Another machine or other candidates have another digest, and the
search decides. `make choices` writes the file (`towpath.api.choices`), and a test searches again.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from towpath.schedules.schedule_source import ScheduleSource

if TYPE_CHECKING:
    from towpath.specs.machine_spec import MachineSpec
    from towpath.tuning.collective import Options

SIZES_BYTES = tuple(1 << power for power in range(3, 31))

Group = dict[str, Any]


def group_name(machine: str, hosts: int, collective: str) -> str:
    """The name of a group in the file."""
    return f"{machine} {hosts} {collective}"


def digest_of(spec: MachineSpec, options: Options) -> str:
    """Digest of a machine and of the candidates on it."""
    described = json.dumps([spec.data(), repr(options)], sort_keys=True)
    return hashlib.sha256(described.encode()).hexdigest()[:16]


def group_of(digest: str, choices: dict[int, ScheduleSource]) -> Group:
    """A group from the choices of all `SIZES_BYTES`."""
    runs: list[list[Any]] = []
    for size_bytes in SIZES_BYTES:
        source = choices[size_bytes]
        option = [source.algorithm, source.protocol, source.channels, source.chunks_per_channel,
                  source.both_ways]  # fmt: skip
        if not runs or runs[-1][1:] != option:
            runs.append([size_bytes, *option])
    return {"digest": digest, "choices": runs}


def shipped_choices(
    spec: MachineSpec, options: Options, collective: str
) -> dict[int, ScheduleSource]:
    """The choices by size, or none if the file has none for this machine and its candidates.

    Args:
        spec: the machine.
        options: the options of all candidates.
        collective: name of the collective.
    """
    group = _groups().get(group_name(spec.name, options.hosts, collective))
    if group is None or group["digest"] != digest_of(spec, options):
        return {}
    found = {}
    for size_bytes in SIZES_BYTES:
        run = [each for each in group["choices"] if each[0] <= size_bytes][-1]
        _, algorithm, protocol, channels, chunks, both_ways = run
        found[size_bytes] = ScheduleSource(
            collective=collective, algorithm=algorithm, ranks=options.ranks, channels=channels,
            protocol=protocol, hosts=options.hosts, both_ways=both_ways, chunks_per_channel=chunks,
        )  # fmt: skip
    return found


@cache
def _groups() -> dict[str, Group]:
    text = files("towpath.tuning").joinpath("choices.json").read_text(encoding="utf-8")
    groups: dict[str, Group] = json.loads(text)
    return groups
