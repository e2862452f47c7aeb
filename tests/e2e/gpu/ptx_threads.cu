// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Statements of PTX in kernels of one block of 64 threads. Each kernel counts in `out` the results
// that are wrong.
#include <cstdio>

using u32 = unsigned;
using u64 = unsigned long long;

#define CHECK(what)                                             \
  if (!(what)) {                                                \
    printf("line %d, thread %u\n", __LINE__, threadIdx.x);      \
    atomicAdd(out, 1ull);                                       \
  }

__global__ void warps(u64* words, u64* out) {
  const u32 t = threadIdx.x, lane = t % 32;
  u32 x, y;
  asm("mov.u32 %0, %%laneid;" : "=r"(x));
  CHECK(x == lane);
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(x));
  CHECK(x == (1u << lane) - 1);
  asm("mov.u32 %0, %%lanemask_ge;" : "=r"(x));
  CHECK(x == ~((1u << lane) - 1));
  asm("mov.u32 %0, %%warpid;" : "=r"(x));
  CHECK(x == t / 32);
  asm("mov.u32 %0, %%ntid.x;" : "=r"(x));
  CHECK(x == 64);
  asm("mov.u32 %0, %%nsmid;" : "=r"(x));
  CHECK(x == 132);
  asm volatile("vote.sync.ballot.b32 %0, %1, 0xffffffff;" : "=r"(x) : "r"(0));
  CHECK(x == 0);
  asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, 5; vote.sync.ballot.b32 %0, p, -1; }"
               : "=r"(x) : "r"(lane));
  CHECK(x == 31);
  asm volatile("{ .reg .pred p, q; setp.lt.u32 p, %1, 40; vote.sync.all.pred q, p, -1; "
               "selp.u32 %0, 1, 0, q; }" : "=r"(x) : "r"(lane));
  CHECK(x == 1);
  asm volatile("{ .reg .pred p, q; setp.lt.u32 p, %1, 40; vote.sync.any.pred q, !p, -1; "
               "selp.u32 %0, 1, 0, q; }" : "=r"(x) : "r"(lane));
  CHECK(x == 0);
  asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 31, 0xffffffff;" : "=r"(x) : "r"(lane));
  CHECK(x == (lane ^ 1));
  asm volatile("{ .reg .pred p; shfl.sync.up.b32 %0|p, %2, 2, 0, -1; selp.u32 %1, 1, 0, p; }"
               : "=r"(x), "=r"(y) : "r"(lane));
  CHECK(x == (lane < 2 ? lane : lane - 2) && y == (lane >= 2));
  asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, 1, 0x1807, -1; selp.u32 %1, 1, 0, p; }"
               : "=r"(x), "=r"(y) : "r"(lane));
  CHECK(x == (lane % 8 == 7 ? lane : lane + 1) && y == (lane % 8 != 7));
  asm volatile("shfl.sync.idx.b32 %0, %1, 3, 0x181f, -1;" : "=r"(x) : "r"(lane));
  CHECK(x == lane / 8 * 8 + 3);
  asm volatile("match.any.sync.b32 %0, %1, -1;" : "=r"(x) : "r"(lane / 16));
  CHECK(x == (lane < 16 ? 0xffffu : 0xffff0000u));
  asm volatile("{ .reg .pred p; match.all.sync.b32 %0|p, %2, -1; selp.u32 %1, 1, 0, p; }"
               : "=r"(x), "=r"(y) : "r"(7));
  CHECK(x == ~0u && y == 1);
  asm volatile("{ .reg .pred p; match.all.sync.b32 %0|p, %2, -1; selp.u32 %1, 1, 0, p; }"
               : "=r"(x), "=r"(y) : "r"(lane));
  CHECK(x == 0 && y == 0);
  asm volatile("{ .reg .pred p; elect.sync %0|p, -1; selp.u32 %1, 1, 0, p; }" : "=r"(x), "=r"(y));
  CHECK(x == 0 && y == (lane == 0));
  asm volatile("redux.sync.add.u32 %0, %1, -1;" : "=r"(x) : "r"(lane));
  CHECK(x == 496);
  asm volatile("redux.sync.max.s32 %0, %1, -1;" : "=r"(x) : "r"((int)lane - 20));
  CHECK((int)x == 11);
  asm volatile("bar.warp.sync 0xffffffff;");
  int equal;
  CHECK(__match_all_sync(~0u, 5, &equal) == ~0u && equal == 1);
}

__global__ void barriers(u64* words, u64* out) {
  const u32 t = threadIdx.x;
  __shared__ u32 turn;
  u32 x, y;
  turn = 0;
  asm volatile("bar.sync 0;");
  // The second warp produces, the first one consumes.
  for (u32 round = 1; round <= 3; ++round) {
    if (t >= 32) {
      if (t == 32) turn = round;
      asm volatile("bar.arrive 3, 64;");
      asm volatile("barrier.sync 4, 64;" ::: "memory");
    } else {
      asm volatile("bar.sync %0, %1;" :: "r"(3), "r"(64) : "memory");
      CHECK(turn == round);
      asm volatile("barrier.sync.aligned 4, 64;" ::: "memory");
    }
  }
  asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, 5; bar.red.popc.u32 %0, 2, 64, p; }"
               : "=r"(x) : "r"(t));
  CHECK(x == 5);
  asm volatile("{ .reg .pred p, q; setp.eq.u32 p, %1, 9; bar.red.or.pred q, 1, 64, p; "
               "selp.u32 %0, 1, 0, q; }"
               : "=r"(x) : "r"(t));
  CHECK(x == 1);
  asm volatile("{ .reg .pred p, q; setp.eq.u32 p, %1, 9; barrier.red.and.pred q, 1, 64, p; "
               "selp.u32 %0, 1, 0, q; }"
               : "=r"(x) : "r"(t));
  CHECK(x == 0);
  asm volatile("{ .reg .pred p; setp.ge.u32 p, %1, 0; bar.red.popc.u32 %0, 0, p; }"
               : "=r"(x) : "r"(t));
  CHECK(x == 64);
  if (t < 32) { asm volatile("bar.sync 7, 32;"); } else { asm volatile("bar.sync 8, 32;"); }
  asm volatile("barrier.cta.sync 5;");
}

__global__ void addresses(u64* words, u64* out) {
  extern __shared__ u64 dynamic[];
  __shared__ u32 cell[64];
  const u32 t = threadIdx.x;
  u64 generic; u32 at = (u32)__cvta_generic_to_shared(cell + t), x;
  asm("cvta.shared.u64 %0, %1;" : "=l"(generic) : "l"((u64)at));
  CHECK(generic == (u64)(cell + t));
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(generic) : "l"(cell + t));
  CHECK(generic == at);
  asm("{ .reg .u64 a; cvta.to.shared.u64 a, %1; cvt.u32.u64 %0, a; }" : "=r"(x) : "l"(cell + t));
  CHECK(x == at);
  asm volatile("st.shared.u32 [%0], %1;" :: "r"(at), "r"(t));
  CHECK(cell[t] == t);
  __syncthreads();
  if (t < 63) { asm volatile("ld.shared.u32 %0, [%1+4];" : "=r"(x) : "r"(at));
  CHECK(x == t + 1); }
  CHECK(__cvta_shared_to_generic(at) == cell + t);
  CHECK(__isShared(cell) && !__isShared(words) && __isGlobal(words) && !__isGlobal(cell));
  asm("{ .reg .pred p; isspacep.shared p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(x) : "l"(cell));
  CHECK(x == 1);
  asm("{ .reg .pred p; isspacep.global p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(x) : "l"(words));
  CHECK(x == 1);
  words[2 * t] = 100 + t; words[2 * t + 1] = 200 + t;
  __shared__ __align__(16) u64 copy[128];
  const u32 to = (u32)__cvta_generic_to_shared(copy + 2 * t);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
               :: "r"(to), "l"(words + 2 * t));
  asm volatile("cp.async.commit_group;"); asm volatile("cp.async.wait_group 0;");
  CHECK(copy[2 * t] == 100 + t && copy[2 * t + 1] == 200 + t);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;"
               :: "r"(to), "l"(words + 2 * t), "r"(8));
  CHECK(copy[2 * t] == 100 + t && copy[2 * t + 1] == 0);
  asm volatile("prefetch.global.L2 [%0];" :: "l"(words));
}

__global__ void control(u64* words, u64* out) {
  const u32 t = threadIdx.x;
  u32 x; u64 a, b;
  asm volatile("{\n\t.reg .pred p;\n\t.reg .u32 i;\n\tmov.u32 %0, 0;\n\tmov.u32 i, 0;\n"
               "AGAIN:\n\tadd.u32 %0, %0, i;\n\tadd.u32 i, i, 1;\n\tsetp.le.u32 p, i, %1;\n\t"
               "@p bra AGAIN;\n\t}" : "=&r"(x) : "r"(t));
  CHECK(x == t * (t + 1) / 2);
  asm volatile("{ .reg .pred p; setp.gt.u32 p, %1, 10; @p bra big; mov.u32 %0, 1; bra.uni done; "
               "big: mov.u32 %0, 2; done: }"
               : "=r"(x) : "r"(t));
  CHECK(x == (t > 10 ? 2 : 1));
  asm volatile("{ .reg .pred p; setp.gt.u32 p, %1, 10; @p bra big; mov.u32 %0, 1; bra done; "
               "big: mov.u32 %0, 2; done: }"
               : "=r"(x) : "r"(t));
  CHECK(x == (t > 10 ? 2 : 1));
  asm("mov.b64 {%0, %1}, %2;" : "=r"(x), "=r"(*(u32*)&a) : "l"(0x500000007ull));
  CHECK(x == 7 && (u32)a == 5);
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(a)); asm volatile("nanosleep.u32 100;");
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(b));
  CHECK(b >= a);
  asm volatile("griddepcontrol.wait;"); asm volatile("" ::: "memory");
  if (t == 5) asm volatile("exit;");
  CHECK(t != 5);
  __syncthreads();
}

// Two threads poll 16 bytes in turn, of which only the last ones change.
__global__ void wide_poll(u64* words, u64* out) {
  const u32 t = threadIdx.x;
  if (t % 32 != 0) return;
  u64* const own = words + 2 * (t / 32);
  u64* const other = words + 2 * (1 - t / 32);
  for (u64 round = 1; round <= 200; ++round) {
    u64 low, high;
    if (t == 0) asm volatile("st.volatile.global.u64 [%0+8], %1;" :: "l"(other), "l"(round));
    do {
      asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
                   : "=l"(low), "=l"(high)
                   : "l"(own)
                   : "memory");
    } while (high != round);
    CHECK(low == 0);
    if (t != 0) asm volatile("st.volatile.global.u64 [%0+8], %1;" :: "l"(other), "l"(round));
  }
}

struct Storage {
  u64 first;
  u32 cell[64];
};
extern __shared__ Storage storage;
__shared__ int total;
extern __shared__ u32 dynamic_words[];

__device__ u32 neighbor(u32 t) { return storage.cell[(t + 1) % 64]; }

// A function of the source is preferred to the one of the headers.
__device__ int min(int a, ssize_t b) { return a < b ? a : static_cast<int>(b) + 1000; }

__global__ void functions(u64* words, u64* out) {
  const u32 t = threadIdx.x;
  storage.cell[t] = 3 * t;
  dynamic_words[t] = t;
  if (t == 0) total = 5;
  __syncthreads();
  CHECK(neighbor(t) == 3 * ((t + 1) % 64) && total == 5 && dynamic_words[63 - t] == 63 - t);
  const Storage* const named = &storage;
  CHECK(named->cell[t] == 3 * t && sizeof(storage) == sizeof(Storage));
  CHECK(min(7, ssize_t{3}) == 1003 && min(7, 3u) == 3 && max(2.5f, 7.5) == 7.5);
  CHECK(__funnelshift_l(0x80000000u, 1, 1) == 3 && __funnelshift_r(0, 1, 1) == 0x80000000u);
  CHECK(__funnelshift_lc(5, 6, 40) == 5 && __funnelshift_rc(5, 6, 40) == 6);
  CHECK(__byte_perm(0x33221100, 0x77665544, 0x7430) == 0x77443300);
  CHECK(__brev(1) == 0x80000000u && __brevll(2) == 1ull << 62);
  CHECK(__umul64hi(~0ull, ~0ull) == ~1ull && __mul64hi(-1, 5) == -1 && __mulhi(-1, 5) == -1);
  CHECK(__dp4a(0x01010101, 0x04030201, 1) == 11);
  CHECK(__fns(0b1011000, 3, 2) == 4 && __fns(0b1011000, 6, -2) == 4 && __fns(0b1011000, 4, 0) == 4);
  CHECK(__fns(0b1011000, 5, 0) == ~0u && __fns(0b1011000, 4, 3) == ~0u);
  CHECK(__float2int_rn(2.5f) == 2 && __float2int_rz(-2.5f) == -2 && __float2int_ru(2.1f) == 3);
  CHECK(__float2int_rd(-2.1f) == -3 && __float2int_rn(1e20f) == 0x7fffffff);
  CHECK(__float2uint_rn(-1.0f) == 0 && __float2ull_rn(1e10f) == 10000000000ull);
  words[64 + t] = t;
  __barrier_sync(3);
  CHECK(words[64 + (t + 1) % 64] == (t + 1) % 64);
  __barrier_sync_count(4, 64);
  __stwt(words + t, u64{t});
  CHECK(__ldca(words + t) == t);
}

int main(int, char** argv) {
  u64 *words, *out;
  cudaMalloc(&words, 1 << 16);
  cudaMalloc(&out, 8);
  cudaMemset(words, 0, 1 << 16);
  cudaMemset(out, 0, 8);
  constexpr void (*kKernels[])(u64*, u64*) = {warps, barriers, addresses, control,
                                                 wide_poll, functions};
  const auto kernel = kKernels[atoi(argv[1])];
  kernel<<<1, 64, 512>>>(words, out);
  cudaDeviceSynchronize();
  u64 wrong = 0;
  cudaMemcpy(&wrong, out, 8, cudaMemcpyDeviceToHost);
  return wrong != 0;
}
