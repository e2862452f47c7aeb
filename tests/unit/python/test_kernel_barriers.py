# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes that are on their way to a core's L1, or have not left it: the order of calls decides."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from towpath import (
    CircularBuffer,
    HazardError,
    KernelRun,
    MemoryBlock,
    SourceKernel,
    TowpathError,
    load,
)

BUFFERS = [CircularBuffer(0, 0x30000, 4 * 1024, 1024)]
HERE = "get_noc_addr(1, 1, 0x50000)"
READ = "noc_async_read(get_noc_addr(2, 1, 0x20000), get_write_ptr(0), 1024);"
LOOPBACK = (
    "noc_async_write_multicast_loopback_src(0x20000, "
    "get_noc_multicast_addr(1, 1, 4, 1, get_write_ptr(0)), 1024, 4);"
)
LOAD = "sink = *(volatile uint32_t*)0x30000;"
RAISE = "noc_semaphore_set((volatile uint32_t*)get_semaphore(0), 1);"
SEES = "noc_semaphore_wait((volatile uint32_t*)get_semaphore(0), 1);"
BARRIERS = "noc_async_read_barrier();\nnoc_async_write_barrier();"
WORD_BEHIND = (  # on the same way, so it arrives later
    "*(volatile uint32_t*)0x60000 = 1; noc_semaphore_set_multicast_loopback_src(0x60000, "
    "get_noc_multicast_addr(1, 1, 4, 1, get_semaphore(0)), 4);"
)
COUNTS_AS_SENT = (
    "; noc_async_writes_flushed at first.cpp:6 says that they were sent; they "
    "have arrived after noc_async_write_barrier"
)


def text(lines: str) -> str:
    """A kernel with its first line in line 5."""
    return (
        '#include "dataflow_api.h"\n#include <string.h>\nvolatile uint32_t sink;\n'
        f"void kernel_main() {{\n{lines}\n}}\n"
    )


def run(first: str, second: str = "") -> KernelRun:
    """Two kernels of core (1, 1): the first on NoC 0, the second on NoC 1."""
    kernels = [SourceKernel("first.cpp", core=(0, 0), text=text(first), circular_buffers=BUFFERS)]
    if second:
        kernels.append(
            SourceKernel(
                "second.cpp", core=(0, 0), processor="data_movement_1", noc=1,
                text=text(second), circular_buffers=BUFFERS,
            )
        )  # fmt: skip
    return load("wormhole").run_kernels(
        kernels, semaphores=[0],
        write=[MemoryBlock((x, 1), 0x20000, bytes(1024)) for x in (1, 2, 3, 4)],
    )  # fmt: skip


class Mistake(NamedTuple):
    """Two kernels, and the sentence behind `kernel 'NAME' on core (1, 1)`."""

    first: str
    second: str
    hazard: str
    sentence: str
    name: str = "first"


OF_A_READ = "; they have arrived after noc_async_read_barrier"
WORD = "bytes 196608 to 196611"
BLOCK = "bytes 196608 to 197631"
MISTAKES = {
    "loads what its read brings": Mistake(
        f"{READ}\n{LOAD}\n{BARRIERS}", "", "used_before_barrier",
        f" at first.cpp:6: it loads {WORD}, which its read at first.cpp:5 brings{OF_A_READ}",
    ),
    "copies what its read brings": Mistake(
        f"uint32_t words[4]; {READ}\nmemcpy(words, (void*)0x30008, 16); sink = words[1];\n"
        + BARRIERS,
        "", "used_before_barrier",
        " at first.cpp:6: it loads bytes 196616 to 196631, which its read at first.cpp:5 brings"
        + OF_A_READ,
    ),
    "sends what its read brings": Mistake(
        f"{READ}\nnoc_async_write(0x30000, get_noc_addr(3, 1, 0x30000), 1024);\n{BARRIERS}",
        "", "used_before_barrier",
        f" in noc_async_write at first.cpp:6: it sends {BLOCK}, which its read at first.cpp:5 "
        "brings" + OF_A_READ,
    ),
    "pushes what its read brings": Mistake(
        f"{READ}\ncb_push_back(0, 1);\n{BARRIERS}", "", "used_before_barrier",
        f" at first.cpp:6: it hands on {BLOCK}, which its read at first.cpp:5 brings{OF_A_READ}",
    ),
    "pushes after the barrier of the other direction": Mistake(
        f"{READ}\nnoc_async_write_barrier();\ncb_push_back(0, 1);\n{BARRIERS}", "",
        "used_before_barrier",
        f" at first.cpp:7: it hands on {BLOCK}, which its read at first.cpp:5 brings{OF_A_READ}",
    ),
    "pushes a loopback copy that is flushed": Mistake(
        f"{LOOPBACK}\nnoc_async_writes_flushed();\ncb_push_back(0, 1);\n{BARRIERS}", "",
        "used_before_barrier",
        f" at first.cpp:7: it hands on {BLOCK}, which its multicast at first.cpp:5 brings"
        + COUNTS_AS_SENT,
    ),
    "pushes a loopback copy before the word behind it is seen": Mistake(
        f"{LOOPBACK}\n{WORD_BEHIND}\ncb_push_back(0, 1);\n{BARRIERS}", "", "used_before_barrier",
        f" at first.cpp:7: it hands on {BLOCK}, which its multicast at first.cpp:5 brings; "
            "they have arrived after noc_async_write_barrier",
    ),
    "loads a loopback copy that is flushed": Mistake(
        f"{LOOPBACK}\nnoc_async_writes_flushed();\n{LOAD}\n{BARRIERS}", "", "used_before_barrier",
        f" at first.cpp:7: it loads {WORD}, which its multicast at first.cpp:5 brings"
        + COUNTS_AS_SENT,
    ),
    "loads what it writes to itself": Mistake(
        "noc_async_write(0x20000, get_noc_addr(1, 1, 0x30000), 1024);\n"
        f"noc_async_writes_flushed();\n{LOAD}\n{BARRIERS}", "", "used_before_barrier",
        f" at first.cpp:7: it loads {WORD}, which its write at first.cpp:5 brings{COUNTS_AS_SENT}",
    ),
    "a semaphore hands on a loopback copy, and a barrier is too late": Mistake(
        f"{LOOPBACK}\nnoc_async_writes_flushed();\n{RAISE}\n{BARRIERS}\nriscv_wait(100000);",
        f"{SEES}\nriscv_wait(10000);\n{LOAD}", "used_before_barrier",
        f" at second.cpp:7: it loads {WORD}, which the multicast of kernel 'first' at first.cpp:5 "
        "brings" + COUNTS_AS_SENT, "second",
    ),
    "a word that is stored hands on what a read brings": Mistake(
        f"{READ}\n*(volatile uint32_t*)0x60000 = 7;\n{BARRIERS}\nriscv_wait(100000);",
        f"while (*(volatile uint32_t*)0x60000 != 7) {{}}\nriscv_wait(10000);\n{LOAD}",
        "used_before_barrier",
        f" at second.cpp:7: it loads {WORD}, which the read of kernel 'first' at first.cpp:5 brings"
        + OF_A_READ, "second",
    ),
    "pops what a write has not read": Mistake(
        "cb_push_back(0, 1); cb_wait_front(0, 1);\n"
        f"noc_async_write(get_read_ptr(0), {HERE}, 1024);\ncb_pop_front(0, 1);\n{BARRIERS}", "",
        "reused_before_flushed",
        f" at first.cpp:7: it gives back {BLOCK}, which its write at first.cpp:6 may still have to "
        "read; call noc_async_writes_flushed or a barrier first",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_missing_barrier_is_named_with_both_lines(mistake):
    with pytest.raises(HazardError) as caught:
        run(mistake.first, mistake.second)
    assert str(caught.value) == f"kernel '{mistake.name}' on core (1, 1){mistake.sentence}"
    assert caught.value.hazard == mistake.hazard


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (f"{READ}\n{BARRIERS}\n{LOAD}\ncb_push_back(0, 1);", ""),
        (f"{LOOPBACK}\n{BARRIERS}\ncb_push_back(0, 1);\n{RAISE}", f"{SEES}\n{LOAD}"),
        (f"{LOOPBACK}\nnoc_async_full_barrier();\n{RAISE}", f"{SEES}\n{LOAD}"),
        # Its word changes once, after the barrier; a word before it says something else.
        (
            f"*(volatile uint32_t*)0x60000 = 7;\n{LOOPBACK}\n*(volatile uint32_t*)0x60000 = 8;\n"
            f"{BARRIERS}\n{RAISE}",
            f"while (*(volatile uint32_t*)0x60000 != 8) {{}}\n{SEES}\n{LOAD}",
        ),
        # A word behind it has arrived.
        (f"{LOOPBACK}\n{WORD_BEHIND}\n{SEES}\ncb_push_back(0, 1);\n{BARRIERS}", ""),
        (f"{LOOPBACK}\n{WORD_BEHIND}\n{BARRIERS}", f"{SEES}\n{LOAD}"),
        # Other bytes of the buffer, and a semaphore that is sent to the core itself.
        (f"{READ}\nsink = *(volatile uint32_t*)0x30400;\n{BARRIERS}", ""),
        (
            "noc_semaphore_set_multicast_loopback_src(0x20000, get_noc_multicast_addr(1, 1, 4, 1, "
            f"0x30000), 4);\n{LOAD}\n{BARRIERS}",
            "",
        ),
        # By the id of the transaction.
        (
            "noc_async_read_set_trid(3);\nnoc_async_read_one_packet_set_state(get_noc_addr(2, 1, "
            "0x20000), 1024);\nnoc_async_read_one_packet_with_state_with_trid(0, 0x20000, 0x30000, "
            f"3);\nnoc_async_read_barrier_with_trid(3);\n{LOAD}",
            "",
        ),
        (
            "cb_push_back(0, 1); cb_wait_front(0, 1);\n"
            f"noc_async_write(get_read_ptr(0), {HERE}, 1024);\nnoc_async_writes_flushed();\n"
            f"cb_pop_front(0, 1);\n{BARRIERS}",
            "",
        ),
    ],
)
def test_what_has_its_barrier_is_silent(first, second):
    run(first, second)


def test_a_run_without_hazards_says_nothing_of_barriers():
    kernel = SourceKernel(
        "first.cpp", core=(0, 0), text=text(f"{READ}\ncb_push_back(0, 1);\n{BARRIERS}"),
        circular_buffers=BUFFERS,
    )  # fmt: skip
    load("wormhole").run_kernels([kernel], finds_hazards=False)


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (
            "cb_push_back(0, 4);\ncb_push_back(0, 1);",
            "it pushes pages of circular buffer 0: 1, with room for 0; cb_reserve_back waits for "
            "room",
        ),
        (
            "cb_push_back(0, 1);\ncb_pop_front(0, 2);",
            "it pops pages of circular buffer 0: 2, with 1 pushed; cb_wait_front waits for them",
        ),
    ],
)
def test_pages_that_are_not_there_are_named(lines, sentence):
    with pytest.raises(TowpathError) as caught:
        run(lines)
    assert str(caught.value) == f"kernel 'first' on core (1, 1) at first.cpp:6: {sentence}"


def test_blackhole_and_each_corner_name_the_loopback_copy():
    for machine, first, last in (("wormhole", (1, 1), (4, 4)), ("blackhole", (1, 2), (4, 5))):
        corners = f"{first[0]}, {first[1]}, {last[0]}, {last[1]}"
        multicast = (
            "noc_async_write_multicast_loopback_src(0x20000, "
            f"get_noc_multicast_addr({corners}, get_write_ptr(0)), 1024, 16);"
        )
        lines = f"{multicast}\nnoc_async_writes_flushed();\ncb_push_back(0, 1);\n{BARRIERS}"
        for core, tile in (((0, 0), first), ((3, 3), last)):
            kernel = SourceKernel(
                "first.cpp", core=core, text=text(lines), circular_buffers=BUFFERS
            )
            with pytest.raises(HazardError) as caught:
                load(machine).run_kernels([kernel])
            assert str(caught.value) == (
                f"kernel 'first' on core ({tile[0]}, {tile[1]}) at first.cpp:7: it hands on "
                f"{BLOCK}, which its multicast at first.cpp:5 brings{COUNTS_AS_SENT}"
            )
