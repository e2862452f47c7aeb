# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables measured on clusters of GPUs: all-reduce on H100 servers, as nccl-tests prints it, and the
kernels that serve inference inside one of them.

Rows that NCCL ran are answered by what NCCL would choose (collectives/nccl), simulated by ours.
"""

from __future__ import annotations

from functools import lru_cache

from towpath import _core
from towpath.collectives import simulated
from towpath.collectives.call import Call
from towpath.collectives.nccl.choice import Choice, choose
from towpath.collectives.nccl.communicator import Communicator
from towpath.collectives.nccl.environment import Environment
from towpath.collectives.nccl.facts import facts_of
from towpath.collectives.places import GpuPlace
from towpath.errors import quoted
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
# A thread block sends the first lines of a chunk on while the last are still on their way. The
# simulator hands on whole chunks, so trees cut theirs into parts of this size.
_LINES_BYTES = {"LL": 2 << 10, "LL128": 4 << 10}
_PARTS_MAX = 64


@lru_cache(maxsize=8)
def _spec(machine: str, hosts: int) -> MachineSpec:
    return catalogue.load(machine, hosts=hosts)


@lru_cache(maxsize=8)
def _place(machine: str, hosts: int, gpus: int) -> GpuPlace:
    return GpuPlace(_spec(machine, hosts).build(), places=tuple(range(gpus)))


@lru_cache(maxsize=32)
def _communicator(machine: str, hosts: int, gpus: int, environment: Environment) -> Communicator:
    return facts_of(_spec(machine, hosts), gpus // hosts, environment).communicator


@lru_cache(maxsize=64)
def _call(
    algorithm: str, protocol: str, *, ranks: int, channels: int, hosts: int = 1, parts: int = 1
) -> Call:
    if algorithm not in _core.algorithm_names(_core.Collective.all_reduce):
        raise CannotSimulate(f"it would run {quoted(algorithm)}, for which there is no schedule")
    source = ScheduleSource(
        None, "all_reduce", algorithm, ranks, channels, protocol, 0, hosts, chunks_per_channel=parts
    )
    return Call(source.schedule())


def _environment(config: str) -> Environment:
    """What a row's configuration sets of NCCL's variables."""
    variables = {}
    for word in config.split():
        name, _, value = word.removeprefix("NCCL_").partition("=")
        if name in ("ALGO", "PROTO", "MIN_CTAS", "MAX_CTAS", "NVLS_ENABLE"):
            variables[f"NCCL_{name}"] = value
        elif name == "QPS":
            continue  # queue pairs per connection do not limit the model's adapters
        elif word != "default":
            known = "default, NCCL_ALGO, NCCL_PROTO, MIN_CTAS, MAX_CTAS, NVLS_ENABLE, QPS"
            raise CannotSimulate(f"config has {quoted(word)}; known are {known}")
    return Environment.of(variables)


def _parts(choice: Choice, size_bytes: int, gpus_per_host: int) -> int:
    """What a channel cuts its share into: NCCL's chunks, or lines that flow."""
    if choice.algorithm == "ring":
        return 1
    chunk_bytes = _LINES_BYTES.get(choice.protocol, choice.chunk_bytes)
    heads = gpus_per_host if choice.algorithm.startswith("nvls") else 1
    return max(1, min(_PARTS_MAX, size_bytes // (choice.channels * heads * chunk_bytes)))


def _time_us(machine: str, hosts: int, gpus: int, call: Call, size_bytes: int) -> float:
    place = _place(machine, hosts, gpus)
    return simulated.invoke(place, call, size_bytes, in_place=False, with_data=False).time_us


def _predict_nccl(
    machine: str, hosts: int, gpus: int, size_bytes: int, environment: Environment
) -> Prediction:
    """What NCCL would choose, out of place."""
    communicator = _communicator(machine, hosts, gpus, environment)
    choice = choose(communicator, "all_reduce", size_bytes, environment)
    parts = _parts(choice, size_bytes, gpus // hosts)
    call = _call(
        f"{choice.algorithm}_all_reduce", choice.protocol,
        ranks=gpus, channels=choice.channels, hosts=hosts, parts=parts,
    )  # fmt: skip
    time_us = _time_us(machine, hosts, gpus, call, size_bytes)
    return Prediction(time_us, {"chosen": choice.name, "channels": choice.channels})


def _measured(row: Row) -> float:
    """The lesser of out of place and in place, where both were measured: the same work, and what
    disturbed one of them did not disturb the other."""
    out_of_place = real(row, "time_us_out_of_place")
    if not (row.get("time_us_in_place") or "").strip():
        return out_of_place
    return min(out_of_place, real(row, "time_us_in_place"))


def _predict_all_reduce(row: Row, context: Context) -> Prediction:
    hosts = whole(row, "nodes", HOSTS_MAX)
    gpus = whole(row, "gpus", HOSTS_MAX * GPUS_PER_HOST_MAX)
    size_bytes = whole(row, "size_bytes", SIZE_BYTES_MAX)
    machine = context.machine or _MACHINE
    ranks = _spec(machine, hosts).gpus_per_host * hosts
    if gpus != ranks:
        raise CannotSimulate(f"{gpus} GPUs on {hosts} nodes; the machine has {ranks} on {hosts}")
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
    machine = context.machine or _MACHINE
    gpus = whole(row, "world_size", _spec(machine, 1).gpus_per_host, 2)
    size_bytes = whole(row, "size_bytes", SIZE_BYTES_MAX)
    name = one_of(row, "algorithm", ("pynccl", *_KERNELS))
    if name == "pynccl":
        return _predict_nccl(machine, 1, gpus, size_bytes, _VLLM)
    algorithm, blocks = _KERNELS[name]
    call = _call(algorithm, "Simple", ranks=gpus, channels=blocks)
    return Prediction(_time_us(machine, 1, gpus, call, size_bytes))


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
