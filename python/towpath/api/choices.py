# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the choices of the search on shipped machines: `make choices`.

Usage: python -m towpath.api.choices [MACHINE...]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from towpath.api.cluster import Cluster
from towpath.api.clusters import GpuCluster
from towpath.api.machine import load
from towpath.api.request import SIMULATED, Request
from towpath.errors import ConfigError
from towpath.schedules.schedule_source import ScheduleSource
from towpath.specs import shipped
from towpath.tuning import shipped_choices
from towpath.tuning.collective import RANKS_MANY
from towpath.tuning.shipped_choices import SIZES_BYTES, Group, group_name

_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce")


def groups_of(name: str) -> Iterator[tuple[str, Group]]:
    """The groups of a machine, with their names in the file."""
    for hosts in (1, 2):
        try:
            machine = load(name, hosts=hosts)
        except ConfigError:
            continue  # it has no network
        assert isinstance(machine, GpuCluster)
        if not 2 <= machine.ranks <= RANKS_MANY:
            continue  # more are not searched in full
        for collective in _COLLECTIVES:
            request = Request(collective, SIZES_BYTES, data=False).checked(SIMULATED)
            choices: dict[int, ScheduleSource] = {}
            for size_bytes in SIZES_BYTES:
                found, _ = Cluster._fastest_listed(machine, request, size_bytes)
                choices[size_bytes] = found
            digest = shipped_choices.digest_of(
                machine.spec, machine._options_for(None, None, collective)
            )
            yield (
                group_name(machine.name, hosts, collective),
                shipped_choices.group_of(digest, choices),
            )


def main(names: list[str]) -> None:
    """Writes the groups of machines, and keeps all others."""
    file = Path(shipped_choices.__file__).with_name("choices.json")
    for name in names or shipped.names("gpu_cluster"):
        for group, found in groups_of(name):
            groups = json.loads(file.read_text()) if file.exists() else {}
            groups[group] = found
            lines = [f"{json.dumps(key)}: {json.dumps(groups[key])}" for key in sorted(groups)]
            file.write_text("{\n" + ",\n".join(lines) + "\n}\n")
            print(group, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
