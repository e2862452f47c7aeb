# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Document 000: the calls of Ethernet kernels, their order, their mistakes and their remedies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from towpath.reproduce import sequence
from towpath.reproduce.core_programs import (
    ANSWERS,
    ASKS,
    HANDSHAKE,
    Outcome,
    core,
    ethernet_kernel,
    free_link,
    pair,
    run,
    word,
)
from towpath.specs import catalogue

if TYPE_CHECKING:
    from towpath.api.chips import ChipCluster
    from towpath.specs.chip_cluster_spec import PlacedChip

Result = dict[str, Any]
_SEND = "eth_send_bytes_over_channel(0x20000, 0x20000, {0}, 1);"
_DONE = "eth_wait_for_receiver_channel_done(1);"
_TAKE = "while (!eth_bytes_are_available_on_channel(1)) {} "
_FREE = "eth_receiver_channel_done(1);"
_IN_USE = "without proof that they have arrived"
_ENDED = "a kernel waits for all that is sent to it"
_NO_HANDSHAKE = "add a handshake first"
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
        "alignment": [
            moved.printed == ["77"] and all("multiple of 16" in said for said in words),
            words[0],
        ],
        "returns_early": [call < wait / 4, f"{call:.0f} cycles for 64 KiB, done {wait:.0f} later"],
        "only_ethernet_cores": tensix.refused("calls the Ethernet interface, but runs on a worker"),
        "only_the_far_l1": beyond.refused("the L1 of Ethernet core (1, 0) of chip 1 ends at"),
    }


def store_and_forward() -> Result:
    """Bytes of a worker reach a worker of the next chip through both Ethernet cores' L1."""
    (chip, _), (far, _) = free_link()
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
    return {
        "hop_by_hop": [arrived == [91], found.error],
        "no_global_address": _same_address_on_each_chip(),
    }


def _same_address_on_each_chip() -> list[Any]:
    """True if one address names a core of each chip, and a write with it stays on its chip."""
    from towpath.kernels.chip_kernel import SourceKernel

    body = (
        "const uint64_t to = get_noc_addr(2, 2, 0x30000);"
        "DPRINT << uint32_t(to >> 32) << '/' << uint32_t(to) << ENDL();"
        "*(volatile uint32_t*)0x20000 = OWN;"
        "noc_async_write(0x20000, to, 64); noc_async_write_barrier();"
    )
    text = f'#include "dataflow_api.h"\nvoid kernel_main() {{\n{body}\n}}\n'
    kernels = [
        SourceKernel(f"chip{chip}.cpp", chip=chip, text=text, defines={"OWN": str(11 + chip)})
        for chip in (0, 1)
    ]
    found = run("n300", kernels, read=[word((2, 2), 0x30000, chip) for chip in (0, 1)])
    stored = [int.from_bytes(each, "little") for each in found.bytes_read]
    return [
        len(found.printed) == 2 and len(set(found.printed)) == 1 and stored == [11, 12],
        found.error or f"one address on both chips; they store {stored}",
    ]


def noc_writes() -> Result:
    """A writer sees the state of its NoC writes in two barriers. Ethernet has neither."""
    text = (
        'noc_async_write(0x20000, get_noc_addr(8, 8, 0x20000), 8192); {{ DeviceZoneScopedN("f"); '
    )
    found = core(
        text.replace("{{", "{")
        + 'noc_async_writes_flushed(); } { DeviceZoneScopedN("b"); noc_async_write_barrier(); }'
        '{ DeviceZoneScopedN("idle"); noc_async_write_barrier(); }'
    )
    flushed, barrier, idle = found.zone("f"), found.zone("b"), found.zone("idle")
    # Both calls of the NoC return, and the packet's source may still not change.
    unseen = pair(
        ASKS
        + _sends()
        + "noc_async_writes_flushed(); noc_async_write_barrier();"
        + "*(volatile uint32_t*)0x20000 = 1;"
        + _DONE,
        ANSWERS + _TAKE + _FREE,
    )
    answered = pair(
        ASKS + _sends() + _DONE + "*(volatile uint32_t*)0x20000 = 1;", ANSWERS + _TAKE + _FREE
    )
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
            flushed > idle and barrier > idle,
            f"left after {flushed:.0f} cycles, arrived {barrier:.0f} later; {idle:.0f} if idle",
        ],
        "ethernet_has_neither": [
            _IN_USE in unseen.error and answered.run is not None,
            unseen.error,
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
        "second_is_reserved": second.refused("there is no queue 1 for kernels"),
        "is_busy": [int(seen[0]) > 0, f"busy after {seen[0]} of 12 commands"],
        "work_while_busy": [int(turns[0]) > 0, f"{turns[0]} turns of other work meanwhile"],
        "in_order": [order.printed == ["7"], order.error],
        "no_order_across": _order_across_queues(),
        "figure": _occupancy(),
    }


def _both_queues() -> ChipCluster:
    """An n300 whose kernels may use both transmit queues."""
    from towpath.api.chips import ChipCluster

    spec = catalogue.load_chip_cluster("n300")

    def released(placed: PlacedChip) -> PlacedChip:
        link = placed.chip.ethernet
        assert link is not None
        queues = link.tx_queues_for_kernels.model_copy(update={"value": link.tx_queues.value})
        ethernet = link.model_copy(update={"tx_queues_for_kernels": queues})
        return replace(placed, chip=placed.chip.model_copy(update={"ethernet": ethernet}))

    return ChipCluster(replace(spec, chips=tuple(released(placed) for placed in spec.chips)))


def _order_across_queues() -> list[Any]:
    """True if a short packet overtakes a long one in the other queue, and never in the same."""
    machine = _both_queues()
    last = {}
    for queue in (0, 1):
        # The last word of 16 KiB, and a packet with this word only, which is sent later.
        sender = (
            "*(volatile uint32_t*)0x23ff0 = 5; *(volatile uint32_t*)0x30000 = 7;"
            + ASKS
            + "eth_send_packet(0, 0x20000 >> 4, 0x24000 >> 4, 16384 >> 4);"
            + f"eth_send_packet({queue}, 0x30000 >> 4, 0x27ff0 >> 4, 1);"
            + _sends(16)
            + _DONE
        )
        receiver = ANSWERS + _TAKE + _PRINT.format("*(volatile uint32_t*)0x27ff0") + _FREE
        kernels = [ethernet_kernel(sender, 0), ethernet_kernel(receiver, 1)]
        found = run(machine, kernels, cycles_max=1_000_000, finds_hazards=False)
        last[queue] = found.printed or [found.error]
    return [
        (last[0], last[1]) == (["7"], ["5"]),
        f"16 KiB with 5 at their end, then 16 B with 7 there: {last[0][0]} if both are in queue 0, "
        f"{last[1][0]} if the second is in queue 1",
    ]


def _occupancy() -> Result:
    """Transmit queue 0 over time: commands that the core handed over, and the end of the last."""
    clock = "uint32_t(eth_read_wall_clock())"
    found = pair(
        ASKS + f"uint32_t at[13]; at[0] = {clock}; for (int i = 1; i < 13; ++i) {{"
        f"eth_send_packet(0, 0x20000 >> 4, 0x20000 >> 4, 4096 >> 4); at[i] = {clock}; }}"
        "while (eth_txq_is_busy()) {}"
        f"const uint32_t idle = {clock};"
        "for (int i = 0; i < 13; ++i) DPRINT << at[i] - at[0] << ENDL();"
        "DPRINT << idle - at[0] << ENDL();" + _sends(16) + _DONE,
        ANSWERS + _TAKE + _FREE,
    )
    *handed, idle = map(float, found.printed)
    return {
        "title": "Command queue 0 of an Ethernet core",
        "how": f"12 packets of 4 KiB from the core's clock. The queue is idle after {idle:.0f} ns.",
        "x": "ns",
        "y": "commands handed over",
        "curves": [
            {"name": "ours", "x": handed, "y": list(map(float, range(len(handed))))},
        ],
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
        "sequence": sequence.flow_control_in_order(),
        "ack_before_done": [
            acked.printed == ["2001", "3000"],
            acked.error or ", ".join(acked.printed),
        ],
        "own_ack_word": same_word.refused("which is a sync word of a channel"),
        "source_is_in_use": [
            _IN_USE in changed.error and waited.run is not None,
            changed.error,
        ],
        "sync_goes_last": early.refused("send the announcement after its payload"),
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
    beyond = pair(
        f"eth_send_bytes({HANDSHAKE + 16}, {HANDSHAKE + 16}, 16); eth_wait_for_receiver_done();",
        ANSWERS,
    )
    elsewhere = pair("eth_send_bytes(0x28000, 0x28000, 16); eth_wait_for_receiver_done();", ANSWERS)
    return {
        "missing": missing.refused(_NO_HANDSHAKE),
        "remedy": present.accepted(),
        "late_start": [
            late.run is not None and late.run.time_ns > 50_000,
            late.error or "the receiver starts 50,000 cycles later",
        ],
        "handshake_only": _data_before_handshake(),
        "one_place": elsewhere.refused(_NO_HANDSHAKE),
        "scratch": [
            shaken.run is not None and _NO_HANDSHAKE in beyond.error,
            f"16 bytes at the base of the kernel's memory are safe; 16 bytes later: {beyond.error}",
        ],
    }


def _data_before_handshake() -> list[Any]:
    """True if data ahead of a handshake stops it on channel 0, and on channel 1 does not."""
    ends = {}
    for channel in (0, 1):
        sender = (
            f"eth_send_bytes_over_channel(0x20000, 0x20000, 4096, {channel});"
            + ASKS
            + f"eth_wait_for_receiver_channel_done({channel});"
        )
        receiver = (
            ANSWERS + f"while (!eth_bytes_are_available_on_channel({channel})) {{}} "
            f"eth_receiver_channel_done({channel});"
        )
        ends[channel] = pair(sender, receiver, cycles_max=200_000, finds_hazards=False)
    return [
        "must become 16" in ends[0].error and ends[1].run is not None,
        ends[1].error or ends[0].error,
    ]


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
    turn = pair(
        ASKS + '{ DeviceZoneScopedN("poll"); eth_is_receiver_channel_done(1); }'
        '{ DeviceZoneScopedN("turn"); run_routing(); }',
        ANSWERS,
    )
    poll_cycles, turn_cycles = turn.zone("poll"), turn.zone("turn")
    start = pair(_sends() + _DONE, _TAKE + _FREE)
    return {
        "both": [
            _NO_HANDSHAKE in start.error and _ENDED in missing.error,
            f"start: {start.error}; completion: {missing.error}",
        ],
        "missing": missing.refused(_ENDED),
        "remedy": present.accepted(),
        "sample": loop.accepted(),
        "routing_costs": [
            turn_cycles / poll_cycles,
            f"run_routing() takes {turn_cycles:.0f} cycles, a poll of a channel {poll_cycles:.0f}",
        ],
    }


def base_firmware() -> Result:
    """A link that drops under eight packets, with and without a turn of the base firmware."""
    chip, channel = free_link()[0]
    drop = (f"{chip}:{channel},at=5us,training=2us",)

    def received(wait: str, faults: tuple[str, ...] = drop) -> Outcome:
        """Eight packets under a drop of the line, and a receiver with this loop."""
        return pair(
            ASKS + "for (int i = 0; i < 8; ++i) {" + _sends() + _DONE + "}",
            ANSWERS + "for (int i = 0; i < 8; ++i) {" + wait + _FREE + "}",
            link_faults=faults,
        )

    counted = received(
        "uint32_t idle = 0; while (!eth_bytes_are_available_on_channel(1)) "
        "{ if (++idle > 1000) { idle = 0; run_routing(); } }"
    )
    plain, healthy = received(_TAKE), received(_TAKE, ())
    trained = received("while (!eth_bytes_are_available_on_channel(1)) run_routing();")
    called = received("eth_wait_for_bytes_on_channel(4096, 1);")
    stuck = "does not call run_routing(), while its link is down"
    return {
        "training": [trained.run is not None and stuck in plain.error, plain.error],
        "calls_yield": called.accepted(),
        "silent_loop": plain.refused(stuck),
        "idle_count": counted.accepted(),
        "plain_loop": healthy.accepted(),
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
