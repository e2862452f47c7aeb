# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What a kernel of a core does and no core can: each ends with a sentence that names the line."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from towpath import ConfigError, KernelRun, MemoryBlock, SourceKernel, load

L1_BYTES = 1499136
PROCESS = "; a core has no process that could end; a kernel ends when kernel_main() returns"
SIGNALS = "; a core has no signals; ASSERT names what is wrong"
SYSTEM = "; a core has no operating system, so no processes, threads or commands"
FILES = "; a core has no files; DPRINT reports"
HEAP = (
    "; a core has no heap; the host hands out L1: circular buffers, semaphores and buffers"
)  # fmt: skip
EXCEPTIONS = "; a core has no exceptions; ASSERT names what is wrong"
WORD = "*(volatile uint32_t*)0x20000"


def run(body: str, before: str = "", args: tuple[int, ...] = ()) -> KernelRun:
    """A kernel with its body in line 4."""
    text = f'#include "dataflow_api.h"\n{before}\nvoid kernel_main() {{\n  {body}\n}}\n'
    kernel = SourceKernel("wrong.cpp", core=(0, 0), args=list(args), text=text)
    return load("wormhole").run_kernels([kernel], read=[MemoryBlock((1, 1), 0x20000, 4)])


def sentence_of(body: str, before: str = "", args: tuple[int, ...] = ()) -> str:
    with pytest.raises(ConfigError) as caught:
        run(body, before, args)
    return str(caught.value)


class Absent(NamedTuple):
    """A function that no core has."""

    body: str
    header: str
    name: str
    why: str


ABSENT = [
    Absent("exit(0);", "stdlib.h", "exit", PROCESS),
    Absent("_exit(0);", "unistd.h", "_exit", PROCESS),
    Absent("quick_exit(0);", "stdlib.h", "quick_exit", PROCESS),
    Absent("abort();", "stdlib.h", "abort", SIGNALS),
    Absent("raise(9);", "signal.h", "raise", SIGNALS),
    Absent("kill(0, 9);", "signal.h", "kill", SIGNALS),
    Absent("fork();", "unistd.h", "fork", SYSTEM),
    Absent('system("true");', "stdlib.h", "system", SYSTEM),
    Absent('execl("/bin/true", "true", nullptr);', "unistd.h", "execl", SYSTEM),
    Absent("sleep(1);", "unistd.h", "sleep", SYSTEM),
    Absent("pthread_exit(nullptr);", "pthread.h", "pthread_exit", SYSTEM),
    Absent('fopen("f", "r");', "stdio.h", "fopen", FILES),
    Absent('open("f", 0);', "fcntl.h", "open", FILES),
    Absent('puts("text");', "stdio.h", "puts", FILES),
    Absent("std::cout << 1;", "iostream", "std::cout", FILES),
    Absent(f"{WORD} = (uint32_t)(long)malloc({WORD});", "stdlib.h", "malloc", HEAP),
    Absent(f"free((void*)(long){WORD});", "stdlib.h", "free", HEAP),
    Absent(f"{WORD} = (long)new int[{WORD}];", "new", "operator new[](unsigned long)", HEAP),
    Absent("throw 1;", "new", "an exception", EXCEPTIONS),
    Absent(
        f"{WORD} = strlen((char*)0x20004);", "string.h", "strlen",
        "; a kernel is linked without the host's libraries, as for a core",
    ),
]  # fmt: skip


@pytest.mark.parametrize("absent", ABSENT, ids=[absent.name for absent in ABSENT])
def test_what_no_core_has_is_refused_by_name(absent):
    assert sentence_of(absent.body, f"#include <{absent.header}>") == (
        f"kernel 'wrong.cpp' uses {absent.name} at wrong.cpp:4{absent.why}"
    )


def test_a_system_call_is_refused():
    assert sentence_of('asm volatile("syscall" : : "a"(60), "D"(0));') == (
        "kernel 'wrong.cpp' has the instruction syscall; a core has no operating system"
    )


def test_a_thread_is_refused_as_one_and_not_for_its_heap():
    said = sentence_of("std::thread([] {}).join();", "#include <thread>")
    assert "uses std::thread" in said
    assert said.endswith(SYSTEM)


def test_a_container_with_a_heap_is_refused():
    said = sentence_of(f"std::vector<int> v({WORD}); {WORD} = v[0];", "#include <vector>")
    assert "uses operator new(unsigned long)" in said
    assert said.endswith(HEAP)


def test_mathematics_and_comparisons_are_there():
    body = (
        f"float x = expf((float){WORD}); {WORD} = x == 1.0f && "
        "memcmp((void*)0x20004, (void*)0x20008, 4) == 0;"
    )
    assert run(body, "#include <math.h>\n#include <string.h>").read == [b"\1\0\0\0"]


def test_global_variables_are_constructed_on_the_core():
    before = f"struct Given {{ uint32_t value = {WORD} + 5; ~Given() {{ value = 0; }} }} given;"
    assert run(f"{WORD} = given.value;", before).read == [b"\5\0\0\0"]


ARRAY = "uint8_t array[16]; volatile uint8_t* at = array;"
NO_CODE = "it jumps to an address without code"
OF_NOBODY = ", which is neither in its L1 nor memory of the kernel's own variables"
FIRST = "get_arg_val<uint32_t>(0)"  # 0x20000
WRONG = [
    (f"((void (*)())(long){FIRST})();", NO_CODE),
    ("volatile long far = 0x123456789000; ((void (*)())far)();", NO_CODE),
    (
        f"{ARRAY} for (uint32_t i = 0; i < 16 + {FIRST} / 256; ++i) at[i] = 1;",
        "a function that ends here has written beyond its variables on the stack",
    ),
    (
        f"uint8_t array[16]; for (uint32_t i = 0; i < {FIRST}; ++i) array[i] = i; "
        f"{WORD} = array[3];",
        "it uses element 16 of an array of type 'unsigned char [16]'",
    ),
    (
        f"own[{FIRST} - 0x20000 - 1][2] = 1;",
        "it uses element 4294967295 of an array of type 'unsigned int [4][3]'",
    ),
    (
        "volatile int none = 0; volatile int quotient = 5 / none;",
        "it divides a whole number by zero, or by -1 where the quotient does not fit",
    ),
    (
        "__builtin_trap();",
        "it ends in an instruction that stops the program, such as that of a trap",
    ),
    (
        "*(volatile uint32_t*)0x7f0000000000 = 1;",
        "it stores 4 bytes at address 0x7f0000000000" + OF_NOBODY,
    ),
    (
        f"*(volatile uint16_t*)({FIRST} + {L1_BYTES}) = 1;",
        f"it stores 2 bytes at address {0x20000 + L1_BYTES:#x}, beyond its L1 of {L1_BYTES} bytes",
    ),
    (
        f"{WORD} = *(uint8_t*)(long){L1_BYTES};",
        f"it loads 1 byte at address {L1_BYTES:#x}, beyond its L1 of {L1_BYTES} bytes",
    ),
    (
        "*(volatile uint32_t*)(0x8008 + get_arg_val<uint32_t>(0) - 0x20000) = 1;",
        "it stores 4 bytes at address 0x8008, where the page counts of circular buffers are; "
        "change them with cb_push_back and cb_pop_front",
    ),
    (
        f"{WORD} = *(uint32_t*)({FIRST} + 1);",
        "it loads 4 bytes at address 0x20001, which must be a multiple of 4",
    ),
    (
        f"*(volatile uint16_t*)({FIRST} + 3) = 1;",
        "it stores 2 bytes at address 0x20003, which must be a multiple of 2",
    ),
    (
        f"*(volatile uint64_t*)({FIRST} + 2) = 1;",
        "it stores 8 bytes at address 0x20002, which must be a multiple of 4",
    ),
]


@pytest.mark.parametrize(("body", "what"), WRONG)
def test_what_a_kernel_does_wrong_is_named_with_its_line(body, what):
    said = sentence_of(body, "uint32_t own[4][3];", args=(0x20000,))
    line = 5 if "function that ends" in what else 4  # where its last brace is
    assert said == f"kernel 'wrong' on core (1, 1) at wrong.cpp:{line}: {what}"


def test_a_kernel_that_writes_over_its_whole_stack_is_named():
    said = sentence_of(
        f"{ARRAY} for (uint32_t i = 0; i < {FIRST}; ++i) at[i] = 1;", args=(0x20000,)
    )
    assert "at wrong.cpp:4: it stores 1 byte at address 0x" in said
    assert said.endswith(OF_NOBODY)


def test_the_same_kernels_without_the_mistake_are_silent():
    for body in (
        ARRAY + " for (uint32_t i = 0; i < 16; ++i) at[i] = 1;",
        "struct { int count; int last[1]; } volatile* p; "
        f"*(uintptr_t*)&p = {FIRST}; p->last[{FIRST} / 65536] = 1;",
        f"*(volatile uint16_t*)(long){L1_BYTES - 2} = 1;",
        f"{WORD} = *(uint8_t*)(long){L1_BYTES - 1};",
        "*(volatile uint64_t*)(get_arg_val<uint32_t>(0) + 4) = 1;",
        "struct __attribute__((packed)) { uint8_t a; uint32_t b; } volatile* p; "
        "*(uintptr_t*)&p = get_arg_val<uint32_t>(0); p->b = 1;",
        "uint8_t array[16]; memcpy(array, (void*)0x20001, 15); memcpy((void*)0x20003, array, 15);",
    ):
        run(body, "#include <string.h>", args=(0x20000,))


def test_the_command_fails_with_the_sentence(tmp_path):
    kernel = tmp_path / "exit.cpp"
    kernel.write_text("#include <stdlib.h>\nvoid kernel_main() { exit(0); }\n")
    command = [sys.executable, "-m", "towpath", "kernel", "run", str(kernel)]
    options = ["--machine", "wormhole", "--core", "0,0"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "uses exit at exit.cpp:2" in done.stderr
    assert done.stdout == ""


HANDLERS = """
import ctypes, faulthandler, sys
sys.path.insert(0, {folder!r})
from test_kernel_faults import sentence_of
JUMP = "((void (*)())(long)0x20000)();"
for _ in range(3):
    assert "jumps to an address without code" in sentence_of(JUMP)
    faulthandler.disable()
    faulthandler.enable()  # replaces the handler
try:
    ctypes.CDLL("libucp.so.0")  # as does UCX
except OSError:
    pass
assert "jumps to an address without code" in sentence_of(JUMP)
print("named", flush=True)
ctypes.string_at(0)
"""


def test_a_fault_is_named_whatever_handler_another_library_installs():
    program = HANDLERS.format(folder=str(Path(__file__).parent))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.stdout, done.returncode) == ("named\n", -signal.SIGSEGV)
    assert done.stderr.count("Fatal Python error: Segmentation fault") == 1  # one that is not ours
