// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// The function table of a compiled source.
#include <cstring>
#include <exception>

#include "towpath/gpu/operation.hpp"
#include "towpath/gpu/pe.hpp"
#include "towpath/gpu/table_calls.hpp"
#include "towpath/gpu/wait_record.hpp"

namespace towpath::gpu {

namespace {

// Called by destructors of the program, which no exception may leave: neither an error, nor the end
// of a host program that is unwound while it blocks here. The code of the program is unloaded after
// most of its PE, and a static object may still free memory then.
void free_symmetric(Pe& pe, void* address, const abi::Site& site) {
  Run& run = pe.run();
  if (run.is_over) return;
  try {
    pe.symmetric_free(address, site);
  } catch (...) {
    if (!run.is_over) run.failure = std::current_exception();
  }
  while (run.failure != nullptr && !run.is_over) {
    try {
      run.simulation.suspend("the end of a run that has failed");
    } catch (...) {
      return;
    }
  }
}

// --- parts of the table --------------------------------------------------------------------------

void fill_threads(abi::Table& table) {
  table.sync_block = [](void* self, int reduction, int predicate, const abi::Site* site) {
    return on_thread(
        self, [&](Block& block) { return block.groups().sync(reduction, predicate, *site); });
  };
  table.sync_named = [](void* self, unsigned id, unsigned threads, abi::NamedBarrier action,
                        int vote, const abi::Site* site) {
    return on_thread(self, [&](Block& block) {
      const NamedArrival arrival{id, static_cast<int>(threads), action, vote != 0};
      return block.groups().sync_named(arrival, *site);
    });
  };
  table.sync_warp = [](void* self, unsigned mask, const abi::Site* site) {
    on_thread(self, [&](Block& block) { block.groups().sync_warp(mask, *site); });
  };
  table.sync_grid = [](void* self, const abi::Site* site) {
    on_thread(self, [&](Block& block) { block.sync_grid(*site); });
  };
  table.exchange = [](void* self, abi::Exchange kind, unsigned mask, std::uint64_t value,
                      int operand, int width, const abi::Site* site) {
    return on_thread(self, [&](Block& block) {
      return block.groups().exchange({kind, mask, value, operand, width}, *site);
    });
  };
  table.shared = [](void* self, const abi::SharedVariable* variable) {
    return on_thread(self, [&](Block& block) { return block.shared(*variable); });
  };
  table.dynamic_shared = [](void* self) {
    return on_thread(self, [&](Block& block) { return block.dynamic_shared(); });
  };
  table.thread_fence = [](void* self, abi::FenceScope scope, const abi::Site* site) {
    on_thread(self, [&](Block& block) { block.fences().thread_fence(scope, *site); });
  };
  table.sleep = [](void* self, std::uint64_t nanoseconds) {
    on_thread(self, [&](Block& block) {
      block.sleep(Time::from_ps(static_cast<std::int64_t>(nanoseconds) * 1000));
    });
  };
  table.exit_thread = [](void* self) {
    // Its frames are not unwound.
    on_thread(self, [&](Block& block) {
      block.thread_finished();
      pe_of(self).run().stack.suspend();
    });
  };
  // Reading takes a cycle or two, so that a loop on the clock makes progress.
  table.clock_ns = [](void* self) -> std::uint64_t {
    using namespace literals;
    Pe& pe = pe_of(self);
    if (pe.running_block != nullptr) {
      on_thread(self, [&](Block& block) { block.sleep(10_ns); });
    }
    return static_cast<std::uint64_t>(pe.transport().now().ps() / 1000);
  };
}

void fill_memory(abi::Table& table) {
  table.access = [](void* self, abi::Access* access, const abi::Site* site) {
    on_thread(self, [&](Block& block) { gpu::access(block, *access, *site); });
  };
  table.wait = [](void* self, const abi::Wait* wait, const abi::Site* site) {
    return on_thread(self, [&](Block& block) { return gpu::wait(block, *wait, *site); });
  };
  table.fence = [](void* self, const abi::Site* site) {
    on_thread(self, [&](Block& block) { block.fences().fence(false, *site); });
  };
  table.quiet = [](void* self, const abi::Site* site) {
    on_thread(self, [&](Block& block) { block.fences().fence(true, *site); });
  };
  table.reach = [](void* self, const void* address, int peer) {
    return pe_of(self).heap().reach(address, peer);
  };
  fill_accesses(table);
}

// The type that clang requires for the table, in which [[noreturn]] is not part of a type.
__attribute__((noreturn)) void exit_program(void* self, int status) {
  pe_of(self).host().exit(status);
}

__attribute__((noreturn)) void fail(void* self, const char* sentence, const abi::Site* site) {
  const KernelError error(KernelError::Kind::usage, std::string(sentence) + " (" + site->call +
                                                        " at " + site->file + ":" +
                                                        std::to_string(site->line) + ")");
  if (pe_of(self).running_block == nullptr) throw error;
  pe_of(self).run().failure = std::make_exception_ptr(error);
  pe_of(self).running_block->halt();
}

void fill_host(abi::Table& table) {
  constexpr int kInvalidValue = 1;
  table.launch = [](void* self, const abi::Launch* launch) { return pe_of(self).launch(*launch); };
  table.launch_by_address = [](void* self, const void* function,
                               const abi::Configuration* configuration, void** arguments,
                               bool is_collective) {
    Pe& pe = pe_of(self);
    const abi::Kernel* const kernel = pe.object().find_kernel(function);
    if (kernel == nullptr) return kInvalidValue;
    return pe.launch_kernel(*kernel, *configuration, arguments, is_collective);
  };
  table.resident_blocks = [](void* self, unsigned threads, std::uint64_t shared_bytes) {
    return pe_of(self).device().resident_blocks(static_cast<int>(threads), shared_bytes);
  };
  table.device_malloc = [](void* self, std::uint64_t size_bytes, MemoryKind kind,
                           const abi::Site* site) {
    return pe_of(self).device_memory().allocate(size_bytes, kind, *site);
  };
  table.device_free = [](void* self, void* address, const abi::Site* site) {
    Pe& pe = pe_of(self);
    pe.host().block_until_idle("its streams, to free memory");
    return pe.device_memory().free(address, *site) ? 0 : kInvalidValue;
  };
  table.lend = [](void* self, void* address, std::uint64_t size_bytes, MemoryKind kind,
                  const abi::Site* site) {
    pe_of(self).memory().map().add(
        {reinterpret_cast<std::uintptr_t>(address), size_bytes, kind, *site, {}});
  };
  table.take_back = [](void* self, void* address, const abi::Site* site) {
    pe_of(self).memory().map().free(reinterpret_cast<std::uintptr_t>(address), *site);
  };
  table.copy = [](void* self, void* to, const void* from, std::uint64_t size_bytes,
                  abi::CopyKind kind, int value, void* stream, bool is_asynchronous,
                  const abi::Site* site) {
    const CopyRequest request{to, from, size_bytes, kind, value};
    pe_of(self).memory().check_copy(request, *site);
    return pe_of(self).copy(request, stream, is_asynchronous);
  };
  table.properties = [](void* self, int* integers, std::uint64_t* sizes, char* name) {
    Pe& pe = pe_of(self);
    const machine::KernelCost& cost = pe.device().cost();
    integers[0] = cost.multiprocessors;
    integers[1] = cost.threads_per_multiprocessor;
    integers[2] = cost.blocks_per_multiprocessor;
    integers[3] = abi::kThreadsPerBlockMax;
    sizes[0] = DeviceMemory::kBytes;
    sizes[2] = static_cast<std::uint64_t>(cost.shared_memory_kib) << 10;
    sizes[1] = sizes[2] - 1024;
    std::strncpy(name, pe.options().gpu_name.c_str(), 255);
    name[255] = 0;
  };
  table.exit = &exit_program;
  table.fail = &fail;
}

void fill_streams(abi::Table& table) {
  table.new_stream = [](void* self, bool is_blocking) {
    return pe_of(self).streams().new_stream(is_blocking);
  };
  table.free_stream = [](void* self, void* stream) { pe_of(self).streams().free_stream(stream); };
  table.synchronize = [](void* self, void* stream, bool all_streams) {
    Pe& pe = pe_of(self);
    pe.host().block(
        [&] { return all_streams ? pe.streams().is_idle() : pe.streams().is_idle(stream); },
        all_streams ? "all its streams" : "a stream");
    return 0;
  };
  // A polling program must let time pass.
  table.is_idle = [](void* self, void* stream) {
    using namespace literals;
    Pe& pe = pe_of(self);
    pe.simulation().sleep(pe.is_timed() ? 1_us : Time());
    return pe.streams().is_idle(stream);
  };
  table.new_event = [](void* self) { return pe_of(self).streams().new_event(); };
  table.free_event = [](void* self, void* event) { pe_of(self).streams().free_event(event); };
  table.record = [](void* self, void* event, void* stream) {
    pe_of(self).streams().record(event, stream);
  };
  table.wait_event = [](void* self, void* stream, void* event) {
    pe_of(self).streams().wait(stream, event);
  };
  table.has_happened = [](void* self, void* event) {
    using namespace literals;
    Pe& pe = pe_of(self);
    pe.simulation().sleep(pe.is_timed() ? 1_us : Time());
    return pe.streams().has_happened(event);
  };
  table.synchronize_event = [](void* self, void* event) {
    Pe& pe = pe_of(self);
    pe.host().block([&] { return pe.streams().has_happened(event); }, "an event");
  };
  table.elapsed_ms = [](void* self, void* from, void* to) {
    return pe_of(self).streams().elapsed_ms(from, to);
  };
  table.call_on_stream = [](void* self, void* stream, void (*function)(void*), void* argument) {
    Streams& streams = pe_of(self).streams();
    streams.add(stream, Time(), [&streams, function, argument](const StreamWorkPointer& work) {
      function(argument);
      streams.finish(work);
    });
  };
}

void fill_heap(abi::Table& table) {
  table.initialize = [](void* self, int rank, int ranks, const abi::Site* site) {
    pe_of(self).initialize(rank, ranks, *site);
  };
  table.begin_finalize = [](void* self, const abi::Site* site) {
    pe_of(self).begin_finalize(*site);
  };
  table.finalize = [](void* self) { pe_of(self).finalize(); };
  table.symmetric_malloc = [](void* self, std::uint64_t size_bytes, std::uint64_t alignment,
                              bool is_zeroed, const abi::Site* site) {
    return pe_of(self).symmetric_malloc(size_bytes, alignment, is_zeroed, *site);
  };
  table.symmetric_free = [](void* self, void* address, const abi::Site* site) {
    free_symmetric(pe_of(self), address, *site);
  };
  table.register_buffer = [](void* self, void* address, std::uint64_t size_bytes) {
    pe_of(self).heap().register_buffer(address, size_bytes);
    return 0;
  };
  table.unregister_buffer = [](void* self, void* address, bool all, const abi::Site* site) {
    Heap& heap = pe_of(self).heap();
    if (!all) return heap.unregister_buffer(address, *site) ? 0 : 1;
    heap.unregister_all(*site);
    return 0;
  };
  table.team_words = [](void* self, int team) { return pe_of(self).heap().team_words(team); };
}

}  // namespace

void fill_table(Pe& pe) {
  abi::Table& table = *pe.object().object().table;
  table.self = &pe;
  table.my_pe = pe.rank();
  table.n_pes = pe.transport().ranks();
  table.pes_per_node = pe.run().ranks_per_host;
  fill_threads(table);
  fill_memory(table);
  fill_host(table);
  fill_streams(table);
  fill_heap(table);
  abi::Current& running = pe.current();
  running.heap = pe.heap().own();
  running.memory = pe.device_memory().range();
  running.stack = {};
}

}  // namespace towpath::gpu
