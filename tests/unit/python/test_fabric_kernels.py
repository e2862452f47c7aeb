# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels in TT-Metalium's source form that send over the fabric's routers."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from towpath import ConfigError, FabricConnection, HazardError, MemoryBlock, SourceKernel, load

WORKERS = {"t3000": (1, 1), "blackhole-line": (1, 2)}  # tiles of logical core (0, 0)
SOURCE, TARGET, COUNTER, RESULT = 0x20000, 0x30000, 0x40000, 0x48000

HEADERS = """
#include "api/dataflow/dataflow_api.h"
#include "fabric/fabric_edm_packet_header.hpp"
#include "tt_metal/fabric/hw/inc/edm_fabric/edm_fabric_worker_adapters.hpp"
#include "tt_metal/fabric/hw/inc/packet_header_pool.h"
#include "tt_metal/fabric/hw/inc/tt_fabric_api.h"
using namespace tt::tt_fabric;
constexpr uint32_t source = 0x20000, target = 0x30000, counter = 0x40000;
inline uint64_t there(uint32_t address) { return get_noc_addr(my_x[0], my_y[0], address); }
"""

# Sends what the function `packet` puts into a header, over a connection.
SENDER = (
    HEADERS
    + """
PACKET
void kernel_main() {
  size_t arg = 0;
  uint32_t route[4];
  for (uint32_t& value : route) value = get_arg_val<uint32_t>(arg++);
  auto connection = WorkerToFabricEdmSender::build_from_args<ProgrammableCoreType::TENSIX>(arg);
  connection.open();
  volatile tt_l1_ptr PACKET_HEADER_TYPE* header = PacketHeaderPool::allocate_header();
  const uint32_t size = packet(header, route);
  connection.wait_for_empty_write_slot();
  if (size > 0) connection.send_payload_without_header_non_blocking_from_address(source, size);
  connection.send_payload_flush_blocking_from_address((uint32_t)header, sizeof(PACKET_HEADER_TYPE));
  connection.close();
}
"""
)
ALONG_LINE = "header->to_chip_multicast({uint8_t(route[0]), uint8_t(route[1])});"
TO_CHIP = "fabric_set_unicast_route((HybridMeshPacketHeader*)header, route[0], 0);"
RECTANGLE = (
    "fabric_set_mcast_route((HybridMeshPacketHeader*)header, 0, 0, "
    "route[0], route[1], route[2], route[3]);"
)
COMMANDS = {
    "write": "header->to_noc_unicast_write({there(target)}, 64); return 64;",
    "inline": "header->to_noc_unicast_inline_write({there(target), 0x1234}); return 0;",
    "increment": "header->to_noc_unicast_atomic_inc({there(counter), 5}); return 0;",
    "fused": """header->to_noc_fused_unicast_write_atomic_inc(
        {there(target), there(counter), 3, true}, 64); return 64;""",
    "scatter": """header->to_noc_unicast_scatter_write(
        {{there(target), there(target + 0x100), there(target + 0x200)}, {16, 32}}, 64);
        return 64;""",
    "fused scatter": """header->to_noc_fused_unicast_scatter_write_atomic_inc(
        {{there(target), there(target + 0x100)}, there(counter), {16}, 7}, 64); return 64;""",
}
WRONG_COMMANDS = {
    "too large chunks": """header->to_noc_unicast_scatter_write(
        {{there(target), there(target), there(target)}, {16, 1008}}, 64); return 64;""",
    "too many chunks": """
        NocUnicastScatterCommandHeader chunks{{there(target), there(target)}, {16}};
        chunks.chunk_count = 9;
        header->to_noc_unicast_scatter_write(chunks, 64); return 64;""",
}
DATA = bytes(range(64))


def sender(command: str, route: str, hops: tuple[int, ...], *, to: int, chip: int = 0) -> Any:
    packet = (
        "uint32_t packet(volatile tt_l1_ptr PACKET_HEADER_TYPE* header, const uint32_t* route) { "
        f"{route} {(COMMANDS | WRONG_COMMANDS)[command]} }}"
    )
    return SourceKernel(
        "sender.cpp",
        chip=chip,
        args=[*hops, *[0] * (4 - len(hops)), FabricConnection(to)],
        text=SENDER.replace("PACKET\n", packet + "\n"),
    )


def reads(chips: list[int], offset: int, size_bytes: int) -> list[MemoryBlock]:
    return [MemoryBlock((0, 0), offset, size_bytes, chip) for chip in chips]


def run(machine: str, kernels: list[Any], read: list[MemoryBlock], **options: Any) -> list[bytes]:
    cluster: Any = load(machine)
    tile = WORKERS[machine]
    source = [MemoryBlock(tile, SOURCE, DATA, chip) for chip in range(len(cluster.spec.chips))]
    read = [block._replace(tile=tile) for block in read]
    return cluster.run_kernels(kernels, write=source, read=read, **options).read


# On a T3000 the mesh has chips 4 0 3 7 in its first row and 5 1 2 6 in its second one.
@pytest.mark.parametrize(
    ("machine", "chips"), [("t3000", [4, 0, 3]), ("blackhole-line", [0, 1, 2])]
)
@pytest.mark.parametrize(
    ("command", "target", "count"),
    [
        ("write", DATA, 0),
        ("inline", struct.pack("<I", 0x1234).ljust(64, b"\0"), 0),
        ("increment", bytes(64), 5),
        ("fused", DATA, 3),
        ("scatter", DATA[:16].ljust(64, b"\0"), 0),
        ("fused scatter", DATA[:16].ljust(64, b"\0"), 7),
    ],
    ids=list(COMMANDS),
)
def test_a_packet_goes_two_chips_along_a_line(
    machine: str, chips: list[int], command: str, target: bytes, count: int
) -> None:
    first, middle, last = chips
    memory = run(
        machine,
        [sender(command, ALONG_LINE, (2, 1), to=middle, chip=first)],
        [*reads([middle, last], TARGET, 64), *reads([last], COUNTER, 4)],
        fabric="1d",
    )
    assert memory == [bytes(64), target, struct.pack("<I", count)]


def test_segments_of_a_scatter_go_to_addresses_of_their_own() -> None:
    memory = run(
        "t3000",
        [sender("scatter", ALONG_LINE, (1, 1), to=0, chip=4)],
        [*reads([0], TARGET, 16), *reads([0], TARGET + 0x100, 48), *reads([0], TARGET + 0x200, 16)],
        fabric="1d",
    )
    assert memory == [DATA[:16], DATA[16:48].ljust(48, b"\0"), DATA[48:]]


def test_a_multicast_reaches_chips_from_a_distance_on() -> None:
    kernel = sender("fused", ALONG_LINE, (2, 2), to=0, chip=4)
    memory = run("t3000", [kernel], reads([0, 3, 7], TARGET, 64), fabric="1d")
    assert memory == [bytes(64), DATA, DATA]


@pytest.mark.parametrize(
    ("to", "first"), [(0, 0), (5, 5), (6, 5)], ids=["in its row", "in its column", "round a corner"]
)
def test_a_packet_finds_its_chip_on_a_mesh(to: int, first: int) -> None:
    kernel = sender("fused", TO_CHIP, (to,), to=first, chip=4)
    memory = run("t3000", [kernel], reads(list(range(8)), COUNTER, 4), fabric="2d")
    assert [int.from_bytes(word, "little") for word in memory] == [
        3 if chip == to else 0 for chip in range(8)
    ]


def test_a_multicast_fills_a_rectangle_of_a_mesh() -> None:
    kernel = sender("fused", RECTANGLE, (2, 1, 0, 1), to=1, chip=0)  # east, west, north, south
    memory = run("t3000", [kernel], reads(list(range(8)), TARGET, 64), fabric="2d")
    assert [chip for chip in range(8) if memory[chip] == DATA] == [1, 2, 5, 6]


def test_a_kernel_takes_its_calls_from_the_linear_interface() -> None:
    text = (
        HEADERS
        + """
#include "tt_metal/fabric/hw/inc/linear/api.h"
using namespace tt::tt_fabric::linear::experimental;
void kernel_main() {
  size_t arg = 0;
  auto connection = WorkerToFabricEdmSender::build_from_args<ProgrammableCoreType::TENSIX>(arg);
  auto* header = PacketHeaderPool::allocate_header();
  connection.open();
  for (uint32_t i = 0; i < 20; ++i) {
    fabric_unicast_noc_fused_unicast_with_atomic_inc(
        &connection, header, source, 64,
        NocUnicastAtomicIncFusedCommandHeader{there(target + 64 * i), there(counter), 1}, 1);
    noc_async_writes_flushed();
  }
  fabric_multicast_noc_unicast_atomic_inc(
      &connection, header, NocUnicastAtomicIncCommandHeader{there(counter), 100}, 1, 2);
  connection.close();
}
"""
    )
    kernel = SourceKernel("linear.cpp", chip=4, args=[FabricConnection(0)], text=text)
    read = [*reads([0, 3], COUNTER, 4), *reads([0], TARGET + 64 * 19, 64)]
    memory = run("t3000", [kernel], read, fabric="1d")
    assert memory == [struct.pack("<I", 120), struct.pack("<I", 100), DATA]


RECEIVER = """
void kernel_main() {
  noc_semaphore_wait((volatile uint32_t*)0x40000, 3);
  uint32_t sum = 0;
  for (uint32_t i = 0; i < 16; ++i) sum += ((uint32_t*)0x30000)[i];
  *(volatile uint32_t*)0x48000 = sum;
}
"""


def test_a_receiver_sees_the_payload_when_its_counter_has_gone_up() -> None:
    kernels = [
        sender("fused", ALONG_LINE, (3, 1), to=0, chip=4),
        SourceKernel("receiver.cpp", chip=7, text=RECEIVER),
    ]
    memory = run("t3000", kernels, reads([7], RESULT, 4), fabric="1d")
    assert memory == [struct.pack("<I", sum(struct.unpack("<16I", DATA)) % 2**32)]


@pytest.mark.parametrize(
    ("change", "hazard"),
    [
        (("connection.close()", "noc_async_write_barrier()"), "missing_teardown"),
        (("  connection.open();\n", ""), None),
    ],
)
def test_mistakes_with_a_connection_are_named(change: tuple[str, str], hazard: str | None) -> None:
    kernel: Any = sender("fused", ALONG_LINE, (1, 1), to=0, chip=4)
    text = kernel.text.replace(*change)
    wrong = SourceKernel("wrong.cpp", chip=4, args=kernel.args, text=text)
    expected = ConfigError if hazard is None else HazardError
    with pytest.raises(expected) as raised:
        run("t3000", [wrong], [], fabric="1d")
    if hazard is None:
        assert "uses a connection to a router that it has not opened" in str(raised.value)
    else:
        assert raised.value.hazard == hazard


def test_two_workers_on_one_router_are_named() -> None:
    one: Any = sender("fused", ALONG_LINE, (1, 1), to=0, chip=4)
    other = SourceKernel("other.cpp", core=(1, 0), chip=4, args=one.args, text=one.text)
    with pytest.raises(HazardError) as raised:
        run("t3000", [one, other], [], fabric="1d")
    assert raised.value.hazard == "two_workers_on_one_channel"


@pytest.mark.parametrize(
    ("kernel", "options", "sentence"),
    [
        (
            sender("write", TO_CHIP, (6,), to=0, chip=4),
            {"fabric": "2d"},
            "its connection leads to the east, but the path to chip 6 starts to the south",
        ),
        (
            sender("write", ALONG_LINE, (4, 1), to=0, chip=4),
            {"fabric": "1d"},
            "a packet makes 4 hops from place 0, but the line ends after 3",
        ),
        (
            sender("fused", RECTANGLE, (4, 0, 0, 1), to=1, chip=0),
            {"fabric": "2d"},
            "a packet makes 4 hops from place 2, but the line ends after 2",
        ),
        (
            sender("too many chunks", ALONG_LINE, (1, 1), to=0, chip=4),
            {"fabric": "1d"},
            "it sends a packet of more than 4 chunks",
        ),
        (
            sender("too large chunks", ALONG_LINE, (1, 1), to=0, chip=4),
            {"fabric": "1d"},
            "it sends a packet whose chunks have more bytes than its payload",
        ),
        (
            sender("write", ALONG_LINE, (1, 1), to=0, chip=4),
            {},
            "kernel 'sender.cpp' is connected to a router, but its program runs without a fabric",
        ),
        (
            sender("write", ALONG_LINE, (1, 1), to=0, chip=4),
            {"fabric": "3d"},
            "there is no fabric '3d'; choose one of 1d, 1d_ring, 2d, 2d_torus",
        ),
    ],
)
def test_what_cannot_be_sent_is_refused(
    kernel: Any, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        run("t3000", [kernel], [], **options)
