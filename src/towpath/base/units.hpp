// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

// Quantities with their unit in the type. The core uses no other representation of time or speed.
// Bytes and cycles may also be integers with the unit as the last word of the name (size_bytes,
// hop_cycles). The same holds for bare numbers at the interfaces (latency_ns).
//
//   Time t = 5_ns + transfer_time(64_KiB, 50_GBps);
//
// Wrong: adding up a rounded clock period. Use Frequency::time_of(cycle), which rounds once.

namespace towpath {

using Int128 = __int128;

// A point in simulated time or a duration: whole picoseconds.
class Time {
 public:
  constexpr Time() = default;
  static constexpr Time from_ps(std::int64_t ps) { return Time(ps); }
  static constexpr Time from_ns(double ns) { return Time(rounded(ns * 1e3)); }
  static constexpr Time from_us(double us) { return Time(rounded(us * 1e6)); }
  static constexpr Time from_seconds(double s) { return Time(rounded(s * 1e12)); }
  static constexpr Time max() { return Time(INT64_MAX); }

  constexpr std::int64_t ps() const { return ps_; }
  constexpr double ns() const { return static_cast<double>(ps_) / 1e3; }
  constexpr double us() const { return static_cast<double>(ps_) / 1e6; }
  constexpr double seconds() const { return static_cast<double>(ps_) / 1e12; }

  constexpr auto operator<=>(const Time&) const = default;
  constexpr Time operator+(Time other) const { return Time(ps_ + other.ps_); }
  constexpr Time operator-(Time other) const { return Time(ps_ - other.ps_); }
  constexpr Time operator*(std::int64_t factor) const { return Time(ps_ * factor); }
  constexpr Time& operator+=(Time other) {
    ps_ += other.ps_;
    return *this;
  }
  constexpr Time& operator-=(Time other) {
    ps_ -= other.ps_;
    return *this;
  }

 private:
  explicit constexpr Time(std::int64_t ps) : ps_(ps) {}
  static constexpr std::int64_t rounded(double x) {
    return static_cast<std::int64_t>(x < 0 ? x - 0.5 : x + 0.5);
  }
  std::int64_t ps_ = 0;
};

// A size. GB is 1e9 bytes, GiB 2^30.
class Bytes {
 public:
  constexpr Bytes() = default;
  explicit constexpr Bytes(std::uint64_t count) : count_(count) {}

  constexpr std::uint64_t count() const { return count_; }

  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes operator+(Bytes other) const { return Bytes(count_ + other.count_); }
  constexpr Bytes operator-(Bytes other) const { return Bytes(count_ - other.count_); }
  constexpr Bytes operator*(std::uint64_t factor) const { return Bytes(count_ * factor); }
  constexpr Bytes& operator+=(Bytes other) {
    count_ += other.count_;
    return *this;
  }

 private:
  std::uint64_t count_ = 0;
};

// Bytes per second.
class Rate {
 public:
  constexpr Rate() = default;
  static constexpr Rate from_bytes_per_second(std::int64_t rate) { return Rate(rate); }
  static constexpr Rate from_gb_per_s(double rate) {
    return Rate(static_cast<std::int64_t>(rate * 1e9 + 0.5));
  }

  constexpr std::int64_t bytes_per_second() const { return bytes_per_second_; }
  constexpr double gb_per_s() const { return static_cast<double>(bytes_per_second_) / 1e9; }

  constexpr auto operator<=>(const Rate&) const = default;

 private:
  explicit constexpr Rate(std::int64_t rate) : bytes_per_second_(rate) {}
  std::int64_t bytes_per_second_ = 0;
};

[[noreturn]] void throw_rate_error(std::uint64_t bytes, std::int64_t bytes_per_second);

// Time for `size` at `rate`, rounded up to a whole picosecond, so a transfer is never free or
// early. Throws InvariantError unless the rate is positive.
constexpr Time transfer_time(Bytes size, Rate rate) {
  if (rate <= Rate()) [[unlikely]]
    throw_rate_error(size.count(), rate.bytes_per_second());
  const Int128 scaled = static_cast<Int128>(size.count()) * 1'000'000'000'000;
  const Int128 divisor = rate.bytes_per_second();
  return Time::from_ps(static_cast<std::int64_t>((scaled + divisor - 1) / divisor));
}

// The rate that takes `time`, above 0, for `size`: rounded down, at least a byte per second.
constexpr Rate rate_of(Bytes size, Time time) {
  const Int128 scaled = static_cast<Int128>(size.count()) * 1'000'000'000'000;
  return Rate::from_bytes_per_second(
      std::max<std::int64_t>(1, static_cast<std::int64_t>(scaled / time.ps())));
}

// A number of clock cycles since a clock's origin, or a duration in cycles of one clock.
class Cycles {
 public:
  constexpr Cycles() = default;
  explicit constexpr Cycles(std::int64_t count) : count_(count) {}

  constexpr std::int64_t count() const { return count_; }

  constexpr auto operator<=>(const Cycles&) const = default;
  constexpr Cycles operator+(Cycles other) const { return Cycles(count_ + other.count_); }
  constexpr Cycles operator-(Cycles other) const { return Cycles(count_ - other.count_); }

 private:
  std::int64_t count_ = 0;
};

// A clock frequency in hertz.
class Frequency {
 public:
  constexpr Frequency() = default;
  static constexpr Frequency from_hz(std::int64_t hz) { return Frequency(hz); }
  static constexpr Frequency from_mhz(double mhz) {
    return Frequency(static_cast<std::int64_t>(mhz * 1e6 + 0.5));
  }

  constexpr std::int64_t hz() const { return hz_; }

  constexpr auto operator<=>(const Frequency&) const = default;

  // Time of `cycles` since the origin: ceil(cycles * 1e12 / hz), rounded once.
  constexpr Time time_of(Cycles cycles) const {
    const Int128 scaled = static_cast<Int128>(cycles.count()) * 1'000'000'000'000;
    return Time::from_ps(static_cast<std::int64_t>((scaled + hz_ - 1) / hz_));
  }

  // First cycle with its edge at or after `time`: time_of(cycle_at(t)) >= t, tightly.
  constexpr Cycles cycle_at(Time time) const {
    const Int128 scaled = static_cast<Int128>(time.ps()) * hz_;
    std::int64_t cycle = static_cast<std::int64_t>(scaled / 1'000'000'000'000);
    if (time_of(Cycles(cycle)) < time) ++cycle;
    return Cycles(cycle);
  }

 private:
  explicit constexpr Frequency(std::int64_t hz) : hz_(hz) {}
  std::int64_t hz_ = 1;
};

namespace literals {
constexpr Time operator""_ps(unsigned long long v) {
  return Time::from_ps(static_cast<std::int64_t>(v));
}
constexpr Time operator""_ns(unsigned long long v) {
  return Time::from_ps(static_cast<std::int64_t>(v) * 1'000);
}
constexpr Time operator""_us(unsigned long long v) {
  return Time::from_ps(static_cast<std::int64_t>(v) * 1'000'000);
}
constexpr Time operator""_ms(unsigned long long v) {
  return Time::from_ps(static_cast<std::int64_t>(v) * 1'000'000'000);
}
constexpr Time operator""_s(unsigned long long v) {
  return Time::from_ps(static_cast<std::int64_t>(v) * 1'000'000'000'000);
}
constexpr Bytes operator""_B(unsigned long long v) { return Bytes(v); }
constexpr Bytes operator""_KiB(unsigned long long v) { return Bytes(v << 10); }
constexpr Bytes operator""_MiB(unsigned long long v) { return Bytes(v << 20); }
constexpr Bytes operator""_GiB(unsigned long long v) { return Bytes(v << 30); }
constexpr Rate operator""_GBps(unsigned long long v) {
  return Rate::from_bytes_per_second(static_cast<std::int64_t>(v) * 1'000'000'000);
}
constexpr Rate operator""_GBps(long double v) {
  return Rate::from_gb_per_s(static_cast<double>(v));
}
}  // namespace literals

}  // namespace towpath
