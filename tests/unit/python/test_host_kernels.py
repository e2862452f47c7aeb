# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels in source form that read and write the host's memory, beside the host's own calls."""

import csv
from pathlib import Path

import numpy as np
import pytest

from towpath import ConfigError, HostCluster, SourceKernel

ACCESSES = Path(__file__).resolve().parents[3] / "validation" / "host_link" / "accesses.csv"
HOST_OF = {"wormhole": "ryzen-host", "blackhole": "blackhole-host"}

# Reads `size` bytes of the host's memory, writes them back behind themselves.
ECHO = """
#include "dataflow_api.h"
void kernel_main() {
  const uint32_t place = get_arg_val<uint32_t>(0), size = get_arg_val<uint32_t>(1);
  const uint64_t host = NOC_XY_PCIE_ENCODING(PCIE_NOC_X, PCIE_NOC_Y) | place;
  noc_async_read(host, 0x20000, size);
  noc_async_read_barrier();
  noc_async_write(0x20000, host + size, size);
  noc_async_write_barrier();
}
"""

# The same by calls that take tile and address apart, pages, and calls with state.
ECHO_OTHERWISE = """
#include "dataflow_api.h"
void kernel_main() {
  const uint32_t low = get_arg_val<uint32_t>(0), size = get_arg_val<uint32_t>(1);
  const uint64_t address = static_cast<uint64_t>(get_arg_val<uint32_t>(2)) << 32 | low;
  const uint32_t tile = NOC_XY_ENCODING(PCIE_NOC_X, PCIE_NOC_Y);
  noc_read_with_state<noc_mode, read_cmd_buf, CQ_NOC_SNDL>(
      noc_index, tile, address, 0x20000, size / 2);
  noc_async_read_one_packet_set_state(get_system_memory_noc_addr(1, size / 2, low), size / 2);
  noc_async_read_one_packet_with_state(low + size / 2, 0x20000 + size / 2);
  noc_async_read_barrier();
  noc_write_init_state<write_cmd_buf>(noc_index, NOC_UNICAST_WRITE_VC);
  noc_wwrite_with_state<noc_mode, write_cmd_buf, CQ_NOC_SNDL>(
      noc_index, 0x20000, tile, address + size, size);
  noc_async_write_barrier();
}
"""

# Moves `size` bytes `count` times and says how many cycles that took.
MOVE = """
#include "dataflow_api.h"
void kernel_main() {
  const uint64_t host = get_system_memory_noc_addr(0, 0, get_arg_val<uint32_t>(0));
  const uint32_t size = get_arg_val<uint32_t>(1), count = get_arg_val<uint32_t>(2);
  const bool writes = get_arg_val<uint32_t>(3) != 0;
  const uint64_t begin = get_timestamp();
  for (uint32_t i = 0; i < count; ++i) {
    if (writes) noc_async_write(0x20000, host, size); else noc_async_read(host, 0x20000, size);
  }
  if (writes) noc_async_write_barrier(); else noc_async_read_barrier();
  DeviceTimestampedData("cycles", get_timestamp() - begin);
}
"""


def words(buffer, *more):
    return [buffer.noc_address % 2**32, *more]


def moved_ns(cluster, buffer, core, *, writes, size_bytes, count=1):
    """The kernel, started, and a function that tells what it took."""
    args = words(buffer, size_bytes, count, int(writes))
    kernels = cluster.start_kernels(0, [SourceKernel("move.cpp", core=core, args=args, text=MOVE)])
    ghz = cluster.chips[0].clock_mhz.value / 1e3
    return lambda: kernels.run.values[0][2] / ghz


@pytest.mark.parametrize("chip", HOST_OF)
@pytest.mark.parametrize("text", [ECHO, ECHO_OTHERWISE], ids=["calls", "wide"])
def test_a_kernel_reads_and_writes_the_hosts_buffer(chip, text):
    cluster = HostCluster(HOST_OF[chip], [chip])
    cluster.allocate_sysmem_buffer(0, 4096)  # so that the place is not the first
    buffer = cluster.allocate_sysmem_buffer(0, 1 << 16)
    data = np.arange(6144, dtype=np.uint16).view(np.uint8)[:6144]
    buffer.array[:6144] = data
    args = words(buffer, 6144, buffer.noc_address >> 32)
    kernels = cluster.start_kernels(0, [SourceKernel("echo.cpp", args=args, text=text)])
    assert not kernels.is_over
    cluster.flush()
    assert kernels.is_over
    assert kernels.run.time_ns > 0
    assert np.array_equal(buffer.array[6144:12288], data)
    assert not buffer.array[12288:].any()


def test_memory_of_the_program_is_reached_until_it_is_unmapped():
    cluster = HostCluster("blackhole-host", ["blackhole"])
    own = np.zeros(8192, np.uint8)
    own[:4096] = 7
    buffer = cluster.map_sysmem_buffer(0, own)
    kernel = SourceKernel("echo.cpp", args=words(buffer, 4096), text=ECHO)
    cluster.start_kernels(0, [kernel])
    cluster.flush()
    assert (own == 7).all()
    buffer.unmap()
    cluster.start_kernels(0, [kernel])
    with pytest.raises(ValueError, match="no buffer is mapped there"):
        cluster.flush()


# tt-isa-documentation: throughput of large transfers, and the least latency.
def test_a_kernels_accesses_take_what_was_measured():
    lines = [line for line in ACCESSES.read_text().splitlines() if not line.startswith("#")]
    rows = [row for row in csv.DictReader(lines) if row["table"] == "device_init"]
    assert len(rows) == 4
    for row in rows:
        core = (0, 2) if "same row" in row["col2"] else (0, 0)
        writes = row["operation"] == "NoC write"
        cluster = HostCluster("ryzen-host", ["wormhole"], carries_data=False)
        buffer = cluster.allocate_sysmem_buffer(0, 8192)
        short = moved_ns(cluster, buffer, core, writes=writes, size_bytes=64)
        cluster.flush()
        long = moved_ns(cluster, buffer, core, writes=writes, size_bytes=8192, count=256)
        cluster.flush()
        assert short() == pytest.approx(float(row["latency_ns_min"]), rel=0.08), row
        rate = 8192 * 256 / long()
        assert rate == pytest.approx(float(row["throughput_GBps"]), rel=0.04), row


def test_kernels_and_the_hosts_transfers_wait_for_each_other():
    size_bytes = 1 << 20

    def times(*, kernel, host):
        cluster = HostCluster("ryzen-host", ["wormhole"], carries_data=False)
        buffer = cluster.allocate_sysmem_buffer(0, size_bytes)
        told = moved_ns(cluster, buffer, (0, 0), writes=False, size_bytes=8192, count=128 * kernel)
        dram = cluster.core(0, "dram")
        took = (
            buffer.dma_write_to_device(0, size_bytes, dram, 0, ordering="posted").time_ns
            if host
            else 0
        )
        cluster.flush()
        return told(), took

    kernel_alone, _ = times(kernel=True, host=False)
    _, host_alone = times(kernel=False, host=True)
    kernel, host = times(kernel=True, host=True)
    assert kernel > 1.5 * kernel_alone
    assert host > 1.3 * host_alone


def test_an_address_that_no_buffer_holds_is_one_sentence():
    cluster = HostCluster("ryzen-host", ["wormhole"])
    buffer = cluster.allocate_sysmem_buffer(0, 4096)
    kernel = SourceKernel(
        "echo.cpp", core=(3, 1), args=[buffer.noc_address % 2**32, 8192], text=ECHO
    )
    cluster.start_kernels(0, [kernel])
    with pytest.raises(ValueError, match="kernel 'echo' on core") as told:
        cluster.flush()
    assert str(told.value) == (
        "kernel 'echo' on core (4, 2) in noc_async_read at echo.cpp:6: core (4, 2), NoC 0: the "
        "read of 8192 bytes from (0, 3) is at address 0x800000000 of the host, where no "
        "buffer holds all of it; mapped are 0x800000000 to 0x800000fff"
    )


def test_a_kernel_that_ends_without_its_barrier_is_named():
    cluster = HostCluster("ryzen-host", ["wormhole"])
    buffer = cluster.allocate_sysmem_buffer(0, 4096)
    text = ECHO.replace("noc_async_write_barrier();", "")
    cluster.start_kernels(0, [SourceKernel("echo.cpp", args=words(buffer, 64), text=text)])
    with pytest.raises(RuntimeError, match="ends in cycle .* without the barrier it needs"):
        cluster.flush()


def test_kernels_that_cannot_run_beside_a_host_are_refused():
    cluster = HostCluster("ryzen-host", ["wormhole"])
    empty = "void kernel_main() {}"
    with pytest.raises(ConfigError, match="is for an Ethernet core"):
        cluster.start_kernels(0, [SourceKernel("a.cpp", processor="ethernet", text=empty)])
    with pytest.raises(ConfigError, match=r"the second one on NoC 0 of core \(0, 0\)"):
        cluster.start_kernels(0, [SourceKernel(name, text=empty) for name in ("a.cpp", "b.cpp")])
    with pytest.raises(ConfigError, match="does not compile"):
        cluster.start_kernels(0, [SourceKernel("a.cpp", text="void kernel_main() { nothing(); }")])
    with pytest.raises(ConfigError, match="no kernel was given"):
        cluster.start_kernels(0, [])
    with pytest.raises(ConfigError, match="limits of the link of wormhole are switched off"):
        HostCluster("ryzen-host", ["wormhole"], limits_noc=False).start_kernels(
            0, [SourceKernel("a.cpp", text=empty)]
        )


def test_a_buffer_that_finds_no_room_in_the_chips_window_has_no_address():
    cluster = HostCluster("ryzen-host", ["wormhole"], carries_data=False)
    assert cluster.allocate_sysmem_buffer(0, 1 << 30).noc_address == 0x8_0000_0000
    for _ in range(2):
        assert cluster.allocate_sysmem_buffer(0, 1 << 30).noc_address is not None
    assert cluster.allocate_sysmem_buffer(0, 1 << 30).noc_address is None
