// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Included before the first line of every kernel: who it runs on, and what the hardware's compiler
// has built in.

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "towpath_kernel.h"

extern "C" TowpathCore towpath_core;
#define TOWPATH_CALL(name, ...) \
  (towpath_core.calls->name(towpath_core.core __VA_OPT__(, ) __VA_ARGS__))

#define tt_l1_ptr
#define tt_reg_ptr
#define FORCE_INLINE inline __attribute__((always_inline))
#define ALWI inline __attribute__((always_inline))
#define TT_ALWAYS_INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

using uint = unsigned int;

// Kernels cast between pointers and words of 32 bits; all addresses that they may use so fit.
inline constexpr std::uint8_t noc_index = NOC_INDEX;
inline std::uint8_t my_x[2];
inline std::uint8_t my_y[2];

enum class ProgrammableCoreType : std::uint8_t { TENSIX = 0, ACTIVE_ETH = 1, IDLE_ETH = 2, COUNT };

void kernel_main();
