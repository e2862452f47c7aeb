# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""DeepEP's dispatch and combine on GPU hosts: the bytes of each resource, and the time of the
slowest.

A token goes to `topk` random experts, which are spread evenly over the GPUs. Dispatch sends FP8
with a scale for 128 elements, combine returns BF16.

    low latency: a message for each expert. Threads write to GPUs of the host over NVLink and hand
        the others to the adapter. Then the receiver copies or adds up the messages.
    normal: a message for each GPU of the host. On several hosts one for each host, which a thread
        block there hands on to GPUs. Half of the multiprocessors send.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

from towpath.collectives.gpus import fabric_gb_per_s
from towpath.errors import ConfigError, quoted
from towpath.specs.machine_spec import MachineSpec

LOW_LATENCY, NORMAL = "low_latency", "normal"
MODES = (LOW_LATENCY, NORMAL)
DISPATCH, COMBINE = "dispatch", "combine"
OPERATIONS = (DISPATCH, COMBINE)

# Microseconds of a call without tokens: its kernels, the counts that GPUs exchange, and in normal
# mode on one host the host's call. Fitted: rows of 1 to 4 tokens on 8 and 16 H100 (tables of
# aiconfigurator-core 0.12.0).
_FLOOR_US = {
    (LOW_LATENCY, DISPATCH): 15.2, (LOW_LATENCY, COMBINE): 12.5,
    (NORMAL, DISPATCH): 37.0, (NORMAL, COMBINE): 49.5,
}  # fmt: skip
_FLOOR_OF_HOSTS_US = {
    (LOW_LATENCY, DISPATCH): 21.5, (LOW_LATENCY, COMBINE): 26.5,
    (NORMAL, DISPATCH): 27.0, (NORMAL, COMBINE): 50.0,
}  # fmt: skip
# The rate of all thread blocks of the low-latency kernels to peers of the host. Fitted:
# 1024 and 2048 tokens on 8 H100 (the same tables).
_LOW_LATENCY_GB_PER_S = {DISPATCH: 300.0, COMBINE: 222.0}
# The rate at which a thread block of combine adds up messages of the GPUs of a host. Fitted: 4 to
# 24 multiprocessors and 8192 tokens on 16 H100 (the same tables).
_REDUCE_GB_PER_S = 21.0
_SCALE_OF = 128  # elements with one scale of 4 bytes
_HEADER_BYTES = 16  # of a message of low latency


@dataclass(frozen=True)
class Moe:
    """A layer of experts.

    Attributes:
        tokens: tokens of each GPU.
        hidden: elements of a token.
        topk: experts of a token.
        experts: number of experts.
    """

    tokens: int
    hidden: int = 7168
    topk: int = 8
    experts: int = 256


@dataclass(frozen=True)
class Times:
    """A dispatch or combine.

    Attributes:
        time_us: its time.
        limit: the resource that takes longest.
        network_bytes: bytes of a GPU to other hosts.
        nvlink_bytes: bytes of a GPU to GPUs of its host.
    """

    time_us: float
    limit: str
    network_bytes: int
    nvlink_bytes: int


def _reached(groups: int, moe: Moe) -> float:
    """The expected number of `groups` equal groups of experts with an expert of a token."""
    others = moe.experts - moe.experts // groups
    return groups * (1 - comb(others, moe.topk) / comb(moe.experts, moe.topk))


def _bytes_of(operation: str, moe: Moe) -> int:
    if operation == COMBINE:
        return 2 * moe.hidden
    return moe.hidden + moe.hidden // _SCALE_OF * 4 + _HEADER_BYTES


def times_of(
    spec: MachineSpec, mode: str, operation: str, moe: Moe, multiprocessors: int = 20
) -> Times:
    """Predicts a call on all GPUs of a machine.

    Args:
        spec: hosts with GPUs behind NVSwitch.
        mode: one of `MODES`.
        operation: one of `OPERATIONS`.
        moe: the layer.
        multiprocessors: of a GPU, for normal mode.

    Raises:
        ConfigError: the experts cannot be spread evenly, or the machine lacks NVLinks or costs.
    """
    _check(spec, moe, multiprocessors)
    parts = _low_latency if mode == LOW_LATENCY else _normal
    seconds, network, nvlink, after = parts(spec, operation, moe, multiprocessors // 2)
    limit = max(seconds, key=lambda name: seconds[name])
    floors = _FLOOR_US if spec.host_count == 1 else _FLOOR_OF_HOSTS_US
    time_us = floors[mode, operation] + 1e6 * (seconds[limit] + after)
    return Times(time_us, limit, round(network), round(nvlink))


def _check(spec: MachineSpec, moe: Moe, multiprocessors: int) -> None:
    gpus = spec.host_count * spec.gpus_per_host
    if moe.experts % gpus or not 1 <= moe.topk <= moe.experts:
        raise ConfigError(
            f"{moe.experts} experts, {moe.topk} for a token, on {gpus} GPUs. The experts must be a "
            "multiple of the GPUs and at least as many as a token has"
        )
    if multiprocessors < 2 or multiprocessors % 2:
        raise ConfigError(f"{multiprocessors} multiprocessors, but DeepEP needs an even number")
    if spec.gpu_cost.kernel is None or "nvlink" not in spec.link_types:
        raise ConfigError(f"machine {quoted(spec.name)} has no NVLinks or no costs of kernels")


Parts = tuple[dict[str, float], float, float, float]


def _network_rate(spec: MachineSpec) -> float:
    """The rate of a GPU's share of the adapters, in bytes per second."""
    return fabric_gb_per_s(spec) / spec.gpus_per_host * 1e9


def _nvlink_rate(spec: MachineSpec) -> float:
    return float(spec.link_types["nvlink"].rate_gb_per_s.value) * 1e9


def _low_latency(spec: MachineSpec, operation: str, moe: Moe, _: int) -> Parts:
    hosts, gpus = spec.host_count, spec.gpus_per_host
    payload = moe.tokens * moe.topk * _bytes_of(operation, moe)
    network = payload * (hosts - 1) / hosts
    nvlink = payload * (gpus - 1) / (hosts * gpus)
    rate = min(_nvlink_rate(spec), _LOW_LATENCY_GB_PER_S[operation] * 1e9)
    seconds = {"nvlink": nvlink / rate}
    if hosts > 1:
        seconds["network"] = network / _network_rate(spec)
    stored = payload if operation == DISPATCH else moe.tokens * _bytes_of(operation, moe)
    kernel = spec.gpu_cost.kernel
    memory_rate = float(kernel.memory_rate_gb_per_s.value) * 1e9 if kernel else 0.0
    return seconds, network, nvlink, (payload + stored) / memory_rate


def _normal(spec: MachineSpec, operation: str, moe: Moe, channels: int) -> Parts:
    hosts, gpus = spec.host_count, spec.gpus_per_host
    size = _bytes_of(operation, moe)
    payload = moe.tokens * _reached(hosts * gpus, moe) * size
    nvlink = payload * (gpus - 1) / gpus
    simple = spec.gpu_cost.simple
    seconds = {"nvlink": nvlink / _nvlink_rate(spec)}
    network = 0.0
    if hosts == 1:
        direct = spec.gpu_cost.direct_rate_gb_per_s or simple.block_rate_gb_per_s
        seconds["multiprocessors"] = payload / (channels * float(direct.value) * 1e9)
    else:
        forward = simple.forward_rate_gb_per_s or simple.block_rate_gb_per_s
        rate = float(forward.value) if operation == DISPATCH else _REDUCE_GB_PER_S
        seconds["multiprocessors"] = payload / (channels * rate * 1e9)
        network = moe.tokens * _reached(hosts, moe) * (hosts - 1) / hosts * size
        seconds["network"] = network / _network_rate(spec)
    return seconds, network, nvlink, 0.0
