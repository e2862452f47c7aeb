// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/random.hpp"

#include "towpath/base/invariant.hpp"

namespace towpath::sim {

namespace {

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::uint64_t splitmix64(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

}  // namespace

Random::Random(std::uint64_t seed, std::string_view stream) {
  std::uint64_t state = splitmix64(seed) ^ fnv1a(stream);
  for (std::uint64_t& word : state_) word = splitmix64(state);
}

// Lemire's method: the high half of a product, redrawn if the low half would bias it.
std::uint64_t Random::below(std::uint64_t bound) {
  TOWPATH_CHECK(bound > 0, "a random number below 0 was asked for; the bound is at least 1");
  auto product = static_cast<unsigned __int128>(bits()) * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (static_cast<std::uint64_t>(product) < threshold) {
      product = static_cast<unsigned __int128>(bits()) * bound;
    }
  }
  return static_cast<std::uint64_t>(product >> 64);
}

std::int64_t Random::between(std::int64_t first, std::int64_t last) {
  TOWPATH_CHECK(first <= last, "a random number from {} to {} was asked for; the range is empty",
                first, last);
  const auto from = static_cast<std::uint64_t>(first);
  const std::uint64_t count = static_cast<std::uint64_t>(last) - from + 1;
  return static_cast<std::int64_t>(from + (count == 0 ? bits() : below(count)));
}

// Von Neumann's method needs only comparisons. A logarithm's last bit differs between libraries.
// The length of a falling run of uniforms decides; each failure adds one to the result.
double Random::exponential() {
  for (double whole = 0;; whole += 1) {
    const double first = uniform();
    double previous = first;
    for (bool is_odd = true;; is_odd = !is_odd) {
      const double next = uniform();
      if (next >= previous) {
        if (is_odd) return whole + first;
        break;
      }
      previous = next;
    }
  }
}

Time Random::exponential(Time mean) {
  const double duration_ps = exponential() * static_cast<double>(mean.ps());
  return Time::from_ps(static_cast<std::int64_t>(duration_ps + 0.5));
}

}  // namespace towpath::sim
