// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath_ptx_float.h"

// Loads, stores, atomic operations, fences and addresses. A weak access is a plain access of C++,
// any other one is volatile, and the compiler reports both.

namespace towpath_ptx {

using Pair64 __attribute__((vector_size(16))) = u64;

template <unsigned Bytes>
struct WordOf {
  using Type = Bits<Bytes>;
};
template <>
struct WordOf<16> {
  using Type = Pair64;
};

template <typename T, int Count>
struct Vector {
  T item[Count];
};

// --- addresses ----------------------------------------------------------------------------------
// A 32-bit address of shared memory counts from the multiple of 1024 before the block's memory.
inline constexpr std::uintptr_t kSharedUnit = 1024;

__attribute__((no_sanitize("thread"))) inline std::uintptr_t shared_base() {
  return towpath_gpu_current.shared.begin & ~(kSharedUnit - 1);
}
__attribute__((noinline, no_sanitize("thread"))) inline void* shared_pointer(u64 address, unsigned size,
                                                                      const char* verb) {
  const towpath_gpu::Range& shared = towpath_gpu_current.shared;
  const std::uintptr_t generic = shared_base() + address;
  if (generic - shared.begin >= shared.size) {
    towpath_gpu::table().outside_shared(towpath_gpu::table().self, address, size, verb,
                                        __builtin_return_address(0));
  }
  return reinterpret_cast<void*>(generic);
}
template <typename A>
TOWPATH_PTX u64 cvta_shared(A address) {
  return shared_base() + static_cast<u64>(address);
}
template <typename A>
TOWPATH_PTX u64 cvta_to_shared(A address) {
  return static_cast<u64>(address) - shared_base();
}
template <Space Of, typename A>
TOWPATH_PTX bool isspacep(A address) {
  const auto at = static_cast<std::uintptr_t>(address);
  const bool is_shared = towpath_gpu_current.shared.contains(at);
  const bool is_local = towpath_gpu_current.stack.contains(at);
  switch (Of) {
    case m_shared: return is_shared;
    case m_local: return is_local;
    case m_const: return false;
    default: return !is_shared && !is_local;
  }
}
template <Space Of, typename A>
TOWPATH_PTX void* pointer_to(A base, s64 offset, unsigned size, const char* verb) {
  const u64 address = static_cast<u64>(base) + static_cast<u64>(offset);
  if constexpr (Of == m_shared) {
    return shared_pointer(address, size, verb);
  } else {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
  }
}

// A policy of caches has no effect.
template <typename... Parts>
TOWPATH_PTX u64 no_policy(Parts...) {
  return 0;
}

// --- fences -------------------------------------------------------------------------------------
template <Reach To>
TOWPATH_PTX void fence(const Site& site) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if constexpr (To != m_cta) {
    if (!towpath_gpu_current.on_device) return;
    towpath_gpu::table().thread_fence(
        towpath_gpu::table().self,
        To == m_sys ? towpath_gpu::FenceScope::system : towpath_gpu::FenceScope::device, &site);
  }
}
template <Order How, Reach To>
TOWPATH_PTX void release(const Site& site) {
  if constexpr (How == m_release || How == m_acq_rel) fence<To>(site);
}

// --- loads and stores ---------------------------------------------------------------------------
template <Order How, typename Word>
TOWPATH_PTX Word load_word(const void* address) {
  if constexpr (How == m_weak) {
    return *static_cast<const Word*>(address);
  } else {
    return *static_cast<const volatile Word*>(address);
  }
}
template <Order How, typename Word>
TOWPATH_PTX void store_word(void* address, Word value) {
  if constexpr (How == m_weak) {
    *static_cast<Word*>(address) = value;
  } else {
    *static_cast<volatile Word*>(address) = value;
  }
}
// The widest accesses are two of 16 bytes.
TOWPATH_PTX void check_alignment(const void* address, unsigned size, bool is_store) {
  if (size <= 16 || reinterpret_cast<std::uintptr_t>(address) % size == 0) return;
  towpath_gpu::table().misaligned(towpath_gpu::table().self, address, size, is_store,
                                  __builtin_return_address(0));
}

// An acquire orders the accesses after it. It does not wait for the stores before it.
template <Order How, Reach To, Space Of, typename T, int Count, typename A>
TOWPATH_PTX Vector<T, Count> load(A base, s64 offset, const Site&) {
  constexpr unsigned kBytes = sizeof(T) * Count;
  using Word = typename WordOf<(kBytes > 16 ? 16 : kBytes)>::Type;
  const void* const address = pointer_to<Of>(base, offset, kBytes, "loads");
  check_alignment(address, kBytes, false);
  Word words[kBytes / sizeof(Word)];
  do {
    for (unsigned i = 0; i < kBytes / sizeof(Word); ++i) {
      words[i] = load_word<How, Word>(static_cast<const Word*>(address) + i);
    }
  } while (How != m_weak && kBytes <= 16 && towpath_gpu::has_waited(address, words, kBytes));
  if constexpr (How == m_acquire) __atomic_thread_fence(__ATOMIC_ACQUIRE);
  Vector<T, Count> result;
  __builtin_memcpy(&result, words, kBytes);
  return result;
}
// False if the address has no replicas. Not inline: stores to other memory are many times as frequent.
template <unsigned Bytes>
__attribute__((noinline, no_sanitize("thread"))) bool store_to_replicas(const void* address,
                                                                      const void* words) {
  const towpath_gpu::Replicas& replicas = towpath_gpu::replicas_of(address);
  const auto to = reinterpret_cast<std::uintptr_t>(address);
  for (unsigned i = 0; i < replicas.count; ++i) {
    __builtin_memcpy(replicas.of(to, i), words, Bytes);
  }
  if (replicas.count > 0) towpath_gpu::note_store();
  return replicas.count > 0;
}
template <Order How, Reach To, Space Of, typename T, typename A, typename... Values>
TOWPATH_PTX void store(const Site& site, A base, s64 offset, Values... values) {
  constexpr unsigned kBytes = sizeof(T) * sizeof...(Values);
  using Word = typename WordOf<(kBytes > 16 ? 16 : kBytes)>::Type;
  void* const address = pointer_to<Of>(base, offset, kBytes, "stores");
  check_alignment(address, kBytes, true);
  const Vector<T, sizeof...(Values)> vector{{as<T>(values)...}};
  Word words[kBytes / sizeof(Word)];
  __builtin_memcpy(words, &vector, kBytes);
  release<How, To>(site);
  if constexpr (Of == m_global || Of == m_generic) {
    if (towpath_gpu::is_multicast(address) && store_to_replicas<kBytes>(address, words)) return;
  }
  for (unsigned i = 0; i < kBytes / sizeof(Word); ++i) {
    store_word<How>(static_cast<Word*>(address) + i, words[i]);
  }
  towpath_gpu::note_store();
}

// --- atomic operations --------------------------------------------------------------------------
template <Combination How, typename T>
__attribute__((no_sanitize("thread"))) T changed(T before, T value, T swapped) {
  if constexpr (How == m_exch) {
    return value;
  } else if constexpr (How == m_cas) {
    return cast_bits<Bits<sizeof(T)>>(before) == cast_bits<Bits<sizeof(T)>>(value) ? swapped : before;
  } else if constexpr (std::is_integral_v<T>) {
    switch (How) {
      case m_add: return static_cast<T>(static_cast<std::make_unsigned_t<T>>(before) + static_cast<std::make_unsigned_t<T>>(value));
      case m_and: return before & value;
      case m_or: return before | value;
      case m_xor: return before ^ value;
      case m_min: return value < before ? value : before;
      case m_max: return before < value ? value : before;
      case m_inc: return before >= value ? T(0) : static_cast<T>(before + 1);
      case m_dec: return before == 0 || before > value ? value : static_cast<T>(before - 1);
      default: return before;
    }
  } else {
    const auto a = cast_bits<Bits<sizeof(T)>>(before);
    const auto b = cast_bits<Bits<sizeof(T)>>(value);
    if constexpr (How == m_add) return fadd<T, m_rn, false, false>(a, b);
    if constexpr (How == m_min) return fmin<T, false, false>(a, b);
    if constexpr (How == m_max) return fmax<T, false, false>(a, b);
  }
}
template <Order How, Reach To, Space Of, Combination Operation, typename T, typename A, typename B,
          typename C = u32>
TOWPATH_PTX T atom(const Site& site, A base, s64 offset, B operand, C swapped = 0) {
  auto* const address =
      static_cast<Bits<sizeof(T)>*>(pointer_to<Of>(base, offset, sizeof(T), "changes"));
  const T value = as<T>(operand), other = as<T>(swapped);
  release<How, To>(site);
  const auto before = towpath_gpu::change_atomically(
      address, [value, other](Bits<sizeof(T)> bits)
                   __attribute__((no_sanitize("thread"))) -> Bits<sizeof(T)> {
                     return cast_bits<Bits<sizeof(T)>>(
                         changed<Operation>(cast_bits<T>(bits), value, other));
                   });
  return cast_bits<T>(before);
}
// One operation for each element, in order.
template <Order How, Reach To, Space Of, Combination Operation, typename T, typename A,
          typename... Values>
TOWPATH_PTX Vector<T, sizeof...(Values)> atom_vector(const Site& site, A base, s64 offset,
                                                     Values... values) {
  release<How, To>(site);
  s64 at = offset - static_cast<s64>(sizeof(T));
  return {{atom<m_relaxed, To, Of, Operation, T>(site, base, at += sizeof(T), values)...}};
}

// --- multicast memory ---------------------------------------------------------------------------
#ifdef TOWPATH_VIRTUAL_GPU
// The values of the replicas of an element as they are combined. Sums of halves are made in single
// precision and rounded once. The order of a switch is not known.
template <Combination How, typename T>
struct Combined {
  T result_;
  explicit Combined(T first) : result_(first) {}
  void add(T next) { result_ = changed<How>(result_, next, T{}); }
  T result() const { return result_; }
};
template <typename T>
  requires(std::is_same_v<T, f16> || std::is_same_v<T, bf16>)
struct Combined<m_add, T> {
  float sum_;
  explicit Combined(T first) : sum_(widen(first)) {}
  void add(T next) { sum_ += widen(next); }
  T result() const { return narrow_to(T{}, static_cast<double>(sum_)); }
};
template <Combination How, typename T>
  requires(std::is_same_v<T, f16x2> || std::is_same_v<T, bf16x2>)
struct Combined<How, T> {
  Combined<How, decltype(T{}.low)> low_, high_;
  explicit Combined(T first) : low_(first.low), high_(first.high) {}
  void add(T next) {
    low_.add(next.low);
    high_.add(next.high);
  }
  T result() const { return {low_.result(), high_.result()}; }
};
inline const towpath_gpu::Replicas& replicas_of(const void* address, const Site& site) {
  constexpr const char* kRefused = "an address that is not of multicast memory";
  if (!towpath_gpu::is_multicast(address)) refuse(kRefused, site);
  const towpath_gpu::Replicas& found = towpath_gpu::replicas_of(address);
  if (found.count == 0) refuse(kRefused, site);
  return found;
}
template <typename T, int Count>
TOWPATH_PTX Vector<T, Count> load_replica(const unsigned char* from) {
  if constexpr (sizeof(Vector<T, Count>) <= 8) {
    return cast_bits<Vector<T, Count>>(load_word<m_volatile, Bits<sizeof(Vector<T, Count>)>>(from));
  } else {
    Vector<T, Count> loaded;
    __builtin_memcpy(&loaded, from, sizeof loaded);
    return loaded;
  }
}
template <Combination Operation, typename T, int Count>
TOWPATH_PTX Vector<T, Count> combine_replicas(const towpath_gpu::Replicas& replicas,
                                              std::uintptr_t address) {
  const auto first = load_replica<T, Count>(replicas.of(address, 0));
  return [&]<std::size_t... Item>(std::index_sequence<Item...>) {
    Combined<Operation, T> all[] = {Combined<Operation, T>(first.item[Item])...};
    for (unsigned i = 1; i < replicas.count; ++i) {
      const auto next = load_replica<T, Count>(replicas.of(address, i));
      (all[Item].add(next.item[Item]), ...);
    }
    return Vector<T, Count>{{all[Item].result()...}};
  }(std::make_index_sequence<Count>());
}
// Not inline, because programs have few of them.
template <Order How, Reach To, Combination Operation, typename T, int Count, typename A>
__attribute__((noinline, no_sanitize("thread"))) Vector<T, Count> multimem_load(const Site& site,
                                                                            A base, s64 offset) {
  constexpr unsigned kBytes = sizeof(T) * Count;
  const auto address =
      reinterpret_cast<std::uintptr_t>(pointer_to<m_global>(base, offset, kBytes, "loads"));
  for (;;) {
    const auto& replicas = replicas_of(reinterpret_cast<const void*>(address), site);
    const auto result = combine_replicas<Operation, T, Count>(replicas, address);
    if constexpr (How == m_acquire && kBytes <= 16) {
      // A thread that polls waits for the replica that has the result, which is the last one to
      // change.
      unsigned last = replicas.count;
      while (last > 0 && __builtin_memcmp(replicas.of(address, last - 1), &result, kBytes) != 0) {
        --last;
      }
      if (last > 0 &&
          towpath_gpu::has_waited(replicas.of(address, last - 1), &result, kBytes)) {
        continue;
      }
    }
    if constexpr (How == m_acquire) __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return result;
  }
}
// Stores to all replicas, or combines with the value of each.
template <Order How, Reach To, Combination Operation, typename T, typename A, typename... Values>
__attribute__((noinline, no_sanitize("thread"))) void multimem_store(const Site& site, A base,
                                                                   s64 offset, Values... values) {
  constexpr unsigned kBytes = sizeof(T) * sizeof...(Values);
  const void* const address = pointer_to<m_global>(base, offset, kBytes, "stores");
  const Vector<T, sizeof...(Values)> vector{{as<T>(values)...}};
  const unsigned count = replicas_of(address, site).count;
  release<How, To>(site);
  if constexpr (Operation == m_none) {
    store_to_replicas<kBytes>(address, &vector);
  } else {
    for (unsigned i = 0; i < count; ++i) {
      const auto to = reinterpret_cast<std::uintptr_t>(
          replicas_of(address, site).of(reinterpret_cast<std::uintptr_t>(address), i));
      for (unsigned item = 0; item < sizeof...(Values); ++item) {
        atom<m_relaxed, To, m_global, Operation, T>(
            site, to, static_cast<s64>(item * sizeof(T)),
            cast_bits<Bits<sizeof(T)>>(vector.item[item]));
      }
    }
  }
}
#else
template <Order How, Reach To, Combination Operation, typename T, int Count, typename A>
TOWPATH_PTX Vector<T, Count> multimem_load(const Site& site, A, s64) {
  refuse("multicast memory, which Towpath models for programs of towpath nccl run only", site);
}
template <Order How, Reach To, Combination Operation, typename T, typename A, typename... Values>
TOWPATH_PTX void multimem_store(const Site& site, A, s64, Values...) {
  refuse("multicast memory, which Towpath models for programs of towpath nccl run only", site);
}
#endif

// --- copies to shared memory --------------------------------------------------------------------
// As if the copy were done at once.
template <int Bytes, typename To, typename From, typename Size = u32>
TOWPATH_PTX void cp_async(To to, s64 to_offset, From from, s64 from_offset, Size given = Bytes) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
  using Word = typename WordOf<Bytes>::Type;
  void* const target = pointer_to<m_shared>(to, to_offset, Bytes, "stores");
  const void* const source = pointer_to<m_global>(from, from_offset, Bytes, "loads");
  Word word{};
  if (given >= Bytes) {
    word = load_word<m_weak, Word>(source);
  } else {
    unsigned char bytes[Bytes] = {};
    for (unsigned i = 0; i < given; ++i) bytes[i] = static_cast<const unsigned char*>(source)[i];
    __builtin_memcpy(&word, bytes, Bytes);
  }
  store_word<m_weak>(target, word);
}

}  // namespace towpath_ptx
