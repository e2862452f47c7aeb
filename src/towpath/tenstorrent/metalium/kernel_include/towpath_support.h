// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of a compiled kernel that is ours, in a file of its own and without instrumentation: its
// entry, and what the compiler calls at every access (GCC's -fsanitize=thread), in every block of
// instructions and for every copy.

#include <algorithm>

#include "towpath_prelude.h"

extern "C" {

TowpathCore towpath_core;
extern std::uint16_t dram_bank_to_noc_xy[2][NUM_DRAM_BANKS];
extern std::int32_t bank_to_dram_offset[NUM_DRAM_BANKS];
extern std::uint16_t l1_bank_to_noc_xy[2][NUM_L1_BANKS];
extern std::int32_t bank_to_l1_offset[NUM_L1_BANKS];

// The linker's: begin and end of the shared object in memory.
extern char __ehdr_start[];
extern char _end[];
// Constructors of the kernel's global variables.
using TowpathConstructor = void (*)();
extern TowpathConstructor __start_towpath_constructors[] __attribute__((weak));
extern TowpathConstructor __stop_towpath_constructors[] __attribute__((weak));

}  // extern "C"

std::uint16_t dram_bank_to_noc_xy[2][NUM_DRAM_BANKS];
std::int32_t bank_to_dram_offset[NUM_DRAM_BANKS];
std::uint16_t l1_bank_to_noc_xy[2][NUM_L1_BANKS];
std::int32_t bank_to_l1_offset[NUM_L1_BANKS];

namespace towpath {

// Copies from the simulator's memory past the instrumentation of accesses. The heap and static
// data of a program that is not position-independent lie below 4 GiB.
inline void copy_from_host(void* to, const void* from, std::size_t size) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

// Addresses below 4 GiB are L1, registers, or a mistake. The kernel's stack and data are above.
inline bool is_device_address(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) >> 32 == 0;
}

// The kernel's stack, up to the frame of its entry, and its code and data.
inline std::uintptr_t stack_begin;
inline std::uintptr_t stack_bytes;

inline bool is_own(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto image_begin = reinterpret_cast<std::uintptr_t>(__ehdr_start);
  const auto image_end = reinterpret_cast<std::uintptr_t>(_end);
  return at - stack_begin < stack_bytes || at - image_begin < image_end - image_begin;
}

__attribute__((always_inline)) inline void access(const void* address, std::size_t size,
                                                  std::uint32_t how) {
  if (is_device_address(address) || !is_own(address)) [[unlikely]] {
    TOWPATH_CALL(access, reinterpret_cast<std::uintptr_t>(address),
                 static_cast<std::uint32_t>(size), how, __builtin_return_address(0));
  }
}

// The same for a block in memory of the kernel.
__attribute__((always_inline)) inline void own_block(const void* begin, std::size_t size,
                                                     std::uint32_t how) {
  if (size == 0) return;
  access(begin, size, how);
  access(static_cast<const char*>(begin) + size - 1, 1, how);
}

inline void fill_banks() {
  const std::uint64_t offset_mask = (std::uint64_t{1} << TOWPATH_COORDINATE_SHIFT) - 1;
  for (std::uint32_t bank = 0; bank < towpath_core.dram_bank_count; ++bank) {
    std::uint64_t address;
    copy_from_host(&address, towpath_core.dram_banks + bank, sizeof(address));
    for (auto& noc : dram_bank_to_noc_xy) {
      noc[bank] = static_cast<std::uint16_t>(address >> TOWPATH_COORDINATE_SHIFT);
    }
    bank_to_dram_offset[bank] = static_cast<std::int32_t>(address & offset_mask);
  }
  for (std::uint32_t bank = 0; bank < towpath_core.l1_bank_count; ++bank) {
    std::uint64_t address;
    copy_from_host(&address, towpath_core.l1_banks + bank, sizeof(address));
    for (auto& noc : l1_bank_to_noc_xy) {
      noc[bank] = static_cast<std::uint16_t>(address >> TOWPATH_COORDINATE_SHIFT);
    }
    bank_to_l1_offset[bank] = static_cast<std::int32_t>(address & offset_mask);
  }
}

}  // namespace towpath

extern "C" {

__attribute__((visibility("default"))) void TOWPATH_KERNEL_ENTRY(const TowpathCore* core) {
  static std::uint32_t arguments[2][TOWPATH_ARGUMENTS_MAX];
  static TowpathCalls calls;
  towpath::copy_from_host(&towpath_core, core, sizeof(towpath_core));
  towpath::copy_from_host(&calls, towpath_core.calls, sizeof(calls));
  towpath::copy_from_host(arguments[0], towpath_core.arguments,
                          towpath_core.argument_count * sizeof(std::uint32_t));
  towpath::copy_from_host(arguments[1], towpath_core.common_arguments,
                          towpath_core.common_argument_count * sizeof(std::uint32_t));
  towpath_core.calls = &calls;
  towpath_core.arguments = arguments[0];
  towpath_core.common_arguments = arguments[1];
  for (int noc = 0; noc < 2; ++noc) {
    my_x[noc] = static_cast<std::uint8_t>(towpath_core.x);
    my_y[noc] = static_cast<std::uint8_t>(towpath_core.y);
  }
  towpath::fill_banks();
  // Room for writes of a kernel behind its own frame, up to its check.
  constexpr std::size_t kRoomBytes = 2048;
  unsigned char room[kRoomBytes];
  asm volatile("" : : "r"(room) : "memory");
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  towpath::stack_begin = frame - towpath_core.stack_bytes;
  towpath::stack_bytes = towpath_core.stack_bytes;
  for (auto* it = __start_towpath_constructors; it != __stop_towpath_constructors; ++it) (*it)();
  kernel_main();
  asm volatile("" : : "r"(room) : "memory");
}

// Global variables are not taken apart, as on a core.
int __cxa_atexit(void (*)(void*), void*, void*) { return 0; }
void __cxa_pure_virtual() { TOWPATH_CALL(refuse, "it calls a function that is pure virtual"); }

// The value behind the variables of a function has changed (-fstack-protector).
#if defined(__aarch64__)
std::uintptr_t __stack_chk_guard = 0x00d6f3a1c4b59e27;
#endif
__attribute__((noreturn)) void __stack_chk_fail() {
  TOWPATH_CALL(smashed_stack, __builtin_return_address(0));
  __builtin_unreachable();
}

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

// An index beyond an array (-fsanitize=bounds). `data` begins with file, line and column.
void __ubsan_handle_out_of_bounds(const void* data, std::uintptr_t index) {
  struct Type {
    std::uint16_t kind, info;
    char name[1];
  };
  struct Data {
    const char* file;
    std::uint32_t line, column;
    const Type* array;
  };
  TOWPATH_CALL(beyond_array, index, static_cast<const Data*>(data)->array->name,
               __builtin_return_address(0));
}

// At the begin of each block of instructions (-fsanitize-coverage=trace-pc).
void __sanitizer_cov_trace_pc() {
  constexpr std::uint32_t kBlocksPerReport = 1 << 20;
  static std::uint32_t blocks = 0;
  if (++blocks < kBlocksPerReport) [[likely]]
    return;
  blocks = 0;
  TOWPATH_CALL(ran, kBlocksPerReport, __builtin_return_address(0));
}

// In place of a jump to itself, wherever the stack may end there.
#if defined(__x86_64__)
__attribute__((force_align_arg_pointer))
#endif
__attribute__((noreturn)) void
towpath_endless_loop() {
  TOWPATH_CALL(endless_loop, __builtin_return_address(0));
  __builtin_unreachable();
}

#define TOWPATH_ACCESSES(size)                                                              \
  void __tsan_read##size(void* address) {                                                   \
    towpath::access(address, size, kTowpathAligned);                                        \
  }                                                                                         \
  void __tsan_unaligned_read##size(void* address) { towpath::access(address, size, 0); }    \
  void __tsan_write##size(void* address) {                                                  \
    towpath::access(address, size, kTowpathStore | kTowpathAligned);                        \
  }                                                                                         \
  void __tsan_unaligned_write##size(void* address) {                                        \
    towpath::access(address, size, kTowpathStore);                                          \
  }                                                                                         \
  void __tsan_volatile_read##size(void* address) {                                          \
    towpath::access(address, size, kTowpathVolatile | kTowpathAligned);                     \
  }                                                                                         \
  void __tsan_unaligned_volatile_read##size(void* address) {                                \
    towpath::access(address, size, kTowpathVolatile);                                       \
  }                                                                                         \
  void __tsan_volatile_write##size(void* address) {                                         \
    towpath::access(address, size, kTowpathStore | kTowpathVolatile | kTowpathAligned);     \
  }                                                                                         \
  void __tsan_unaligned_volatile_write##size(void* address) {                               \
    towpath::access(address, size, kTowpathStore | kTowpathVolatile);                       \
  }
TOWPATH_ACCESSES(1)
TOWPATH_ACCESSES(2)
TOWPATH_ACCESSES(4)
TOWPATH_ACCESSES(8)
TOWPATH_ACCESSES(16)
#undef TOWPATH_ACCESSES

void __tsan_read_range(void* address, std::size_t size) {
  towpath::access(address, size, 0);
}
void __tsan_write_range(void* address, std::size_t size) {
  towpath::access(address, size, kTowpathStore);
}

// Copies are calls (-fno-builtin-mem...), and come here: the linker binds them within the kernel.
void* memcpy(void* __restrict to, const void* __restrict from, std::size_t size) {
  const bool is_to_l1 = towpath::is_device_address(to);
  const bool is_from_l1 = towpath::is_device_address(from);
  const auto offset = [](const void* address) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(address));
  };
  const void* const place = __builtin_return_address(0);
  if (!is_to_l1) towpath::own_block(to, size, kTowpathStore);
  if (!is_from_l1) towpath::own_block(from, size, 0);
  if (!is_to_l1 && !is_from_l1) {
    towpath::copy_from_host(to, from, size);
    return to;
  }
  unsigned char block[256];
  for (std::size_t done = 0; done < size; done += sizeof(block)) {
    const auto part = static_cast<std::uint32_t>(std::min(size - done, sizeof(block)));
    auto* target = static_cast<unsigned char*>(to) + done;
    const auto* source = static_cast<const unsigned char*>(from) + done;
    if (is_from_l1) {
      TOWPATH_CALL(load, offset(source), block, part, place);
      source = block;
    }
    if (is_to_l1) {
      TOWPATH_CALL(store, offset(target), source, part, place);
    } else {
      for (std::uint32_t i = 0; i < part; ++i) target[i] = source[i];
    }
  }
  return to;
}

void* memmove(void* to, const void* from, std::size_t size) {
  if (to <= from || towpath::is_device_address(to) || towpath::is_device_address(from)) {
    return memcpy(to, from, size);
  }
  towpath::own_block(to, size, kTowpathStore);
  towpath::own_block(from, size, 0);
  for (std::size_t i = size; i-- > 0;) {
    static_cast<unsigned char*>(to)[i] = static_cast<const unsigned char*>(from)[i];
    asm volatile("");
  }
  return to;
}

int memcmp(const void* left, const void* right, std::size_t size) {
  unsigned char bytes[2];
  for (std::size_t i = 0; i < size; ++i) {
    memcpy(bytes, static_cast<const char*>(left) + i, 1);
    memcpy(bytes + 1, static_cast<const char*>(right) + i, 1);
    if (bytes[0] != bytes[1]) return bytes[0] - bytes[1];
  }
  return 0;
}

void* memset(void* to, int value, std::size_t size) {
  auto* bytes = static_cast<unsigned char*>(to);
  if (!towpath::is_device_address(to)) {
    towpath::own_block(to, size, kTowpathStore);
    for (std::size_t i = 0; i < size; ++i) {
      bytes[i] = static_cast<unsigned char>(value);
      asm volatile("");  // so that the loop does not become a call of this function
    }
    return to;
  }
  unsigned char block[256];
  for (unsigned char& byte : block) {
    byte = static_cast<unsigned char>(value);
    asm volatile("");
  }
  for (std::size_t done = 0; done < size; done += sizeof(block)) {
    const auto part = static_cast<std::uint32_t>(std::min(size - done, sizeof(block)));
    TOWPATH_CALL(store, static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(bytes + done)),
                 block, part, __builtin_return_address(0));
  }
  return to;
}

}  // extern "C"
