# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of a CUDA program in its use of memory, simulated and live, each by its name and line."""

import re

import pytest

import towpath

MACHINE = "dgx-h100"

# main() executes one statement. What is at fault is on the kernel's line, or on the marked one.
KERNELS = """#include <cstdlib>
#include <cstring>
#include <nvshmem.h>
#include <nvshmemx.h>
__global__ void store(int* p, long i) { p[i] = 1; }
__global__ void load(const int* p, long i, int* out) { *out = p[i]; }
__global__ void change(int* p, long i) { atomicAdd(p + i, 1); }
__global__ void poll(volatile int* p, long i, int* out) { *out = p[i]; }
__global__ void copy(char* p, long bytes) { char own[256] = {1}; memcpy(p, own, bytes); }
template <typename T> __global__ void store_as(char* p, long at) { *(T*)(p + at) = T(); }
__global__ void store_vector(char* p, long at) { *(float4*)(p + at) = make_float4(1, 2, 3, 4); }
__global__ void store_shared(int* out, int i) {
  __shared__ int sums[32]; __shared__ double means[8];
  sums[threadIdx.x] = 1;
  means[threadIdx.x % 8] = 2;
  __syncthreads();
  sums[i] = 5;  // at fault
  *out = sums[0] + static_cast<int>(means[0]);
}
__global__ void store_dynamic(int i) {
  extern __shared__ char bytes[];
  bytes[i] = 1;  // at fault
}
__global__ void store_to_peer(int* p, long i) {
  int* const peer = static_cast<int*>(nvshmem_ptr(p, (nvshmem_my_pe() + 1) % nvshmem_n_pes()));
  peer[i] = 1;  // at fault
}
__global__ void put(int* to, const int* from, long count) {
  nvshmem_int_put(to, from, count, (nvshmem_my_pe() + 1) % nvshmem_n_pes());  // at fault
}
__global__ void put_block(int* to, const int* from, long count) {
  nvshmemx_int_put_block(to, from, count, 0);  // at fault
}
__global__ void new_and_store(int* out, int i) {
  int* const own = new int[4];
  own[i] = 7;  // at fault
  *out = own[0];
  delete[] own;
}
__global__ void several_threads(int* p, int limit) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < limit) p[i] = i;  // at fault
}
int main(int argc, char** argv) {
  nvshmem_init();
  const int me = nvshmem_my_pe();
  static_cast<void>(me);
  int *d, *e, *out, *managed, *pinned;
  cudaMalloc(&d, 4096); cudaMalloc(&e, 4096); cudaMalloc(&out, 4);
  cudaMallocManaged(&managed, 64); cudaMallocHost(&pinned, 64);
  int* s = static_cast<int*>(nvshmem_malloc(4096));
  int* t = static_cast<int*>(nvshmem_calloc(1024, 4));
  static int host[1024];
  switch (atoi(argv[1])) {
"""
END = """  default: break;
  }
  cudaDeviceSynchronize();
  nvshmem_finalize();
  return 0;
}
"""
# Of a statement: the hazard, and a phrase of its sentence.
OUT, FREED, MISALIGNED, HOST, DEVICE = (
    "out_of_bounds", "use_after_free", "misaligned_access", "host_memory", "device_memory"
)  # fmt: skip
WRONG = {
    # beyond, before and far from an allocation
    "store<<<1, 1>>>(d, 1024);": (
        OUT,
        "stores 4 bytes that end 4 bytes beyond the 4096 bytes of cudaMalloc",
    ),
    "store<<<1, 1>>>(d, -1);": (OUT, "begin 4 bytes before the 4096 bytes of cudaMalloc"),
    "load<<<1, 1>>>(d, 1025, out);": (OUT, "loads 4 bytes that end 8 bytes beyond the 4096"),
    "load<<<1, 1>>>(d, 1 << 28, out);": (OUT, "loads 4 bytes"),
    "change<<<1, 1>>>(e, 1024);": (OUT, "changes 4 bytes that end 4 bytes beyond"),
    "poll<<<1, 1>>>(e, 1024, out);": (OUT, "loads 4 bytes that end 4 bytes beyond"),
    "copy<<<1, 1>>>((char*)d + 4000, 97);": (OUT, "stores 97 bytes that end 1 byte beyond"),
    "several_threads<<<9, 128>>>(d, 1025);": (OUT, "thread 0 of block (8,0,0)"),
    "store<<<1, 1>>>(managed, 16);": (OUT, "of cudaMallocManaged"),
    "store_as<double><<<1, 1>>>((char*)d, 4096);": (OUT, "stores 8 bytes"),
    "store_vector<<<1, 1>>>((char*)d, 4096);": (OUT, "stores 16 bytes"),
    "store<<<1, 1>>>(s, 1024);": (OUT, "end 4 bytes beyond the 4096 bytes of nvshmem_malloc"),
    "store<<<1, 1>>>(t, -2);": (OUT, "begin 8 bytes before the 4096 bytes of nvshmem_calloc"),
    "store_to_peer<<<1, 1>>>(s, 1024);": (
        OUT,
        "end 4 bytes beyond the 4096 bytes of nvshmem_malloc",
    ),
    # shared memory
    "store_shared<<<1, 32>>>(out, 32);": (OUT, "4 bytes beyond the 128 bytes of __shared__ sums"),
    "store_shared<<<1, 32>>>(out, -1);": (OUT, "before the 128 bytes of __shared__ sums"),
    "store_shared<<<1, 32>>>(out, 5000);": (OUT, "__shared__"),
    "store_dynamic<<<1, 1, 100>>>(100);": (
        OUT,
        "1 byte beyond the 100 bytes of the launch's dynamic shared memory",
    ),
    # after a free
    "cudaFree(d); store<<<1, 1>>>(d, 0);": (FREED, "cudaFree at"),
    "cudaFree(d); cudaMalloc(&d, 4096); cudaFree(d); load<<<1, 1>>>(d, 1023, out);": (
        FREED,
        "loads",
    ),
    "nvshmem_free(s); store<<<1, 1>>>(s, 3);": (FREED, "nvshmem_free at"),
    "cudaFree(d); cudaMemset(d, 0, 4);": (FREED, "cudaMemset at"),
    # alignment
    "store_as<int><<<1, 1>>>((char*)d, 2);": (MISALIGNED, "2 bytes into"),
    "store_as<short><<<1, 1>>>((char*)d, 1);": (MISALIGNED, "stores 2 bytes"),
    "store_as<double><<<1, 1>>>((char*)s, 4);": (MISALIGNED, "stores 8 bytes"),
    "store_vector<<<1, 1>>>((char*)d, 8);": (MISALIGNED, "stores 16 bytes"),
    # the host's memory in a kernel, the GPU's in the host program
    "store<<<1, 1>>>((int*)malloc(64), 0);": (HOST, "stores 4 bytes"),
    "int local; load<<<1, 1>>>(&local, 0, out);": (HOST, "loads 4 bytes"),
    "d[3] = 1;": (DEVICE, "stores 4 bytes inside the 4096 bytes of cudaMalloc"),
    "return 100 + s[0];": (DEVICE, "loads 4 bytes inside the 4096 bytes of nvshmem_malloc"),
    "memset(d, 0, atoi(argv[2]));": (DEVICE, "stores 1000 bytes inside"),
    "memcpy(host, t, atoi(argv[2]));": (DEVICE, "loads 1000 bytes inside"),
    # copies and transfers
    "cudaMemcpy(d, host, 4100, cudaMemcpyHostToDevice);": (OUT, "cudaMemcpy at"),
    "cudaMemcpy(host, d + 1, 4096, cudaMemcpyDeviceToHost);": (
        OUT,
        "loads 4096 bytes that end 4 bytes beyond",
    ),
    "cudaMemcpyAsync(d, e, 8192, cudaMemcpyDeviceToDevice);": (OUT, "cudaMemcpyAsync at"),
    "cudaMemcpy(nullptr, host, 64, cudaMemcpyHostToDevice);": (OUT, "stores 64 bytes at nullptr"),
    "cudaMemcpy(d, nullptr, 64, cudaMemcpyHostToDevice);": (OUT, "loads 64 bytes at nullptr"),
    "cudaMemset(d, 0, 1 << 24);": (OUT, "stores 16777216 bytes"),
    "cudaMemset(malloc(64), 0, 64);": (HOST, "cudaMemset at"),
    "cudaMemset(s, 0, 4097);": (OUT, "end 1 byte beyond the 4096 bytes of nvshmem_malloc"),
    "put<<<1, 1>>>(s, t, 1025);": (OUT, "nvshmem_int_put at"),
    "put<<<1, 1>>>(s, t + 1000, 25);": (OUT, "loads 100 bytes that end 4 bytes beyond"),
    "put_block<<<1, 32>>>(s + 1023, t, 2);": (
        OUT,
        "stores at PE 0 8 bytes that end 4 bytes beyond",
    ),
    # memory of a kernel
    "new_and_store<<<1, 1>>>(out, 1 << 26);": (HOST, "stores 4 bytes"),
}

RIGHT = [
    "store<<<1, 1>>>(d, 1023); store<<<1, 1>>>(d, 0); load<<<1, 1>>>(e, 1023, out);",
    "change<<<1, 32>>>(e, 1023); poll<<<1, 1>>>(e, 0, out); copy<<<1, 1>>>((char*)d + 4000, 96);",
    "store<<<1, 1>>>(managed, 15); store<<<1, 1>>>(pinned, 15); managed[3] = pinned[4];",
    "store_shared<<<2, 32>>>(out, 31); store_dynamic<<<1, 1, 100>>>(99);",
    "store_as<double><<<1, 1>>>((char*)d, 4088); store_vector<<<1, 1>>>((char*)s, 4080);",
    "store_to_peer<<<1, 1>>>(s, 1023); put<<<1, 1>>>(s, t, 1024); put_block<<<1, 32>>>(s, t, 9);",
    "new_and_store<<<1, 1>>>(out, 3); several_threads<<<8, 128>>>(d, 1024);",
    "cudaFree(d); cudaMalloc(&d, 8192); store<<<1, 1>>>(d, 2047); nvshmem_free(s);",
    "cudaMemcpy(d, host, 4096, cudaMemcpyDefault); cudaMemcpy(host, s, 4096, cudaMemcpyDefault);",
    "cudaMemcpy(pinned, d, 64, cudaMemcpyDeviceToHost); cudaMemset(managed, 0, 64);",
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """All statements in one source, to be compiled once for each way to run it."""
    file = tmp_path_factory.mktemp("memory") / "memory.cu"
    cases = [f"  case {i}: {{ {text} break; }}\n" for i, text in enumerate([*WRONG, *RIGHT])]
    file.write_text(KERNELS + "".join(cases) + END)
    return towpath.kernel(file)


def run(program, number: int, way: str) -> None:
    arguments = [str(number), "1000"]
    if way == "live":
        program.run_live(2, arguments=arguments, timeout_s=30)
    else:
        program.run(MACHINE, 2, arguments=arguments)


def place_of(statement: str, number: int) -> str:
    """The place of the access: in the kernel, or in main() where the statement launches none."""
    lines = KERNELS.splitlines()
    launched = re.findall(r"(\w+)(?:<\w+>)?<<<", statement)
    if not launched or "cudaMemset" in statement:
        return f"memory.cu:{len(lines) + 1 + number} "
    begin = next(i for i, text in enumerate(lines) if f"void {launched[0]}(" in text)
    is_one_line = lines[begin].endswith("}")
    ends = (i for i in range(begin, len(lines)) if is_one_line or "// at fault" in lines[i])
    return f"memory.cu:{next(ends) + 1} "


@pytest.mark.parametrize("way", ["simulated", "live"])
def test_each_error_is_named_with_its_line(program, way):
    for number, (statement, (hazard, phrase)) in enumerate(WRONG.items()):
        with pytest.raises(towpath.TowpathError) as raised:
            run(program, number, way)
        sentence = str(raised.value)
        assert hazard.replace("_", " ") in sentence.replace("_", " "), (statement, sentence)
        assert phrase in sentence, (statement, sentence)
        assert place_of(statement, number) in sentence, (statement, sentence)
        if way == "simulated":
            assert isinstance(raised.value, towpath.HazardError), statement
            assert raised.value.hazard == hazard


@pytest.mark.parametrize("way", ["simulated", "live"])
def test_right_programs_are_silent(program, way):
    for number in range(len(WRONG), len(WRONG) + len(RIGHT)):
        run(program, number, way)


def test_a_live_run_may_be_unchecked(tmp_path):
    file = tmp_path / "beyond.cu"
    file.write_text(
        "#include <nvshmem.h>\n"
        "__global__ void store(int* p) { *p = 1; }\n"
        "int main() { int* p; cudaMalloc(&p, 4); store<<<1, 1>>>(p + 1); cudaDeviceSynchronize(); }"
    )
    kernel = towpath.kernel(file)
    with pytest.raises(towpath.RankError, match="4 bytes beyond"):
        kernel.run_live(1)
    assert kernel.run_live(1, checked=False).status == 0
