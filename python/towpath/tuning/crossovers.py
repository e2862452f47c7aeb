# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The sizes at which another all-reduce kernel of an inference engine becomes the fastest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from towpath.collectives.engines import ERRORS, NCCL, EngineHost
from towpath.errors import ConfigError
from towpath.specs.machine_spec import MachineSpec

Times = dict[str, tuple[float, ...]]  # of each kernel at each size
# vLLM's names of architectures.
_CAPABILITIES = {"hopper": "9.0", "blackwell": "10.0"}


@dataclass(frozen=True)
class Crossover:
    """A size from which another kernel is faster.

    Attributes:
        before: the kernel that is the fastest below.
        after: the kernel that is the fastest above.
        size_bytes: the size.
        low_bytes: below this size the difference is larger than the errors of both kernels.
        high_bytes: the same above this size.
    """

    before: str
    after: str
    size_bytes: int
    low_bytes: int
    high_bytes: int


@dataclass(frozen=True)
class Crossovers:
    """The kernels of an engine on some GPUs of a host.

    Attributes:
        gpus: number of GPUs.
        generation: of the GPUs, such as "hopper".
        sizes_bytes: the simulated sizes.
        times_us: the time of each kernel at each size.
        found: in the order of sizes.
    """

    gpus: int
    generation: str
    sizes_bytes: tuple[int, ...]
    times_us: Times
    found: tuple[Crossover, ...]

    def end_of(self, kernels: str) -> int:
        """The size up to which kernels whose names begin so are the choice, or 0."""
        order = list(self.times_us)
        last = max((at for at, name in enumerate(order) if name.startswith(kernels)), default=-1)
        if last < 0:
            return 0
        ends = [each.size_bytes for each in self.found if order.index(each.before) <= last]
        passed = [each for each in self.found if order.index(each.after) > last]
        return ends[-1] if passed else self.sizes_bytes[-1]


def crossovers(spec: MachineSpec, engine: str, gpus: int, sizes_bytes: Sequence[int]) -> Crossovers:
    """Times the kernels of an engine, and NCCL, as nodes of a CUDA graph.

    Args:
        spec: a machine with one GPU host.
        engine: one of `ENGINES`.
        gpus: number of GPUs.
        sizes_bytes: rising sizes.

    Raises:
        ConfigError: the engine's kernels on these GPUs are not known.
    """
    host = EngineHost(spec, gpus)
    names = (*host.kernels_of(engine), NCCL)
    times = {name: tuple(host.time_us(name, size) for size in sizes_bytes) for name in names}
    found: list[Crossover] = []
    for count in range(1, len(names)):
        one = _crossover(names[:count], names[count:], times, sizes_bytes)
        if one is not None and (not found or one.after != found[-1].after):
            found.append(one)
    generation = host.imitation.facts.communicator.generation
    return Crossovers(gpus, generation, tuple(sizes_bytes), times, tuple(found))


def _crossover(
    small: Sequence[str], large: Sequence[str], times: Times, sizes: Sequence[int]
) -> Crossover | None:
    """The size from which the best of the later kernels stays faster, or None."""

    def best(names: Sequence[str], at: int) -> str:
        return min(names, key=lambda name: times[name][at])

    gains = [
        math.log(times[best(small, at)][at] / times[best(large, at)][at])
        for at in range(len(sizes))
    ]
    at = max((at for at, gain in enumerate(gains) if gain <= 0), default=-1) + 1
    if at in (0, len(sizes)):
        return None
    before, after = best(small, at - 1), best(large, at)
    error = ERRORS[before] + ERRORS[after]
    low, high = at - 1, at
    while low > 0 and gains[low] > -error:
        low -= 1
    while high < len(sizes) - 1 and gains[high] < error:
        high += 1
    return Crossover(
        before, after, _where(gains, sizes, at, 0.0),
        _where(gains, sizes, low + 1, -error), _where(gains, sizes, high, error),
    )  # fmt: skip


def _where(gains: list[float], sizes: Sequence[int], at: int, level: float) -> int:
    """The size between the sizes `at - 1` and `at` at which the gain has a value, or the nearer."""
    step = gains[at] - gains[at - 1]
    share = 0.5 if step == 0 else (level - gains[at - 1]) / step
    ends = math.log2(sizes[at - 1]), math.log2(sizes[at])
    return round(2 ** (ends[0] + min(max(share, 0.0), 1.0) * (ends[1] - ends[0])))


def lines_of(found: Sequence[Crossovers]) -> list[str]:
    """A line for each crossover, with headings."""
    lines = [f"# {'GPUs':>4}  {'up to':<16}  {'above':<16}  {'size (B)':>10}  uncertain (B)"]
    lines += [
        f"  {each.gpus:4}  {one.before:<16}  {one.after:<16}  {one.size_bytes:10}  "
        f"{one.low_bytes} to {one.high_bytes}"
        for each in found
        for one in each.found
    ]
    return lines


def limits_of(engine: str, found: Sequence[Crossovers]) -> dict[str, Any]:
    """The crossovers in the form of the engine's own tables.

    Raises:
        ConfigError: the engine cannot read a table.
    """
    if engine == "vllm":
        return _limits_of_vllm(found)
    if engine == "sglang":
        return _limits_of_sglang(found)
    raise ConfigError(f"--limits is for vllm and sglang, and the table of {engine} is compiled in")


def _limits_of_vllm(found: Sequence[Crossovers]) -> dict[str, Any]:
    """all_reduce_utils.py: its own kernels up to a size, symmetric memory up to another."""
    own: dict[str, dict[str, int]] = {}
    symmetric: dict[str, dict[str, int]] = {}
    for each in found:
        capability = _CAPABILITIES[each.generation]
        custom = each.end_of("custom_")
        own.setdefault(capability, {})[str(each.gpus)] = custom
        symmetric.setdefault(capability, {})[str(each.gpus)] = max(custom, each.end_of("symm_"))
    return {"CUSTOM_ALL_REDUCE_MAX_SIZES": own, "SYMM_MEM_ALL_REDUCE_MAX_SIZES": symmetric}


def _limits_of_sglang(found: Sequence[Crossovers]) -> dict[str, Any]:
    """custom_all_reduce_v2.py: thresholds of one shot, and the size of the buffer of two."""
    modes = {}
    sizes = {}
    for each in found:
        push = each.end_of("sglang_push")
        pull = max(push, each.end_of("sglang_pull"))
        modes[str(each.gpus)] = {"one_shot_push_threshold": push, "one_shot_pull_threshold": pull}
        sizes[str(each.gpus)] = max(pull, each.end_of("sglang_"))
    return {"THRESHOLD_2_SHOT_MAP": modes, "max_pull_size": sizes}
