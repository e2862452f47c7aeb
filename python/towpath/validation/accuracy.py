# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The expected errors of predictions, from the nearest measurements that no cost was fitted to.

`python -m towpath.validation.accuracy FILE...` writes validation/accuracy.json, which is part of
the package. A file has a line for each row that a fit left out: machine, hosts, collective, GPUs,
algorithm, size in bytes, and the logarithm of predicted over measured (tools/fit_gpu_costs.py).
"""

from __future__ import annotations

import csv
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from towpath.validation import shipped

if TYPE_CHECKING:
    from towpath.specs.machine_spec import LinkType, MachineSpec

FILE = "accuracy.json"
# The largest size of each band, in bytes; the last band has no end.
BANDS_BYTES = (1 << 10, 64 << 10, 1 << 20, 32 << 20)


@dataclass(frozen=True)
class Accuracy:
    """Errors of predictions for which there are measurements.

    Attributes:
        machine: the machine.
        hosts: number of hosts.
        gpus: number of GPUs of all hosts.
        collective: the collective.
        algorithm: the algorithm.
        band: the number of the band of sizes, from 0.
        rows: number of rows that were measured and simulated.
        median_pct: the median of their absolute errors in percent.
        p90_pct: the error that holds for nine of ten further rows of the same kind: the 90th
            percentile, or the largest of fewer than ten.
    """

    machine: str
    hosts: int
    gpus: int
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

    Near rows have the same machine, number of hosts, algorithm and band of sizes. Between two
    numbers of GPUs, the rows with the larger errors count.

    Args:
        spec: the machine; a machine that differs in a link or a cost from the measured one is not
            validated, whatever its name.
        ranks: number of GPUs.
        collective: name of the collective.
        algorithm: the algorithm; None for a schedule from a file.
        size_bytes: the array's size.
    """
    band = band_of(size_bytes)
    near = [
        each
        for each in _measured(spec, ranks, collective)
        if (each.algorithm, each.band) == (algorithm, band)
    ]
    fewer = max((each.gpus for each in near if each.gpus <= ranks), default=None)
    more = min((each.gpus for each in near if each.gpus >= ranks), default=None)
    if fewer is None or more is None:
        return None
    return max((each for each in near if each.gpus in (fewer, more)), key=lambda each: each.p90_pct)


def overall_p90_pct(spec: MachineSpec) -> float:
    """The error that holds for nine of ten rows of all measured machines whose GPUs are joined like
    the GPUs of a machine, by NVLink or without it, in percent.

    It is the expected error of a prediction without near measurements.

    Args:
        spec: the machine.
    """
    has_nvlink = _has_nvlink(spec)
    found = sorted(
        (each.p90_pct, each.rows)
        for each in _table()
        if _has_nvlink_by_name(each.machine) == has_nvlink
    )
    within = list(accumulate(rows for _, rows in found))
    return next(
        p90 for (p90, _), rows in zip(found, within, strict=True) if rows >= 0.9 * within[-1]
    )


def is_measured(spec: MachineSpec, ranks: int, collective: str) -> bool:
    """True if there are any measurements of a collective on a machine.

    Args:
        spec: the machine.
        ranks: number of GPUs.
        collective: name of the collective.
    """
    return bool(_measured(spec, ranks, collective))


def _measured(spec: MachineSpec, ranks: int, collective: str) -> list[Accuracy]:
    if spec.host_count > 1 and ranks < spec.ranks:
        return []
    near = [
        each for each in _table() if (each.hosts, each.collective) == (spec.host_count, collective)
    ]
    machines = {machine for machine in {each.machine for each in near} if _is_like(spec, machine)}
    return [each for each in near if each.machine in machines]


def _is_like(spec: MachineSpec, name: str) -> bool:
    return _features(spec) == _features_of(name, spec.host_count)


def _has_nvlink(spec: MachineSpec) -> bool:
    return any(link.kind == "nvlink" for link in spec.link_types.values())


@lru_cache(maxsize=32)
def _has_nvlink_by_name(name: str) -> bool:
    from towpath.specs import shipped as machines

    return _has_nvlink(machines.machine(name))


@lru_cache(maxsize=8)
def _features_of(name: str, hosts: int) -> tuple[object, ...]:
    from towpath.specs import shipped as machines

    return _features(machines.machine(name).sized(hosts=hosts))


def _features(spec: MachineSpec) -> tuple[object, ...]:
    """The inputs that determine the time of a collective: devices, wires and costs, without their
    names. Inside a host, adapters do not count.
    """
    from towpath.specs.spec_model import quantities_of

    counted = _IN_A_HOST if spec.host_count == 1 else None

    layout = spec.layout()
    link_types = {
        name: (link.kind, *(_value(link, field) for field in _LINK_FIELDS))
        for name, link in spec.link_types.items()
    }
    wires = Counter(
        (link_types[wire.link_type], wire.parallel)
        for wire in layout.wires
        if counted is None or all(layout.devices[end].kind in counted for end in (wire.a, wire.b))
    )
    kinds = Counter(
        (device.kind, device.host)
        for device in layout.devices
        if counted is None or device.kind in counted
    )
    costs = {
        path: value
        for path, value, _ in quantities_of(spec.gpu_cost)
        if not path.startswith("kernel.")
    }
    return kinds, wires, costs


_IN_A_HOST = ("gpu", "nvswitch")
_LINK_FIELDS = ("rate_gb_per_s", "latency_ns", "message_overhead_ns")


def _value(link: LinkType, field: str) -> float:
    return float(getattr(link, field).value)


@lru_cache
def _table() -> tuple[Accuracy, ...]:
    path = shipped.folder() / FILE
    if not path.is_file():
        return ()
    return tuple(Accuracy(**each) for each in json.loads(path.read_text(encoding="utf-8")))


def measure(lines: Iterable[list[str]]) -> Iterator[Accuracy]:
    """The errors of rows that a fit left out, by their kind.

    Args:
        lines: the fields of a line of the files.

    Yields:
        An entry for each kind.
    """
    groups: dict[tuple[str, int, int, str, str, int], list[float]] = defaultdict(list)
    for machine, hosts, collective, gpus, algorithm, size_bytes, error in lines:
        kind = (machine, int(hosts), int(gpus), collective, algorithm, band_of(int(size_bytes)))
        groups[kind].append(100 * abs(math.expm1(float(error))))
    for kind, errors in sorted(groups.items()):
        errors.sort()
        count = len(errors)
        within = min(count, math.ceil(0.9 * (count + 1)))
        yield Accuracy(
            *kind, count, round(errors[(count - 1) // 2], 1), round(errors[within - 1], 1),
        )  # fmt: skip


def main(files: list[str]) -> None:
    """Writes the errors of the files."""
    lines = [row for name in files for row in csv.reader(Path(name).read_text().splitlines())]
    text = ",\n".join(json.dumps(asdict(each)) for each in measure(lines))
    (shipped.folder() / FILE).write_text(f"[\n{text}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
