// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <variant>

#include "towpath/machine/checks.hpp"
#include "towpath/machine/chip.hpp"

namespace towpath::bindings {

namespace nb = nanobind;

using machine::kBytesPerCycleMax;
constexpr double kTimeMaxNs = machine::kTimeMax.ns();
constexpr double kRateMaxGbPerS = machine::kRateMax.gb_per_s();

// A block of figures is a dict in Python. Its fields are named once for both directions.
template <typename Block>
struct Field {
  const char* name;
  std::variant<int Block::*, bool Block::*, double Block::*, std::uint64_t Block::*,
               machine::BytesPerCycle Block::*, Time Block::*, Rate Block::*>
      member;
};

template <typename Value>
Value value_from(nb::handle given, const std::string& field, const char* allowed) {
  Value value{};
  if (!nb::try_cast<Value>(given, value)) {
    throw std::invalid_argument(
        fmt::format("{} is {}; it must be {}", field, nb::repr(given).c_str(), allowed));
  }
  return value;
}

inline void set(int& member, nb::handle given, const std::string& field) {
  member = value_from<int>(given, field, "a whole number");
}

inline void set(bool& member, nb::handle given, const std::string& field) {
  member = value_from<bool>(given, field, "True or False");
}

inline void set(double& member, nb::handle given, const std::string& field) {
  member = value_from<double>(given, field, "a number");
}

inline void set(std::uint64_t& member, nb::handle given, const std::string& field) {
  member = value_from<std::uint64_t>(given, field, "a whole number, not negative");
}

inline void set(machine::BytesPerCycle& member, nb::handle given, const std::string& field) {
  const double rate = value_from<double>(given, field, "a number");
  if (!(rate > 0 && rate <= kBytesPerCycleMax)) {
    throw std::invalid_argument(
        fmt::format("{} is {}; it must be positive, {} at most", field, rate, kBytesPerCycleMax));
  }
  member = machine::BytesPerCycle::from(rate);
}

inline void set(Time& member, nb::handle given, const std::string& field) {
  const double time_ns = value_from<double>(given, field, "a number");
  if (!(time_ns >= 0 && time_ns <= kTimeMaxNs)) {
    throw std::invalid_argument(
        fmt::format("{} is {}; it must be 0 to {}", field, time_ns, kTimeMaxNs));
  }
  member = Time::from_ns(time_ns);
}

inline void set(Rate& member, nb::handle given, const std::string& field) {
  const double rate_gb_per_s = value_from<double>(given, field, "a number");
  if (!(rate_gb_per_s > 0 && rate_gb_per_s <= kRateMaxGbPerS)) {
    throw std::invalid_argument(fmt::format("{} is {}; it must be positive, {} at most", field,
                                            rate_gb_per_s, kRateMaxGbPerS));
  }
  member = Rate::from_gb_per_s(rate_gb_per_s);
}

// Figures that are not given stay as they are; `owner` is whose they are, for errors.
template <typename Block, std::size_t kCount>
void set_figures(Block& block, const Field<Block> (&fields)[kCount], const nb::dict& values,
                 const char* block_name, const char* owner) {
  for (const auto& [key, value] : values) {
    const std::string name = nb::str(key).c_str();
    const std::string field = fmt::format("{}.{}", block_name, name);
    const auto known = std::find_if(std::begin(fields), std::end(fields),
                                    [&](const Field<Block>& one) { return name == one.name; });
    if (known == std::end(fields)) {
      throw std::invalid_argument(fmt::format("{} is no figure of {}", field, owner));
    }
    std::visit([&](auto member) { set(block.*member, value, field); }, known->member);
  }
}

inline nb::object shown(machine::BytesPerCycle rate) { return nb::cast(rate.value()); }
inline nb::object shown(Time time) { return nb::cast(time.ns()); }
inline nb::object shown(Rate rate) { return nb::cast(rate.gb_per_s()); }
template <typename Value>
nb::object shown(Value value) {
  return nb::cast(value);
}

template <typename Block, std::size_t kCount>
nb::dict figures_of(const Block& block, const Field<Block> (&fields)[kCount]) {
  nb::dict values;
  for (const Field<Block>& field : fields) {
    std::visit([&](auto member) { values[field.name] = shown(block.*member); }, field.member);
  }
  return values;
}

}  // namespace towpath::bindings
