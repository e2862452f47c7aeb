// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// What a compiled CUDA source and Towpath's runtime know of each other: plain structs, and one table
// of functions that the loader binds. The headers with CUDA's and NVSHMEM's names are written on
// it. Each PE has a copy of the object, and therefore a `current` and a `table` of its own.
//
// A change here needs a new kVersion: objects in the cache were compiled against the old one.

namespace towpath_gpu {

inline constexpr std::uint64_t kVersion = 7;
inline constexpr int kWarpThreads = 32;
inline constexpr int kKernelsMax = 1024;  // of an object
inline constexpr int kThreadsPerBlockMax = 1024;
inline constexpr unsigned kNamedBarriers = 16;  // of a block
inline constexpr unsigned kReplicasMax = 64;    // of multicast memory
// Teams of PEs, and the words that each has in every heap.
inline constexpr int kTeamsMax = 64;
inline constexpr std::uint64_t kWordsPerTeam = 64;

struct Index3 {
  unsigned x, y, z;
};

// What the running thread did to memory since it was last asked.
struct Counters {
  std::uint64_t loads, load_bytes;
  std::uint64_t stores, store_bytes;
  std::uint64_t peer_loads, peer_load_bytes;
  std::uint64_t peer_stores, peer_store_bytes;
  std::uint64_t shared_accesses;
};

// A range of addresses; empty where `size` is zero.
struct Range {
  std::uintptr_t begin;
  std::uintptr_t size;
  bool contains(std::uintptr_t address) const { return address - begin < size; }
};

// Ranges of own allocations that need no check. While the host program runs: of memory that is
// no GPU's.
inline constexpr unsigned kQuietRanges = 8;

// A word that a thread polled, and in which round.
struct Poll {
  const volatile void* address;
  std::uint64_t low, high;
  unsigned size_bytes;
  unsigned round;
};
// The last polls of a thread on a virtual GPU. A round ends where the thread stores or takes part in
// a vote. A thread that polls a word twice in a round, with the same value, spins.
inline constexpr unsigned kPollsKept = 4;
struct Polls {
  Poll last[kPollsKept];
  unsigned next, round;
  bool has_new, has_repeated;  // since the last vote
};

// The replicas of a range of multicast memory, each at a distance from an address of the range. Their
// number is zero for memory that lies between multicast memory.
struct Replicas {
  Range range;
  std::uint64_t version;         // of the list of multicast memory
  const std::uint32_t* changes;  // of the memory that is bound to the object; null without one
  std::uint32_t seen;            // `changes` when the replicas were found
  unsigned count;
  std::uintptr_t distance[kReplicasMax];
  unsigned char* of(std::uintptr_t address, unsigned replica) const {
    return reinterpret_cast<unsigned char*>(address + distance[replica]);
  }
};

// The running thread. The runtime fills it whenever another thread continues.
struct Current {
  Index3 thread, block, block_dim, grid_dim;
  unsigned linear;  // of the thread in its block
  unsigned multiprocessor;
  bool on_device;   // false while the host program of the PE runs
  Counters counters;
  Range stack;   // free of charge
  Range shared;  // of the block
  Range heap;    // the own symmetric heap
  Range memory;  // of cudaMalloc
  Range arguments;  // of the kernel
  void* dynamic_shared;  // on a virtual GPU
  Polls* polls;          // on a virtual GPU
  // On a virtual GPU: what the worker last found of multicast memory, and of memory between it.
  Replicas replicas, no_replicas;
  Range quiet_loads[kQuietRanges];
  Range quiet_stores[kQuietRanges];
  Range quiet_shared_loads, quiet_shared_stores;  // of a variable of the block
};

// Where a call stands in the source.
struct Site {
  const char* file;
  int line;
  const char* call;
};

// Who made memory that a kernel may use: cudaMalloc, cudaMallocManaged, cudaMallocHost,
// nvshmem_malloc, or malloc in a kernel.
enum class MemoryKind : int { device, managed, pinned, symmetric, of_kernel };

enum class Scope : int { thread, warp, block };

// For whom a thread's stores are ordered.
enum class FenceScope : int { device, system };

enum class AccessKind : int { put, get, atomic };
enum class Operation : int { fetch, set, add, bit_and, bit_or, bit_xor, swap, compare_swap };
enum class Signal : int { none, set, add };

struct Access {
  AccessKind kind;
  Scope scope;
  bool is_nonblocking;
  int peer;
  void* remote;  // the place in the own heap that stands for the peer's
  void* local;
  std::uint64_t size_bytes;
  Signal signal;
  std::uint64_t* signal_at;
  std::uint64_t signal_value;
  Operation operation;
  bool fetches;
  std::uint64_t operand;
  std::uint64_t expected;
  std::uint64_t result;
};

enum class Comparison : int { equal, not_equal, greater, less_equal, less, greater_equal };
enum class Quantity : int { all, any, some };

// Waiting for words of the own heap.
struct Wait {
  const void* first;
  std::uint64_t count;
  int size_bytes;  // of a word
  bool is_signed;
  bool is_test;       // returns at once
  bool is_vector;     // `values` has one for each word
  bool is_signal;     // a signal, whose value is returned
  const int* status;  // words with a status other than zero do not count; may be null
  Comparison comparison;
  Quantity quantity;
  const std::uint64_t* values;
  std::uint64_t* indices;  // of those that hold; may be null
};

// A vote or a shuffle of a warp.
enum class Exchange : int {
  index, up, down, exclusive_or, ballot, all, any, match_any, match_all,
};

// An arrival at a named barrier: it waits, or does not wait, or also reduces the votes.
enum class NamedBarrier : int { sync, arrive, popc, vote_and, vote_or };

struct Configuration {
  Index3 grid, block;
  std::uint64_t shared_bytes;
  void* stream;
};

// A declaration of __shared__ variables.
struct SharedVariable {
  const void* key;
  const char* names;
  std::uint64_t size_bytes, alignment;
};

// A kernel with its arguments; the runtime calls `run` once for each thread, and `destroy` at the
// end.
struct Launch {
  Configuration configuration;
  const char* name;
  void (*run)(void* closure);
  void* closure;
  std::uint64_t closure_bytes;
  void (*destroy)(void* closure);
  bool is_collective;  // all blocks must be resident at once
  bool is_internal;    // work of the library on a stream; it has no launch of its own
};

enum class CopyKind : int { to_device, to_host, on_device, on_host, fill };

// Parameters of a kernel as a caller without its source sees them.
enum class ParameterKind : int { pointer, signed_integer, unsigned_integer, floating, other };
struct Parameter {
  ParameterKind kind;
  int size_bytes;
  int alignment_bytes;
};

struct Kernel {
  const char* name;
  const void* function;
  const void* body;  // which threads run; takes arguments that are the same for all by reference
  int parameters;
  const Parameter* parameter;
  // A closure over a copy of the arguments; destroyed with `destroy`. The last one is the body.
  void* (*bind)(void** arguments);
  std::uint64_t closure_bytes;
  void (*run)(void* closure);
  void (*destroy)(void* closure);
};

struct Table {
  void* self;
  int my_pe, n_pes, pes_per_node;

  // Threads.
  int (*sync_block)(void* self, int reduction, int predicate, const Site* site);
  // Barrier `id` of the block, for a number of threads. Zero means all of them.
  int (*sync_named)(void* self, unsigned id, unsigned threads, NamedBarrier action, int vote,
                    const Site* site);
  void (*sync_warp)(void* self, unsigned mask, const Site* site);
  void (*sync_grid)(void* self, const Site* site);
  std::uint64_t (*exchange)(void* self, Exchange kind, unsigned mask, std::uint64_t value,
                            int operand, int width, const Site* site);
  void* (*shared)(void* self, const SharedVariable* variable);
  void* (*dynamic_shared)(void* self);
  void (*thread_fence)(void* self, FenceScope scope, const Site* site);
  void (*sleep)(void* self, std::uint64_t nanoseconds);
  void (*exit_thread)(void* self);
  std::uint64_t (*clock_ns)(void* self);

  // Memory of PEs.
  void (*access)(void* self, Access* access, const Site* site);
  std::uint64_t (*wait)(void* self, const Wait* wait, const Site* site);
  void (*fence)(void* self, const Site* site);
  void (*quiet)(void* self, const Site* site);
  void* (*reach)(void* self, const void* address, int pe);

  // Accesses that the compiler reports.
  void (*load)(void* self, const void* address, unsigned size, const void* where);
  void (*store)(void* self, void* address, unsigned size, const void* where);
  void (*poll)(void* self, const volatile void* address, unsigned size, const void* where);
  void (*flag)(void* self, volatile void* address, unsigned size, const void* where);
  // A thread of a virtual GPU spins: it waits until a word of its last polls changes.
  void (*wait_for_change)(void* self);
  // By memcpy and the like.
  void (*touch)(void* self, const void* address, std::uint64_t size, bool is_store,
                const void* where);
  // A type at an address that is not a multiple of its alignment.
  void (*misaligned)(void* self, const volatile void* address, unsigned size, bool is_store,
                     const void* where);
  // A shared address that is outside of the block's shared memory.
  void (*outside_shared)(void* self, std::uint64_t address, unsigned size, const char* verb,
                         const void* where);
  // The replicas of an address, which are kept in `current`, on a virtual GPU.
  const Replicas* (*replicas)(void* self, const void* address);
  // Before and after an atomic operation that the thread does itself.
  void (*begin_atomic)(void* self, const volatile void* address, unsigned size,
                       const void* where);
  void (*end_atomic)(void* self, const volatile void* address, unsigned size);

  // The host program.
  int (*launch)(void* self, const Launch* launch);
  int (*launch_by_address)(void* self, const void* function, const Configuration* configuration,
                           void** arguments, bool is_collective);
  int (*resident_blocks)(void* self, unsigned threads, std::uint64_t shared_bytes);
  void* (*device_malloc)(void* self, std::uint64_t size_bytes, MemoryKind kind, const Site* site);
  int (*device_free)(void* self, void* address, const Site* site);
  // Memory that kernels may use though the source allocates it itself.
  void (*lend)(void* self, void* address, std::uint64_t size_bytes, MemoryKind kind,
               const Site* site);
  void (*take_back)(void* self, void* address, const Site* site);
  int (*copy)(void* self, void* to, const void* from, std::uint64_t size_bytes, CopyKind kind,
              int value, void* stream, bool is_asynchronous, const Site* site);
  void* (*new_stream)(void* self, bool is_blocking);
  void (*free_stream)(void* self, void* stream);
  int (*synchronize)(void* self, void* stream, bool all_streams);
  bool (*is_idle)(void* self, void* stream);
  void* (*new_event)(void* self);
  void (*free_event)(void* self, void* event);
  void (*record)(void* self, void* event, void* stream);
  void (*wait_event)(void* self, void* stream, void* event);
  bool (*has_happened)(void* self, void* event);
  void (*synchronize_event)(void* self, void* event);
  double (*elapsed_ms)(void* self, void* from, void* to);
  void (*call_on_stream)(void* self, void* stream, void (*function)(void*), void* argument);
  void (*properties)(void* self, int* integers, std::uint64_t* sizes, char* name);

  // The symmetric heap.
  void (*initialize)(void* self, int rank, int ranks, const Site* site);
  // Before and after the meeting of all PEs at the end.
  void (*begin_finalize)(void* self, const Site* site);
  void (*finalize)(void* self);
  void* (*symmetric_malloc)(void* self, std::uint64_t size, std::uint64_t alignment, bool zeroed,
                            const Site* site);
  void (*symmetric_free)(void* self, void* address, const Site* site);
  int (*register_buffer)(void* self, void* address, std::uint64_t size_bytes);
  int (*unregister_buffer)(void* self, void* address, bool all, const Site* site);
  // Memory of the library in every heap: synchronization words, scratch of collectives.
  std::uint64_t* (*team_words)(void* self, int team);
  // clang takes [[noreturn]] on functions only.
  __attribute__((noreturn)) void (*exit)(void* self, int status);
  __attribute__((noreturn)) void (*fail)(void* self, const char* sentence, const Site* site);
};

// What the loader calls in each copy of an object.
struct Object {
  std::uint64_t version;
  Current* current;
  Table* table;
  int (*main)(int argc, char** argv, char** environment);  // null without one
  const Kernel* const* kernels;
  int kernel_count;
};

}  // namespace towpath_gpu
