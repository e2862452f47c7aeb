// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdio>
#include <exception>
#include <span>

#include "towpath/tenstorrent/metalium/kernel_runtime.hpp"
#include "towpath/tenstorrent/metalium/worker_memory_map.hpp"

// The function table for kernels.

namespace towpath::tenstorrent::metalium {

namespace {

constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << TOWPATH_COORDINATE_SHIFT) - 1;
// A bit of host addresses that do not fit below the coordinates.
constexpr std::uint64_t kHostBit = std::uint64_t{1} << TOWPATH_HOST_BIT;

int coordinate(std::uint64_t address, int number) {
  constexpr std::uint64_t kMask = (1u << TOWPATH_COORDINATE_BITS) - 1;
  const int shift = TOWPATH_COORDINATE_SHIFT + number * TOWPATH_COORDINATE_BITS;
  return static_cast<int>(address >> shift & kMask);
}

NocAddress unicast(std::uint64_t address) {
  return {{coordinate(address, 0), coordinate(address, 1)}, address & (kOffsetMask | kHostBit)};
}

NocMulticastAddress rectangle(std::uint64_t address) {
  return {{coordinate(address, 2), coordinate(address, 3)},
          {coordinate(address, 0), coordinate(address, 1)},
          address & kOffsetMask};
}

WriteOptions write_options(const TowpathOptions& options) {
  return {.vc = options.vc, .is_posted = (options.flags & kTowpathPosted) != 0, .noc = options.noc};
}
ReadOptions read_options(const TowpathOptions& options) {
  return {.vc = options.vc, .noc = options.noc};
}
MulticastOptions multicast_options(const TowpathOptions& options) {
  return {.vc = options.vc, .is_linked = (options.flags & kTowpathLinked) != 0, .noc = options.noc};
}
bool is_one_packet(const TowpathOptions& options) {
  return (options.flags & kTowpathOnePacket) != 0;
}

namespace calls {
KernelRuntime& runtime(void* core) { return *static_cast<KernelRuntime*>(core); }
DataMovementCore& called(void* core, CallCode code) { return runtime(core).memory.called(code); }

void read(void* core, std::uint64_t from, std::uint32_t to, std::uint32_t size,
          TowpathOptions options) {
  if (is_one_packet(options)) {
    called(core, CallCode::read)
        .noc_async_read_one_packet(unicast(from), to, size, read_options(options));
  } else {
    called(core, CallCode::read).noc_async_read(unicast(from), to, size, read_options(options));
  }
}
void read_set_state(void* core, std::uint64_t from, std::uint32_t size, TowpathOptions options) {
  if (is_one_packet(options)) {
    called(core, CallCode::short_call)
        .noc_async_read_one_packet_set_state(unicast(from), size, read_options(options));
  } else {
    called(core, CallCode::short_call)
        .noc_async_read_set_state(unicast(from), read_options(options));
  }
}
void read_with_state(void* core, std::uint32_t from, std::uint32_t to, std::uint32_t size,
                     TowpathOptions options) {
  if (is_one_packet(options)) {
    called(core, CallCode::with_state).noc_async_read_one_packet_with_state(from, to, options.noc);
  } else {
    called(core, CallCode::with_state).noc_async_read_with_state(from, to, size, options.noc);
  }
}
void read_with_id(void* core, std::uint64_t from, std::uint32_t to, std::uint32_t id,
                  TowpathOptions options) {
  called(core, CallCode::with_state)
      .noc_async_read_one_packet_with_state_with_trid(from & (kOffsetMask | kHostBit), 0, to,
                                                      static_cast<int>(id), options.noc);
}
void write(void* core, std::uint32_t from, std::uint64_t to, std::uint32_t size,
           TowpathOptions options) {
  if (is_one_packet(options)) {
    called(core, CallCode::write)
        .noc_async_write_one_packet(from, unicast(to), size, write_options(options));
  } else {
    called(core, CallCode::write).noc_async_write(from, unicast(to), size, write_options(options));
  }
}
void write_set_state(void* core, std::uint64_t to, std::uint32_t size, TowpathOptions options) {
  if (is_one_packet(options)) {
    called(core, CallCode::short_call)
        .noc_async_write_one_packet_set_state(unicast(to), size, write_options(options));
  } else {
    called(core, CallCode::short_call)
        .noc_async_write_set_state(unicast(to), write_options(options));
  }
}
void write_with_state(void* core, std::uint32_t from, std::uint32_t to, std::uint32_t size,
                      TowpathOptions options) {
  if (is_one_packet(options)) {
    called(core, CallCode::with_state).noc_async_write_one_packet_with_state(from, to, options.noc);
  } else {
    called(core, CallCode::with_state).noc_async_write_with_state(from, to, size, options.noc);
  }
}
void write_with_id(void* core, std::uint32_t from, std::uint64_t to, std::uint32_t size,
                   TowpathOptions options) {
  called(core, CallCode::write)
      .noc_async_write_one_packet_with_trid(from, unicast(to), size, static_cast<int>(options.id),
                                            write_options(options));
}
void write_with_id_set_state(void* core, std::uint64_t to, TowpathOptions options) {
  called(core, CallCode::short_call)
      .noc_async_write_one_packet_with_trid_set_state(unicast(to), write_options(options));
}
void write_with_id_with_state(void* core, std::uint32_t from, std::uint32_t to, std::uint32_t size,
                              TowpathOptions options) {
  called(core, CallCode::with_state)
      .noc_async_write_one_packet_with_trid_with_state(from, to, size, static_cast<int>(options.id),
                                                       options.noc);
}
void multicast(void* core, std::uint32_t from, std::uint64_t to, std::uint32_t size,
               TowpathOptions options) {
  DataMovementCore& on = called(core, CallCode::multicast);
  const NocMulticastAddress target = rectangle(to);
  const MulticastOptions how = multicast_options(options);
  const auto count = static_cast<int>(options.destinations);
  const bool is_loopback = (options.flags & kTowpathLoopback) != 0;
  if ((options.flags & kTowpathWord) != 0) {
    if (is_loopback) {
      on.noc_semaphore_set_multicast_loopback_src(from, target, count, how);
    } else {
      on.noc_semaphore_set_multicast(from, target, count, how);
    }
  } else if (is_loopback) {
    on.noc_async_write_multicast_loopback_src(from, target, size, count, how);
  } else if (is_one_packet(options)) {
    on.noc_async_write_multicast_one_packet(from, target, size, count, how);
  } else {
    on.noc_async_write_multicast(from, target, size, count, how);
  }
}
void inline_write(void* core, std::uint64_t to, std::uint32_t value, TowpathOptions options) {
  called(core, CallCode::inline_write)
      .noc_inline_dw_write(unicast(to), value, write_options(options));
}
void inline_write_set_state(void* core, std::uint64_t to, TowpathOptions options) {
  called(core, CallCode::short_call)
      .noc_inline_dw_write_set_state(unicast(to), write_options(options));
}
void inline_write_with_state(void* core, std::uint32_t value, std::uint32_t to,
                             TowpathOptions options) {
  constexpr std::uint32_t kAsSet = 0xffffffff;
  if (to != kAsSet) {
    metalium::refuse(runtime(core).core,
                     "noc_inline_dw_write_with_state writes to the address that set_state has "
                     "set; update_addr_lo is not modeled");
  }
  called(core, CallCode::with_state).noc_inline_dw_write_with_state(value, options.noc);
}
void set_id(void* core, int is_read, std::uint32_t id, std::int32_t noc) {
  if (is_read != 0) {
    called(core, CallCode::short_call).noc_async_read_set_trid(static_cast<int>(id), noc);
  } else {
    called(core, CallCode::short_call).noc_async_write_set_trid(static_cast<int>(id), noc);
  }
}
void reset_ids(void* core, std::uint32_t mask, std::int32_t noc) {
  called(core, CallCode::short_call).reset_noc_trid_barrier_counter(mask, noc);
}
void wait_for(DataMovementCore& on, int barrier, int id, std::int32_t noc) {
  switch (barrier) {
    case kTowpathReads: return on.noc_async_read_barrier(noc);
    case kTowpathWrites: return on.noc_async_write_barrier(noc);
    case kTowpathWritesFlushed: return on.noc_async_writes_flushed(noc);
    case kTowpathPostedWritesFlushed: return on.noc_async_posted_writes_flushed(noc);
    case kTowpathAtomics: return on.noc_async_atomic_barrier(noc);
    case kTowpathReadsOfId: return on.noc_async_read_barrier_with_trid(id, noc);
    case kTowpathWritesOfId: return on.noc_async_write_barrier_with_trid(id, noc);
    case kTowpathWritesFlushedOfId: return on.noc_async_write_flushed_with_trid(id, noc);
    default: return on.noc_async_full_barrier(noc);
  }
}
void barrier(void* core, int barrier, std::uint32_t id, std::int32_t noc) {
  wait_for(called(core, CallCode::short_call), barrier, static_cast<int>(id), noc);
  runtime(core).arrivals.pass(barrier, static_cast<int>(id), noc);
}
int has_passed(void* core, int barrier, std::uint32_t id, std::int32_t noc) {
  runtime(core).clock.fetch(CallCode::look);
  DataMovementCore& on = runtime(core).memory.looking();
  const auto transaction_id = static_cast<int>(id);
  const bool has = barrier == kTowpathWritesFlushedOfId
                       ? on.is_write_flushed_with_trid(transaction_id, noc)
                       : on.is_answered_with_trid(transaction_id, noc);
  if (has) runtime(core).arrivals.pass(barrier, transaction_id, noc);
  return has ? 1 : 0;
}

void semaphore_wait(void* core, std::uint32_t offset, std::uint32_t value, int is_minimum) {
  if (is_minimum != 0) {
    called(core, CallCode::short_call).noc_semaphore_wait_min(offset, value);
  } else {
    called(core, CallCode::short_call).noc_semaphore_wait(offset, value);
  }
  runtime(core).arrivals.see_word(offset);
}
void semaphore_set(void* core, std::uint32_t offset, std::uint32_t value) {
  called(core, CallCode::short_call).noc_semaphore_set(offset, value);
  runtime(core).arrivals.store_word(offset, value);
}
void semaphore_inc(void* core, std::uint64_t to, std::uint32_t increment, TowpathOptions options) {
  called(core, CallCode::atomic).noc_semaphore_inc(unicast(to), increment, write_options(options));
}
void semaphore_inc_multicast(void* core, std::uint64_t to, std::uint32_t increment,
                             std::uint32_t destinations, TowpathOptions options) {
  called(core, CallCode::atomic)
      .noc_semaphore_inc_multicast(rectangle(to), increment, static_cast<int>(destinations),
                                   multicast_options(options));
}
void semaphore_set_remote(void* core, std::uint32_t from, std::uint64_t to,
                          TowpathOptions options) {
  called(core, CallCode::write).noc_semaphore_set_remote(from, unicast(to), write_options(options));
}

template <auto operation>
void with_pages(void* core, std::uint32_t buffer, std::uint32_t pages) {
  runtime(core).memory.settled();
  (runtime(core).buffers.*operation)(buffer, pages);
}
constexpr auto cb_reserve_back = with_pages<&KernelBuffers::reserve_back>;
constexpr auto cb_push_back = with_pages<&KernelBuffers::push_back>;
constexpr auto cb_wait_front = with_pages<&KernelBuffers::wait_front>;
constexpr auto cb_pop_front = with_pages<&KernelBuffers::pop_front>;
int cb_are_pages(void* core, std::uint32_t buffer, std::uint32_t pages, int at_front) {
  KernelRuntime& on = runtime(core);
  const auto number = static_cast<int>(buffer);
  on.memory.looking();
  on.memory.count_poll(at_front != 0 ? worker_memory_map::pages_received_at(number)
                                     : worker_memory_map::pages_acked_at(number));
  return on.buffers.are_pages(buffer, pages, at_front != 0) ? 1 : 0;
}
std::uint32_t cb_pointer(void* core, std::uint32_t buffer, int pointer) {
  const KernelBuffers& buffers = runtime(core).buffers;
  const CircularBuffer& cb = buffers.at(buffer);
  if (pointer == kTowpathFirstPointer) return cb.offset;
  return pointer == kTowpathReadPointer ? buffers.read_pointer(buffer)
                                        : buffers.write_pointer(buffer);
}
std::uint32_t cb_page_bytes(void* core, std::uint32_t buffer) {
  return runtime(core).buffers.at(buffer).page_bytes;
}
std::uint32_t cb_pages(void* core, std::uint32_t buffer) {
  return KernelBuffers::pages_of(runtime(core).buffers.at(buffer));
}
std::uint32_t ethernet(void* core, int call, const std::uint32_t* arguments) {
  KernelRuntime& on = runtime(core);
  const std::uint32_t value = on.ethernet.call(call, arguments);
  const auto noc = static_cast<int>(arguments[0]);
  if (call == kTowpathReadBarrier) on.arrivals.pass(kTowpathReads, 0, noc);
  if (call == kTowpathWriteBarrier) on.arrivals.pass(kTowpathWrites, 0, noc);
  on.arrivals.learn();
  return value;
}

template <auto operation, typename Result, typename... Arguments>
Result on_connections(void* core, Arguments... arguments) {
  runtime(core).arrivals.learn();
  return (runtime(core).connections.*operation)(arguments...);
}
using Channel = std::uint32_t;
constexpr auto fabric_open = on_connections<&KernelConnections::open, void, Channel>;
constexpr auto fabric_close = on_connections<&KernelConnections::close, void, Channel>;
int fabric_has_slot(void* core, Channel channel) {
  return runtime(core).connections.has_slot(channel) ? 1 : 0;
}
constexpr auto fabric_wait_for_slot =
    on_connections<&KernelConnections::wait_for_slot, void, Channel>;
constexpr auto fabric_write_payload =
    on_connections<&KernelConnections::write_payload, void, Channel, std::uint32_t, std::uint32_t>;
void fabric_send(void* core, Channel channel, const TowpathPacket* packet) {
  runtime(core).connections.send(channel, *packet);
}
constexpr auto fabric_direction =
    on_connections<&KernelConnections::direction, std::uint32_t, Channel>;
constexpr auto fabric_direction_to =
    on_connections<&KernelConnections::direction_to, std::uint32_t, std::uint32_t>;

void access(void* core, std::uintptr_t address, std::uint32_t size, std::uint32_t access,
            const void* place) {
  runtime(core).core.come_to(place);
  runtime(core).memory.access(address, size, access);
}
void load(void* core, std::uint32_t offset, void* host, std::uint32_t size, const void* place) {
  if (place != nullptr) runtime(core).core.come_to(place);
  runtime(core).arrivals.load({offset, std::uint64_t{offset} + size}, false);
  runtime(core).arrivals.learn();
  runtime(core).memory.settled().load(offset, {static_cast<std::byte*>(host), size});
}
void store(void* core, std::uint32_t offset, const void* host, std::uint32_t size,
           const void* place) {
  if (place != nullptr) runtime(core).core.come_to(place);
  runtime(core).memory.settled().store(offset, {static_cast<const std::byte*>(host), size});
}

std::uint64_t cycle(void* core) {
  runtime(core).memory.settled();
  return runtime(core).clock.read(KernelClock::Read::whole);
}
void work(void* core, std::uint64_t cycles) {
  runtime(core).memory.settled().work(static_cast<noc::Cycle>(cycles));
}
void print(void* core, const char* text) {
  runtime(core).count_report();
  runtime(core).reports.print(text);
}
void write_real(void* /*core*/, char* text, std::uint32_t size, TowpathForm form, double value) {
  std::snprintf(text, size, form.is_fixed != 0 ? "%*.*f" : "%*.*g", form.width, form.digits, value);
}
void write_whole(void* /*core*/, char* text, std::uint32_t size, TowpathForm form,
                 std::int64_t value) {
  const auto number = static_cast<long long>(value);
  const char* const words = form.base == 16 ? "%*llx" : form.base == 8 ? "%*llo" : "%*lld";
  std::snprintf(text, size, words, form.width, number);
}
void zone(void* core, const char* name, int begins) {
  runtime(core).count_report();
  runtime(core).reports.zone(name, begins != 0);
}
void record(void* core, const char* name, std::uint64_t value) {
  runtime(core).count_report();
  runtime(core).reports.record(name, value);
}
void ran(void* core, std::uint64_t blocks, const void* place) {
  runtime(core).count_blocks(blocks, place);
}
void endless_loop(void* core, const void* place) { runtime(core).refuse_endless_loop(place); }
void refuse_compute(void* core, const char* call) {
  metalium::refuse(
      runtime(core).core,
      fmt::format("the compute call '{}' is not modeled; docs/metalium.md lists the supported ones",
                  call));
}
void refuse(void* core, const char* sentence) { metalium::refuse(runtime(core).core, sentence); }

void smashed_stack(void* core, const void* place) {
  runtime(core).core.leave_call(place);
  metalium::refuse(runtime(core).core,
                   "a function that ends here has written beyond its variables on the stack");
}
void beyond_array(void* core, std::uint64_t index, const char* type, const void* place) {
  runtime(core).core.leave_call(place);
  metalium::refuse(runtime(core).core, fmt::format("it uses element {} of an array of type {}",
                                                   static_cast<std::int64_t>(index), type));
}

}  // namespace calls

// A call of the table, which records its place in the kernel. An exception leaves the kernel
// without unwinding it, because its return addresses may be overwritten.
template <auto call>
struct Noted;
template <typename Result, typename... Arguments, Result (*call)(void*, Arguments...)>
struct Noted<call> {
  static Result run(void* core, Arguments... arguments) {
    KernelRuntime& kernel = calls::runtime(core);
    kernel.core.come_to(__builtin_return_address(0));
    try {
      return call(core, arguments...);
    } catch (...) {
      kernel.keep(std::current_exception());
    }
    kernel.leave();
  }
};

}  // namespace

const TowpathCalls& kernel_calls() {
  static constexpr TowpathCalls kCalls{
#define TOWPATH_CALL_MEMBER(result, name, parameters) \
  .name = Noted<static_cast<decltype(TowpathCalls::name)>(calls::name)>::run,
      TOWPATH_CALLS(TOWPATH_CALL_MEMBER)
#undef TOWPATH_CALL_MEMBER
  };
  return kCalls;
}

}  // namespace towpath::tenstorrent::metalium
