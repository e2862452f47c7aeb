// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/parameters.hpp"

namespace towpath::machine {

namespace {

template <typename Value>
const Value& member_of(const void* block, const Parameter& parameter) {
  return *reinterpret_cast<const Value*>(static_cast<const std::byte*>(block) +
                                         parameter.member.offset);
}

template <typename Value>
Value& member_of(void* block, const Parameter& parameter) {
  return *reinterpret_cast<Value*>(static_cast<std::byte*>(block) + parameter.member.offset);
}

bool is_in_us(const Parameter& parameter) { return parameter.name.ends_with("_us"); }

}  // namespace

double value_of(const void* block, const Parameter& parameter) {
  switch (parameter.member.type) {
    case ValueType::whole: return member_of<int>(block, parameter);
    case ValueType::large: return static_cast<double>(member_of<std::uint64_t>(block, parameter));
    case ValueType::truth: return member_of<bool>(block, parameter) ? 1 : 0;
    case ValueType::real: return member_of<double>(block, parameter);
    case ValueType::per_cycle: return member_of<BytesPerCycle>(block, parameter).value();
    case ValueType::time: {
      const Time time = member_of<Time>(block, parameter);
      return is_in_us(parameter) ? time.us() : time.ns();
    }
    case ValueType::rate: return member_of<Rate>(block, parameter).gb_per_s();
    case ValueType::clock: break;
  }
  return static_cast<double>(member_of<Frequency>(block, parameter).hz()) / 1e6;
}

void set_value(void* block, const Parameter& parameter, double value) {
  switch (parameter.member.type) {
    case ValueType::whole: member_of<int>(block, parameter) = static_cast<int>(value); return;
    case ValueType::large:
      member_of<std::uint64_t>(block, parameter) = static_cast<std::uint64_t>(value);
      return;
    case ValueType::truth: member_of<bool>(block, parameter) = value != 0; return;
    case ValueType::real: member_of<double>(block, parameter) = value; return;
    case ValueType::per_cycle:
      member_of<BytesPerCycle>(block, parameter) = BytesPerCycle::from(value);
      return;
    case ValueType::time:
      member_of<Time>(block, parameter) =
          is_in_us(parameter) ? Time::from_us(value) : Time::from_ns(value);
      return;
    case ValueType::rate: member_of<Rate>(block, parameter) = Rate::from_gb_per_s(value); return;
    case ValueType::clock: break;
  }
  member_of<Frequency>(block, parameter) = Frequency::from_mhz(value);
}

}  // namespace towpath::machine
