# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""PTX statements of several threads: memory, atomics, barriers, votes, fences and mistakes."""

import re
from pathlib import Path

import pytest

import towpath
from conftest import ROOT

MACHINE = "dgx-h100"

# main() launches kernel() and returns the number of words that are not as they should be.
MAIN = """
int main() {
  unsigned long long *words, *out;
  cudaMalloc(&words, 1 << 16);
  cudaMalloc(&out, 1 << 16);
  cudaMemset(words, 0, 1 << 16);
  cudaMemset(out, 0, 1 << 16);
  kernel<<<BLOCKS, THREADS>>>(words, out);
  cudaDeviceSynchronize();
  unsigned long long wrong = 0;
  cudaMemcpy(&wrong, out, 8, cudaMemcpyDeviceToHost);
  return wrong != 0;
}
"""


def program(tmp_path, kernel: str, blocks: int = 1, threads: int = 64):
    file = tmp_path / "ptx.cu"
    main = MAIN.replace("BLOCKS", str(blocks)).replace("THREADS", str(threads))
    file.write_text(
        "using u32 = unsigned; using u64 = unsigned long long;\n"
        "#define CHECK(what) if (!(what)) { printf(\"line %d, thread %u\\n\", __LINE__, "
        "threadIdx.x); atomicAdd(out, 1ull); }\n"
        f"__global__ void kernel(u64* words, u64* out) {{\n{kernel}\n}}\n{main}"
    )  # fmt: skip
    return towpath.kernel(file)


@pytest.fixture(scope="module", params=["memory", "atomics"])
def statements(request, tmp_path_factory):
    return program(tmp_path_factory.mktemp(request.param), KERNELS[request.param]())


@pytest.mark.parametrize("way", ["simulated", "live"])
def test_threads_compute_what_the_statements_say(statements, way):
    run = statements.run(MACHINE, 1) if way == "simulated" else statements.run_live(1, timeout_s=30)
    assert run.status == 0


def memory_kernel() -> str:
    """Each order, reach, space, width and vector: a store, then a load of the same kind."""
    text = "  __shared__ __align__(32) u64 shared[256];\n  const int t = threadIdx.x;\n"
    text += "  u32 at = (u32)__cvta_generic_to_shared(shared + 4 * (t % 64));\n"
    text += "  u64* to = words + 4 * t;\n"
    orders = [("", ""), ("weak", "weak"), ("volatile", "volatile")]
    for reach in ("cta", "cluster", "gpu", "sys"):
        orders += [
            (f"relaxed.{reach}", f"relaxed.{reach}"),
            (f"release.{reach}", f"acquire.{reach}"),
        ]
    value = 1
    for space in ("", "global", "shared", "shared::cta"):
        for store, load in orders:
            for kind, vector in VECTORS:
                value += 1
                text += access(value, (space, store, load), kind, vector)
    return text


VECTORS = [("b8", 1), ("u16", 1), ("s32", 1), ("f32", 1), ("b64", 1), ("f64", 1), ("u8", 4),
           ("b16", 2), ("u32", 2), ("u32", 4), ("f32", 4), ("u64", 2)]  # fmt: skip


def access(value: int, spelling: tuple[str, str, str], kind: str, vector: int) -> str:
    space, store, load = spelling
    bits = int(re.sub(r"\D", "", kind))
    of, constraint = {8: ("unsigned short", "h"), 16: ("unsigned short", "h"), 32: ("u32", "r"),
                      64: ("u64", "l")}[bits]  # fmt: skip
    if kind[0] == "f":
        of, constraint = ("float", "f") if bits == 32 else ("double", "d")
    parts = [part for part in (space, f"v{vector}" if vector > 1 else "", kind) if part]

    def spelled(opcode: str, order: str) -> str:
        return ".".join([opcode, *([order] if order else []), *parts])

    def listed(first: int) -> str:
        names = ", ".join(f"%{first + i}" for i in range(vector))
        return names if vector == 1 else f"{{{names}}}"

    place = '"r"(at)' if space.startswith("shared") else '"l"(to)'
    values = [value % 60 + 7 * i for i in range(vector)]
    inputs = ", ".join(f'"{constraint}"(({of}){each})' for each in values)
    outputs = ", ".join(f'"={constraint}"(d{i})' for i in range(vector))
    checks = " && ".join(f"d{i} == ({of}){each}" for i, each in enumerate(values))
    names = ", ".join(f"d{i}" for i in range(vector))
    return (
        f'  {{ {of} {names}; asm volatile("{spelled("st", store)} [%0], {listed(1)};" :: {place}, '
        f'{inputs} : "memory"); asm volatile("{spelled("ld", load)} {listed(0)}, [%{vector}];" : '
        f'{outputs} : {place} : "memory"); CHECK({checks}); }}\n'
    )


def atomics_kernel() -> str:
    """Each operation by 64 threads on one word, with its sum afterwards."""
    text = "  const u32 t = threadIdx.x;\n  __shared__ u32 shared;\n  shared = 0;\n"
    text += "  __syncthreads();\n"
    number = 0
    for kind, of, constraint in (("u32", "u32", "r"), ("u64", "u64", "l"), ("f32", "float", "f"),
                                 ("f64", "double", "d"), ("s32", "int", "r")):  # fmt: skip
        for order in ("", ".relaxed.gpu", ".acquire.sys", ".release.cta", ".acq_rel.gpu"):
            number += 1
            add = (
                f'asm volatile("red{order}.global.add.{kind} [%0], %1;" :: "l"(words + {number}), '
            )
            if order.startswith((".acq",)):
                add = (f'{of} old; asm volatile("atom{order}.global.add.{kind} %0, [%1], %2;" : '
                       f'"={constraint}"(old) : "l"(words + {number}), ')  # fmt: skip
            text += f'  {{ {add}"{constraint}"(({of})(t + 1)) : "memory"); __syncthreads(); '
            text += f"CHECK(*({of}*)(words + {number}) == ({of})2080); }}\n"
    for operation, expected in (("min.s32", 0), ("max.u32", 63), ("or.b32", 63),
                                ("inc.u32", 64), ("xor.b32", 0)):  # fmt: skip
        number += 1
        value = 1000 if operation.startswith("inc") else "t"
        text += f'  asm volatile("red.global.{operation} [%0], %1;" '
        text += f':: "l"(words + {number}), "r"({value}));\n'
        text += f"  __syncthreads(); CHECK(*(u32*)(words + {number}) == {expected});\n"
    text += """
  u32 old, at = (u32)__cvta_generic_to_shared(&shared);
  asm volatile("atom.shared.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "r"(at), "r"(t), "r"(t + 1));
  __syncthreads();
  CHECK(shared == 64 && old == t);
  u64* const swapped = words + 1000 + t;
  asm volatile("atom.global.exch.b64 %0, [%1], %2;" : "=l"(old_word) : "l"(swapped), "l"(5ull));
  CHECK(old_word == 0 && *swapped == 5);
  u32 pairs;
  asm volatile("atom.global.add.noftz.f16x2 %0, [%1], %2;" : "=r"(pairs) : "l"(words + 2000),
               "r"(0x3c004000));
  __syncthreads();
  CHECK(*(u32*)(words + 2000) == 0x54005800);
"""
    return text.replace("  u32 old, at", "  u64 old_word;\n  u32 old, at")


KERNELS = {"memory": memory_kernel, "atomics": atomics_kernel}
STATEMENTS = ("warps", "barriers", "addresses", "control", "wide_poll", "functions")


@pytest.mark.parametrize("way", ["simulated", "live"])
@pytest.mark.parametrize("name", STATEMENTS)
def test_threads_meet_as_the_statements_say(name, way):
    source = towpath.kernel(ROOT / "tests" / "e2e" / "gpu" / "ptx_threads.cu")
    arguments = [str(STATEMENTS.index(name))]
    if way == "simulated":
        assert source.run(MACHINE, 1, arguments=arguments).status == 0
    else:
        assert source.run_live(1, arguments=arguments, timeout_s=30).status == 0


# --- mistakes -------------------------------------------------------------------------------------

# Block 0 (or PE 0) stores data and a flag, block 1 (or PE 1) polls the flag and loads the data.
# There is a kernel for each order, and main() launches one.
FLAG_HEAD = """
#include <cstdlib>
#include <nvshmem.h>
#include <nvshmemx.h>
"""
FLAG_KERNEL = """
__global__ void pass_NUMBER(int* data, int* flag, int* out, bool is_writer) {
  int seen;
  if (is_writer || (nvshmem_n_pes() == 1 && blockIdx.x == 0)) {
    asm volatile("st.global.u32 [%0], 5;" :: "l"(data) : "memory");  // store NUMBER
    RELEASE
  } else {
    do {
      asm volatile("LOAD %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    } while (seen == 0);
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(seen) : "l"(data) : "memory");  // load NUMBER
    *out = seen;
  }
}
"""
FLAG_MAIN = """
int main(int argc, char** argv) {
  nvshmem_init();
  int* words = (int*)nvshmem_calloc(256, 4);
  int* out;
  cudaMalloc(&out, 4);
  const bool is_writer = nvshmem_n_pes() == 2 && nvshmem_my_pe() == 0;
  int* to = (int*)nvshmem_ptr(words, nvshmem_n_pes() - 1);
  const int blocks = nvshmem_n_pes() == 2 ? 1 : 2;
  switch (atoi(argv[1])) {
LAUNCHES  }
  cudaDeviceSynchronize();
  int seen = 5;
  if (!is_writer) cudaMemcpy(&seen, out, 4, cudaMemcpyDeviceToHost);
  nvshmem_finalize();
  return seen != 5;
}
"""
STORE = 'asm volatile("st.{}.u32 [%0], 1;" :: "l"(flag) : "memory");'
# The release, the load of the flag, the PEs, and a phrase of the sentence, if it is a mistake.
ORDERS = {
    "no fence": (STORE.format("volatile.global"), "ld.volatile.global.u32", 1, "fence.acq_rel.gpu"),
    "a relaxed store": (STORE.format("relaxed.gpu"), "ld.acquire.gpu.u32", 1, "fence.acq_rel.gpu"),
    "a fence of the block": ('asm volatile("fence.acq_rel.cta;");' + STORE.format("relaxed.gpu"),
                             "ld.acquire.gpu.u32", 1, "no fence of the GPU"),
    "a fence of the GPU": ('asm volatile("fence.acq_rel.gpu;");' + STORE.format("relaxed.gpu"),
                           "ld.acquire.gpu.u32", 1, None),
    "membar.gl": ('asm volatile("membar.gl;");' + STORE.format("volatile"),
                  "ld.volatile.u32", 1, None),
    "__threadfence": ("__threadfence(); *(volatile int*)flag = 1;", "ld.relaxed.gpu.u32", 1, None),
    "a release": (STORE.format("release.gpu.global"), "ld.acquire.gpu.global.u32", 1, None),
    "a release of the block": (STORE.format("release.cta"), "ld.acquire.gpu.u32", 1,
                               "missing fence"),
    "an atomic": ("atomicAdd(flag, 1);", "ld.relaxed.gpu.u32", 1, "missing fence"),
    "an atomic release": ('asm volatile("red.release.gpu.global.add.u32 [%0], 1;" :: "l"(flag));',
                          "ld.relaxed.gpu.u32", 1, None),
    "a fence too late": (STORE.format("relaxed.gpu") + 'asm volatile("nanosleep.u32 9000; '
                         'fence.acq_rel.gpu;");', "ld.acquire.gpu.u32", 1, "missing fence"),
    "a fence of the GPU for a peer": (
        'asm volatile("fence.acq_rel.gpu;");' + STORE.format("relaxed.sys"),
        "ld.acquire.sys.u32", 2, "no fence of the system"),
    "a release for a peer": (STORE.format("release.sys.global"), "ld.acquire.sys.u32", 2, None),
    "a fence of the system": ('asm volatile("fence.acq_rel.sys;");' + STORE.format("relaxed.sys"),
                              "ld.relaxed.sys.u32", 2, None),
}  # fmt: skip


@pytest.fixture(scope="module")
def orders(tmp_path_factory):
    """All orders in one source, to be compiled once."""
    file = tmp_path_factory.mktemp("orders") / "flag.cu"
    kernels = [
        FLAG_KERNEL.replace("NUMBER", str(number)).replace("RELEASE", release).replace("LOAD", load)
        for number, (release, load, *_) in enumerate(ORDERS.values())
    ]
    launches = "".join(
        f"    case {number}: pass_{number}<<<blocks, 1>>>(to, to + 64, out, is_writer); break;\n"
        for number in range(len(ORDERS))
    )
    file.write_text(FLAG_HEAD + "".join(kernels) + FLAG_MAIN.replace("LAUNCHES", launches))
    return towpath.kernel(file)


@pytest.mark.parametrize("name", ORDERS)
def test_a_missing_fence_is_named(orders, name):
    _, _, pes, phrase = ORDERS[name]
    number = list(ORDERS).index(name)
    arguments = [str(number)]
    assert orders.run(MACHINE, pes, arguments=arguments).status == 0
    if phrase is None:
        assert orders.run(MACHINE, pes, arguments=arguments, race_check=True).status == 0
        return
    with pytest.raises(towpath.HazardError) as raised:
        orders.run(MACHINE, pes, arguments=arguments, race_check=True)
    assert raised.value.hazard == "missing_fence"
    store, load = (line_of(orders, f"// {access} {number}") for access in ("store", "load"))
    for part in (phrase, f"flag.cu:{store} ", f"flag.cu:{load} "):
        assert part in str(raised.value), raised.value


def line_of(source, comment: str) -> int:
    lines = Path(source.file).read_text().splitlines()
    (number,) = (number for number, line in enumerate(lines, 1) if line.endswith(comment))
    return number


# A kernel, its threads, a phrase of the sentence and the line, which is that of "at fault".
MISTAKES = {
    "warps that do not come": (
        'if (threadIdx.x < 64) asm volatile("bar.sync 3, 96;");  // at fault', 128,
        "barrier 3 has 64 of its 96 threads and misses 32"),
    "an arrival for nobody": (
        'if (threadIdx.x < 32) asm volatile("bar.sync 2, 64;"); else\n'
        'asm volatile("bar.sync 4, 64;");', 64, "barrier 2 has 32 of its 64 threads"),
    "two counts": (
        'if (threadIdx.x < 32) asm volatile("bar.arrive 2, 64;"); else\n'
        'asm volatile("bar.sync 2, 96;");  // at fault', 64, "with 96 threads"),
    "a barrier that does not exist": (
        'asm volatile("bar.sync 16, 32;");  // at fault', 32, "a block has barriers 0 to 15"),
    "half a warp": (
        'asm volatile("bar.sync %0, 48;" :: "r"(1));  // at fault', 64, "must be a multiple of 32"),
    "beyond an allocation": (
        'asm volatile("st.global.v2.u64 [%0+%1], {%2, %2};" :: "l"(words), "n"(65536), "l"(1ull));'
        "  // at fault", 1,
        "stores 16 bytes that end 16 bytes beyond the 65536 bytes of cudaMalloc"),
    "a misaligned vector": (
        'u32 a, b, c, d;\nasm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4+8];" : "=r"(a), '
        '"=r"(b), "=r"(c), "=r"(d) : "l"(words));  // at fault\nwords[0] = a + b + c + d;', 1,
        "misaligned access"),
    "a misaligned atomic": (
        'asm volatile("red.global.add.u64 [%0], 1;" :: "l"((char*)words + 4));  // at fault', 1,
        "misaligned access"),
    "beyond a shared array": (
        "__shared__ u32 cell[8]; cell[0] = 1;\n"
        'asm volatile("st.shared.u32 [%0+32], 1;" :: "r"((u32)__cvta_generic_to_shared(cell)));'
        "  // at fault", 1, "4 bytes beyond the 32 bytes of __shared__ cell"),
    "a generic address": (
        "__shared__ u32 cell[8]; cell[0] = 1; u32 x;\n"
        'asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "l"(cell));  // at fault', 1,
        "outside of the block's shared memory"),
    "a peer's null": (
        'asm volatile("st.global.u32 [%0], 1;" :: "l"((u32*)nullptr));  // at fault', 1,
        "memory that is not there"),
    "tensor cores": (
        'asm volatile("wgmma.fence.sync.aligned;");  // at fault', 1,
        "executes the PTX instruction 'wgmma.fence.sync.aligned', which Towpath does not model"),
    "an unknown spelling": (
        'u32 x; asm volatile("{ .reg .pred p; setp.eq.u32 p, %1, 0; @p frob.x.u32 %0, %1; }" : '
        '"=r"(x) : "r"(threadIdx.x));  // at fault', 2,
        "'frob.x.u32', which Towpath does not model"),
    "a register of clusters": (
        'u32 x; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(x)); words[0] = x;  // at fault', 1,
        "the operand '%cluster_ctarank'"),
    "a trap": ('asm volatile("trap;");  // at fault', 1, "trap"),
}  # fmt: skip


@pytest.fixture(scope="module")
def mistakes(tmp_path_factory):
    """All mistakes in one source, to be compiled once."""
    file = tmp_path_factory.mktemp("mistakes") / "ptx.cu"
    kernels = [
        f"__global__ void kernel_{number}(u64* words) {{\n"
        f"{kernel.replace('// at fault', f'// at fault {number}')}\n}}\n"
        for number, (kernel, *_) in enumerate(MISTAKES.values())
    ]
    launches = [
        f"    case {number}: kernel_{number}<<<1, {threads}>>>(words); break;\n"
        for number, (_, threads, _) in enumerate(MISTAKES.values())
    ]
    file.write_text(
        "#include <cstdlib>\nusing u32 = unsigned; using u64 = unsigned long long;\n"
        + "".join(kernels)
        + "int main(int argc, char** argv) {\n  u64* words;\n  cudaMalloc(&words, 1 << 16);\n"
        + f"  switch (atoi(argv[1])) {{\n{''.join(launches)}  }}\n"
        + "  return cudaDeviceSynchronize();\n}\n"
    )
    return towpath.kernel(file)


@pytest.mark.parametrize("way", ["simulated", "live"])
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_a_statement_is_named_with_its_line(mistakes, name, way):
    kernel, _, phrase = MISTAKES[name]
    number = list(MISTAKES).index(name)
    with pytest.raises(towpath.TowpathError) as raised:
        if way == "simulated":
            mistakes.run(MACHINE, 1, arguments=[str(number)])
        else:
            mistakes.run_live(1, arguments=[str(number)], timeout_s=30)
    assert phrase in str(raised.value), raised.value
    if "// at fault" in kernel:
        fault = line_of(mistakes, f"// at fault {number}")
        assert re.search(rf"ptx\.cu:{fault}\b", str(raised.value)), raised.value


def test_what_is_not_modeled_is_refused_only_if_it_is_executed(tmp_path):
    kernel = 'if (threadIdx.x > 1000) asm volatile("tcgen05.wait::ld.sync.aligned;");'
    assert program(tmp_path, kernel).run(MACHINE, 1).status == 0


@pytest.mark.parametrize("name", ["low_latency_ring", "released_ring"])
def test_the_examples_run(name):
    kernel = towpath.kernel(ROOT / "examples" / "gpu" / f"{name}.cu")
    assert kernel.run(MACHINE, 4, race_check=True).status == 0
    assert kernel.run_live(2, timeout_s=30).status == 0


def test_a_counter_that_is_not_released_is_a_missing_fence():
    kernel = towpath.kernel(ROOT / "examples" / "gpu" / "released_ring.cu")
    with pytest.raises(towpath.HazardError, match="no fence of the system") as raised:
        kernel.run(MACHINE, 4, arguments=["relaxed"], race_check=True)
    assert raised.value.hazard == "missing_fence"
