// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// The loads and stores that the compiler reports: counted, checked, and observed by threads that
// poll.
#include <algorithm>
#include <exception>

#include "towpath/gpu/pe.hpp"
#include "towpath/gpu/table_calls.hpp"

namespace towpath::gpu {

namespace {

enum class Place : std::uint8_t { host, free, shared, own, peer, other };

bool is_free(Place place) {
  return place != Place::shared && place != Place::own && place != Place::peer;
}

std::uintptr_t number_of(const volatile void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

Place place_of(Pe& pe, const volatile void* address) {
  const std::uintptr_t number = number_of(address);
  const abi::Current& current = pe.current();
  if (!current.on_device) return Place::host;
  if (current.stack.contains(number)) return Place::free;
  if (current.shared.contains(number)) return Place::shared;
  if (current.heap.contains(number) || current.memory.contains(number)) return Place::own;
  // Arguments, variables of the source and host memory are assumed to be in the caches.
  if (!pe.heap().all().contains(number)) return Place::other;
  return pe.heap().owner_of(const_cast<const void*>(address)) == transport::kNoPeer ? Place::other
                                                                                    : Place::peer;
}

Place count_load(Pe& pe, const volatile void* address, std::uint64_t size_bytes) {
  abi::Counters& counters = pe.current().counters;
  const Place place = place_of(pe, address);
  switch (place) {
    case Place::shared: ++counters.shared_accesses; break;
    case Place::own:
      ++counters.loads;
      counters.load_bytes += size_bytes;
      break;
    case Place::peer:
      ++counters.peer_loads;
      counters.peer_load_bytes += size_bytes;
      break;
    default: break;
  }
  return place;
}

Place count_store(Pe& pe, const volatile void* address, std::uint64_t size_bytes) {
  abi::Counters& counters = pe.current().counters;
  const Place place = place_of(pe, address);
  switch (place) {
    case Place::shared: ++counters.shared_accesses; break;
    case Place::own:
      ++counters.stores;
      counters.store_bytes += size_bytes;
      break;
    case Place::peer:
      ++counters.peer_stores;
      counters.peer_store_bytes += size_bytes;
      break;
    default: break;
  }
  return place;
}

// The time until a word stored at a peer has arrived: half of a load.
Time time_to_peer(const Pe& pe) {
  return pe.is_timed() ? Time::from_ps(pe.cost().peer_latency.ps() / 2) : Time();
}

// Records the part of a range around an address that needs no further check, so that later accesses
// to it do not make a call.
void keep_quiet(abi::Range* ranges, const MonitoredRanges::Bounds& found, const abi::Range& range) {
  const std::uintptr_t begin = std::max(found.begin, range.begin);
  const std::uintptr_t end = std::min(found.end, range.begin + range.size);
  std::copy_backward(ranges, ranges + abi::kQuietRanges - 1, ranges + abi::kQuietRanges);
  ranges[0] = {begin, end - begin};
}

// The host program continues to its next call, because an exception cannot pass through a function
// that the compiler assumes not to throw.
abi::Range check_host(Pe& pe, const MemoryAccess& access) {
  if (pe.run().failure != nullptr) return {};
  try {
    return pe.memory().check_host(access);
  } catch (...) {
    pe.run().failure = std::current_exception();
  }
  return {};
}

// The memory that contains an access. Empty if the range must not be recorded.
abi::Range check(Pe& pe, Place place, const MemoryAccess& access) {
  switch (place) {
    case Place::host: return check_host(pe, access);
    case Place::free: return {};
    case Place::shared:
      return on_thread(&pe, [&](Block& block) { return pe.memory().of_shared(access, block); });
    case Place::own:
    case Place::peer:
      return on_thread(&pe, [&](Block& block) -> abi::Range {
        const Allocation& found = pe.memory().of_device(access, block);
        return {found.begin, found.size_bytes};
      });
    case Place::other:
      on_thread(&pe, [&](Block& block) { pe.memory().check_other(access, block); });
      return {};
  }
  return {};
}

// True if later accesses must also be observed.
bool note_access(Pe& pe, const MemoryAccess& access, bool is_store) {
  RaceMonitor* const races = pe.run().races;
  if (races == nullptr) return false;
  on_thread(&pe, [&](Block& block) { races->check(access, is_store, block); });
  return true;
}

void load(void* self, const void* address, unsigned size_bytes, const void* where) {
  Pe& pe = pe_of(self);
  const std::uintptr_t number = number_of(address);
  const Place place = count_load(pe, address, size_bytes);
  const MemoryAccess access{number, size_bytes, "loads", where};
  const abi::Range range = check(pe, place, access);
  const MonitoredRanges& incoming = pe.hazards().incoming;
  if (place == Place::host) keep_quiet(pe.current().quiet_loads, {0, UINT64_MAX}, range);
  if (place == Place::shared) pe.current().quiet_shared_loads = range;
  const bool is_global = place == Place::own || place == Place::peer;
  const bool is_noted = is_global && note_access(pe, access, false);
  if (place != Place::own) return;
  if (const MonitoredTransfer* const found = incoming.find(number)) {
    on_thread(self, [&](Block& block) { pe.hazards().check_read(*found, block, where); });
  }
  if (!is_noted) keep_quiet(pe.current().quiet_loads, incoming.around(number), range);
}

void store(void* self, void* address, unsigned size_bytes, const void* where) {
  Pe& pe = pe_of(self);
  const std::uintptr_t number = number_of(address);
  const Place place = count_store(pe, address, size_bytes);
  const MemoryAccess access{number, size_bytes, "stores", where};
  const abi::Range range = check(pe, place, access);
  if (place == Place::host) keep_quiet(pe.current().quiet_stores, {0, UINT64_MAX}, range);
  if (place == Place::shared && pe.pollers().empty()) pe.current().quiet_shared_stores = range;
  if (place == Place::peer || (!is_free(place) && !pe.pollers().empty())) {
    pe.pollers().note_store(address, size_bytes);
  }
  const bool is_global = place == Place::own || place == Place::peer;
  const bool is_noted = is_global && note_access(pe, access, true);
  if (place != Place::own) return;
  const MonitoredRanges& sources = pe.hazards().sources;
  if (const MonitoredTransfer* const found = sources.find(number)) {
    on_thread(self, [&](Block& block) { pe.hazards().check_change(*found, block, where); });
  }
  // Each store may end a poll.
  if (pe.pollers().empty() && !is_noted) {
    keep_quiet(pe.current().quiet_stores, sources.around(number), range);
  }
}

// The block may have seen anything that happened before.
void note_look(Pe& pe, Block& block, const volatile void* address, unsigned size_bytes) {
  if (block.history() == nullptr) return;
  block.history()->look(pe.simulation().now());
  RaceMonitor* const races = pe.run().races;
  if (races != nullptr) races->note_look(block, number_of(address), size_bytes);
}

void note_flag(Pe& pe, const volatile void* address, unsigned size_bytes) {
  RaceMonitor* const races = pe.run().races;
  if (races == nullptr || pe.running_block == nullptr) return;
  races->note_flag(*pe.running_block, number_of(address), size_bytes);
}

void poll(void* self, const volatile void* address, unsigned size_bytes, const void* where) {
  Pe& pe = pe_of(self);
  const Place place = count_load(pe, address, size_bytes);
  static_cast<void>(check(pe, place, {number_of(address), size_bytes, "loads", where}));
  if (is_free(place)) return;
  pe.note_plain(const_cast<const void*>(address), size_bytes);
  on_thread(self, [&](Block& block) {
    pe.pollers().poll(block, address, size_bytes);
    note_look(pe, block, address, size_bytes);
  });
}

// The store itself follows this call.
void flag(void* self, volatile void* address, unsigned size_bytes, const void* where) {
  Pe& pe = pe_of(self);
  const Place place = count_store(pe, address, size_bytes);
  static_cast<void>(check(pe, place, {number_of(address), size_bytes, "stores", where}));
  if (is_free(place)) return;
  note_flag(pe, address, size_bytes);
  pe.note_plain(const_cast<const void*>(address), size_bytes);
  if (place == Place::peer) {
    on_thread(self, [&](Block& block) {
      const std::uint64_t transfer = pe.note_flag(block, address, size_bytes);
      block.reach(block.work().thread_time() + time_to_peer(pe));
      if (pe.run().profile != nullptr) pe.run().profile->transfer_landed(transfer);
    });
  }
  pe.pollers().note_store(address, size_bytes);
}

void touch(void* self, const void* address, std::uint64_t size_bytes, bool is_store,
           const void* where) {
  Pe& pe = pe_of(self);
  const MemoryAccess access{number_of(address), size_bytes, is_store ? "stores" : "loads", where};
  static_cast<void>(check(pe, place_of(pe, address), access));
}

void misaligned(void* self, const volatile void* address, unsigned size_bytes, bool is_store,
                const void* where) {
  Pe& pe = pe_of(self);
  const Place place = place_of(pe, address);
  if (place == Place::host || place == Place::free) return;
  const MemoryAccess access{number_of(address), size_bytes, is_store ? "stores" : "loads", where};
  static_cast<void>(check(pe, place, access));
  on_thread(self, [&](Block& block) { pe.memory().refuse_misaligned(access, block); });
}

void outside_shared(void* self, std::uint64_t address, unsigned size_bytes, const char* verb,
                    const void* where) {
  on_thread(self, [&](Block& block) {
    const MemoryAccess access{address, size_bytes, verb, where};
    pe_of(self).memory().refuse_shared_address(access, block);
  });
}

void begin_atomic(void* self, const volatile void* address, unsigned size_bytes,
                  const void* where) {
  Pe& pe = pe_of(self);
  const Place place = count_load(pe, address, size_bytes);
  const MemoryAccess access{number_of(address), size_bytes, "changes", where};
  static_cast<void>(check(pe, place, access));
  if (!is_free(place) && access.address % size_bytes != 0) {
    on_thread(self, [&](Block& block) { pe.memory().refuse_misaligned(access, block); });
  }
  if (place == Place::peer) {
    on_thread(self,
              [&](Block& block) { block.reach(block.work().thread_time() + time_to_peer(pe)); });
  }
}

void end_atomic(void* self, const volatile void* address, unsigned size_bytes) {
  Pe& pe = pe_of(self);
  if (pe.running_block != nullptr) note_look(pe, *pe.running_block, address, size_bytes);
  if (is_free(count_store(pe, address, size_bytes))) return;
  note_flag(pe, address, size_bytes);
  pe.note_plain(const_cast<const void*>(address), size_bytes);
  pe.pollers().note_store(address, size_bytes);
}

}  // namespace

void fill_accesses(abi::Table& table) {
  table.load = &load;
  table.store = &store;
  table.poll = &poll;
  table.flag = &flag;
  table.touch = &touch;
  table.misaligned = &misaligned;
  table.outside_shared = &outside_shared;
  table.begin_atomic = &begin_atomic;
  table.end_atomic = &end_atomic;
}

}  // namespace towpath::gpu
