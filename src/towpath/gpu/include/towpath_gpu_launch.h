// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "towpath_gpu.h"

// Per object: the running thread, the runtime's table, and what the source step makes of launches,
// of kernels and of shared memory.

#ifdef TOWPATH_VIRTUAL_GPU
namespace towpath_gpu {
// Addresses from the first to the last of some memory. It only grows, so that a thread finds the
// memory that it was given while another thread includes more.
struct Span {
  std::uintptr_t begin = UINTPTR_MAX;
  std::uintptr_t end = 0;
  std::uint64_t version = 1;  // changes with each part of the memory
  bool contains(std::uintptr_t address) const {
    return __atomic_load_n(&begin, __ATOMIC_RELAXED) <= address &&
           address < __atomic_load_n(&end, __ATOMIC_RELAXED);
  }
  // By one thread at a time.
  void include(std::uintptr_t first, std::uintptr_t size) {
    if (first < begin) __atomic_store_n(&begin, first, __ATOMIC_RELAXED);
    if (first + size > end) __atomic_store_n(&end, first + size, __ATOMIC_RELAXED);
  }
};
}  // namespace towpath_gpu

// Each worker has one. The threads of a block stay with their worker.
extern "C" __thread towpath_gpu::Current towpath_gpu_current
    __attribute__((tls_model("initial-exec")));
extern "C" const towpath_gpu::Table towpath_gpu_table;
extern "C" towpath_gpu::Span towpath_gpu_multicast;  // around all multicast memory
#else
extern "C" __attribute__((visibility("hidden"))) towpath_gpu::Current towpath_gpu_current;
extern "C" __attribute__((visibility("hidden"))) towpath_gpu::Table towpath_gpu_table;
#endif

#ifdef TOWPATH_VIRTUAL_GPU
extern "C" {
void towpath_virtual_gpu_add_kernel(const towpath_gpu::Kernel* kernel);
bool towpath_virtual_gpu_has_kernel(const void* function);
// The place of a variable in the shared memory of all blocks. Without a name it is a new one.
std::uint64_t towpath_virtual_gpu_shared_offset(const char* name, std::uint64_t size_bytes,
                                                std::uint64_t alignment);
}
#endif

// The last two parameters of calls that sentences name; the compiler fills them in.
#define TOWPATH_SITE \
  const char *towpath_file = __builtin_FILE(), int towpath_line = __builtin_LINE()
#define TOWPATH_SITE_ARGUMENTS towpath_file, towpath_line
#define TOWPATH_SITE_OF(name) \
  const towpath_gpu::Site towpath_site { towpath_file, towpath_line, name }

namespace towpath_gpu {

inline const Current& current() { return towpath_gpu_current; }
inline const Table& table() { return towpath_gpu_table; }
#ifndef TOWPATH_VIRTUAL_GPU
// The last error of the host program of this PE, a cudaError_t. Virtual GPUs keep it themselves.
inline int last_error = 0;
#endif

// The configuration of `<<<grid, block, shared, stream>>>`.
struct LaunchConfiguration : Configuration {
  template <typename Grid, typename Block>
  LaunchConfiguration(Grid grid_size, Block block_size, std::uint64_t shared = 0,
                      void* on_stream = nullptr) {
    grid = index_of(grid_size);
    block = index_of(block_size);
    shared_bytes = shared;
    stream = on_stream;
  }
  template <typename T>
  static Index3 index_of(const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      return {static_cast<unsigned>(value), 1, 1};
    } else {
      return {value.x, value.y, value.z};
    }
  }
};

template <typename Function>
Launch launch_of(const Configuration& configuration, const char* name, Function function) {
  Launch launch{};
  launch.configuration = configuration;
  launch.name = name;
  launch.run = [](void* closure) { (*static_cast<Function*>(closure))(); };
  launch.closure = new Function(std::move(function));
  launch.closure_bytes = sizeof(Function);
  launch.destroy = [](void* closure) { delete static_cast<Function*>(closure); };
  return launch;
}

// What a launch becomes. The arguments are copied at the launch, as CUDA does.
template <typename Call, typename... Arguments>
void launch(const LaunchConfiguration& configuration, const char* name, Call call,
            Arguments... arguments) {
  const Launch made =
      launch_of(configuration, name,
                [call, copies = std::make_tuple(arguments...)]() { std::apply(call, copies); });
  [[maybe_unused]] const int error = table().launch(table().self, &made);
#ifndef TOWPATH_VIRTUAL_GPU
  if (error != 0) last_error = error;
#endif
}

// Runs `function` once, as one thread of the device, on a stream.
template <typename Function>
void run_on_stream(void* stream, const char* name, Function function) {
  Launch made =
      launch_of(Configuration{{1, 1, 1}, {1, 1, 1}, 0, stream}, name, std::move(function));
  made.is_internal = true;
  table().launch(table().self, &made);
}

template <typename Function>
void run_and_wait(const char* name, Function function) {
  run_on_stream(nullptr, name, std::move(function));
  table().synchronize(table().self, nullptr, false);
}

template <typename T>
constexpr Parameter parameter_of() {
  if constexpr (std::is_pointer_v<T>) {
    return {ParameterKind::pointer, sizeof(T), alignof(T)};
  } else if constexpr (std::is_floating_point_v<T>) {
    return {ParameterKind::floating, sizeof(T), alignof(T)};
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return {std::is_signed_v<T> ? ParameterKind::signed_integer : ParameterKind::unsigned_integer,
            sizeof(T), alignof(T)};
  } else {
    return {ParameterKind::other, sizeof(T), alignof(T)};
  }
}

#ifndef TOWPATH_VIRTUAL_GPU
// Kernels of this object by name and by address.
struct Registry {
  const Kernel* kernel[kKernelsMax];
  int count;
  void add(const Kernel* added) {
    // The loader refuses an object that has more than there is room for.
    if (count < kKernelsMax) kernel[count] = added;
    ++count;
  }
};
inline Registry registry;
inline void add_kernel(const Kernel* kernel) { registry.add(kernel); }
inline bool has_kernel(const void*) { return false; }
#else
inline void add_kernel(const Kernel* kernel) { towpath_virtual_gpu_add_kernel(kernel); }
inline bool has_kernel(const void* function) { return towpath_virtual_gpu_has_kernel(function); }
#endif

template <typename Body, typename... Parameters>
struct Bound {
  Body body;
  std::tuple<std::decay_t<Parameters>...> arguments;
};

template <typename Body, typename... Parameters>
struct Registration {
  static constexpr Parameter parameters[sizeof...(Parameters) + 1] = {
      parameter_of<std::decay_t<Parameters>>()..., {}};
  Kernel kernel;

  Registration(const char* name, void (*function)(Parameters...))
      : Registration(name, function, function) {}
  Registration(const char* name, void (*function)(Parameters...), Body body) {
    using Closure = Bound<Body, Parameters...>;
    kernel.name = name;
    kernel.function = reinterpret_cast<const void*>(function);
    kernel.body = reinterpret_cast<const void*>(body);
    kernel.parameters = sizeof...(Parameters);
    kernel.parameter = parameters;
    kernel.run = [](void* closure) {
      auto& bound = *static_cast<Closure*>(closure);
      std::apply(bound.body, bound.arguments);
    };
    kernel.closure_bytes = sizeof(Closure);
    kernel.destroy = [](void* closure) { delete static_cast<Closure*>(closure); };
    kernel.bind = [](void** arguments) -> void* {
      return bind(arguments, std::index_sequence_for<Parameters...>());
    };
    add_kernel(&kernel);
  }
  template <std::size_t... Index>
  static void* bind(void** arguments, std::index_sequence<Index...>) {
    return new Bound<Body, Parameters...>{
        reinterpret_cast<Body>(arguments[sizeof...(Parameters)]),
        {*static_cast<std::decay_t<Parameters>*>(arguments[Index])...}};
  }
};
template <typename... Parameters>
Registration(const char*, void (*)(Parameters...))
    -> Registration<void (*)(Parameters...), Parameters...>;
template <typename Body, typename... Parameters>
Registration(const char*, void (*)(Parameters...), Body) -> Registration<Body, Parameters...>;

// An instance of a kernel template whose address a program takes.
template <typename... Parameters>
auto registered(void (*function)(Parameters...)) {
  // The registration adds the kernel, and stays.
  if (!has_kernel(reinterpret_cast<const void*>(function))) {
    new Registration("(a kernel template)", function);
  }
  return function;
}

// Shared memory of the block: one slot per declaration, known by the type that the source step
// makes of it. A variable outside of functions is known by its name, also in other files.
#ifdef TOWPATH_VIRTUAL_GPU
template <typename Slot>
struct SharedOffset {
  static inline const std::uint64_t of_function =
      towpath_virtual_gpu_shared_offset(nullptr, sizeof(Slot), alignof(Slot));
};
template <typename Slot>
Slot& shared(const char*, std::uint64_t) {
  return *reinterpret_cast<Slot*>(towpath_gpu_current.shared.begin +
                                  SharedOffset<Slot>::of_function);
}
template <typename Slot>
Slot& file_shared(std::uint64_t offset, const char*, std::uint64_t) {
  return *reinterpret_cast<Slot*>(towpath_gpu_current.shared.begin + offset);
}
inline std::uint64_t shared_offset(const char* name, std::uint64_t size_bytes,
                                   std::uint64_t alignment) {
  return towpath_virtual_gpu_shared_offset(name, size_bytes, alignment);
}
inline void* dynamic_shared() { return towpath_gpu_current.dynamic_shared; }

// Notes a value that the thread has loaded by a volatile load. True if the thread spun and has
// waited for a change, so that it must load again.
__attribute__((always_inline)) inline bool has_waited(const volatile void* address,
                                                      const void* value, unsigned size_bytes) {
  Polls& polls = *towpath_gpu_current.polls;
  std::uint64_t low = 0, high = 0;
  __builtin_memcpy(&low, value, size_bytes < 8 ? size_bytes : 8);
  if (size_bytes > 8) __builtin_memcpy(&high, static_cast<const char*>(value) + 8, 8);
  for (Poll& poll : polls.last) {
    if (poll.address != address) continue;
    if (poll.low != low || poll.high != high) {
      poll = {address, low, high, size_bytes, polls.round};
      polls.has_new = true;
      return false;
    }
    if (poll.round == polls.round) {
      towpath_gpu_table.wait_for_change(towpath_gpu_table.self);
      return true;
    }
    poll.round = polls.round;
    polls.has_repeated = true;
    return false;
  }
  polls.last[polls.next++ % kPollsKept] = {address, low, high, size_bytes, polls.round};
  polls.has_new = true;
  return false;
}
// A word that threads poll by loads of C++, which are then seen.
template <typename T>
class Volatile {
 public:
  operator T() const {
    T value;
    do {
      value = value_;
    } while (has_waited(&value_, &value, sizeof value));
    return value;
  }

 private:
  volatile T value_;
};
// True also of other memory that lies between multicast memory. It has no replicas.
inline bool is_multicast(const void* address) {
  return towpath_gpu_multicast.contains(reinterpret_cast<std::uintptr_t>(address));
}
inline bool holds(const Replicas& replicas, const void* address) {
  return replicas.range.contains(reinterpret_cast<std::uintptr_t>(address)) &&
         replicas.version == __atomic_load_n(&towpath_gpu_multicast.version, __ATOMIC_ACQUIRE) &&
         (replicas.changes == nullptr ||
          replicas.seen == __atomic_load_n(replicas.changes, __ATOMIC_ACQUIRE));
}
// Until the thread waits.
inline const Replicas& replicas_of(const void* address) {
  const Current& kept = towpath_gpu_current;
  if (holds(kept.replicas, address)) return kept.replicas;
  if (holds(kept.no_replicas, address)) return kept.no_replicas;
  return *towpath_gpu_table.replicas(towpath_gpu_table.self, address);
}
// The thread has changed memory.
__attribute__((always_inline)) inline void note_store() {
  ++towpath_gpu_current.polls->round;
  towpath_gpu_current.polls->has_new = true;
}
#else
template <typename Slot>
Slot& shared(const char* names, std::uint64_t size_bytes) {
  static const char key = 0;
  const SharedVariable variable{&key, names, size_bytes, alignof(Slot)};
  return *static_cast<Slot*>(table().shared(table().self, &variable));
}
template <typename Slot>
Slot& file_shared(std::uint64_t, const char* name, std::uint64_t size_bytes) {
  return shared<Slot>(name, size_bytes);
}
inline std::uint64_t shared_offset(const char*, std::uint64_t, std::uint64_t) { return 0; }
inline void* dynamic_shared() { return table().dynamic_shared(table().self); }
// The compiler reports volatile accesses.
inline bool has_waited(const volatile void*, const void*, unsigned) { return false; }
inline void note_store() {}
inline bool is_multicast(const void*) { return false; }
inline const Replicas& replicas_of(const void*) { return towpath_gpu_current.replicas; }
#endif

}  // namespace towpath_gpu
