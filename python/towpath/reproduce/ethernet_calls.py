# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Document 000: the calls of Ethernet kernels, their order, their mistakes and their remedies."""

from __future__ import annotations

from typing import Any

from towpath.reproduce import sequence
from towpath.reproduce.core_programs import (
    ANSWERS,
    ASKS,
    core,
    ethernet_kernel,
    free_link,
    pair,
    run,
    word,
)

Result = dict[str, Any]
_SEND = "eth_send_bytes_over_channel(0x20000, 0x20000, {0}, 1);"
_DONE = "eth_wait_for_receiver_channel_done(1);"
_TAKE = "while (!eth_bytes_are_available_on_channel(1)) {} "
_FREE = "eth_receiver_channel_done(1);"
_PRINT = "DPRINT << {0} << ENDL();"


def _sends(size_bytes: int = 4096) -> str:
    return _SEND.format(size_bytes)


def sending() -> Result:
    """eth_send_packet: its arguments, and the meaning of its return."""
    later = _sends(16) + _DONE
    taken = _TAKE + _FREE
    send = "eth_send_packet(0, {0} >> 4, 0x20000 >> 4, {1} >> 4);"
    timed = pair(
        ASKS + '{ DeviceZoneScopedN("call"); ' + send.format("0x20000", 65536) + "}"
        '{ DeviceZoneScopedN("wait"); ' + _sends(16) + _DONE + "}",
        ANSWERS + taken,
    )
    source = pair(ASKS + "eth_send_bytes(0x20008, 0x20000, 16);", ANSWERS)
    target = pair(ASKS + "eth_send_bytes(0x20000, 0x20008, 16);", ANSWERS)
    moved = pair(
        "*(volatile uint32_t*)0x20000 = 77;" + ASKS + send.format("0x20000", 64) + later,
        ANSWERS + _TAKE + _PRINT.format("*(volatile uint32_t*)0x20000") + _FREE,
    )
    tensix = core(
        "eth_send_packet(0, 0x20000 >> 4, 0x20000 >> 4, 1);", before='#include "eth/dataflow_api.h"'
    )
    beyond = pair(ASKS + "eth_send_packet(0, 0x20000 >> 4, 0x40000 >> 4, 4);", ANSWERS)
    words = [source.error, target.error]
    call, wait = timed.zone("call"), timed.zone("wait")
    return {
        "moves": [moved.printed == ["77"], moved.error],
        "alignment": [all("multiple of 16" in said for said in words), words[0]],
        "returns_early": [call < wait / 4, f"{call:.0f} cycles for 64 KiB, done {wait:.0f} later"],
        "only_ethernet_cores": [tensix.run is None, tensix.error],
        "only_the_far_l1": [beyond.run is None, beyond.error],
    }


def store_and_forward() -> Result:
    """Bytes of a worker reach a worker of the next chip through both Ethernet cores' L1."""
    (chip, _), (far, _) = free_link()
    from towpath.specs import catalogue

    cluster = catalogue.load_chip_cluster("n300")
    ends = [
        cluster.core_of(end)
        for end in next(link for link in cluster.links if not link.is_reserved)[:2]
    ]
    worker = (
        "*(volatile uint32_t*)0x30000 = 91;"
        f"noc_async_write(0x30000, get_noc_addr({ends[0][0]}, {ends[0][1]}, 0x20000), 64);"
        "noc_async_write_barrier();"
        f"noc_semaphore_inc(get_noc_addr({ends[0][0]}, {ends[0][1]}, 0x30000), 1);"
        "noc_async_atomic_barrier();"
    )
    from towpath.kernels.chip_kernel import SourceKernel

    text = f'#include "dataflow_api.h"\nvoid kernel_main() {{\n{worker}\n}}\n'
    kernels = [
        SourceKernel("worker.cpp", chip=chip, core=(0, 0), text=text),
        ethernet_kernel(
            ASKS + "eth_noc_semaphore_wait((volatile uint32_t*)0x30000, 1);" + _sends(64) + _DONE, 0
        ),
        ethernet_kernel(
            ANSWERS + _TAKE + "noc_async_write(0x20000, get_noc_addr(1, 1, 0x30000), 64);"
            "eth_noc_async_write_barrier();" + _FREE,
            1,
        ),
    ]
    found = run("n300", kernels, read=[word((1, 1), 0x30000, far)])
    arrived = [int.from_bytes(each, "little") for each in found.bytes_read]
    direct = core("noc_async_write(0x20000, get_noc_addr(1, 1, 0x20000, 1, 1, 1), 64);")
    return {
        "hop_by_hop": [arrived == [91], found.error],
        "no_global_address": [direct.run is None, "an address of a NoC names no chip"],
    }


def noc_writes() -> Result:
    """A writer sees the state of its NoC writes in two barriers. Ethernet has neither."""
    text = (
        'noc_async_write(0x20000, get_noc_addr(8, 8, 0x20000), 8192); {{ DeviceZoneScopedN("f"); '
    )
    found = core(
        text.replace("{{", "{")
        + 'noc_async_writes_flushed(); } { DeviceZoneScopedN("b"); noc_async_write_barrier(); }'
    )
    flushed, barrier = found.zone("f"), found.zone("b")
    no_flush = pair(ASKS + "eth_writes_flushed();", ANSWERS)
    many = core(
        "for (uint32_t i = 0; i < 3000; ++i) noc_async_write(0x20000, "
        "get_noc_addr(8, 8, 0x20000), 64); noc_async_write_barrier();",
        cycles_max=10_000_000,
    )
    any_core = core(
        "for (uint32_t x = 1; x < 5; ++x) noc_async_write(0x20000, "
        "get_noc_addr(x, 2, 0x20000), 64); noc_async_write_barrier();",
        read=[word((4, 2), 0x20000)],
    )
    return {
        "flushed_then_arrived": [
            flushed > 0 and barrier > 0,
            f"left after {flushed:.0f} cycles, arrived {barrier:.0f} later",
        ],
        "ethernet_has_neither": [
            no_flush.run is None,
            no_flush.error.splitlines()[0] if no_flush.error else "",
        ],
        "arbitrarily_many": [many.run is not None, "3,000 writes of one core complete"],
        "any_core": any_core.accepted(),
    }


def queues() -> Result:
    """The transmit queue: busy, in order, one of two for kernels."""
    send = "eth_send_packet(0, {0} >> 4, {1} >> 4, {2} >> 4);"
    taken = _TAKE + _FREE
    second = pair(ASKS + "eth_send_packet(1, 0x20000 >> 4, 0x20000 >> 4, 1);", ANSWERS)
    busy = pair(
        ASKS
        + "uint32_t busy = 0; for (int i = 0; i < 12; ++i) { "
        + send.format("0x20000", "0x20000", 4096)
        + " busy += eth_txq_is_busy(); }"
        + _PRINT.format("busy")
        + _sends(16)
        + _DONE,
        ANSWERS + taken,
    )
    # The second packet is short: if it overtook the first, its word would be overwritten.
    order = pair(
        "*(volatile uint32_t*)0x20000 = 5; *(volatile uint32_t*)0x30000 = 7;"
        + ASKS
        + send.format("0x20000", "0x24000", 16384)
        + send.format("0x30000", "0x24000", 16)
        + _sends(16)
        + _DONE,
        ANSWERS + _TAKE + _PRINT.format("*(volatile uint32_t*)0x24000") + _FREE,
    )
    waits = pair(
        ASKS
        + "uint32_t turns = 0;"
        + send.format("0x20000", "0x20000", 65536) * 12
        + "while (eth_txq_is_busy()) ++turns;"
        + _PRINT.format("turns")
        + _sends(16)
        + _DONE,
        ANSWERS + taken,
    )
    seen = busy.printed + ["0"]
    turns = waits.printed + ["0"]
    return {
        "second_is_reserved": [second.run is None, second.error],
        "is_busy": [int(seen[0]) > 0, f"busy after {seen[0]} of 12 commands"],
        "work_while_busy": [int(turns[0]) > 0, f"{turns[0]} turns of other work meanwhile"],
        "in_order": [order.printed == ["7"], order.error],
    }


def flow_control() -> Result:
    """The sync words of a channel: set by the sender, cleared by the receiver."""
    sync = "erisc_info->channels[1]"
    both = pair(
        ASKS
        + _sends(64)
        + _PRINT.format(sync + ".bytes_sent")
        + _DONE
        + _PRINT.format(sync + ".bytes_sent"),
        ANSWERS + _TAKE + _PRINT.format("1000 + " + sync + ".bytes_sent") + _FREE,
    )
    acked = pair(
        ASKS
        + _sends(64)
        + "while (!eth_is_receiver_channel_send_acked(1)) {}"
        + _PRINT.format("2000 + " + sync + ".receiver_ack")
        + _PRINT.format("3000 + eth_is_receiver_channel_send_done(1)")
        + _DONE,
        ANSWERS + _TAKE + "volatile uint32_t* ack = (volatile uint32_t*)0x30000; ack[0] = 1; "
        "ack[1] = 1; eth_receiver_channel_ack(1, 0x30000); riscv_wait(4000);" + _FREE,
    )
    same_word = pair(
        ASKS + _sends(64) + _DONE,
        ANSWERS
        + _TAKE
        + "eth_receiver_channel_ack(1, (uint32_t)(uintptr_t)&erisc_info->channels[1]);"
        + _FREE,
    )
    changed = pair(
        ASKS + _sends() + "*(volatile uint32_t*)0x20000 = 1;" + _DONE, ANSWERS + _TAKE + _FREE
    )
    waited = pair(
        ASKS + _sends() + _DONE + "*(volatile uint32_t*)0x20000 = 1;", ANSWERS + _TAKE + _FREE
    )
    early = pair(
        ASKS + "eth_send_payload_complete_signal_over_channel(1, 4096);"
        "eth_send_bytes_over_channel_payload_only(0x20000, 0x20000, 4096, 4096, 256);" + _DONE,
        ANSWERS + _TAKE + _PRINT.format("*(volatile uint32_t*)0x20ffc") + _FREE,
    )
    printed = both.printed
    return {
        "bytes_sent": ["64" in printed and "1064" in printed, ", ".join(printed)],
        "receiver_clears": [printed[-1:] == ["0"], ", ".join(printed)],
        "ack_before_done": [
            acked.printed == ["2001", "3000"],
            acked.error or ", ".join(acked.printed),
        ],
        "own_ack_word": [same_word.run is None, same_word.error],
        "source_is_in_use": [changed.run is None and waited.run is not None, changed.error],
        "sync_goes_last": [early.run is None, early.error],
        "figure": sequence.flow_control(),
    }


def merged_sync() -> Result:
    """Payload and sync word in one command, against two."""
    from towpath.api.machine import load

    t3000: Any = load("t3000")
    ring = [0, 4, 5, 1, 2, 6, 7, 3]
    separate = max(t3000.ring_ping(ring, packet_bytes=16, merged=False, samples=5))
    merged = max(t3000.ring_ping(ring, packet_bytes=16, merged=True, samples=5))
    # A buffer whose last 16 bytes are its sync word, sent and polled by the kernels themselves.
    sent = pair(
        ASKS + "volatile uint32_t* sync = (volatile uint32_t*)0x21000;"
        "*(volatile uint32_t*)0x20000 = 31; sync[0] = 4096; sync[1] = 0;"
        "eth_send_packet(0, 0x20000 >> 4, 0x20000 >> 4, (4096 + 16) >> 4);"
        "while (sync[0] != 0) run_routing();",
        ANSWERS + "volatile uint32_t* sync = (volatile uint32_t*)0x21000;"
        "while (sync[0] == 0) run_routing();"
        + _PRINT.format("*(volatile uint32_t*)0x20000")
        + "sync[0] = 0; eth_send_packet(0, 0x21000 >> 4, 0x21000 >> 4, 1);",
    )
    return {
        "is_faster": [merged < separate, f"{merged / 8:.0f} against {separate / 8:.0f} ns per hop"],
        "hop_ns": merged / 8,
        "round_trip_us": merged / 1000,
        "appended_word_works": [sent.printed == ["31"], sent.error],
    }


def program_start() -> Result:
    """Handshakes: needed, sufficient, at one place."""
    taken = _TAKE + _FREE
    missing = pair(_sends() + _DONE, taken)
    present = pair(ASKS + _sends() + _DONE, ANSWERS + taken)
    late = pair(ASKS + _sends() + _DONE, "riscv_wait(50000);" + ANSWERS + taken)
    scratch = "eth_l1_mem::address_map::ERISC_L1_UNRESERVED_BASE"
    sample = (
        f"uint32_t at = {scratch};"
        "if (IS_MASTER) { eth_send_bytes(at, at, 16); "
        "eth_wait_for_receiver_done(); } else { eth_wait_for_bytes(16); "
        "eth_receiver_channel_done(0); }"
    )
    kernels = [
        ethernet_kernel(sample, 0, defines={"IS_MASTER": "true"}),
        ethernet_kernel(sample, 1, defines={"IS_MASTER": "false"}),
    ]
    shaken = run("n300", kernels)
    elsewhere = pair("eth_send_bytes(0x28000, 0x28000, 16); eth_wait_for_receiver_done();", ANSWERS)
    return {
        "missing": [missing.run is None, missing.error],
        "remedy": present.accepted(),
        "late_start": [late.run is not None, "the receiver starts 50,000 cycles later"],
        "sample": shaken.accepted(),
        "one_place": [elsewhere.run is None, elsewhere.error],
        "scratch": [
            shaken.run is not None and elsewhere.run is None,
            "16 bytes at the base of the kernel's memory are safe, others are not",
        ],
        "channel_0": [shaken.run is not None, "channel 0 carries the handshake"],
    }


def program_end() -> Result:
    """Credits: a kernel that ends before they are back, and one that waits."""
    taken = ANSWERS + _TAKE + _FREE
    missing = pair(ASKS + _sends(16), taken)
    present = pair(ASKS + _sends(16) + _DONE, taken)
    loop = pair(
        ASKS + _sends(16) + "for (std::size_t i = 1; i < 2; i++) "
        "{ while (not eth_is_receiver_channel_done(i)) { run_routing(); } }",
        taken,
    )
    times = []
    for turns in (1, 200):
        found = pair(
            ASKS + _sends(16) + "uint32_t idle = 0; while (not eth_is_receiver_channel_done(1)) "
            f"{{ if (++idle % {turns} == 0) run_routing(); }}",
            taken,
        )
        times.append(found.run.time_ns if found.run else float("nan"))
    return {
        "missing": [missing.run is None, missing.error],
        "remedy": present.accepted(),
        "sample": loop.accepted(),
        "routing_costs": [
            times[1] <= times[0],
            f"{times[1]:.0f} ns with a turn of the base "
            f"firmware every 200 loops, {times[0]:.0f} with one in each",
        ],
    }


def base_firmware() -> Result:
    """Loops that let the base firmware train a link, and one that does not."""
    idle_count = pair(
        ASKS + _sends(16) + _DONE,
        ANSWERS + "uint32_t idle = 0; while (!eth_bytes_are_available_on_channel(1)) "
        "{ if (++idle > 1000) { idle = 0; run_routing(); } }" + _FREE,
    )
    plain = pair(ASKS + _sends(16) + _DONE, ANSWERS + _TAKE + _FREE)
    never = pair(ASKS, "volatile uint32_t* w = (volatile uint32_t*)0x30000; while (*w == 0) {}")
    yields = pair(ASKS, "for (;;) eth_wait_for_bytes(16);", cycles_max=300_000)
    return {
        "idle_count": idle_count.accepted(),
        "plain_loop": plain.accepted(),
        "silent_loop": [never.run is None and "run_routing" not in never.error, never.error],
        "calls_yield": [yields.run is None, yields.error],
    }


def tiles_and_programs() -> Result:
    """Guarantees of one chip: initial values of semaphores, and equal addresses on all cores."""
    semaphore = core("DPRINT << *(volatile uint32_t*)get_semaphore(0) << ENDL();", semaphores=[42])
    text = '#include "dataflow_api.h"\nvoid kernel_main() {\n'
    from towpath.kernels.chip_kernel import SourceKernel

    same_place = [
        SourceKernel(
            f"k{x}.cpp",
            core=(x, 0),
            text=text + "DPRINT << (uint32_t)(uintptr_t)get_semaphore(1) << ENDL(); }",
        )
        for x in range(3)
    ]
    places = run("wormhole", same_place, semaphores=[0, 0]).printed
    return {
        "semaphores": [semaphore.printed == ["42"], semaphore.error],
        "same_address": [len(set(places)) == 1 and len(places) == 3, ", ".join(places)],
    }


def full_queue() -> Result:
    """Messages in the transmit queue that hide the cost of handing over the next one."""

    def share(size_bytes: int, count: int) -> float:
        sends = (
            f"for (int i = 0; i < {count}; ++i) {{ while (eth_txq_is_busy()) {{}}"
            f"eth_send_packet(0, 0x20000 >> 4, 0x20000 >> 4, {size_bytes} >> 4); }}"
        )
        found = pair(
            ASKS + 'DeviceZoneScopedN("all");' + sends + _sends(16) + _DONE, ANSWERS + _TAKE + _FREE
        )
        bytes_per_ns = size_bytes * count / found.zone("all")
        return bytes_per_ns / 12.5

    large, small = share(8192, 64), share(256, 256)
    return {
        "share_8k": [
            large,
            f"{large:.0%} of the line with messages of 8 KiB, {small:.0%} with "
            "messages of 256 B",
        ],
    }


_FABRIC = """
#include "tt_metal/fabric/hw/inc/edm_fabric/edm_fabric_worker_adapters.hpp"
#include "tt_metal/fabric/hw/inc/linear/api.h"
#include "tt_metal/fabric/hw/inc/packet_header_pool.h"
using namespace tt::tt_fabric;
void kernel_main() {
  *(volatile uint32_t*)0x20000 = 65;
  size_t arg = 1;
  auto router = WorkerToFabricEdmSender::build_from_args<ProgrammableCoreType::TENSIX>(arg);
  router.open();
  for (uint32_t hops = 1; hops <= get_arg_val<uint32_t>(0); ++hops) {
    linear::experimental::fabric_unicast_noc_unicast_write(
        &router, PacketHeaderPool::allocate_header(), 0x20000, 64,
        NocUnicastCommandHeader{get_noc_addr(1, 1, 0x30000)}, hops);
  }
  router.close();
}
"""


def fabric() -> Result:
    """Packets whose headers name their targets: one connection reaches all chips of a line."""
    from towpath.kernels.chip_kernel import FabricConnection, SourceKernel

    line = (4, 0, 3, 7)  # a row of a T3000
    kernel = SourceKernel(
        "send.cpp", chip=line[0], args=[3, FabricConnection(line[1])], text=_FABRIC
    )
    found = run(
        "t3000", [kernel], fabric="1d", read=[word((1, 1), 0x30000, chip) for chip in line[1:]]
    )
    arrived = [int.from_bytes(each, "little") for each in found.bytes_read]
    return {
        "chosen_at_run_time": [
            arrived == [65] * 3,
            found.error or "three chips, chosen in a loop of the kernel",
        ],
    }
