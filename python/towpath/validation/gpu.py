# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables measured on clusters of GPUs: all-reduce on H100 servers, as nccl-tests prints it."""

from __future__ import annotations

import re
from functools import lru_cache

from towpath.collectives import simulated
from towpath.collectives.call import Call
from towpath.collectives.gpus import channels_to_fill
from towpath.collectives.places import GpuPlace
from towpath.errors import quoted
from towpath.schedules.schedule_source import ScheduleSource
from towpath.specs import catalogue
from towpath.specs.machine_spec import GPUS_PER_HOST_MAX, HOSTS_MAX
from towpath.specs.sizes import SIZE_BYTES_MAX
from towpath.validation.table_kind import (
    CannotSimulate,
    Context,
    Prediction,
    Row,
    TableKind,
    real,
    whole,
)


@lru_cache(maxsize=8)
def _place(machine: str, hosts: int) -> tuple[GpuPlace, int]:
    spec = catalogue.load(machine, hosts=hosts)
    return GpuPlace(spec.build()), channels_to_fill(spec)


@lru_cache(maxsize=64)
def _call(algorithm: str, protocol: str, ranks: int, channels: int, hosts: int) -> Call:
    source = ScheduleSource(None, "all_reduce", algorithm, ranks, channels, protocol, 0, hosts)
    return Call(source.schedule())


_CTAS = re.compile(r"[0-9]{1,4}")  # NCCL's word for thread blocks, one per channel


def _settings(config: str) -> tuple[list[str], int | None]:
    """Which algorithms a configuration leaves to choose from, and a least number of channels."""
    algorithms = ["ring_all_reduce", "tree_all_reduce"]
    channels = None
    for word in config.split():
        name, _, value = word.removeprefix("NCCL_").partition("=")
        if name == "ALGO" and value.lower() in ("ring", "tree"):
            algorithms = [f"{value.lower()}_all_reduce"]
        elif name == "ALGO":
            raise CannotSimulate(f"NCCL_ALGO is {quoted(value)}; schedules are for Ring, Tree")
        elif name == "MIN_CTAS" and _CTAS.fullmatch(value):
            channels = int(value)
        elif name == "QPS":
            continue  # queue pairs per connection do not limit the model's adapters
        elif word != "default":
            known = "default, NCCL_ALGO, MIN_CTAS, QPS"
            raise CannotSimulate(f"config has {quoted(word)}; known are {known}")
    return algorithms, channels


# What NCCL was seen to choose on H100 servers: LL for small messages, Simple for large ones, LL128
# for none (nccl-tests#309, where these measurements are from too).
_PROTOCOLS = ("Simple", "LL")
# LL puts twice the bytes on the wire; beyond this it is never the fastest, only slow to simulate.
_LL_BYTES_MAX = 16 << 20


def _predict_all_reduce(row: Row, context: Context) -> Prediction:
    """The fastest of what NCCL may choose from: algorithms x protocols, out of place."""
    hosts = whole(row, "nodes", HOSTS_MAX)
    gpus = whole(row, "gpus", HOSTS_MAX * GPUS_PER_HOST_MAX)
    size_bytes = whole(row, "size_bytes", SIZE_BYTES_MAX)
    algorithms, least_channels = _settings(row["config"])
    place, channels = _place(context.machine or "dgx-h100", hosts)
    if gpus != place.machine.ranks:
        raise CannotSimulate(
            f"{gpus} GPUs on {hosts} nodes; the machine has {place.machine.ranks} on {hosts}"
        )
    times_us = []
    for algorithm in algorithms:
        for protocol in _PROTOCOLS:
            if protocol == "LL" and size_bytes > _LL_BYTES_MAX:
                continue
            call = _call(algorithm, protocol, gpus, max(channels, least_channels or 0), hosts)
            outcome = simulated.invoke(place, call, size_bytes, in_place=False, with_data=False)
            times_us.append(outcome.time_us)
    return Prediction(min(times_us))


GPU_KINDS = [
    TableKind(
        name="all_reduce on GPU clusters",
        columns=frozenset({"nodes", "gpus", "config", "size_bytes", "time_us_out_of_place"}),
        unit="us",
        identity=("nodes", "gpus", "config", "size_bytes"),
        group=lambda row: f"{row['nodes']} nodes, {row['gpus']} GPUs, {row['config']}",
        measured=lambda row: real(row, "time_us_out_of_place"),
        predict=_predict_all_reduce,
        label=lambda row: row["size_bytes"],
        check_machine=catalogue.load,
    ),
]
