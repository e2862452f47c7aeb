# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The runs that answer the statements, by name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Run:
    """A run.

    Attributes:
        function: module of this folder and function, "module.function".
        is_quick: True if `--quick` includes it.
        seconds: processor time on one core, for the order and the progress.
        needs: material that is not part of the project, keys of `documents.NEEDS`.
    """

    function: str
    is_quick: bool = True
    seconds: float = 2.0
    needs: tuple[str, ...] = ()


RUNS: dict[str, Run] = {
    "eth.cores": Run("ethernet_machines.cores", seconds=0.2),
    "eth.kernels": Run("ethernet_machines.core_kernels"),
    "eth.cache": Run("ethernet_machines.instruction_cache", seconds=0.5),
    "eth.clusters": Run("ethernet_machines.clusters", seconds=0.3),
    "eth.descriptions": Run("ethernet_machines.descriptions", seconds=0.3),
    "eth.collectives": Run("ethernet_machines.collectives"),
    "eth.shapes": Run("ethernet_machines.shapes", seconds=3),
    "eth.aggregate": Run("ethernet_machines.aggregate", seconds=1),
    "eth.routes": Run("ethernet_machines.routes", seconds=0.3),
    "eth.soc": Run("ethernet_machines.numbering", seconds=0.3),
    "eth.sending": Run("ethernet_calls.sending", seconds=3),
    "eth.hops": Run("ethernet_calls.store_and_forward"),
    "eth.noc": Run("ethernet_calls.noc_writes"),
    "eth.queues": Run("ethernet_calls.queues"),
    "eth.flow": Run("ethernet_calls.flow_control", seconds=3),
    "eth.merged": Run("ethernet_calls.merged_sync"),
    "eth.start": Run("ethernet_calls.program_start", seconds=3),
    "eth.end": Run("ethernet_calls.program_end"),
    "eth.firmware": Run("ethernet_calls.base_firmware"),
    "eth.guarantees": Run("ethernet_calls.tiles_and_programs", seconds=1),
    "eth.best": Run("ethernet_numbers.best_bandwidth"),
    "eth.fixed": Run("ethernet_numbers.fixed_channels", seconds=0.5),
    "eth.plateaus": Run("ethernet_numbers.plateaus", seconds=0.5, needs=("points",)),
    "eth.ring": Run("ethernet_numbers.ring_trips", seconds=6),
    "eth.sizes": Run("ethernet_numbers.ring_sizes", seconds=0.5),
    "eth.ping": Run("ethernet_numbers.link_pings", seconds=0.3),
    "eth.outstanding": Run("ethernet_calls.full_queue", seconds=2),
    "eth.samples": Run("guide_program.samples", seconds=3, needs=("documents",)),
    "eth.program": Run("guide_program.ring_program", seconds=8, needs=("documents", "library")),
    "eth.host": Run("guide_program.host_guarantees", seconds=4, needs=("library",)),
    "pcie.tables": Run("host_link_runs.tables", seconds=1),
    "pcie.windows": Run("host_link_runs.windows", seconds=0.5),
    "pcie.mechanisms": Run("host_link_runs.mechanisms", seconds=0.5),
    "pcie.causes": Run("host_link_runs.explanations", seconds=0.5),
    "pcie.reads": Run("host_link_runs.reads", seconds=0.3),
    "pcie.device": Run("host_link_runs.device", seconds=0.3),
    "pcie.harvesting": Run("host_link_runs.harvesting", seconds=0.3),
    "pcie.memory": Run("host_link_runs.memory", seconds=0.5),
    "pcie.iommu": Run("host_link_runs.iommu", seconds=0.3),
    "pcie.samples": Run(
        "umd_samples.samples", is_quick=False, seconds=10, needs=("documents", "library")
    ),
    "pcie.benchmarks": Run(
        "umd_samples.benchmarks", is_quick=False, seconds=40, needs=("tt-umd", "library")
    ),
    "mailbox.latencies": Run("mailbox_runs.latencies", seconds=4),
    "mailbox.breakdown": Run("mailbox_runs.breakdown", seconds=0.5),
    "mailbox.cluster": Run("mailbox_runs.cluster", seconds=0.5),
    "mailbox.projection": Run("mailbox_runs.projection", seconds=0.5),
    "mailbox.library": Run("mailbox_runs.library", seconds=0.5),
    "gpu.machine": Run("worklog_runs.machine", seconds=0.5),
    "gpu.topology": Run("worklog_runs.topology", is_quick=False, seconds=6, needs=("documents",)),
    "gpu.calls": Run("worklog_runs.calls", is_quick=False, seconds=8),
    "gpu.exchanges": Run("worklog_runs.exchanges", is_quick=False, seconds=14),
    "gpu.proxy": Run("worklog_runs.proxy", seconds=0.5),
    "gpu.rings": Run("worklog_runs.rings", is_quick=False, seconds=30),
    "gpu.simple_between": Run("worklog_runs.simple_between", is_quick=False, seconds=5),
    "gpu.nccl": Run("worklog_runs.nccl", seconds=0.5),
    "gpu.kernels": Run(
        "worklog_programs.kernels", is_quick=False, seconds=13, needs=("documents",)
    ),
    "gpu.nvcc": Run(
        "worklog_programs.nvcc", is_quick=False, seconds=30, needs=("documents", "nvcc")
    ),
    "gpu.ring_times": Run(
        "worklog_programs.ring_times", is_quick=False, seconds=30, needs=("documents",)
    ),
    "gpu.calls_in_a_row": Run("worklog_programs.calls_in_a_row", is_quick=False, seconds=14),
    "gpu.host_code": Run("worklog_programs.host_code", seconds=2, needs=("documents",)),
    "gpu.ring_orders": Run("ring_orders.orders", is_quick=False, seconds=5, needs=("documents",)),
    "gpu.penny": Run("worklog_programs.own_kernels", is_quick=False, seconds=14),
    "gpu.repository": Run(
        "worklog_repository.repository", is_quick=False, seconds=60, needs=("penny",)
    ),
    "noc.facts": Run("noc_runs.facts", seconds=0.5),
    "noc.alone": Run("noc_runs.alone", is_quick=False, seconds=15),
    "noc.together": Run("noc_runs.together", is_quick=False, seconds=25),
    "noc.irregular": Run("noc_runs.irregular", is_quick=False, seconds=10),
    "noc.few": Run("noc_runs.few_transactions", is_quick=False, seconds=40),
    "noc.follow_ups": Run("noc_runs.follow_ups", is_quick=False, seconds=60),
    "noc.stalled": Run("noc_runs.stalled", seconds=3),
    "noc.causes": Run("noc_runs.causes", is_quick=False, seconds=20),
    "noc.whole": Run("noc_runs.whole", is_quick=False, seconds=8),
    "noc.snippet": Run("noc_runs.snippet", seconds=2, needs=("documents",)),
}
