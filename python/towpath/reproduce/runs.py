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
    """

    function: str
    is_quick: bool = True
    seconds: float = 2.0


RUNS: dict[str, Run] = {
    "eth.cores": Run("ethernet_machines.cores", seconds=0.2),
    "eth.kernels": Run("ethernet_machines.core_kernels"),
    "eth.cache": Run("ethernet_machines.instruction_cache", seconds=0.5),
    "eth.clusters": Run("ethernet_machines.clusters", seconds=0.3),
    "eth.descriptions": Run("ethernet_machines.descriptions", seconds=0.3),
    "eth.collectives": Run("ethernet_machines.collectives"),
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
    "eth.ring": Run("ethernet_numbers.ring_trips", seconds=0.5),
    "eth.sizes": Run("ethernet_numbers.ring_sizes", seconds=0.5),
    "eth.ping": Run("ethernet_numbers.link_pings", seconds=0.3),
    "eth.outstanding": Run("ethernet_numbers.outstanding", seconds=0.3),
    "eth.samples": Run("guide_program.samples", seconds=3),
    "eth.program": Run("guide_program.ring_program", seconds=8),
    "eth.host": Run("guide_program.host_guarantees", seconds=4),
    "pcie.tables": Run("host_link_runs.tables", seconds=1),
    "pcie.windows": Run("host_link_runs.windows", seconds=0.5),
    "pcie.mechanisms": Run("host_link_runs.mechanisms", seconds=0.5),
    "pcie.causes": Run("host_link_runs.explanations", seconds=0.5),
    "pcie.reads": Run("host_link_runs.reads", seconds=0.3),
    "pcie.device": Run("host_link_runs.device", seconds=0.3),
    "pcie.harvesting": Run("host_link_runs.harvesting", seconds=0.3),
    "pcie.memory": Run("host_link_runs.memory", seconds=0.5),
    "pcie.samples": Run("umd_samples.samples", seconds=10),
    "pcie.benchmarks": Run("umd_samples.benchmarks", is_quick=False, seconds=40),
    "mailbox.latencies": Run("mailbox_runs.latencies", seconds=4),
    "mailbox.breakdown": Run("mailbox_runs.breakdown", seconds=4),
    "mailbox.cluster": Run("mailbox_runs.cluster", seconds=0.5),
    "mailbox.projection": Run("mailbox_runs.projection", seconds=4),
    "mailbox.library": Run("mailbox_runs.library", seconds=0.5),
    "mailbox.rtl": Run("mailbox_runs.rtl", is_quick=False, seconds=60),
}
