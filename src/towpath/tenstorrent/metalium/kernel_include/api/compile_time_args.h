// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#ifndef KERNEL_COMPILE_TIME_ARGS
#define KERNEL_COMPILE_TIME_ARGS
#endif

template <class... Values>
constexpr auto towpath_make_array(Values... values) {
  return std::array<std::uint32_t, sizeof...(Values)>{static_cast<std::uint32_t>(values)...};
}

inline constexpr auto kernel_compile_time_args = towpath_make_array(KERNEL_COMPILE_TIME_ARGS);

template <std::uint32_t Index>
constexpr std::uint32_t get_ct_arg() {
  static_assert(Index < kernel_compile_time_args.size(),
                "the kernel asks for a compile-time argument that it was not created with");
  return kernel_compile_time_args[Index];
}

#define get_compile_time_arg_val(arg_idx) get_ct_arg<arg_idx>()

struct towpath_named_argument {
  std::string_view name;
  std::uint32_t value;
};
#ifdef KERNEL_COMPILE_TIME_ARG_MAP
inline constexpr towpath_named_argument towpath_named_arguments[] = {KERNEL_COMPILE_TIME_ARG_MAP};
#else
inline constexpr std::array<towpath_named_argument, 0> towpath_named_arguments{};
#endif

void the_kernel_was_not_created_with_this_named_compile_time_argument();

consteval std::uint32_t get_named_compile_time_arg_val(std::string_view name) {
  for (const towpath_named_argument& argument : towpath_named_arguments) {
    if (argument.name == name) return argument.value;
  }
  the_kernel_was_not_created_with_this_named_compile_time_argument();  // not constant: an error
  return 0;
}
#define get_named_ct_arg(name) get_named_compile_time_arg_val(name)
