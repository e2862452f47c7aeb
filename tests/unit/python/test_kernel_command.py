# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath kernel run`, and run_kernels behind it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import towpath
from towpath import CircularBuffer, ConfigError, DeadlockError, MemoryBlock, SourceKernel

pytestmark = pytest.mark.slow  # starts processes

KERNEL = """
#include "dataflow_api.h"
void kernel_main() {
  const uint32_t value = get_arg_val<uint32_t>(0);
  DPRINT << "value " << value << ENDL();
  DeviceZoneScopedN("store");
  *reinterpret_cast<volatile uint32_t*>(0x20000) = value * SCALE + get_compile_time_arg_val(0);
}
"""


def load(name: str) -> Any:
    """A machine, of whatever kind it is."""
    return towpath.load(name)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "towpath", "kernel", "run", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def kernel(tmp_path: Path) -> str:
    path = tmp_path / "store.cpp"
    path.write_text(KERNEL)
    return str(path)


def test_a_kernel_that_ends_too_early_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "increment.cpp"
    path.write_text(
        '#include "dataflow_api.h"\n'
        "void kernel_main() { noc_semaphore_inc(get_noc_addr(2, 2, 0x20000), 1); }\n"
    )
    ran = command(str(path), "--core", "1,1")
    assert ran.returncode == 2
    (sentence,) = ran.stderr.splitlines()
    assert sentence.startswith("towpath: kernel 'increment' on core (2, 2) ends in cycle ")
    assert "without the barrier it needs" in sentence


def test_command_runs_a_kernel_on_a_rectangle_of_cores(kernel: str) -> None:
    ran = command(
        kernel, "--core", "0,0-1,0", "--arg", "5", "--compile-arg", "0x10", "-D", "SCALE=2",
        "--read", "2,1:0x20000:4", "--json",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)["results"][0]
    assert [row["core"] for row in found["kernels"]] == [[0, 0], [1, 0]]
    assert found["read"][0]["bytes"] == (26).to_bytes(4, "little").hex()
    assert [line["text"] for line in found["lines"]] == ["value 5"] * 2
    assert {zone["name"] for zone in found["zones"]} == {"store"}


def test_command_prints_lines(kernel: str) -> None:
    ran = command(kernel, "--arg", "1", "--compile-arg", "0", "-D", "SCALE=1")
    assert ran.returncode == 0, ran.stderr
    assert "store: value 1" in ran.stdout
    assert "zone store" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        (["absent.cpp"], "absent.cpp"),
        (["kernel.rs"], "does not have the suffix of a kernel"),
        (["absent.cpp", "--core", "1"], "--core '1'"),
        (["absent.cpp", "--arg", "x"], "'x' is not a number"),
        (["absent.cpp", "--machine", "dgx-h100"], "has no cores"),
        (["absent.cpp", "--circular-buffer", "1:2"], "--circular-buffer '1:2'"),
    ],
)
def test_mistakes_are_one_sentence(arguments: list[str], phrase: str) -> None:
    ran = command(*arguments)
    assert ran.returncode == 2
    assert phrase in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_two_processors_of_a_core_share_a_circular_buffer() -> None:
    buffers = [CircularBuffer(0, 0x30000, 128, 64)]
    producer = SourceKernel(
        "producer.cpp",
        processor="data_movement_1",
        circular_buffers=buffers,
        text="""
void kernel_main() {
  for (uint32_t page = 0; page < 6; ++page) {
    cb_reserve_back(0, 1);
    *reinterpret_cast<volatile uint32_t*>(get_write_ptr(0)) = page + 1;
    cb_push_back(0, 1);
  }
}
""",
    )
    consumer = SourceKernel(
        "consumer.cpp",
        circular_buffers=buffers,
        text="""
void kernel_main() {
  uint32_t sum = 0;
  for (uint32_t page = 0; page < 6; ++page) {
    cb_wait_front(0, 1);
    sum += *reinterpret_cast<volatile uint32_t*>(get_read_ptr(0));
    cb_pop_front(0, 1);
  }
  *reinterpret_cast<volatile uint32_t*>(0x20000) = sum;
}
""",
    )
    found = load("wormhole").run_kernels(
        [producer, consumer], read=[MemoryBlock((1, 1), 0x20000, 4)]
    )
    assert found.read == [(21).to_bytes(4, "little")]


def test_kernels_on_two_chips_send_over_ethernet() -> None:
    n300 = load("n300")
    link = next(link for link in n300._cluster.links if not link.is_reserved)
    (chip, channel), (other, other_channel) = link.ends
    handshake = "0x1a800, 0x1a800, 16"
    sender = SourceKernel(
        "send.cpp",
        chip=chip,
        core=(0, channel),
        processor="ethernet",
        text=f"""
#include "eth/dataflow_api.h"
void kernel_main() {{
  eth_send_bytes({handshake});
  eth_wait_for_receiver_done();
  *reinterpret_cast<volatile uint32_t*>(0x20000) = 77;
  eth_send_bytes_over_channel(0x20000, 0x20000, 16, 1);
  eth_wait_for_receiver_channel_done(1);
}}
""",
    )
    receiver = SourceKernel(
        "receive.cpp",
        chip=other,
        core=(0, other_channel),
        processor="ethernet",
        text="""
#include "eth/dataflow_api.h"
void kernel_main() {
  eth_wait_for_bytes(16);
  eth_receiver_channel_done(0);
  while (!eth_bytes_are_available_on_channel(1)) {}
  DPRINT << *reinterpret_cast<volatile uint32_t*>(0x20000) << ENDL();
  eth_receiver_channel_done(1);
}
""",
    )
    found = n300.run_kernels([sender, receiver])
    assert [line.text for line in found.lines] == ["77"]
    assert found.time_ns > 1000


def test_errors_are_those_of_the_library() -> None:
    chip = load("wormhole")
    waits = "void kernel_main() { noc_semaphore_wait((uint32_t*)get_semaphore(0), 1); }"
    with pytest.raises(DeadlockError, match="noc_semaphore_wait"):
        chip.run_kernels([SourceKernel("wait.cpp", text=waits)], semaphores=[0])
    with pytest.raises(ConfigError, match="the compute cores, which have neither"):
        chip.run_kernels([SourceKernel("math.cpp", processor="compute", text=waits)])
    with pytest.raises(ConfigError, match="is not a 32-bit word"):
        chip.run_kernels([SourceKernel("wait.cpp", args=[2**40], text=waits)])
    with pytest.raises(ConfigError, match="at least one"):
        chip.run_kernels([])


@pytest.mark.parametrize("offset", [1 << 32, (1 << 64) - 32, 1499136 - 32])
def test_a_block_beyond_the_memory_is_refused(offset: int) -> None:
    kernel = SourceKernel("idle.cpp", core=(0, 0), text="void kernel_main() {}")
    block = MemoryBlock((1, 1), offset, 64)
    with pytest.raises(ConfigError, match=r"of tile \(1, 1\) of chip 0 are beyond its memory"):
        towpath.load("wormhole").run_kernels([kernel], read=[block])
    with pytest.raises(ConfigError, match="are beyond its memory, which has 1499136"):
        towpath.load("wormhole").run_kernels([kernel], write=[block._replace(data=bytes(64))])


def test_options_may_come_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "idle.cpp"
    file.write_text("void kernel_main() {}", encoding="utf-8")
    command = [sys.executable, "-m", "towpath", "kernel", "run"]
    options = ["--core", "0,0", "--machine", "wormhole"]
    for words in ([*options, str(file)], [*options[:2], str(file), *options[2:]]):
        done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert "core (0, 0) of chip 0" in done.stdout


LOOPS = {
    "for (;;) {}": "at loop.cpp:3: in cycle 0 it reaches an empty loop that never ends; a loop",
    "while (count == 0) {}": "at loop.cpp:3: it is still in cycle 0 after 4294967296 blocks of",
    "for (;;) riscv_wait(100);": "after 300000 cycles, the limit (cycles_max), 1 of 1 kernels",
    "while (*word == 0) { noc_async_read(get_noc_addr(2, 1, 0x20000), 0x30000, 64); "
    "noc_async_read_barrier(); }": "after 300000 cycles, the limit (cycles_max)",
}


# The limit of blocks takes 19 s of processor time; a test of tests/unit/tenstorrent counts to it.
_SLOW = "while (count == 0) {}"


@pytest.mark.parametrize(
    "loop",
    [pytest.param(loop, marks=pytest.mark.long if loop == _SLOW else ()) for loop in LOOPS],
)
def test_a_loop_that_never_ends_is_one_sentence(loop: str, tmp_path: Path) -> None:
    file = tmp_path / "loop.cpp"
    file.write_text(
        "volatile uint32_t count, *word = (volatile uint32_t*)0x20000;\n"
        f"void kernel_main() {{\n{loop}\n}}\n"
    )
    ran = command(str(file), "--core", "1,1", "--cycles-max", "300000")
    assert ran.returncode != 0
    (sentence,) = ran.stderr.splitlines()
    assert LOOPS[loop] in sentence
    assert "kernel 'loop' on core (2, 2)" in sentence


def test_a_run_has_a_limit_of_cycles_where_none_is_given() -> None:
    waits = SourceKernel("w.cpp", text="void kernel_main() { for (;;) riscv_wait(100000000); }")
    with pytest.raises(towpath.RunError, match="after 100000000 cycles, the limit"):
        load("wormhole").run_kernels([waits])
    with pytest.raises(ConfigError, match="cycles_max is -1; it must be 1 to"):
        load("wormhole").run_kernels([waits], cycles_max=-1)


SOURCES = {
    "kernel.cu": ("kernel", "run", "kernel.cu", "--machine", "dgx-h100"),
    "kernel.cpp": ("kernel", "run", "kernel.cpp", "--machine", "wormhole", "--core", "0,0"),
    "program.c": ("shmem", "run", "program.c", "--pes", "2"),
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_compiler_that_is_absent_is_one_sentence(source: str, tmp_path: Path) -> None:
    (tmp_path / source).write_text("int absent;", encoding="utf-8")
    absent = {"CC": "no-such-compiler", "CXX": "no-such-compiler"}
    done = subprocess.run(
        [sys.executable, "-m", "towpath", *SOURCES[source]],
        capture_output=True, text=True, timeout=120, cwd=tmp_path,
        env={**os.environ, **absent, "XDG_CACHE_HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 2, done
    assert done.stderr.count("\n") == 1, done.stderr
    assert "'no-such-compiler', which cannot be started" in done.stderr
    assert "; install g" in done.stderr
