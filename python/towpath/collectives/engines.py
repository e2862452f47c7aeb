# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The all-reduce kernels of inference engines within a host, as nodes of a CUDA graph.

Each kernel is a schedule of Towpath's with the thread blocks that the engine starts. An engine
takes a kernel up to a size, then the next one, and at last NCCL.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import NamedTuple

from towpath.collectives import simulated
from towpath.collectives.call import Call
from towpath.collectives.launch import GRAPH, launched
from towpath.collectives.nccl.environment import Environment
from towpath.collectives.nccl.imitation import Imitation, Library
from towpath.collectives.places import GpuPlace
from towpath.errors import ConfigError, quoted
from towpath.schedules.schedule_source import ScheduleSource
from towpath.specs.machine_spec import MachineSpec

NCCL = "nccl"


class Kernel(NamedTuple):
    """A kernel, and the sequential parts that its schedule does not have."""

    algorithm: str
    blocks: int  # the most that it starts. 64 if it starts more: links are the limit then
    fences: int = 0  # each after stores of all thread blocks to the other GPUs
    copies: int = 0  # of the array to or from the memory that peers reach
    has_own_copies: bool = True  # False: other kernels copy, each with a launch
    bytes_in_flight: int = 0  # from each GPU: 16 of a thread, if that limits the rate


# vLLM: csrc/custom_all_reduce.cuh, PyTorch's CUDASymmetricMemoryOps.cu between the copies of
# device_communicators/symm_mem.py. SGLang: jit_kernel/csrc/distributed. TensorRT-LLM:
# kernels/communicationKernels/allReduceFusionKernels.cu.
KERNELS = {
    "custom_1stage": Kernel("one_shot_pull_all_reduce", 36, bytes_in_flight=36 * 512 * 16),
    "custom_2stage": Kernel("two_shot_pull_all_reduce", 36, fences=1),
    "symm_two_shot": Kernel("two_shot_pull_all_reduce", 24, copies=2, has_own_copies=False),
    "symm_multimem": Kernel("two_shot_multimem_all_reduce", 24, copies=2, has_own_copies=False),
    "sglang_push": Kernel("one_shot_push_all_reduce", 64),
    "sglang_pull": Kernel("one_shot_pull_all_reduce", 64),
    "sglang_two_shot": Kernel("two_shot_pull_push_all_reduce", 64, fences=1),
    "lamport_one_shot": Kernel("one_shot_push_all_reduce", 64),
    "sync_two_shot": Kernel("two_shot_pull_push_all_reduce", 64, fences=2, copies=2),
}

# The median error of each kernel's rows in the shipped tables, as a share (`towpath validate`).
ERRORS = {
    "custom_1stage": 0.07, "custom_2stage": 0.07, "symm_two_shot": 0.08, "symm_multimem": 0.10,
    "sglang_push": 0.10, "sglang_pull": 0.01, "sglang_two_shot": 0.10,
    "lamport_one_shot": 0.09, "sync_two_shot": 0.27, NCCL: 0.07,
}  # fmt: skip

_K, _M = 1 << 10, 1 << 20
# The largest array in bytes of each kernel in turn, by generation and number of GPUs.
_Limits = dict[str, dict[int, tuple[tuple[str, int], ...]]]
# device_communicators/all_reduce_utils.py of vLLM 0.24.0. Its own kernel ends below the size. It
# has one stage for 2 GPUs, below 512 KiB for 4, and below 256 KiB for more.
_VLLM: _Limits = {
    "hopper": {
        2: (("custom_1stage", 64 * _M - 1), ("symm_two_shot", 64 * _M)),
        4: (("custom_1stage", 512 * _K - 1), ("custom_2stage", 32 * _M - 1),
            ("symm_multimem", 32 * _M)),
        6: (("custom_1stage", 256 * _K - 1), ("custom_2stage", 512 * _K - 1),
            ("symm_multimem", 64 * _M)),
        8: (("custom_1stage", 256 * _K - 1), ("symm_multimem", 64 * _M)),
    },
    "blackwell": {
        2: (("custom_1stage", 2 * _M - 1), ("symm_two_shot", 8 * _M)),
        4: (("custom_1stage", 512 * _K - 1), ("custom_2stage", 2 * _M - 1),
            ("symm_two_shot", 32 * _M)),
        6: (("custom_1stage", 256 * _K - 1), ("custom_2stage", _M - 1),
            ("symm_multimem", 128 * _M)),
        8: (("custom_1stage", 256 * _K - 1), ("custom_2stage", _M - 1),
            ("symm_multimem", 128 * _M)),
    },
}  # fmt: skip


def _of_sglang(push_kib: dict[int, int]) -> dict[int, tuple[tuple[str, int], ...]]:
    """Above its pushes, up to the 16 MiB of its buffer, 2 GPUs load all and more use two shots."""
    rest = {gpus: "sglang_pull" if gpus == 2 else "sglang_two_shot" for gpus in push_kib}
    return {
        gpus: (("sglang_push", limit * _K), (rest[gpus], 16 * _M))
        for gpus, limit in push_kib.items()
    }


# device_communicators/custom_all_reduce_v2.py of SGLang 0.5.14.
_SGLANG: _Limits = {
    "hopper": _of_sglang({2: 2048, 3: 512, 4: 384, 5: 256, 6: 192, 7: 192, 8: 160}),
    "blackwell": _of_sglang({2: 4096, 3: 4096, 4: 2048, 5: 2048, 6: 1024, 7: 896, 8: 720}),
}
# common/customAllReduceUtils.h of TensorRT-LLM: its table without fusion, for rows of 4096 elements
# of 16 bits, where neighbors with both kernels count as one shot.
_TRTLLM: _Limits = {
    "hopper": {
        2: (("lamport_one_shot", 8 * _M),),
        4: (("lamport_one_shot", _M), ("sync_two_shot", 4 * _M)),
        8: (("lamport_one_shot", 256 * _K), ("sync_two_shot", 4 * _M)),
    },
    "blackwell": {
        2: (("lamport_one_shot", 8 * _M),),
        4: (("lamport_one_shot", 2 * _M), ("sync_two_shot", 4 * _M)),
        8: (("lamport_one_shot", _M), ("sync_two_shot", 4 * _M)),
    },
}
_ENGINES = {"vllm": _VLLM, "sglang": _SGLANG, "trtllm": _TRTLLM}
ENGINES = tuple(_ENGINES)


@lru_cache(maxsize=64)
def _call(source: ScheduleSource) -> Call:
    return Call(source.schedule())


class EngineHost:
    """GPUs of one host on which an inference engine runs its all-reduce in a CUDA graph.

    Args:
        spec: a machine of one GPU host.
        gpus: the first ones of the host are used.
        environment: of NCCL.

    Raises:
        ConfigError: the machine has no cost of a node of a graph.
    """

    def __init__(
        self, spec: MachineSpec, gpus: int, environment: Environment | None = None
    ) -> None:
        self.spec = spec
        self.gpus = gpus
        self._environment = environment or Environment()
        built = launched(spec, GRAPH).build()
        self._place = GpuPlace(built, places=tuple(range(gpus)))

    @cached_property
    def imitation(self) -> Imitation:
        """NCCL on these GPUs."""
        return Imitation(self.spec, Library("nccl", self._environment), self.gpus)

    def kernel_of(self, engine: str, size_bytes: int) -> str:
        """The kernel that an engine runs, or "nccl".

        Raises:
            ConfigError: it is not known for these GPUs.
        """
        limits = self._limits(engine)
        return next((name for name, most in limits if size_bytes <= most), NCCL)

    def kernels_of(self, engine: str) -> tuple[str, ...]:
        """The kernels of an engine without NCCL, the one for the smallest arrays first.

        Raises:
            ConfigError: they are not known for these GPUs.
        """
        return tuple(name for name, _ in self._limits(engine))

    def _limits(self, engine: str) -> tuple[tuple[str, int], ...]:
        generation = self.imitation.facts.communicator.generation
        limits = _ENGINES[engine].get(generation, {}).get(self.gpus)
        if limits is None:
            raise ConfigError(
                f"which kernel {engine} takes on {self.gpus} GPUs of {self.spec.name} is not known"
            )
        return limits

    def time_us(self, name: str, size_bytes: int) -> float:
        """The time of a kernel with the copies around it, or of NCCL.

        Raises:
            ConfigError: the machine lacks its costs.
        """
        if name == NCCL:
            return self._simulated(self.nccl_source(size_bytes), size_bytes)
        kernel = KERNELS[name]
        source = ScheduleSource(
            collective="all_reduce", algorithm=kernel.algorithm, ranks=self.gpus,
            channels=kernel.blocks, protocol="Simple",
        )  # fmt: skip
        time_us = max(
            self._simulated(source, size_bytes),
            self._simulated(source, 16) + self._turns_us(kernel, size_bytes),
        )
        fence_ns = self.spec.gpu_cost.simple.send_overhead_ns.value
        copies_us = kernel.copies * self._copy_us(size_bytes, not kernel.has_own_copies)
        return time_us + kernel.fences * float(fence_ns) / 1e3 + copies_us

    def nccl_source(self, size_bytes: int) -> ScheduleSource:
        """NCCL's choice.

        Raises:
            ConfigError: there is no schedule of it.
        """
        choice = self.imitation.choose("all_reduce", size_bytes)
        if not self.imitation.has_schedule("all_reduce", choice):
            raise ConfigError(f"NCCL would run {choice.name}, and there is no schedule of it")
        return self.imitation.source("all_reduce", size_bytes, choice)

    def _simulated(self, source: ScheduleSource, size_bytes: int) -> float:
        return simulated.time_us(self._place, _call(source), size_bytes)

    def _turns_us(self, kernel: Kernel, size_bytes: int) -> float:
        """The time of the round trips of loads beyond the first."""
        if kernel.bytes_in_flight == 0 or self.spec.gpu_cost.kernel is None:
            return 0.0
        latency_us = float(self.spec.gpu_cost.kernel.peer_latency_ns.value) / 1e3
        return latency_us * size_bytes / kernel.bytes_in_flight

    def _copy_us(self, size_bytes: int, is_launched: bool) -> float:
        """The time of a copy within a GPU, as a node of the graph or within another kernel."""
        launch, kernel = self.spec.gpu_cost.launch_in_graph_ns, self.spec.gpu_cost.kernel
        if launch is None or kernel is None:
            raise ConfigError(
                f"machine {quoted(self.spec.name)} has no costs of kernels in a graph"
            )
        memory_ns = 2 * size_bytes / kernel.memory_rate_gb_per_s.value
        latency_ns = 2 * kernel.memory_latency_ns.value + (launch.value if is_launched else 0)
        return float(latency_ns + memory_ns) / 1e3
