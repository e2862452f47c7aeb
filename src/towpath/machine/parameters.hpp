// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "towpath/base/units.hpp"

// A parameter of a description is written once: as a member of its block, and as a row of the
// block's table beside it. From the row come the check of its value, its name in files, the reader
// of files, and the models of the Python package (python/towpath/specs/parameter_models.py).

namespace towpath::machine {

// The largest values of a description: beyond every machine, and small enough for all sums.
inline constexpr double kCyclesMax = 1'000'000;
inline constexpr double kCountMax = 65'536;
inline constexpr double kMemoryMaxBytes = 1099511627776;  // 2^40
inline constexpr double kTimeMaxNs = 1e9;
inline constexpr double kRateMaxGbPerS = 1e6;
inline constexpr double kClockMaxMhz = 1e6;

// Bytes per cycle of the chip's clock, in 1/256 byte: exact for every value that a spec may hold.
class BytesPerCycle {
 public:
  constexpr BytesPerCycle() = default;
  static constexpr BytesPerCycle from(double bytes_per_cycle) {
    return BytesPerCycle(static_cast<std::uint32_t>(bytes_per_cycle * 256 + 0.5));
  }
  constexpr double value() const { return in_256ths_ / 256.0; }
  constexpr auto operator<=>(const BytesPerCycle&) const = default;

 private:
  explicit constexpr BytesPerCycle(std::uint32_t in_256ths) : in_256ths_(in_256ths) {}
  std::uint32_t in_256ths_ = 0;
};

// What a value may be, in the unit that its name ends in.
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

// How a file writes a parameter: a quantity is a value and its source, a flag only true or false.
enum class Form : std::uint8_t { quantity, optional_quantity, flag, optional_flag };

// A pointer to a member of any type that a parameter may have. Not a std::variant, which would cost
// every file that includes a table half a second to compile.
template <typename Block>
class Member {
 public:
  constexpr Member(int Block::*member) : type_(Type::whole), whole_(member) {}
  constexpr Member(std::uint64_t Block::*member) : type_(Type::large), large_(member) {}
  constexpr Member(bool Block::*member) : type_(Type::truth), truth_(member) {}
  constexpr Member(double Block::*member) : type_(Type::real), real_(member) {}
  constexpr Member(BytesPerCycle Block::*member) : type_(Type::per_cycle), per_cycle_(member) {}
  constexpr Member(Time Block::*member) : type_(Type::time), time_(member) {}
  constexpr Member(Rate Block::*member) : type_(Type::rate), rate_(member) {}
  constexpr Member(Frequency Block::*member) : type_(Type::clock), clock_(member) {}

  // Calls visit(pointer to member) with the member's own type.
  template <typename Visit>
  decltype(auto) visit(const Visit& visit) const {
    switch (type_) {
      case Type::whole: return visit(whole_);
      case Type::large: return visit(large_);
      case Type::truth: return visit(truth_);
      case Type::real: return visit(real_);
      case Type::per_cycle: return visit(per_cycle_);
      case Type::time: return visit(time_);
      case Type::rate: return visit(rate_);
      case Type::clock: break;
    }
    return visit(clock_);
  }

 private:
  enum class Type : std::uint8_t { whole, large, truth, real, per_cycle, time, rate, clock };
  Type type_;
  union {
    int Block::*whole_;
    std::uint64_t Block::*large_;
    bool Block::*truth_;
    double Block::*real_;
    BytesPerCycle Block::*per_cycle_;
    Time Block::*time_;
    Rate Block::*rate_;
    Frequency Block::*clock_;
  };
};

template <typename Block>
struct Parameter {
  std::string_view name;  // the unit is its last word
  Member<Block> member;
  Allowed allowed;
  std::string_view meaning;
  Form form = Form::quantity;
};

// `Any` is a description or a const one: functions over its blocks are for both.
template <typename Any, typename Description>
concept AnyConst = std::is_same_v<std::remove_const_t<Any>, Description>;

// When a block must be there. What is not needed is not checked.
enum class Needed : std::uint8_t { always, with_dram, with_ethernet, with_host_link };

}  // namespace towpath::machine
