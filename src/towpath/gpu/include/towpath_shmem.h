// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"

// What NVSHMEM's calls are written on. A call of the host program runs as one thread of the device,
// and the host waits for it; a call on a stream does not wait.

namespace towpath_gpu {

template <typename Function>
void on_device(const char* name, Function function) {
  if (current().on_device) {
    function();
  } else {
    run_and_wait(name, std::move(function));
  }
}

// The same by all threads of a warp or a block: one of them does it, and the others wait.
template <typename Function>
void in_scope(Scope scope, const Site& site, Function function) {
  if (scope == Scope::thread || !current().on_device) return on_device(site.call, function);
  const bool is_warp = scope == Scope::warp;
  const auto sync = [is_warp, &site] {
    if (is_warp) {
      table().sync_warp(table().self, 0xffffffffu, &site);
    } else {
      table().sync_block(table().self, 0, 0, &site);
    }
  };
  sync();
  if (current().linear % (is_warp ? 32u : 1024u) == 0) function();
  sync();
}

// --- one-sided --------------------------------------------------------------------------------
struct SignalUpdate {
  Signal operation = Signal::none;
  std::uint64_t* at = nullptr;
  std::uint64_t value = 0;
};
inline Signal signal_operation(int operation) {
  return operation == 10 ? Signal::add : Signal::set;
}

inline void transfer(AccessKind kind, Scope scope, bool is_nonblocking, void* remote, void* local,
                     std::uint64_t size, int pe, const SignalUpdate& update, const Site& site) {
  Access access{};
  access.kind = kind;
  access.scope = current().on_device ? scope : Scope::thread;
  access.is_nonblocking = is_nonblocking;
  access.peer = pe;
  access.remote = remote;
  access.local = local;
  access.size_bytes = size;
  access.signal = update.operation;
  access.signal_at = update.at;
  access.signal_value = update.value;
  if (current().on_device) {
    table().access(table().self, &access, &site);
    return;
  }
  run_and_wait(site.call, [access, site]() mutable {
    table().access(table().self, &access, &site);
  });
}
inline void put(Scope scope, bool is_nonblocking, void* to, const void* from, std::uint64_t size,
                int pe, const SignalUpdate& update, const Site& site) {
  transfer(AccessKind::put, scope, is_nonblocking, to, const_cast<void*>(from), size, pe, update,
           site);
}
inline void get(Scope scope, bool is_nonblocking, void* to, const void* from, std::uint64_t size,
                int pe, const Site& site) {
  transfer(AccessKind::get, scope, is_nonblocking, const_cast<void*>(from), to, size, pe, {}, site);
}
// Strides count elements.
template <typename T>
void put_strided(Scope scope, T* to, const T* from, ptrdiff_t to_stride, ptrdiff_t from_stride,
                 std::size_t count, int pe, const Site& site) {
  in_scope(scope, site, [=] {
    for (std::size_t i = 0; i < count; ++i) {
      put(Scope::thread, false, to + static_cast<ptrdiff_t>(i) * to_stride,
          from + static_cast<ptrdiff_t>(i) * from_stride, sizeof(T), pe, {}, site);
    }
  });
}
template <typename T>
void get_strided(Scope scope, T* to, const T* from, ptrdiff_t to_stride, ptrdiff_t from_stride,
                 std::size_t count, int pe, const Site& site) {
  in_scope(scope, site, [=] {
    for (std::size_t i = 0; i < count; ++i) {
      get(Scope::thread, false, to + static_cast<ptrdiff_t>(i) * to_stride,
          from + static_cast<ptrdiff_t>(i) * from_stride, sizeof(T), pe, site);
    }
  });
}
template <typename T>
void put_value(T* to, T value, int pe, const Site& site) {
  on_device(site.call, [=] { put(Scope::thread, false, to, &value, sizeof(T), pe, {}, site); });
}
template <typename T>
T get_value(const T* from, int pe, const Site& site) {
  T value{};
  T* const target = &value;
  on_device(site.call, [=] { get(Scope::thread, false, target, from, sizeof(T), pe, site); });
  return value;
}
inline void signal(std::uint64_t* at, std::uint64_t value, int operation, int pe,
                   const Site& site) {
  put(Scope::thread, false, at, nullptr, 0, pe, {signal_operation(operation), at, value}, site);
}

// --- atomics ----------------------------------------------------------------------------------
template <typename T>
T atomic(Operation operation, bool fetches, T* at, T operand, T expected, int pe,
         const Site& site) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "atomic words have 4 or 8 bytes");
  Access access{};
  access.kind = AccessKind::atomic;
  access.peer = pe;
  access.remote = const_cast<std::remove_const_t<T>*>(at);
  access.size_bytes = sizeof(T);
  access.operation = operation;
  access.fetches = fetches;
  __builtin_memcpy(&access.operand, &operand, sizeof(T));
  __builtin_memcpy(&access.expected, &expected, sizeof(T));
  std::uint64_t result = 0;
  std::uint64_t* const target = &result;
  on_device(site.call, [access, site, target]() mutable {
    table().access(table().self, &access, &site);
    *target = access.result;
  });
  std::remove_const_t<T> value;
  __builtin_memcpy(&value, &result, sizeof(T));
  return value;
}
// An addition of floating-point numbers, which the network does not have.
template <typename T>
T add_by_swapping(T* at, T value, int pe, const Site& site) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  auto* const word = reinterpret_cast<Bits*>(at);
  Bits before = atomic<Bits>(Operation::fetch, true, word, 0, 0, pe, site);
  while (true) {
    T number;
    __builtin_memcpy(&number, &before, sizeof(T));
    const T sum = number + value;
    Bits after;
    __builtin_memcpy(&after, &sum, sizeof(T));
    const Bits found =
        atomic<Bits>(Operation::compare_swap, true, word, after, before, pe, site);
    if (found == before) return number;
    before = found;
  }
}

// --- waiting ----------------------------------------------------------------------------------
template <typename T>
std::uint64_t bits_of(T value) {
  return static_cast<std::uint64_t>(static_cast<long long>(value));
}
template <typename T>
Wait wait_for(const T* words, std::size_t count, int comparison) {
  Wait wait{};
  wait.first = words;
  wait.count = count;
  wait.size_bytes = sizeof(T);
  wait.is_signed = std::is_signed_v<T>;
  wait.comparison = static_cast<Comparison>(comparison);
  return wait;
}
template <typename T>
std::uint64_t wait_one(const T* word, int comparison, T value, bool is_test, bool is_signal,
                       const Site& site) {
  std::uint64_t result = 0;
  std::uint64_t* const target = &result;
  on_device(site.call, [=] {
    const std::uint64_t bits = bits_of(value);
    Wait wait = wait_for(word, 1, comparison);
    wait.values = &bits;
    wait.is_test = is_test;
    wait.is_signal = is_signal;
    *target = table().wait(table().self, &wait, &site);
  });
  return result;
}
template <typename T>
std::size_t wait_many(Quantity quantity, bool is_test, const T* words, std::size_t count,
                      std::size_t* indices, const int* status, int comparison, const T* values,
                      bool is_vector, const Site& site) {
  std::size_t result = 0;
  std::size_t* const target = &result;
  on_device(site.call, [=] {
    std::vector<std::uint64_t> bits;
    for (std::size_t i = 0; i < (is_vector ? count : 1); ++i) bits.push_back(bits_of(values[i]));
    Wait wait = wait_for(words, count, comparison);
    wait.quantity = quantity;
    wait.is_test = is_test;
    wait.is_vector = is_vector;
    wait.status = status;
    wait.values = bits.data();
    wait.indices = reinterpret_cast<std::uint64_t*>(indices);
    *target = table().wait(table().self, &wait, &site);
  });
  return result;
}

// --- teams ------------------------------------------------------------------------------------
struct Team {
  int start, stride, size;
  bool is_used;
  int pe(int member) const { return start + member * stride; }
  int member(int pe) const {
    const int distance = pe - start;
    if (distance < 0 || distance % stride != 0 || distance / stride >= size) return -1;
    return distance / stride;
  }
};
inline constexpr int kPredefinedTeams = 8;
inline Team teams[kTeamsMax];

// The predefined teams; called when the library begins.
inline void define_teams() {
  const int pe = table().my_pe, n = table().n_pes, node = table().pes_per_node;
  const int on_node = n - pe / node * node < node ? n - pe / node * node : node;
  teams[0] = {0, 1, n, true};                               // world
  teams[1] = {pe / node * node, 1, on_node, true};          // shared
  teams[2] = teams[1];                                      // node
  teams[3] = {pe % node, node, (n - pe % node + node - 1) / node, true};  // same PE of each node
}
inline const Team* team_of(int team) {
  if (!teams[0].is_used) define_teams();  // a kernel may be launched by another program
  return team >= 0 && team < kTeamsMax && teams[team].is_used ? &teams[team] : nullptr;
}
inline const Team& checked_team(int team, const Site& site) {
  const Team* const found = team_of(team);
  if (found == nullptr) {
    table().fail(table().self, "the team does not exist, or this PE is not in it", &site);
  }
  return *found;
}

// Words of a team: one signal per round of its synchronization, then its epoch and a scratch area.
inline constexpr int kEpochWord = 32;
inline constexpr int kScratchWord = 40;

// By one thread of the device.
inline void sync_team(int number, const Site& site) {
  const Team& team = checked_team(number, site);
  const int member = team.member(table().my_pe);
  std::uint64_t* const words = table().team_words(table().self, number);
  const std::uint64_t epoch = ++words[kEpochWord];
  for (int round = 0, distance = 1; distance < team.size; ++round, distance *= 2) {
    const int peer = team.pe((member + distance) % team.size);
    put(Scope::thread, false, words + round, nullptr, 0, peer, {Signal::add, words + round, 1},
        site);
    Wait wait = wait_for(words + round, 1, static_cast<int>(Comparison::greater_equal));
    wait.values = &epoch;
    table().wait(table().self, &wait, &site);
  }
}
inline void barrier_team(int number, const Site& site) {
  table().quiet(table().self, &site);
  sync_team(number, site);
}

// --- collectives of a team, by one thread of the device -----------------------------------------
inline void broadcast(int number, void* to, const void* from, std::uint64_t size, int root,
                      const Site& site) {
  const Team& team = checked_team(number, site);
  if (team.member(table().my_pe) == root) {
    for (int member = 0; member < team.size; ++member) {
      put(Scope::thread, true, to, from, size, team.pe(member), {}, site);
    }
  }
  barrier_team(number, site);
}
inline void fcollect(int number, void* to, const void* from, std::uint64_t size,
                     const Site& site) {
  const Team& team = checked_team(number, site);
  char* const place =
      static_cast<char*>(to) + size * static_cast<unsigned>(team.member(table().my_pe));
  for (int member = 0; member < team.size; ++member) {
    put(Scope::thread, true, place, from, size, team.pe(member), {}, site);
  }
  barrier_team(number, site);
}
inline void alltoall(int number, void* to, const void* from, std::uint64_t size,
                     const Site& site) {
  const Team& team = checked_team(number, site);
  char* const place =
      static_cast<char*>(to) + size * static_cast<unsigned>(team.member(table().my_pe));
  for (int member = 0; member < team.size; ++member) {
    put(Scope::thread, true, place,
        static_cast<const char*>(from) + size * static_cast<unsigned>(member), size,
        team.pe(member), {}, site);
  }
  barrier_team(number, site);
}
// The elements [first, first + count) of all members' `from`, combined in the order of members.
template <typename T, typename Combine>
void combine(const Team& team, T* to, const T* from, std::size_t first, std::size_t count,
             Combine combine_two, const Site& site) {
  std::vector<T> other(count);
  table().register_buffer(table().self, to, count * sizeof(T));
  table().register_buffer(table().self, other.data(), count * sizeof(T));
  for (int member = 0; member < team.size; ++member) {
    T* const target = member == 0 ? to : other.data();
    get(Scope::thread, false, target, from + first, count * sizeof(T), team.pe(member), site);
    if (member == 0) continue;
    for (std::size_t i = 0; i < count; ++i) to[i] = combine_two(to[i], other[i]);
  }
  table().unregister_buffer(table().self, to, false, &site);
  table().unregister_buffer(table().self, other.data(), false, &site);
}
// Each member combines a part, and gives it to all.
template <typename T, typename Combine>
void reduce(int number, T* to, const T* from, std::size_t count, Combine combine_two,
            const Site& site) {
  const Team& team = checked_team(number, site);
  const auto size = static_cast<std::size_t>(team.size);
  const auto member = static_cast<std::size_t>(team.member(table().my_pe));
  const std::size_t first = count * member / size;
  std::vector<T> part(count * (member + 1) / size - first);
  sync_team(number, site);
  combine(team, part.data(), from, first, part.size(), combine_two, site);
  sync_team(number, site);
  table().register_buffer(table().self, part.data(), part.size() * sizeof(T));
  for (int peer = 0; peer < team.size; ++peer) {
    put(Scope::thread, true, to + first, part.data(), part.size() * sizeof(T), team.pe(peer), {},
        site);
  }
  barrier_team(number, site);
  table().unregister_buffer(table().self, part.data(), false, &site);
}
template <typename T, typename Combine>
void reduce_scatter(int number, T* to, const T* from, std::size_t count, Combine combine_two,
                    const Site& site) {
  const Team& team = checked_team(number, site);
  std::vector<T> part(count);
  sync_team(number, site);
  combine(team, part.data(), from, count * static_cast<unsigned>(team.member(table().my_pe)),
          count, combine_two, site);
  sync_team(number, site);
  for (std::size_t i = 0; i < count; ++i) to[i] = part[i];
  sync_team(number, site);
}

// A new team of parent's members start, start + stride, ...; collective over the parent, by the
// host program. Its number is the highest that any member of the parent would take.
inline int split_team(int parent_number, int start, int stride, int size, int* made,
                      const Site& site) {
  *made = -1;
  const Team* const parent = team_of(parent_number);
  if (parent == nullptr || size < 1 || stride == 0) return -1;
  on_device(site.call, [=] {
    std::uint64_t* const scratch =
        table().team_words(table().self, parent_number) + kScratchWord;
    scratch[0] = kPredefinedTeams;
    for (int team = kPredefinedTeams; team < kTeamsMax; ++team) {
      if (teams[team].is_used) scratch[0] = static_cast<unsigned>(team) + 1;
    }
    reduce(parent_number, scratch + 1, scratch, 1,
           [](std::uint64_t a, std::uint64_t b) { return a < b ? b : a; }, site);
  });
  const auto number = static_cast<int>(
      table().team_words(table().self, parent_number)[kScratchWord + 1]);
  if (number >= kTeamsMax) return -1;
  const Team team = {parent->pe(start), parent->stride * stride, size, true};
  if (team.member(table().my_pe) >= 0) {
    teams[number] = team;
    *made = number;
  }
  on_device(site.call, [=] { sync_team(parent_number, site); });
  return 0;
}

}  // namespace towpath_gpu
