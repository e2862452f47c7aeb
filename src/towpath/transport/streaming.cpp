// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/streaming.hpp"

#include <algorithm>
#include <cstring>

// As in reduction.cpp: compiled once per vector unit of the architecture.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "towpath/transport/streaming.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace towpath::transport {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A whole line at a time: a partially stored line is written to memory in parts.
void stream_here(std::byte* to, const std::byte* from, std::uint64_t size_bytes) {
  const hn::CappedTag<std::uint8_t, 64> d;
  constexpr std::uint64_t kLineBytes = 64;
  const std::uint64_t lanes = hn::Lanes(d);
  const std::uint64_t past_line = reinterpret_cast<std::uintptr_t>(to) % kLineBytes;
  std::uint64_t i = past_line == 0 ? 0 : std::min(kLineBytes - past_line, size_bytes);
  std::memcpy(to, from, i);
  for (; i + kLineBytes <= size_bytes; i += kLineBytes) {
    for (std::uint64_t j = 0; j < kLineBytes; j += lanes) {
      const auto bytes = hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(from + i + j));
      hn::Stream(bytes, d, reinterpret_cast<std::uint8_t*>(to + i + j));
    }
  }
  std::memcpy(to + i, from + i, size_bytes - i);
  hwy::FlushStream();
}

}  // namespace HWY_NAMESPACE
}  // namespace towpath::transport
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace towpath::transport {

HWY_EXPORT(stream_here);

void stream_copy(std::byte* to, const std::byte* from, std::uint64_t size_bytes) {
  HWY_DYNAMIC_DISPATCH(stream_here)(to, from, size_bytes);
}

}  // namespace towpath::transport
#endif  // HWY_ONCE
