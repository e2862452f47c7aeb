# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables measured on clusters of GPUs: collectives of NCCL and RCCL, as printed by nccl-tests, and
the kernels for inference inside one server.

For these rows, Towpath simulates the choice of NCCL, or of RCCL on AMD's GPUs (collectives/nccl).
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from towpath.collectives import simulated
from towpath.collectives.call import Call
from towpath.collectives.engines import ENGINES, KERNELS, NCCL, EngineHost
from towpath.collectives.gpus import fabric_gb_per_s
from towpath.collectives.launch import PROCESSES, THREADS, launched
from towpath.collectives.nccl.environment import VARIABLES, Environment
from towpath.collectives.nccl.facts import is_of_amd
from towpath.collectives.nccl.imitation import Imitation, Library
from towpath.collectives.nccl.sends import all_to_all_source
from towpath.collectives.nccl_itself.table import nearest_release
from towpath.collectives.places import GpuPlace
from towpath.errors import ConfigError, quoted
from towpath.schedules.schedule_source import ScheduleSource
from towpath.schedules.words import collective_named
from towpath.specs import catalogue
from towpath.specs.machine_spec import GPUS_PER_HOST_MAX, HOSTS_MAX, MachineSpec
from towpath.specs.sizes import SIZE_BYTES_MAX
from towpath.studies.deepep import MODES, OPERATIONS, Moe, times_of
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
    (("tcp", "ethernet", "gpudirect-tcpx", "gpudirect-tcpxo"), "ethernet"),
    (("infiniband", "hdr", "ndr"), "infiniband"),
)


@lru_cache(maxsize=8)
def _spec(machine: str, hosts: int) -> MachineSpec:
    return catalogue.load(machine, hosts=hosts)


@lru_cache(maxsize=8)
def _place(machine: str, hosts: int, gpus: int, launch: str) -> GpuPlace:
    spec = launched(_spec(machine, hosts), launch)
    places = (
        host * spec.gpus_per_host + gpu for host in range(hosts) for gpu in range(gpus // hosts)
    )
    return GpuPlace(spec.build(), places=tuple(places))


class _Setup(NamedTuple):
    """The GPUs of a row, and the variables of its library."""

    machine: str
    hosts: int
    gpus: int
    environment: Environment
    launch: str = PROCESSES
    version: str = ""  # of the library. Empty: the newest


@lru_cache(maxsize=32)
def _imitation(setup: _Setup) -> Imitation:
    spec = _spec(setup.machine, setup.hosts)
    library = Library("rccl" if is_of_amd(spec) else "nccl", setup.environment)
    gpus = setup.gpus // setup.hosts
    release = nearest_release(setup.version) if library.name == "nccl" else None
    if release is not None:
        try:
            return Imitation(spec, replace(library, release=release), gpus)
        except ConfigError:
            pass  # its table does not have this machine
    return Imitation(spec, library, gpus)


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
            raise CannotSimulate(f"config has {quoted(word)}; choose one of {known}")
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
    denied = {word for words, _ in _FABRICS for word in words if f"not {word}" in said}
    own = " ".join(spec.link_types).lower()
    for words, link in _FABRICS:
        word = next((word for word in words if re.search(rf"\b{word}\b", said)), None)
        if word is None or (link in own) != (word in denied):
            continue
        how, has = ("not over", "a") if word in denied else ("over", "no")
        raise CannotSimulate(
            f"it was measured {how} {word}, and {quoted(spec.name)} has {has} link type "
            f"{quoted(link)}; name another machine"
        )
    found = re.search(r"\b(\d{1,2}) ?x ?[^,;]{0,20}?\b(\d{2,3}) ?g\b", said)
    if found is None or spec.host_count == 1:
        return
    measured_gb_per_s = int(found[1]) * int(found[2]) / 8
    gb_per_s = fabric_gb_per_s(spec)
    if not 0.9 <= gb_per_s / measured_gb_per_s <= 1.05:
        raise CannotSimulate(
            f"its hosts had {found[0]}, {measured_gb_per_s:g} GB/s; those of {quoted(spec.name)} "
            f"have {gb_per_s:g} GB/s"
        )


def _time_us(setup: _Setup, call: Call, size_bytes: int) -> float:
    place = _place(setup.machine, setup.hosts, setup.gpus, setup.launch)
    return simulated.time_us(place, call, size_bytes)


def _predict_nccl(setup: _Setup, collective: str, size_bytes: int) -> Prediction:
    """The time of the library's choice, out of place."""
    try:
        imitation = _imitation(setup)
        if collective == "all_to_all" and imitation.library.name == "nccl":
            return _predict_all_to_all(setup, imitation, size_bytes)
        choice = imitation.choose(collective, size_bytes)
    except ConfigError as error:
        raise CannotSimulate(str(error)) from None
    if not imitation.has_schedule(collective, choice):
        raise CannotSimulate(f"NCCL would run {choice.name}, of which there is no schedule")
    source = imitation.source(collective, size_bytes, choice)
    call = _call(source)
    time_us = _time_us(setup, call, size_bytes)
    return Prediction(time_us, {
        "algorithm_run": source.algorithm, "chosen": choice.name, "channels": choice.channels,
        "release": imitation.release,
    })  # fmt: skip


def _predict_all_to_all(setup: _Setup, imitation: Imitation, size_bytes: int) -> Prediction:
    """The time of NCCL's sends and receives."""
    spec = _spec(setup.machine, setup.hosts)
    source = all_to_all_source(spec, setup.gpus, imitation.channels, size_bytes)
    time_us = _time_us(setup, _call(source), size_bytes)
    return Prediction(time_us, {
        "algorithm_run": source.algorithm, "chosen": f"send/{source.protocol}",
        "channels": source.channels, "release": imitation.release,
    })  # fmt: skip


def _measured(row: Row) -> float:
    """The shorter of the times out of place and in place, if both were measured: the work is the
    same, and a disturbance usually affects only one of them.
    """
    out_of_place = real(row, "time_us_out_of_place")
    if not (row.get("time_us_in_place") or "").strip():
        return out_of_place
    return min(out_of_place, real(row, "time_us_in_place"))


def _collective_named(row: Row, column: str) -> str:
    """The collective that a row names in any spelling, or all_reduce."""
    text = (row.get(column) or "").strip() or "all_reduce"
    try:
        return collective_named(text)
    except ConfigError as error:
        raise CannotSimulate(f"{column}: {error}") from None


def _predict_collective(row: Row, context: Context) -> Prediction:
    collective = _collective_named(row, "collective")
    hosts = whole(row, "nodes", HOSTS_MAX)
    gpus = whole(row, "gpus", HOSTS_MAX * GPUS_PER_HOST_MAX, 2)
    size_bytes = whole(row, "size_bytes", SIZE_BYTES_MAX)
    machine = _machine_of(row, context)
    spec = _spec(machine, hosts)
    if gpus % hosts != 0 or gpus > spec.ranks:
        raise CannotSimulate(
            f"{gpus} GPUs on {hosts} nodes; each node must have the same number, at most "
            f"{spec.gpus_per_host}"
        )
    _check_fabric(row, spec)
    setup = _Setup(machine, hosts, gpus, _environment(row["config"]))
    return _predict_nccl(setup, collective, size_bytes)


def _group_of_collective(row: Row) -> str:
    collective = (row.get("collective") or "").strip()
    start = f"{collective}, " if collective else ""
    return f"{start}{row['nodes']} nodes, {row['gpus']} GPUs, {row['config']}"


# The kernels of vLLM.
_KERNELS = tuple(name for name in KERNELS if name.startswith(("custom_", "symm_")))
# vLLM switches NVLS off, for the memory that it takes.
_VLLM = Environment.of({"NCCL_NVLS_ENABLE": "0"})


@lru_cache(maxsize=16)
def _engine_host(machine: str, gpus: int) -> EngineHost:
    return EngineHost(_spec(machine, 1), gpus)


def _predict_kernel(host: EngineHost, name: str, size_bytes: int) -> Prediction:
    """The time of a kernel of an engine as a node of a CUDA graph, with the copies around it."""
    try:
        time_us = host.time_us(name, size_bytes)
    except ConfigError as error:
        raise CannotSimulate(str(error)) from None
    algorithm = host.nccl_source(size_bytes).algorithm if name == NCCL else KERNELS[name].algorithm
    return Prediction(time_us, {"algorithm_run": algorithm, "chosen": name})


def _predict_in_one_host(row: Row, context: Context) -> Prediction:
    machine = _machine_of(row, context)
    gpus = whole(row, "world_size", _spec(machine, 1).gpus_per_host, 2)
    size_bytes = whole(row, "size_bytes", SIZE_BYTES_MAX)
    name = one_of(row, "algorithm", ("pynccl", *_KERNELS))
    if name == "pynccl":
        return _predict_nccl(_Setup(machine, 1, gpus, _VLLM), "all_reduce", size_bytes)
    return _predict_kernel(_engine_host(machine, gpus), name, size_bytes)


# Names of machines in tables.
_MACHINES = {"h100_sxm": "dgx-h100", "h200_sxm": "hgx-h200", "b200_sxm": "dgx-b200"}


def _predict_of_engine(row: Row, context: Context) -> Prediction:
    """The time of an engine's all-reduce of 16-bit elements in a CUDA graph."""
    engine = one_of(row, "engine", ENGINES)
    machine = _machine_of(row, context)
    machine = _MACHINES.get(machine, machine)
    gpus = whole(row, "gpus", _spec(machine, 1).gpus_per_host, 2)
    size_bytes = 2 * whole(row, "elements", SIZE_BYTES_MAX // 2)
    try:
        host = _engine_host(machine, gpus)
        name = host.kernel_of(engine, size_bytes)
    except ConfigError as error:
        raise CannotSimulate(str(error)) from None
    return _predict_kernel(host, name, size_bytes)


def _predict_of_deepep(row: Row, context: Context) -> Prediction:
    """The time of a dispatch or combine on all GPUs of the nodes."""
    mode, _, words = row["mode"].strip().partition("/")
    one_of({"mode": mode}, "mode", MODES)
    machine = _machine_of(row, context)
    spec = _spec(_MACHINES.get(machine, machine), whole(row, "nodes", HOSTS_MAX))
    columns = ("tokens", "hidden", "topk", "experts")
    moe = Moe(**{column: whole(row, column, 1 << 24) for column in columns})
    multiprocessors = whole({"sms": words.removesuffix("sms") or "20"}, "sms", 1 << 10)
    try:
        found = times_of(spec, mode, row["operation"], moe, multiprocessors)
    except ConfigError as error:
        raise CannotSimulate(str(error)) from None
    return Prediction(found.time_us, {"limit": found.limit})


_BANDS = ((64 << 10, "to 64 KiB"), (4 << 20, "to 4 MiB"))


def _predict_of_release(row: Row, context: Context) -> Prediction:
    machine = _machine_of(row, context)
    machine = _MACHINES.get(machine, machine)
    collective = _collective_named(row, "op")
    gpus = whole(row, "gpus", _spec(machine, 1).gpus_per_host, 2)
    size_bytes = whole(row, "size_bytes", SIZE_BYTES_MAX)
    setup = _Setup(machine, 1, gpus, Environment(), THREADS, row["nccl"].strip())
    return _predict_nccl(setup, collective, size_bytes)


def _group_of_release(row: Row) -> str:
    size_bytes = whole(row, "size_bytes", SIZE_BYTES_MAX)
    band = next((words for most, words in _BANDS if size_bytes <= most), "above")
    return f"{row['machine']}, {row['op']}, {row['gpus']} GPUs, {band}"


GPU_KINDS = [
    TableKind(
        name="collectives of a release of NCCL in one GPU host",
        columns=frozenset({"machine", "nccl", "op", "gpus", "size_bytes", "time_us"}),
        unit="us",
        identity=("machine", "op", "gpus", "size_bytes"),
        group=_group_of_release,
        measured=lambda row: real(row, "time_us"),
        predict=_predict_of_release,
        label=lambda row: row["size_bytes"],
        check_machine=catalogue.load,
    ),
    TableKind(
        name="collectives on GPU clusters",
        columns=frozenset({"nodes", "gpus", "config", "size_bytes", "time_us_out_of_place"}),
        unit="us",
        identity=("nodes", "gpus", "config", "size_bytes"),
        group=_group_of_collective,
        measured=_measured,
        predict=_predict_collective,
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
    TableKind(
        name="DeepEP's dispatch and combine",
        columns=frozenset(
            {
                "machine",
                "mode",
                "nodes",
                "hidden",
                "tokens",
                "topk",
                "experts",
                "dispatch_us",
                "combine_us",
            }
        ),
        unit="us",
        identity=("mode", "nodes", "tokens", "experts", "operation"),
        group=lambda row: (
            f"{row['machine']}, {row['mode'].split('/')[0]}, {row['nodes']} nodes, "
            f"{row['operation']}"
        ),
        measured=lambda row: real(row, f"{row['operation']}_us"),
        predict=_predict_of_deepep,
        label=lambda row: f"{row['tokens']} {row['mode'].partition('/')[2]}",
        check_machine=catalogue.load,
        parts=lambda row: [row | {"operation": operation} for operation in OPERATIONS],
    ),
    TableKind(
        name="all_reduce of an inference engine in a CUDA graph, in one GPU host",
        columns=frozenset({"machine", "engine", "gpus", "elements", "time_us"}),
        unit="us",
        identity=("machine", "engine", "gpus", "elements"),
        group=lambda row: f"{row['machine']}, {row['engine']}, {row['gpus']} GPUs",
        measured=lambda row: real(row, "time_us"),
        predict=_predict_of_engine,
        label=lambda row: row["elements"],
        check_machine=catalogue.load,
    ),
]
