# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The expected errors of predictions, from the nearest shipped measurements.

`python -m towpath.validation.accuracy` validates the shipped tables of GPU collectives again and
writes validation/accuracy.json, which is part of the package.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from towpath.validation import shipped

if TYPE_CHECKING:
    from towpath.specs.machine_spec import LinkType, MachineSpec

FILE = "accuracy.json"
_MACHINE = "dgx-h100"  # the machine of the tables of GPU collectives
_FOLDER = "gpu_collectives/"
# The largest size of each band, in bytes; the last band has no end.
BANDS_BYTES = (1 << 10, 64 << 10, 1 << 20, 32 << 20)


@dataclass(frozen=True)
class Accuracy:
    """Errors of predictions for which there are measurements.

    Attributes:
        machine: the machine.
        hosts: number of hosts.
        collective: the collective.
        algorithm: the algorithm.
        band: the number of the band of sizes, from 0.
        rows: number of rows that were measured and simulated.
        median_pct: the median of their absolute errors in percent.
        p90_pct: the 90th percentile.
    """

    machine: str
    hosts: int
    collective: str
    algorithm: str
    band: int
    rows: int
    median_pct: float
    p90_pct: float


def band_of(size_bytes: int) -> int:
    """The band that contains a size.

    >>> band_of(1024), band_of(1025), band_of(1 << 30)
    (0, 1, 4)
    """
    return sum(size_bytes > largest for largest in BANDS_BYTES)


def accuracy_of(
    spec: MachineSpec, ranks: int, collective: str, algorithm: str | None, size_bytes: int
) -> Accuracy | None:
    """The errors of the measurements nearest to a prediction; None if it is not validated.

    Near rows have the same machine, number of hosts, algorithm and band of sizes.

    Args:
        spec: the machine; a machine that differs in a link or a cost from the measured one is not
            validated, whatever its name.
        ranks: number of GPUs; with several hosts, all of their GPUs.
        collective: name of the collective.
        algorithm: the algorithm; None for a schedule from a file.
        size_bytes: the array's size.
    """
    sought = (spec.host_count, collective, algorithm, band_of(size_bytes))
    found = next((each for each in _table() if _place(each) == sought), None)
    return found if found is not None and is_measured(spec, ranks, collective) else None


def is_measured(spec: MachineSpec, ranks: int, collective: str) -> bool:
    """True if there are any measurements of a collective on a machine.

    Args:
        spec: the machine.
        ranks: number of GPUs.
        collective: name of the collective.
    """
    if spec.host_count > 1 and ranks < spec.ranks:
        return False
    machines = {
        each.machine
        for each in _table()
        if (each.hosts, each.collective) == (spec.host_count, collective)
    }
    return any(_is_like(spec, machine) for machine in machines)


def _place(each: Accuracy) -> tuple[int, str, str, int]:
    return each.hosts, each.collective, each.algorithm, each.band


def _is_like(spec: MachineSpec, name: str) -> bool:
    return _features(spec) == _features_of(name, spec.host_count)


@lru_cache(maxsize=8)
def _features_of(name: str, hosts: int) -> tuple[object, ...]:
    from towpath.specs import shipped as machines

    return _features(machines.machine(name).sized(hosts=hosts))


def _features(spec: MachineSpec) -> tuple[object, ...]:
    """The inputs that determine the time of a collective: devices, wires and costs, without their
    names.
    """
    from towpath.specs.spec_model import quantities_of

    layout = spec.layout()
    link_types = {
        name: (link.kind, *(_value(link, field) for field in _LINK_FIELDS))
        for name, link in spec.link_types.items()
    }
    wires = Counter((link_types[wire.link_type], wire.parallel) for wire in layout.wires)
    kinds = Counter((device.kind, device.host) for device in layout.devices)
    costs = {path: value for path, value, _ in quantities_of(spec.gpu_cost)}
    return kinds, wires, costs


_LINK_FIELDS = ("rate_gb_per_s", "latency_ns", "message_overhead_ns")


def _value(link: LinkType, field: str) -> float:
    return float(getattr(link, field).value)


@lru_cache
def _table() -> tuple[Accuracy, ...]:
    path = shipped.folder() / FILE
    if not path.is_file():
        return ()
    return tuple(Accuracy(**each) for each in json.loads(path.read_text(encoding="utf-8")))


def measure(rows: Iterable[dict[str, Any]]) -> Iterator[Accuracy]:
    """The errors of validated rows, by hosts, algorithm and band.

    Args:
        rows: rows of a `Validation` of GPU collectives; `algorithm_run` is the simulated algorithm.

    Yields:
        An entry for each group with at least one row that could be simulated.
    """
    from towpath.validation.statistics import error_statistics

    groups: dict[tuple[int, str, int], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["error_pct"] is not None:
            hosts, band = int(row.get("nodes") or 1), band_of(int(row["size_bytes"]))
            groups[hosts, row["algorithm_run"], band].append(row)
    for (hosts, algorithm, band), found in sorted(groups.items()):
        errors = error_statistics(found)
        assert errors.median_pct is not None and errors.p90_pct is not None
        yield Accuracy(
            _MACHINE, hosts, "all_reduce", algorithm, band, errors.predicted,
            round(errors.median_pct, 1), round(errors.p90_pct, 1),
        )  # fmt: skip


def measure_shipped() -> list[Accuracy]:
    """The errors of the shipped tables of GPU collectives."""
    from towpath.validation.validate import validate

    found: list[Accuracy] = []
    for name in shipped.names():
        if name.startswith(_FOLDER):
            found += measure(validate(name).rows)
    return found


def main() -> None:
    """Validates the shipped tables again and writes the errors."""
    lines = ",\n".join(json.dumps(asdict(each)) for each in measure_shipped())
    (shipped.folder() / FILE).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
