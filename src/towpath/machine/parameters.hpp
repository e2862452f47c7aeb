// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/machine/bytes_per_cycle.hpp"

// A parameter of a description is written once: as a member of its block, and as a row of the
// block's table in the source file of that block. The row gives the bounds of its value, its name
// in files and its meaning. The reader of files, the checks and the models of the Python package
// (python/towpath/specs/parameter_models.py) are loops over these rows.
//
// A row names its member by offset and type, so that none of these loops is a template.

namespace towpath::machine {

// Upper bounds of values in a description: beyond every machine, and small enough for all sums.
inline constexpr double kCyclesMax = 1'000'000;
inline constexpr double kCountMax = 65'536;
inline constexpr double kMemoryMaxBytes = 1099511627776;  // 2^40
inline constexpr double kTimeMaxNs = 1e9;
inline constexpr double kRateMaxGbPerS = 1e6;
inline constexpr double kClockMaxMhz = 1e6;

// The bounds of a value, in the unit that ends its name.
struct Allowed {
  double min = 0;
  double max = 0;
  bool is_power_of_two = false;
};

constexpr Allowed between(double min, double max) { return {min, max}; }
constexpr Allowed power_of_two(double min, double max) { return {min, max, true}; }

inline constexpr Allowed kYesOrNo = between(0, 1);
inline constexpr Allowed kAnyCycles = between(0, kCyclesMax);
inline constexpr Allowed kSomeCycles = between(1, kCyclesMax);
inline constexpr Allowed kCount = between(1, kCountMax);
inline constexpr Allowed kMemory = between(1, kMemoryMaxBytes);
inline constexpr Allowed kAlignment = power_of_two(1, 4096);
inline constexpr Allowed kDurationNs = between(0, kTimeMaxNs);
inline constexpr Allowed kRateGbPerS = between(1e-3, kRateMaxGbPerS);
inline constexpr Allowed kRatePerCycle = between(1.0 / 256, 1e6);

// File representation of a parameter: a quantity has a value and a source, a flag only true or
// false.
enum class Form : std::uint8_t { quantity, optional_quantity, flag, optional_flag };

// The type of a member.
enum class ValueType : std::uint8_t { whole, large, truth, real, per_cycle, time, rate, clock };

template <typename Value>
consteval ValueType value_type_of() {
  if constexpr (std::is_same_v<Value, int>) return ValueType::whole;
  if constexpr (std::is_same_v<Value, std::uint64_t>) return ValueType::large;
  if constexpr (std::is_same_v<Value, bool>) return ValueType::truth;
  if constexpr (std::is_same_v<Value, double>) return ValueType::real;
  if constexpr (std::is_same_v<Value, BytesPerCycle>) return ValueType::per_cycle;
  if constexpr (std::is_same_v<Value, Time>) return ValueType::time;
  if constexpr (std::is_same_v<Value, Rate>) return ValueType::rate;
  if constexpr (std::is_same_v<Value, Frequency>) return ValueType::clock;
}

// A member of a block. Created only by TOWPATH_MEMBER(Block, member).
struct Member {
  std::size_t offset = 0;
  ValueType type = ValueType::whole;
};

#define TOWPATH_MEMBER(Block, member) \
  (::towpath::machine::Member{        \
      offsetof(Block, member),        \
      ::towpath::machine::value_type_of<std::remove_cv_t<decltype(Block::member)>>()})

// Name and member of a row with the same spelling.
#define TOWPATH_PARAMETER(Block, member) #member, TOWPATH_MEMBER(Block, member)

struct Parameter {
  std::string_view name;  // the last word is the unit
  Member member;
  Allowed allowed;
  std::string_view meaning;
  Form form = Form::quantity;
  // For the default of an optional quantity. Without a default, such a quantity may be zero.
  std::string_view default_source{};

  bool is_optional() const {
    return form == Form::optional_quantity || form == Form::optional_flag;
  }
};

// A value of a block, in the unit of the parameter's name. The block must be of the table's type.
double value_of(const void* block, const Parameter& parameter);
void set_value(void* block, const Parameter& parameter, double value);

// A condition on the description for a block to be read and checked.
enum class Needed : std::uint8_t { always, with_dram, with_ethernet, with_host_link };

// A std::vector of blocks, without their type.
struct BlockList {
  std::size_t (*size)(const void* list);
  const void* (*at)(const void* list, std::size_t position);
  void* (*add)(void* list);
};

template <typename Block>
inline constexpr BlockList kListOf = {
    [](const void* list) { return static_cast<const std::vector<Block>*>(list)->size(); },
    [](const void* list, std::size_t position) -> const void* {
      return static_cast<const std::vector<Block>*>(list)->data() + position;
    },
    [](void* list) -> void* { return &static_cast<std::vector<Block>*>(list)->emplace_back(); },
};

// A block of a description, or a list of blocks, with the table of its parameters.
struct BlockTable {
  std::string_view path;  // in files, such as "pcie.windows"; empty: fields of the description
  std::size_t offset = 0;
  std::span<const Parameter> parameters;
  Needed needed = Needed::always;
  const BlockList* list = nullptr;

  void* in(void* description) const { return static_cast<std::byte*>(description) + offset; }
  const void* in(const void* description) const {
    return static_cast<const std::byte*>(description) + offset;
  }
};

// The tables of the descriptions.
std::span<const BlockTable> chip_tables();             // of a Chip
std::span<const BlockTable> host_tables();             // of a Host
std::span<const BlockTable> mailbox_cluster_tables();  // of a MailboxCluster
std::span<const BlockTable> gpu_cost_tables();         // of a GpuCost
std::span<const Parameter> kernel_parameters();        // of a KernelCost
std::span<const Parameter> link_parameters();          // of a Link

}  // namespace towpath::machine
