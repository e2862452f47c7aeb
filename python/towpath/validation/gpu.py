# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables measured on clusters of GPUs: all-reduce on H100 servers, as printed by nccl-tests, and
the kernels for inference inside one server.

For rows from NCCL, Towpath simulates NCCL's choice (collectives/nccl).
"""

from __future__ import annotations

import re
from functools import lru_cache

from towpath.collectives import simulated
from towpath.collectives.call import Call
from towpath.collectives.nccl.environment import VARIABLES, Environment
from towpath.collectives.nccl.imitation import Imitation, Library
from towpath.collectives.places import GpuPlace
from towpath.errors import ConfigError, quoted
from towpath.schedules.schedule_source import ScheduleSource
from towpath.specs import catalogue
from towpath.specs.machine_spec import GPUS_PER_HOST_MAX, HOSTS_MAX, MachineSpec
from towpath.specs.sizes import SIZE_BYTES_MAX
from towpath.validation.table_kind import (
    CannotSimulate,
    Context,
    Prediction,
    Row,
    TableKind,
    one_of,
    real,
    whole,
)

_MACHINE = "dgx-h100"
# Queue pairs per connection do not limit the model's adapters; the others do not change a time.
_WITHOUT_EFFECT = (
    "QPS",
    "IB_QPS_PER_CONNECTION",
    "IB_HCA",
    "IB_GID_INDEX",
    "SOCKET_IFNAME",
    "DEBUG",
)
# What a table calls a fabric, and a word of the link types of machines that have it.
_FABRICS = (
    (("roce", "rocev2"), "roce"),
    (("efa",), "efa"),
    (("slingshot",), "slingshot"),
    (("omni-path",), "omni"),
    (("tcp", "ethernet", "gpudirect-tcpx"), "ethernet"),
    (("infiniband", "hdr", "ndr"), "infiniband"),
)


@lru_cache(maxsize=8)
def _spec(machine: str, hosts: int) -> MachineSpec:
    return catalogue.load(machine, hosts=hosts)


@lru_cache(maxsize=8)
def _place(machine: str, hosts: int, gpus: int) -> GpuPlace:
    spec = _spec(machine, hosts)
    places = (
        host * spec.gpus_per_host + gpu for host in range(hosts) for gpu in range(gpus // hosts)
    )
    return GpuPlace(spec.build(), places=tuple(places))


@lru_cache(maxsize=32)
def _imitation(machine: str, hosts: int, gpus: int, environment: Environment) -> Imitation:
    return Imitation(_spec(machine, hosts), Library(environment=environment), gpus // hosts)


@lru_cache(maxsize=64)
def _call(source: ScheduleSource) -> Call:
    return Call(source.schedule())


def _environment(config: str) -> Environment:
    """The variables of NCCL that a row's configuration sets."""
    variables = {}
    for word in config.split():
        name, _, value = word.removeprefix("NCCL_").partition("=")
        if f"NCCL_{name}" in VARIABLES:
            variables[f"NCCL_{name}"] = value
        elif word != "default" and name not in _WITHOUT_EFFECT:
            known = ", ".join(("default", *VARIABLES, *_WITHOUT_EFFECT))
            raise CannotSimulate(f"config has {quoted(word)}; known are {known}")
    try:
        return Environment.of(variables)
    except ConfigError as error:
        raise CannotSimulate(f"config: {error}") from None


def _machine_of(row: Row, context: Context) -> str:
    """The machine that a row names, that was requested, or of the shipped tables."""
    return (row.get("machine") or "").strip() or context.machine or _MACHINE


def _check_fabric(row: Row, spec: MachineSpec) -> None:
    """Rejects a row whose hosts were joined by another network than the machine's."""
    said = " ".join(row.get(column) or "" for column in ("fabric", "note", "source")).lower()
    own = " ".join(spec.link_types).lower()
    for words, link in _FABRICS:
        word = next((word for word in words if re.search(rf"\b{word}\b", said)), None)
        if word is not None and link not in own:
            raise CannotSimulate(
                f"it was measured over {word}, and {quoted(spec.name)} has no link type "
                f"{quoted(link)}; name a machine with it"
            )
    found = re.search(r"\b(\d{1,2}) ?x ?[^,;]{0,20}?\b(\d{2,3}) ?g\b", said)
    if found is None or spec.host_count == 1:
        return
    measured_gb_per_s = int(found[1]) * int(found[2]) / 8
    gb_per_s = _fabric_gb_per_s(spec)
    if not 0.9 <= gb_per_s / measured_gb_per_s <= 1.05:
        raise CannotSimulate(
            f"its hosts had {found[0]}, {measured_gb_per_s:g} GB/s; those of {quoted(spec.name)} "
            f"have {gb_per_s:g} GB/s"
        )


def _fabric_gb_per_s(spec: MachineSpec) -> float:
    """Rate at which one host can send to the others."""
    layout = spec.layout()
    first = {at for at, device in enumerate(layout.devices) if device.host == 0}
    return sum(
        spec.link_types[wire.link_type].rate_gb_per_s.value * wire.parallel
        for wire in layout.wires
        if (wire.a in first) != (wire.b in first)
    )


def _time_us(machine: str, hosts: int, gpus: int, call: Call, size_bytes: int) -> float:
    place = _place(machine, hosts, gpus)
    return simulated.time_us(place, call, size_bytes)


def _predict_nccl(
    machine: str, hosts: int, gpus: int, size_bytes: int, environment: Environment
) -> Prediction:
    """The time of NCCL's choice, out of place."""
    imitation = _imitation(machine, hosts, gpus, environment)
    choice = imitation.choose("all_reduce", size_bytes)
    if not imitation.has_schedule("all_reduce", choice):
        raise CannotSimulate(f"NCCL would run {choice.name}, of which there is no schedule")
    source = imitation.source("all_reduce", size_bytes, choice)
    call = _call(source)
    time_us = _time_us(machine, hosts, gpus, call, size_bytes)
    return Prediction(time_us, {
        "algorithm_run": source.algorithm, "chosen": choice.name, "channels": choice.channels,
    })  # fmt: skip


def _measured(row: Row) -> float:
    """The shorter of the times out of place and in place, if both were measured: the work is the
    same, and a disturbance usually affects only one of them.
    """
    out_of_place = real(row, "time_us_out_of_place")
    if not (row.get("time_us_in_place") or "").strip():
        return out_of_place
    return min(out_of_place, real(row, "time_us_in_place"))


def _predict_all_reduce(row: Row, context: Context) -> Prediction:
    hosts = whole(row, "nodes", HOSTS_MAX)
    gpus = whole(row, "gpus", HOSTS_MAX * GPUS_PER_HOST_MAX, 2)
    size_bytes = whole(row, "size_bytes", SIZE_BYTES_MAX)
    machine = _machine_of(row, context)
    spec = _spec(machine, hosts)
    if gpus % hosts != 0 or gpus > spec.ranks:
        raise CannotSimulate(
            f"{gpus} GPUs on {hosts} nodes; allowed are equally many on each, at most "
            f"{spec.gpus_per_host}"
        )
    _check_fabric(row, spec)
    return _predict_nccl(machine, hosts, gpus, size_bytes, _environment(row["config"]))


# The kernels of vLLM's table, and the most thread blocks that they start: vLLM's
# csrc/custom_all_reduce.cuh, and PyTorch's CUDASymmetricMemoryOps.cu.
_KERNELS = {
    "custom_1stage": ("one_shot_pull_all_reduce", 36),
    "custom_2stage": ("two_shot_pull_all_reduce", 36),
    "symm_two_shot": ("two_shot_pull_all_reduce", 24),
    "symm_multimem": ("two_shot_multimem_all_reduce", 24),
}
# vLLM switches NVLS off, for the memory that it takes.
_VLLM = Environment.of({"NCCL_NVLS_ENABLE": "0"})


def _predict_in_one_host(row: Row, context: Context) -> Prediction:
    machine = _machine_of(row, context)
    gpus = whole(row, "world_size", _spec(machine, 1).gpus_per_host, 2)
    size_bytes = whole(row, "size_bytes", SIZE_BYTES_MAX)
    name = one_of(row, "algorithm", ("pynccl", *_KERNELS))
    if name == "pynccl":
        return _predict_nccl(machine, 1, gpus, size_bytes, _VLLM)
    algorithm, blocks = _KERNELS[name]
    source = ScheduleSource(
        collective="all_reduce", algorithm=algorithm, ranks=gpus, channels=blocks, protocol="Simple"
    )
    call = _call(source)
    time_us = _time_us(machine, 1, gpus, call, size_bytes)
    return Prediction(time_us, {"algorithm_run": algorithm})


GPU_KINDS = [
    TableKind(
        name="all_reduce on GPU clusters",
        columns=frozenset({"nodes", "gpus", "config", "size_bytes", "time_us_out_of_place"}),
        unit="us",
        identity=("nodes", "gpus", "config", "size_bytes"),
        group=lambda row: f"{row['nodes']} nodes, {row['gpus']} GPUs, {row['config']}",
        measured=_measured,
        predict=_predict_all_reduce,
        label=lambda row: row["size_bytes"],
        check_machine=catalogue.load,
    ),
    TableKind(
        name="all_reduce of the kernels for inference, in one GPU host",
        columns=frozenset({"world_size", "size_bytes", "algorithm", "time_us"}),
        unit="us",
        identity=("world_size", "size_bytes", "algorithm"),
        group=lambda row: f"{row['world_size']} GPUs, {row['algorithm']}",
        measured=lambda row: real(row, "time_us"),
        predict=_predict_in_one_host,
        label=lambda row: row["size_bytes"],
        check_machine=catalogue.load,
    ),
]
