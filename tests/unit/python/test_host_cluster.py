# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The host API: bytes that arrive, and the defects of published benchmarks as sentences."""

import doctest

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inside.host import host_cluster
from inside.machines import catalogue, shipped
from towpath import ConfigError, HostCluster

MIB = 1 << 20
# As the document's Blackhole: the Tensix cores that it lacks, and none of its Ethernet cores.
BLACKHOLE = catalogue.load_chip("blackhole", 0x1020).with_harvested_ethernet(range(14))


@pytest.fixture
def cluster():
    return HostCluster("blackhole-host", [BLACKHOLE])


def test_the_example_of_the_module_runs():
    assert doctest.testmod(host_cluster).failed == 0


def test_bytes_lie_in_the_memory_and_are_read_back(cluster):
    data = np.arange(100_000, dtype=np.uint16)
    for kind in ("dram", "worker"):
        core = cluster.core(0, kind)
        cluster.write_to_device(data, 0, core, 0x2001)
        assert cluster.memory(0, core, 0x2001, data.nbytes) == data.tobytes()
        back = np.zeros_like(data)
        cluster.read_from_device(back, 0, core, 0x2001)
        assert np.array_equal(back, data)


def test_tiles_of_a_dram_group_show_the_same_memory(cluster):
    cluster.write_to_device(b"shared", 0, (0, 0), 64)
    assert cluster.memory(0, (0, 11), 64, 6) == b"shared"
    assert cluster.memory(0, (0, 2), 64, 6) == bytes(6)


def test_dma_moves_a_buffer_in_place(cluster):
    core = cluster.core(0, "worker")
    buffer = cluster.allocate_sysmem_buffer(0, 4096)
    buffer.array[:] = np.arange(4096) % 251
    transfer = buffer.dma_write_to_device(1024, 2048, core, 0x100)
    assert (transfer.asked, transfer.used, transfer.obstacle) == ("DMA", "DMA", "")
    assert cluster.memory(0, core, 0x100, 2048) == buffer.array[1024:3072].tobytes()
    buffer.noc_write(0, 1024, core, 0x100)
    assert buffer.array[:1024].tobytes() == buffer.array[1024:2048].tobytes()
    assert sum(time for _, time in transfer.parts) == pytest.approx(transfer.time_ns)


def test_each_chip_has_its_own_memory_and_windows():
    cluster = HostCluster("n300-xeon-host", ["wormhole", "wormhole"])
    cluster.configure_tlb(0, (1, 1), MIB, 0)
    first = cluster.write_to_device(b"one!", 0, (1, 1), 0)
    second = cluster.write_to_device(b"two!", 1, (1, 1), 0)
    assert (first.windows, second.windows) == (0, 1)
    assert cluster.memory(0, (1, 1), 0, 4) + cluster.memory(1, (1, 1), 0, 4) == b"one!two!"


def test_a_freed_window_is_configured_again():
    cluster = HostCluster("n300-xeon-host", ["wormhole"])
    window = cluster.configure_tlb(0, (1, 1), MIB, 0)
    cluster.free_tlb(0, window)
    assert cluster.write_to_device(b"1234", 0, (1, 1), 0).windows == 1


# --- the three defects ----------------------------------------------------------------------------


def test_a_window_that_the_chip_does_not_have_is_refused_with_those_it_has(cluster):
    with pytest.raises(ValueError, match="^blackhole has no windows of 16 MiB; it has windows of "):
        cluster.configure_tlb(0, cluster.core(0, "dram"), 16 * MIB, 0)
    HostCluster("n300-xeon-host", ["wormhole"]).configure_tlb(0, (0, 0), 16 * MIB, 0)


def test_a_harvested_core_is_refused_with_the_mask_and_what_is_left(cluster):
    sentence = (
        r"^chip 0 \(blackhole\) has no ethernet core 0; it has none left \(harvest mask 0x3fff\)$"
    )
    with pytest.raises(ValueError, match=sentence):
        cluster.core(0, "ethernet")
    sentence = (
        r"^core \(6, 2\) of blackhole is harvested: mask 0x1020 over the columns with workers "
        r"leaves columns 1, 2, 3, 4, 5, 7, 10, 11, 12, 13, 14, 16$"
    )
    with pytest.raises(ValueError, match=sentence):
        cluster.write_to_device(b"1234", 0, (6, 2), 0)
    wormhole = HostCluster("n300-xeon-host", ["wormhole"])
    with pytest.raises(ValueError, match="mask 0x210 over the rows with workers leaves rows 1, 2"):
        wormhole.write_to_device(b"1234", 0, (1, 5), 0)


@pytest.mark.parametrize(
    ("channels", "is_write", "obstacle"),
    [
        (0, True, "no DMA buffer was allocated: the host gives the chip 0 host memory channels"),
        (
            1,
            False,
            "the DMA engine of blackhole does not move data from the device; it moves it to",
        ),
    ],
)
def test_a_dma_that_falls_back_says_so(channels, is_write, obstacle):
    cluster = HostCluster("blackhole-host", [BLACKHOLE], num_host_mem_ch_per_mmio_device=channels)
    move = cluster.dma_write_to_device if is_write else cluster.dma_read_from_device
    transfer = move(bytearray(64), 0, (1, 2), 0)
    assert (transfer.asked, transfer.used) == ("DMA", "MMIO")
    assert transfer.obstacle.startswith(obstacle)


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda c: c.configure_tlb(3, (1, 2), 2 * MIB, 0),
         "there is no chip 3; the host has chips 0 to 0"),
        (lambda c: c.write_to_device(b"", 0, (1, 2), 0), "a transfer has 0 bytes; it"),
        (lambda c: c.write_to_device(b"12", 0, (1, 2), 1 << 21),
         r"2 bytes at address 2097152 of \(1, 2\) are beyond its memory, which has 1572864"),
        (lambda c: c.write_to_device(b"12", 0, (8, 0), 0), r"\(8, 0\) of blackhole is a arc tile"),
        (lambda c: c.write_to_device(b"12", 0, (99, 0), 0), r"\(99, 0\) is outside the 17 x 12"),
        (lambda c: c.dma_write_to_device(b"123", 0, (1, 2), 0),
         "a DMA of 3 bytes at address 0 is not aligned; both must be multiples of 4"),
        (lambda c: c.allocate_sysmem_buffer(0, 8).dma_write_to_device(0, 16, (1, 2), 0),
         "16 bytes at offset 0 are beyond sysmem buffer 0, which has 8"),
        (lambda c: c.allocate_sysmem_buffer(0, 8).dma_read_from_device(0, 8, (1, 2), 0),
         "the DMA engine of blackhole does not move data from the device"),
        (lambda c: c.write_to_device(b"12", 0, (1, 2), 0, ordering="loose"),
         "ordering is 'loose'; choose one of default, strict, posted"),
        (lambda c: c.configure_tlb(0, (1, 2), 2 * MIB, 0, ordering="loose"),
         "ordering is 'loose'; choose one of default, strict, posted"),
        (lambda c: c.write_to_device(b"12", 0, (1, 2), 0, order="posted"),
         "order is not an option; choose one of ordering, mapping, window_bytes, load, "),
        (lambda c: c.memory(0, (1, 2), 1 << 40, 8), "8 bytes at address 1099511627776 of "),
        (lambda c: c.core(0, "tensix"), "kind is 'tensix'; choose one of worker, dram, ethernet, "),
    ],
)  # fmt: skip
def test_an_error_is_one_sentence(cluster, call, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}") as caught:
        call(cluster)
    assert "\n" not in str(caught.value)


def test_an_unmapped_buffer_is_refused(cluster):
    buffer = cluster.allocate_sysmem_buffer(0, 64)
    buffer.unmap()
    with pytest.raises(ValueError, match="^sysmem buffer 0 is not mapped, so the device cannot"):
        buffer.dma_write_to_device(0, 64, (1, 2), 0)


def test_a_host_without_memory_channels_has_no_buffers():
    cluster = HostCluster("blackhole-host", ["blackhole"], num_host_mem_ch_per_mmio_device=0)
    with pytest.raises(ValueError, match="has no memory for DMA by blackhole: it has 0"):
        cluster.allocate_sysmem_buffer(0, 64)


def test_a_chip_without_a_host_link_is_refused():
    wormhole = shipped.chip("wormhole")
    for chip, lacks in (
        (wormhole.model_copy(update={"pcie": None}), "block pcie"),
        (wormhole.model_copy(update={"tiles": wormhole.tiles.model_copy(update={"pcie": ()})}),
         "PCIe tile"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=f"chip 'wormhole': has no {lacks}, so no host link"):
            HostCluster("n300-xeon-host", [chip])


# --- whatever is done -----------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["write", "dma", "window"]), st.integers(0, 5000), st.integers(1, 3000),
            st.sampled_from(["default", "strict", "posted"]), st.integers(0, 255),
        ),
        max_size=8,
    )
)  # fmt: skip
def test_memory_is_what_an_array_would_be_and_time_passes(steps):
    cluster = HostCluster("n300-xeon-host", ["wormhole"])
    expected = np.zeros(10_000, np.uint8)
    core = (1, 1)
    for what, at, size, ordering, value in steps:
        before_ns = cluster.now_ns
        if what == "window":
            cluster.configure_tlb(0, core, MIB, 0, ordering=ordering)
            continue
        at, size = (at // 4 * 4, size // 4 * 4 + 4) if what == "dma" else (at, size)
        data = np.full(size, value, np.uint8)
        move = cluster.dma_write_to_device if what == "dma" else cluster.write_to_device
        move(data, 0, core, at, ordering=ordering)
        # What is posted is overtaken by the engine; a program reads back in between.
        back = np.empty(size, np.uint8)
        cluster.read_from_device(back, 0, core, at)
        expected[at : at + size] = data
        assert np.array_equal(back, data)
        assert cluster.now_ns > before_ns
    assert cluster.memory(0, core, 0, 10_000) == expected.tobytes()


def test_memory_of_the_program_is_moved_in_place_and_pinned_each_time_it_is_mapped():
    cluster = HostCluster("blackhole-host", ["blackhole"])
    core = cluster.core(0, "worker")
    memory = np.arange(8192, dtype=np.uint8)
    begin_ns = cluster.now_ns
    buffer = cluster.map_sysmem_buffer(0, memory)
    assert buffer.map_time_ns == cluster.now_ns - begin_ns
    assert buffer.map_time_ns == cluster.allocate_sysmem_buffer(0, 8192).map_time_ns
    moved = buffer.dma_write_to_device(4096, 64, core, 0)
    assert moved.used == "DMA" and cluster.memory(0, core, 0, 64) == memory[4096:4160].tobytes()
    buffer.noc_write(0, 16, core, 32)  # the core writes into the program's memory
    assert memory[:16].tobytes() == memory[4128:4144].tobytes()
    buffer.unmap()
    with pytest.raises(ValueError, match="sysmem buffer 0 is not mapped"):
        buffer.dma_write_to_device(0, 64, core, 0)


def test_memory_of_the_program_needs_an_iommu():
    host = catalogue.load_host("blackhole-host")
    quantity = host.memory.has_iommu.model_copy(update={"value": False})
    memory = host.memory.model_copy(update={"has_iommu": quantity})
    cluster = HostCluster(host.model_copy(update={"memory": memory}), ["blackhole"])
    with pytest.raises(ValueError, match="cannot be mapped for the device: host 'bl"):
        cluster.map_sysmem_buffer(0, bytearray(64))


def test_harvested_dram_is_named_with_its_mask():
    chip = catalogue.load_chip("blackhole").with_masks("dram=0x8")
    cluster = HostCluster("blackhole-host", [chip])
    with pytest.raises(ValueError, match=r"no dram core 21; it has 0 to 20 left .harvest mask 0x8"):
        cluster.core(0, "dram", 21)


def beside_traffic(cores, **traffic):
    """Times of a write and a read to a core, and of kernels that send to it; what is read."""
    cluster = HostCluster("ryzen-host", ["wormhole"])
    target = cluster.core(0, "worker", 20)
    places = [cluster.core(0, "worker", number) for number in cores]
    kernels = cluster.start_traffic(0, places, target, count=1200, **traffic)
    write = cluster.write_to_device(bytes(range(256)) * 256, 0, target, 0)
    back = bytearray(256)
    read = cluster.read_from_device(back, 0, target, 0)
    assert not kernels.is_over or not cores
    cluster.flush()
    assert kernels.is_over and len(kernels.times_ns) == len(places)
    assert bytes(back) == bytes(range(256))
    return write.time_ns + read.time_ns, sum(kernels.times_ns)


def test_kernels_that_flood_a_core_hold_the_host_up_and_it_them():
    idle, _ = beside_traffic([])
    flooded, kernels = beside_traffic([30])
    other_noc, alone = beside_traffic([30], noc=1)
    assert flooded > 5 * idle
    assert other_noc == idle
    # On NoC 1 the kernel is alone: its way there is longer, its rate the same.
    assert kernels > alone


def test_traffic_that_cannot_be_is_one_sentence():
    cluster = HostCluster("ryzen-host", ["wormhole"])
    target = cluster.core(0, "worker")
    with pytest.raises(ConfigError, match=r"^kind: is 'push'; it must be write or read$"):
        cluster.start_traffic(0, [], target, kind="push")
    with pytest.raises(ValueError, match="there is no chip 1; the host has chips 0 to 0"):
        cluster.start_traffic(1, [], target)
    with pytest.raises(ValueError, match="its NoC must be 0 or 1"):
        cluster.start_traffic(0, [target], target, noc=2)
    with pytest.raises(ValueError, match="limits of the link of wormhole are switched off"):
        HostCluster("ryzen-host", ["wormhole"], limits_noc=False).start_traffic(0, [], target)
